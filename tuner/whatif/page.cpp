#include "tuner/views/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/units.h"
#include "roofline/figures.h"
#include "tuner/whatif/views.h"

namespace roofgen {
namespace {

/// Most partitions in the ladder. The table has all.
constexpr size_t kMostRungs = 16;

/// Reads members with Json::at, which throws where one is missing; whatif_page then names it.
class WhatIfPage {
 public:
  WhatIfPage(const Json& result, const Device& device) : result_(result), device_(device) {}

  plot::Page build() {
    plot::Page page;
    page.title = fmt::format("What if: {} on {}", result_.at("chain").get<std::string>(), device_.name);
    facts(page);
    page.blocks.emplace_back(ladder());
    page.blocks.emplace_back(edges());
    page.blocks.emplace_back(roofline());
    if (result_.contains("sweep")) {
      page.blocks.emplace_back(sweep());
      page.blocks.emplace_back(crossovers());
    }
    page.blocks.emplace_back(sides());
    page.blocks.emplace_back(partitions());
    page.blocks.emplace_back(kernels());
    for (const Json& n : result_.at("notes")) page.warnings.push_back(n.get<std::string>());
    return page;
  }

 private:
  static double number(const Json& j, const char* key) { return j.at(key).get<double>(); }
  static std::string text(const Json& j, const char* key) { return j.at(key).get<std::string>(); }
  static bool timed(const Json& p) { return p.at("time_us").is_number(); }

  Origin origin() const {
    for (Origin o : {Origin::kMeasured, Origin::kSimulated})
      if (result_.at("origins").at("time_us") == to_string(o)) return o;
    return Origin::kModel;
  }

  void facts(plot::Page& page) const {
    std::string problem;
    for (const auto& [name, value] : result_.at("problem").items())
      if (name != "op" && name != "flop_convention" && name != "chain")
        problem += fmt::format("{}{}={}", problem.empty() ? "" : " ", name, json_words(value));
    size_t legal = 0;
    for (const Json& p : result_.at("partitions")) legal += p.at("legal").get<bool>();
    const Json& floor = result_.at("floor");
    page.facts = {
        {"problem", problem},
        {"device", text(result_.at("device"), "description")},
        {"searched", fmt::format("{} partitions, {} legal, made of {} distinct kernels",
                                 result_.at("partitions").size(), legal, result_.at("parts").get<uint64_t>())},
        {"fastest", result_.at("best").is_string() ? text(result_, "best") : "none has a time"},
        {"score", fmt::format("{:.2f} of the sustained roofline; floor {} ({})", number(result_, "score"),
                              time_text(1e-6 * number(floor, "time_us")), text(floor, "bound_by"))},
        {"FLOPs", text(result_.at("problem"), "flop_convention")},
        {"origins", fmt::format("times: {}; DRAM traffic: model; L2 traffic, FLOPs: simulated; registers: compiled",
                                to_string(origin()))}};
    if (result_.contains("plan"))
      page.facts.push_back(
          {"plan", fmt::format("{}: {}", text(result_.at("plan"), "plan"), text(result_.at("plan"), "verdict"))});
  }

  plot::Bars ladder() const {
    plot::Bars b{"Partitions, the fastest first", "us", false, {}, {{"time", {}}}};
    for (const Json& p : result_.at("partitions")) {
      if (!timed(p) || b.labels.size() == kMostRungs) continue;
      b.labels.push_back(text(p, "plan"));
      b.series[0].values.push_back(number(p, "time_us"));
    }
    return b;
  }

