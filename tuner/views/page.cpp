#include "tuner/views/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "generator/ops/op_file.h"
#include "roofline/analyses/figures.h"
#include "tuner/views/json.h"
#include "tuner/views/text.h"

namespace roofgen {
namespace {

class TunePage : public ResultPage {
 public:
  using ResultPage::ResultPage;

  plot::Page build() {
    plot::Page page;
    page.title = fmt::format("{} on {}", text(result_.at("problem"), "op"), device_.name);
    facts(page);
    if (!text_or_none(result_, "best_variant").empty()) page.blocks.emplace_back(times());
    plot::Roofline placed = roofline();
    if (std::ranges::any_of(placed.points, [](const plot::Point& p) { return p.ai > 0; }))
      page.blocks.emplace_back(std::move(placed));
    page.blocks.emplace_back(kernels());
    page.blocks.emplace_back(verification());
    if (measured()) page.blocks.emplace_back(finalists());
    page.blocks.emplace_back(factors());
    page.blocks.emplace_back(traffic());
    page.blocks.emplace_back(schedules());
    Reasons rejected;
    for (const Json& v : result_.at("variants"))
      if (!v.at("available").get<bool>()) rejected.emplace_back(text(v, "name"), text(v, "rejected_because"));
    for (const auto& [names, reason] : joined(rejected)) page.facts.push_back({"rejected: " + names, reason});
    for (const Json& w : result_.at("warnings"))
      page.warnings.push_back(fmt::format("{} {}", text(w, "rule"), text(w, "text")));
    return page;
  }

 private:
  void facts(plot::Page& page) const {
    const Json& floor = result_.at("floor");
    page.facts = {
        {"answer", answer()},
        {"problem", words(result_.at("problem"), {"op", "flop_convention"})},
        {"device", text(result_.at("device"), "description")},
        {"compiler", text(result_, "compiler")},
        {"searched", searched()},
        {"score",
         fmt::format("{} of the sustained roofline, {} of the datasheet's; floor {} ({})", fixed(result_, "score"),
                     fixed(result_, "score_datasheet"), microseconds(floor, "time_us"), text(floor, "bound_by"))},
        {"FLOPs", text(result_.at("problem"), "flop_convention")},
        {"origins",
         measured()
             ? fmt::format("times: {}; registers: compiled; instructions, L2 traffic: simulated; DRAM traffic: model",
                           to_string(origin()))
             : "registers: compiled; instructions, L2 traffic: simulated; DRAM traffic and times: model"}};
    if (!measured()) return;
    const Json& gpu = result_.at("gpu");
    page.facts.push_back(
        {"GPU", fmt::format("{} {}, driver {}, {}, ranked by {} times, {}", text(gpu, "name"), text(gpu, "uuid"),
                            text(gpu, "driver"), text(gpu, "protocol"), text(gpu, "ranked_by"), text(gpu, "started"))});
    if (gpu.contains("at_clock"))
      page.facts.push_back(
          {"at the clock", fmt::format("{} of the datasheet's roofline at the {:.0f} MHz it ran at",
                                       fixed(gpu.at("at_clock"), "score"), number(gpu.at("at_clock"), "sm_mhz"))});
    for (const Json& note : gpu.at("notes")) page.facts.push_back({"note", note.get<std::string>()});
  }

  static std::string text_or_none(const Json& j, const char* key) {
    return j.at(key).is_string() ? j.at(key).get<std::string>() : "";
  }

  std::string answer() const {
    const Json& verdict = result_.at("verdict");
    const std::string best = text_or_none(result_, "best_variant");
    std::string out;
    for (const Json& v : result_.at("variants"))
      if (text(v, "name") == best)
        out = fmt::format("{}, {}, {} of the sustained roofline. ", best, microseconds(v, "time_us"),
                          fixed(result_, "score"));
    std::string decision = text(verdict, "decision");
    std::ranges::transform(decision, decision.begin(), [](unsigned char c) { return std::toupper(c); });
    return out + fmt::format("{}: {}", decision, text(verdict, "reason"));
  }

