#include "tuner/views/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "roofline/analyses/figures.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {
namespace {

/// Most partitions in the ladder. The table has all.
constexpr size_t kMostRungs = 16;

class WhatIfPage : public ResultPage {
 public:
  using ResultPage::ResultPage;

  plot::Page build() {
    plot::Page page;
    page.title = fmt::format("What if: {} on {}", text(result_, "chain"), device_.name);
    facts(page);
    page.blocks.emplace_back(ladder());
    page.blocks.emplace_back(edges());
    if (result_.contains("split_keys")) page.blocks.emplace_back(split_keys());
    page.blocks.emplace_back(roofline());
    if (result_.contains("sweep")) {
      page.blocks.emplace_back(sweep());
      page.blocks.emplace_back(crossovers());
    }
    page.blocks.emplace_back(sides());
    page.blocks.emplace_back(partitions());
    page.blocks.emplace_back(kernels("Kernels of the fastest partition", result_.at("best")));
    if (const Json split = split_plan(); split.is_string() && split != result_.at("best"))
      page.blocks.emplace_back(kernels("Kernels of the fastest partition with split keys", split));
    for (const Json& n : result_.at("notes")) page.warnings.push_back(n.get<std::string>());
    return page;
  }

 private:
  static bool timed(const Json& p) { return p.at("time_us").is_number(); }

  Origin origin() const {
    for (Origin o : {Origin::kMeasured, Origin::kSimulated})
      if (result_.at("origins").at("time_us") == to_string(o)) return o;
    return Origin::kModel;
  }

  std::string fastest() const {
    for (const Json& p : result_.at("partitions"))
      if (timed(p) && p.at("plan") == result_.at("best"))
        return fmt::format("{}, {}", text(p, "plan"), microseconds(p, "time_us"));
    return "none has a time";
  }

  void facts(plot::Page& page) const {
    size_t legal = 0;
    for (const Json& p : result_.at("partitions")) legal += p.at("legal").get<bool>();
    const Json& floor = result_.at("floor");
    page.facts = {
        {"fastest", fastest()},
        {"problem", words(result_.at("problem"), {"op", "flop_convention", "chain"})},
        {"device", text(result_.at("device"), "description")},
        {"searched", fmt::format("{} partitions, {} legal, made of {} distinct kernels",
                                 result_.at("partitions").size(), legal, result_.at("parts").get<uint64_t>())},
        {"score", fmt::format("{} of the sustained roofline; floor {} ({})", fixed(result_, "score"),
                              microseconds(floor, "time_us"), text(floor, "bound_by"))},
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
        row.insert(row.end(), {fixed(e, "speedup") + "x", fmt::format("{:.1f} us", number(e, "gain_us")),
                               fmt::format("{:.1f} us", number(e, "gain_error_us")), bytes(e, "dram_bytes_saved")});
      else
        row.insert(row.end(), 4, "-");
      if (e.contains("intermediate"))
        row.insert(row.end(), {bytes(e.at("intermediate"), "bytes"),
                               e.at("intermediate").at("stays_in_l2").get<bool>() ? "yes" : "no"});
      else
        row.insert(row.end(), 2, "-");
      row.push_back(text(e, "reason"));
      t.rows.push_back(std::move(row));
    }
    return t;
  }

  plot::TableBlock split_keys() const {
    const Json& s = result_.at("split_keys");
    plot::TableBlock t{"Split keys: the best partition that splits them over CTAs, against all steps in one kernel",
                       {"splits", "verdict", "speedup", "gain", "+-", "parts", "in L2", "why"},
                       {{text(s, "variant"), text(s, "decision")}}};
    std::vector<std::string>& row = t.rows[0];
    if (s.contains("whole") && s.contains("split"))
      row.insert(row.end(), {fixed(s, "speedup") + "x", fmt::format("{:.1f} us", number(s, "gain_us")),
                             fmt::format("{:.1f} us", number(s, "gain_error_us"))});
    else
      row.insert(row.end(), 3, "-");
    if (s.contains("parts"))
      row.insert(row.end(),
                 {bytes(s.at("parts"), "bytes"), s.at("parts").at("stays_in_l2").get<bool>() ? "yes" : "no"});
    else
      row.insert(row.end(), 2, "-");
    row.push_back(text(s, "reason"));
    return t;
  }