  plot::TableBlock edges() const {
    plot::TableBlock t{"Edges: for each edge, the best partition that fuses it against the best that cuts it",
                       {"edge", "verdict", "speedup", "gain", "+-", "DRAM saved", "value", "in L2", "why"},
                       {}};
    for (const Json& e : result_.at("edges")) {
      const bool both = e.contains("fused") && e.contains("cut");
      std::vector<std::string> row{text(e, "before") + " > " + text(e, "after"), text(e, "decision")};
      if (both)
        row.insert(row.end(),
                   {fmt::format("{:.2f}x", number(e, "speedup")), fmt::format("{:.1f} us", number(e, "gain_us")),
                    fmt::format("{:.1f} us", number(e, "gain_error_us")), bytes_text(number(e, "dram_bytes_saved"))});
      else
        row.insert(row.end(), 4, "-");
      if (e.contains("intermediate"))
        row.insert(row.end(), {bytes_text(number(e.at("intermediate"), "bytes")),
                               e.at("intermediate").at("stays_in_l2").get<bool>() ? "yes" : "no"});
      else
        row.insert(row.end(), 2, "-");
      row.push_back(text(e, "reason"));
      t.rows.push_back(std::move(row));
    }
    return t;
  }

  /// Every partition that an edge's verdict names is a point, and each edge an arrow from cut to fused.
  plot::Roofline roofline() const {
    plot::Roofline out = device_roofline(device_);
    out.title = fmt::format("Whole partitions on {}", device_.title);
    std::map<std::string, size_t> index;
    const auto point = [&](const std::string& plan) -> std::optional<size_t> {
      if (const auto known = index.find(plan); known != index.end()) return known->second;
      for (const Json& p : result_.at("partitions")) {
        if (text(p, "plan") != plan || !timed(p) || !(number(p, "arithmetic_intensity") > 0)) continue;
        plot::Point q;
        q.name = plan;
        q.time_us = number(p, "time_us");
        q.ai = number(p, "arithmetic_intensity");
        q.tflops = number(p, "flops") / q.time_us * 1e-6;
        q.roof_tflops = attainable_tflops(device_, text(result_.at("problem"), "dtype"), q.ai);
        q.share = result_.at("best") == plan ? 1 : 0.3;
        q.origin = origin();
        q.details = {{"kernels", fmt::to_string(p.at("launches").get<uint64_t>())},
                     {"DRAM", bytes_text(number(p, "dram_bytes"))},
                     {"L2", bytes_text(number(p, "l2_bytes"))},
                     {"waste x idle x stall", fmt::format("{:.2f} x {:.2f} x {:.2f}", number(p, "waste"),
                                                          number(p, "idle"), number(p, "stall"))}};
        out.points.push_back(std::move(q));
        return index[plan] = out.points.size() - 1;
      }
      return std::nullopt;
    };
    for (const Json& e : result_.at("edges")) {
      if (!e.contains("fused") || !e.contains("cut")) continue;
      const auto from = point(text(e.at("cut"), "plan")), to = point(text(e.at("fused"), "plan"));
      const bool drawn = std::any_of(out.arrows.begin(), out.arrows.end(), [&](const plot::Arrow& a) {
        return from && to && a.from == *from && a.to == *to;
      });
      if (from && to && *from != *to && !drawn)
        out.arrows.push_back(
            {*from, *to, fmt::format("{} > {}: {:.2f}x", text(e, "before"), text(e, "after"), number(e, "speedup"))});
    }
    if (out.points.empty() && result_.at("best").is_string()) point(text(result_, "best"));
    return out;
  }

  /// Times over the size: one line for each partition that wins at some size.
  plot::Lines sweep() const {
    const Json& s = result_.at("sweep");
    plot::Lines out{"Sensitivity: time against " + text(s, "dim"), text(s, "dim"), "us", true, true, {}, {}};
    std::vector<std::string> winners;
    for (const Json& r : s.at("runs"))
      if (r.at("best").is_string() && std::find(winners.begin(), winners.end(), r.at("best")) == winners.end())
        winners.push_back(text(r, "best"));
    for (const std::string& w : winners) {
      plot::Lines::Series series{w, {}};
      for (const Json& r : s.at("runs"))
        for (const Json& p : r.at("partitions"))
          if (text(p, "plan") == w) series.points.emplace_back(number(r, "size"), number(p, "time_us"));
      out.series.push_back(std::move(series));
    }
    return out;
  }