  /// Each variant beside the least time that the ceilings allow, the fastest first.
  plot::Bars times() const {
    std::vector<std::pair<double, std::string>> all;
    for (const Json& v : result_.at("variants"))
      if (total_us(v) > 0) all.emplace_back(total_us(v), text(v, "name"));
    std::sort(all.begin(), all.end());
    all.emplace(all.begin(), number(result_.at("floor"), "time_us"), "roofline");
    plot::Bars out{"Time of each variant, and the least that the roofline allows", "us", false, {}, {{"time", {}}}};
    for (const auto& [time, name] : all) {
      out.labels.push_back(name);
      out.series[0].values.push_back(time);
    }
    return out;
  }

  std::string searched() const {
    std::string out = fmt::format("{} points, {} compiled", result_.at("considered").get<uint64_t>(),
                                  result_.at("compiled").get<uint64_t>());
    if (measured())
      out += fmt::format(", {} verified and timed on the GPU", result_.at("gpu").at("timed").get<uint64_t>());
    return out + fmt::format(", {} {}", result_.at("simulated").get<uint64_t>(), measured() ? "simulated" : "verified");
  }

  bool measured() const { return result_.contains("gpu"); }  ///< possibly by a simulated driver
  Origin origin() const {
    return measured() && result_.at("device").at("origin") == "measured" ? Origin::kMeasured : Origin::kSimulated;
  }

  static double total_us(const Json& variant) {
    return variant.at("time_us").is_number() ? variant.at("time_us").get<double>() : 0;
  }

  plot::Point kernel_point(const Json& variant, const Json& k) const {
    plot::Point p;
    p.name = text(variant, "name") + " " + text(k, "name");
    p.time_us = number(k, "time_us");
    p.ai = number(k, "arithmetic_intensity");
    p.tflops = p.time_us > 0 ? p.ai * number(k, "dram_bytes") / p.time_us * 1e-6 : 0;
    p.bound_by = text(k, "bound_by");
    p.share = total_us(variant) > 0 ? p.time_us / total_us(variant) : 0;
    p.roof_tflops = attainable_tflops(device_, dtype(), p.ai);
    p.origin = origin();
    p.details = {
        {"schedule", text(k.at("schedule"), "text")},
        {"registers", fmt::to_string(k.at("registers").get<int>())},
        {"spills", bytes(k, "spill_bytes")},
        {"occupancy", fmt::format("{} (limited by {})", percent(k, "occupancy"), text(k, "occupancy_limited_by"))},
        {"waves", fmt::format("{:.1f}", number(k, "waves"))},
        {"DRAM", bytes(k, "dram_bytes")},
        {"L2", bytes(k, "l2_bytes")},
        {"waste x idle x stall", time_factors(k)}};
    return p;
  }