  /// The plan of the best partition with split keys; null without one.
  Json split_plan() const {
    const bool timed = result_.contains("split_keys") && result_.at("split_keys").contains("split");
    return timed ? result_.at("split_keys").at("split").at("plan") : Json(nullptr);
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
        q.roof_tflops = attainable_tflops(device_, dtype(), q.ai);
        q.share = result_.at("best") == plan ? 1 : 0.3;
        q.origin = origin();
        q.details = {{"kernels", fmt::to_string(p.at("launches").get<uint64_t>())},
                     {"DRAM", bytes(p, "dram_bytes")},
                     {"L2", bytes(p, "l2_bytes")},
                     {"waste x idle x stall", time_factors(p)}};
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
            {*from, *to, fmt::format("{} > {}: {}x", text(e, "before"), text(e, "after"), fixed(e, "speedup"))});
    }
    if (const Json plan = split_plan(); plan.is_string() && result_.at("split_keys").contains("whole")) {
      const Json& s = result_.at("split_keys");
      const auto from = point(text(s.at("whole"), "plan")), to = point(plan.get<std::string>());
      if (from && to)
        out.arrows.push_back({*from, *to, fmt::format("{}: {}x", text(s, "variant"), fixed(s, "speedup"))});
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
    const auto add = [&](const std::string& verdict, const Json& e, std::initializer_list<const char*> sides) {
      for (const char* which : sides) {
        if (!e.contains(which)) continue;
        const Json& s = e.at(which);
        t.rows.push_back({verdict, which, microseconds(s, "time_us"), bytes(s, "dram_bytes"), bytes(s, "l2_bytes"),
                          fmt::format("{:.1f}", number(s, "arithmetic_intensity")),
                          fmt::format("{:g}", number(s, "registers")), percent(s, "occupancy"), bytes(s, "spill_bytes"),
                          fmt::format("{:g}", number(s, "launches")), fixed(s, "waste"), fixed(s, "idle"),
                          fixed(s, "stall"), text(s, "plan")});
      }
    };
    for (const Json& e : result_.at("edges")) add(text(e, "before") + " > " + text(e, "after"), e, {"fused", "cut"});
    if (result_.contains("split_keys")) add("split keys", result_.at("split_keys"), {"whole", "split"});
    return t;
  }

  plot::TableBlock partitions() const {
    plot::TableBlock t{"All partitions", {"plan", "time", "DRAM", "kernels", "why it has no time"}, {}};
    for (const Json& p : result_.at("partitions"))
      t.rows.push_back(timed(p) ? std::vector<std::string>{text(p, "plan"), microseconds(p, "time_us"),
                                                           bytes(p, "dram_bytes"),
                                                           fmt::to_string(p.at("launches").get<uint64_t>()), ""}
                                : std::vector<std::string>{text(p, "plan"), "-", "-", "-",
                                                           p.contains("reason") ? text(p, "reason") : ""});
    return t;
  }

  plot::TableBlock kernels(const char* title, const Json& plan) const {
    plot::TableBlock t{
        title,
        {"kernel", "time", "bound by", "regs", "spills", "occ", "DRAM", "L2", "waste", "idle", "stall", "schedule"},
        {}};
    for (const Json& p : result_.at("partitions")) {
      if (plan != p.at("plan")) continue;
      for (const Json& k : p.at("kernels")) {
        t.rows.push_back({text(k, "name"), microseconds(k, "time_us"), text(k, "bound_by"),
                          fmt::format("{:g}", number(k, "registers")), bytes(k, "spill_bytes"), percent(k, "occupancy"),
                          bytes(k, "dram_bytes"), bytes(k, "l2_bytes"), fixed(k, "waste"), fixed(k, "idle"),
                          fixed(k, "stall"), words(k.at("schedule").at("params"))});
      }
    }
    return t;
  }
};

}  // namespace

Result<plot::Page> whatif_page(const Json& result, const std::string& file, const DataFiles& files) {
  return page_of<WhatIfPage>(result, kWhatIfSchema, "what-if", file, files);
}

}  // namespace roofgen