  plot::TableBlock crossovers() const {
    const Json& s = result_.at("sweep");
    plot::TableBlock t{"Where the verdict flips",
                       {text(s, "dim"), "about", "fastest below", "fastest above", "outside the error band"},
                       {}};
    for (const Json& x : s.at("crossovers"))
      t.rows.push_back({fmt::format("{} to {}", x.at("below").get<int64_t>(), x.at("above").get<int64_t>()),
                        number(x, "at") > 0 ? fmt::format("{:.0f}", number(x, "at")) : "-", text(x, "from"),
                        text(x, "to"), x.at("decided").get<bool>() ? "yes" : "no"});
    return t;
  }

  plot::TableBlock sides() const {
    plot::TableBlock t{"Both sides of every edge",
                       {"edge", "", "time", "DRAM", "L2", "AI", "regs", "occ", "spills", "launches", "waste", "idle",
                        "stall", "partition"},
                       {}};
    for (const Json& e : result_.at("edges"))
      for (const char* which : {"fused", "cut"}) {
        if (!e.contains(which)) continue;
        const Json& s = e.at(which);
        t.rows.push_back(
            {text(e, "before") + " > " + text(e, "after"), which, time_text(1e-6 * number(s, "time_us")),
             bytes_text(number(s, "dram_bytes")), bytes_text(number(s, "l2_bytes")),
             fmt::format("{:.1f}", number(s, "arithmetic_intensity")), fmt::format("{:g}", number(s, "registers")),
             fmt::format("{:.0f} %", 100 * number(s, "occupancy")), bytes_text(number(s, "spill_bytes")),
             fmt::format("{:g}", number(s, "launches")), fmt::format("{:.2f}", number(s, "waste")),
             fmt::format("{:.2f}", number(s, "idle")), fmt::format("{:.2f}", number(s, "stall")), text(s, "plan")});
      }
    return t;
  }

  plot::TableBlock partitions() const {
    plot::TableBlock t{"All partitions", {"plan", "time", "DRAM", "kernels", "why it has no time"}, {}};
    for (const Json& p : result_.at("partitions"))
      t.rows.push_back(timed(p) ? std::vector<std::string>{text(p, "plan"), time_text(1e-6 * number(p, "time_us")),
                                                           bytes_text(number(p, "dram_bytes")),
                                                           fmt::to_string(p.at("launches").get<uint64_t>()), ""}
                                : std::vector<std::string>{text(p, "plan"), "-", "-", "-",
                                                           p.contains("reason") ? text(p, "reason") : ""});
    return t;
  }

  plot::TableBlock kernels() const {
    plot::TableBlock t{
        "Kernels of the fastest partition",
        {"kernel", "time", "bound by", "regs", "spills", "occ", "DRAM", "L2", "waste", "idle", "stall", "schedule"},
        {}};
    for (const Json& p : result_.at("partitions")) {
      if (result_.at("best") != p.at("plan")) continue;
      for (const Json& k : p.at("kernels")) {
        std::string schedule;
        for (const auto& [name, v] : k.at("schedule").at("params").items())
          schedule += fmt::format("{}{}={}", schedule.empty() ? "" : " ", name, json_words(v));
        t.rows.push_back({text(k, "name"), time_text(1e-6 * number(k, "time_us")), text(k, "bound_by"),
                          fmt::format("{:g}", number(k, "registers")), bytes_text(number(k, "spill_bytes")),
                          fmt::format("{:.0f} %", 100 * number(k, "occupancy")), bytes_text(number(k, "dram_bytes")),
                          bytes_text(number(k, "l2_bytes")), fmt::format("{:.2f}", number(k, "waste")),
                          fmt::format("{:.2f}", number(k, "idle")), fmt::format("{:.2f}", number(k, "stall")),
                          schedule});
      }
    }
    return t;
  }

  const Json& result_;
  const Device& device_;
};

}  // namespace

Result<plot::Page> whatif_page(const Json& result, const std::string& file, const DataFiles& files) {
  try {
    if (result.at("schema") != kWhatIfSchema)
      return Error{Exit::kUsage, fmt::format("schema {} was expected", kWhatIfSchema), {file}};
    ROOFGEN_TRY(const Device device, result_device(result.at("device"), files));
    return WhatIfPage(result, device).build();
  } catch (const Json::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole what-if: {}", e.what()), {file}};
  }
}

}  // namespace roofgen