  plot::Roofline roofline() const {
    plot::Roofline out = device_roofline(device_);
    out.title = fmt::format("Where the kernels stand on {}", device_.title);
    // With so many FLOPs for each exp, the special-function units are one more ceiling.
    const Json& problem = result_.at("problem");
    const auto op = OpFile::load(files_, text(problem, "op"));
    if (op && op->flops_per_exp && problem.contains(op->flops_per_exp->first)) {
      const auto& [size, flops] = *op->flops_per_exp;
      if (const auto rate = flops.eval_number(expr::Map{{size, problem.at(size).get<int64_t>()}}))
        out.ceilings.push_back({fmt::format("special functions at {} = {:g}", size, number(problem, size.c_str())),
                                roof_of(device_, Resource::kSpecial, RoofSet::kDatasheet).rate * *rate / 1e12,
                                Origin::kModel, "DRAM"});
    }
    // Matrix instructions below the peak are one more ceiling each: mma.sync on Hopper.
    const auto peak = matrix_roof(device_, dtype(), "fp32", RoofSet::kDatasheet);
    for (MatrixInstruction instruction : kMatrixInstructions) {
      const Roof roof = instruction_roof(device_, instruction, dtype(), RoofSet::kDatasheet);
      if (peak && roof.rate > 0 && roof.rate < 0.95 * peak->rate)
        out.ceilings.push_back({to_string(instruction), 1e-12 * roof.rate, roof.origin, "DRAM"});
    }
    std::map<bool, size_t> sum;  // fused or not -> index of its point
    for (const Json& v : result_.at("variants")) {
      if (!v.at("available").get<bool>() || v.at("kernels").empty()) continue;
      const Json& kernels = v.at("kernels");
      for (const Json& k : kernels) out.points.push_back(kernel_point(v, k));
      if (kernels.size() > 1) {
        plot::Point all;
        all.name = text(v, "name") + ", all kernels";
        all.time_us = total_us(v);
        all.ai = number(v, "arithmetic_intensity");
        all.tflops = all.time_us > 0 ? all.ai * number(v, "dram_bytes") / all.time_us * 1e-6 : 0;
        all.share = 1;
        all.roof_tflops = attainable_tflops(device_, dtype(), all.ai);
        all.origin = origin();
        out.points.push_back(std::move(all));
      }
      sum[kernels.size() == 1] = out.points.size() - 1;
    }
    if (sum.size() == 2)
      out.arrows.push_back(
          {sum.at(false), sum.at(true), fmt::format("fused: {}x", fixed(result_.at("verdict"), "speedup"))});
    return out;
  }

  template <class F>
  void each_kernel(F f) const {
    for (const Json& v : result_.at("variants"))
      for (const Json& k : v.at("kernels")) f(text(v, "name"), k);
  }

  plot::TableBlock kernels() const {
    plot::TableBlock t{"Kernels",
                       {"variant", "kernel", "time", "bound by", "regs", "spills", "occ", "waves", "DRAM", "L2", "AI",
                        "waste", "idle", "stall", "err/tol"},
                       {}};
    each_kernel([&](const std::string& variant, const Json& k) {
      t.rows.push_back({variant, text(k, "name"), microseconds(k, "time_us"), text(k, "bound_by"),
                        fmt::format("{:g}", number(k, "registers")), bytes(k, "spill_bytes"), percent(k, "occupancy"),
                        fmt::format("{:.1f}", number(k, "waves")), bytes(k, "dram_bytes"), bytes(k, "l2_bytes"),
                        fmt::format("{:.0f}", number(k, "arithmetic_intensity")), fixed(k, "waste"), fixed(k, "idle"),
                        fixed(k, "stall"), fixed(k.at("verification"), "error_over_tolerance")});
    });
    return t;
  }

  plot::TableBlock verification() const {
    plot::TableBlock t{"Verification",
                       {"variant", "verified", "reduced problem", "launch", "whole grid", "as launched",
                        "rows compared", "inputs", "not run"},
                       {}};
    for (const Json& variant : result_.at("variants")) {
      if (!variant.at("available").get<bool>()) continue;
      const Json& v = variant.at("verification");
      const auto count = [&](const char* name) { return fmt::to_string(v.at(name).get<uint64_t>()); };
      const auto of = [&](const char* run, const char* total, bool tiles = false) {
        return count(run) + " of " + count(total) + (tiles ? " tiles" : " CTAs");
      };
      const std::string grid = text(v, "grid"), all = "all " + count("grid_ctas") + " CTAs";
      std::string not_run;
      for (size_t i = 0; v.contains("not_run") && i < v.at("not_run").size(); ++i)
        not_run += (i ? "; " : "") + v.at("not_run").at(i).get<std::string>();
      t.rows.push_back({text(variant, "name"),
                        variant.at("verified").get<bool>()        ? "yes"
                        : variant.value("partly_verified", false) ? "partly"
                                                                  : "no",
                        v.at("ctas_run") == 0 ? "slices only" : of("ctas_run", "ctas_total"),
                        of("launch_ctas_run", "launch_ctas_total", v.at("launch_in_tiles").get<bool>()),
                        v.at("grid_ctas") == 0 ? ""
                        : grid.empty()         ? all
                                               : all + " with " + grid,
                        v.value("division", ""), count("rows_checked"), text(v, "inputs"), not_run});
    }
    return t;
  }

  /// The best candidates, timed again in pairs; empty without a GPU.
  plot::TableBlock finalists() const {
    plot::TableBlock t{"Finalists, re-run in pairs with the winner",
                       {"variant", "kernel", "schedule", "median", "over the winner", "95 % interval", "tied"},
                       {}};
    each_kernel([&](const std::string& variant, const Json& k) {
      if (!k.contains("finalists")) return;
      for (const Json& f : k.at("finalists"))
        t.rows.push_back({variant, text(k, "name"), text(f, "schedule"), microseconds(f, "median_us"),
                          fmt::format("{:.3f}", number(f, "over_winner")),
                          fmt::format("{:.3f} to {:.3f}", number(f, "low"), number(f, "high")),
                          f.at("tied").get<bool>() ? "yes" : ""});
    });
    return t;
  }

  plot::Bars factors() const {
    plot::Bars b{
        "T = T_problem x waste x idle x stall", "factor", false, {}, {{"waste", {}}, {"idle", {}}, {"stall", {}}}};
    each_kernel([&](const std::string& variant, const Json& k) {
      b.labels.push_back(variant + " " + text(k, "name"));
      for (auto& s : b.series) s.values.push_back(k.at(s.name).get<double>());
    });
    return b;
  }

  plot::Bars traffic() const {
    plot::Bars b{"Bytes that each kernel moves", "MB", false, {}, {{"DRAM", {}}, {"L2", {}}}};
    each_kernel([&](const std::string& variant, const Json& k) {
      b.labels.push_back(variant + " " + text(k, "name"));
      b.series[0].values.push_back(number(k, "dram_bytes") / 1e6);
      b.series[1].values.push_back(number(k, "l2_bytes") / 1e6);
    });
    return b;
  }

  plot::TableBlock schedules() const {
    plot::TableBlock t{"Schedules", {"schedule", "registers", "shared memory", "threads", "binary"}, {}};
    each_kernel([&](const std::string&, const Json& k) {
      t.rows.push_back({text(k.at("schedule"), "text"), fmt::to_string(k.at("registers").get<int>()),
                        bytes(k, "smem_bytes"), fmt::to_string(k.at("threads").get<int>()),
                        text(k, "digest").substr(0, 12)});
    });
    return t;
  }
};

}  // namespace

/// A measured result contains its device, which may be missing in the catalogue or have measured cells.
Result<Device> result_device(const Json& j, const DataFiles& files) {
  const std::string name = j.at("name").get<std::string>();
  if (!j.contains("cells")) return load_device(files, name);
  Device device;
  device.name = name;
  ROOFGEN_GET(j, device, title, arch)
  for (const auto& [cell, c] : j.at("cells").items()) {
    Origin origin = Origin::kModel;
    for (Origin o : {Origin::kDatasheet, Origin::kMeasured})
      if (c.at("origin") == to_string(o)) origin = o;
    Cell& made = device.cells[cell];
    made.origin = origin;
    ROOFGEN_GET(c, made, value, unit, source)
  }
  for (const char* needed :
       {"sms", "clock_tensor_mhz", "clock_fp32_mhz", "dram_gb_s", "mufu_lanes", "fp32_lanes", "smem_bytes_per_clk"})
    if (!device.has(needed)) return Error{Exit::kUsage, fmt::format("the result's device has no cell {}", needed)};
  return device;
}

Result<plot::Page> tune_page(const Json& result, const std::string& file, const DataFiles& files) {
  return page_of<TunePage>(result, kTuneSchema, "tuning result", file, files);
}

}  // namespace roofgen
