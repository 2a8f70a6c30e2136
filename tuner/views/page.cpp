#include "tuner/views/page.h"

#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "base/units.h"
#include "roofline/figures.h"
#include "tuner/views/views.h"

namespace roofgen {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Reads members with Json::at, which throws where one is missing; tune_page then names it.
class PageBuilder {
 public:
  PageBuilder(const Json& result, const Device& device) : result_(result), device_(device) {}

  plot::Page build() {
    plot::Page page;
    const Json& problem = result_.at("problem");
    page.title = fmt::format("{} on {}", problem.at("op").get<std::string>(), device_.name);
    facts(page);
    page.blocks.emplace_back(roofline());
    page.blocks.emplace_back(kernels());
    if (measured()) page.blocks.emplace_back(finalists());
    page.blocks.emplace_back(factors());
    page.blocks.emplace_back(traffic());
    page.blocks.emplace_back(schedules());
    for (const Json& v : result_.at("variants"))
      if (!v.at("available").get<bool>())
        page.warnings.push_back(fmt::format("{} is rejected: {}", v.at("name").get<std::string>(),
                                            v.at("rejected_because").get<std::string>()));
    for (const Json& w : result_.at("warnings"))
      page.warnings.push_back(fmt::format("{} {}", w.at("rule").get<std::string>(), w.at("text").get<std::string>()));
    return page;
  }

 private:
  void facts(plot::Page& page) const {
    std::string problem;
    for (const auto& [name, value] : result_.at("problem").items())
      if (name != "op" && name != "flop_convention")
        problem += fmt::format("{}{}={}", problem.empty() ? "" : " ", name, json_words(value));
    const Json &verdict = result_.at("verdict"), &floor = result_.at("floor");
    page.facts = {
        {"problem", problem},
        {"device", result_.at("device").at("description").get<std::string>()},
        {"compiler", result_.at("compiler").get<std::string>()},
        {"searched", searched()},
        {"verdict",
         fmt::format("{}: {}", verdict.at("decision").get<std::string>(), verdict.at("reason").get<std::string>())},
        {"score",
         fmt::format("{:.2f} of the sustained roofline, {:.2f} of the datasheet's; floor {} ({})",
                     result_.at("score").get<double>(), result_.at("score_datasheet").get<double>(),
                     time_text(1e-6 * floor.at("time_us").get<double>()), floor.at("bound_by").get<std::string>())},
        {"FLOPs", result_.at("problem").at("flop_convention").get<std::string>()},
        {"origins",
         measured()
             ? fmt::format("times: {}; registers: compiled; instructions, L2 traffic: simulated; DRAM traffic: model",
                           to_string(origin()))
             : "registers: compiled; instructions, L2 traffic: simulated; DRAM traffic and times: model"}};
    if (!measured()) return;
    const Json& gpu = result_.at("gpu");
    page.facts.push_back(
        {"GPU", fmt::format("{} {}, driver {}, {}, ranked by {} times, {}", gpu.at("name").get<std::string>(),
                            gpu.at("uuid").get<std::string>(), gpu.at("driver").get<std::string>(),
                            gpu.at("protocol").get<std::string>(), gpu.at("ranked_by").get<std::string>(),
                            gpu.at("started").get<std::string>())});
    if (gpu.contains("at_clock"))
      page.facts.push_back(
          {"at the clock",
           fmt::format("{:.2f} of the datasheet's roofline at the {:.0f} MHz it ran at",
                       gpu.at("at_clock").at("score").get<double>(), gpu.at("at_clock").at("sm_mhz").get<double>())});
    for (const Json& note : gpu.at("notes")) page.facts.push_back({"note", note.get<std::string>()});
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
    p.name = variant.at("name").get<std::string>() + " " + k.at("name").get<std::string>();
    const double flops = k.at("flops").get<double>();
    p.time_us = k.at("time_us").get<double>();
    p.ai = k.at("arithmetic_intensity").get<double>();
    p.tflops = p.time_us > 0 ? flops / p.time_us * 1e-6 : 0;
    p.bound_by = k.at("bound_by").get<std::string>();
    p.share = total_us(variant) > 0 ? p.time_us / total_us(variant) : 0;
    p.roof_tflops = attainable_tflops(device_, dtype(), p.ai);
    p.origin = origin();
    p.details = {{"schedule", k.at("schedule").at("text").get<std::string>()},
                 {"registers", fmt::to_string(k.at("registers").get<int>())},
                 {"spills", bytes_text(k.at("spill_bytes").get<double>())},
                 {"occupancy", fmt::format("{} (limited by {})", percent(k.at("occupancy").get<double>()),
                                           k.at("occupancy_limited_by").get<std::string>())},
                 {"waves", fmt::format("{:.1f}", k.at("waves").get<double>())},
                 {"DRAM", bytes_text(k.at("dram_bytes").get<double>())},
                 {"L2", bytes_text(k.at("l2_bytes").get<double>())},
                 {"waste x idle x stall", fmt::format("{:.2f} x {:.2f} x {:.2f}", k.at("waste").get<double>(),
                                                      k.at("idle").get<double>(), k.at("stall").get<double>())}};
    return p;
  }

  std::string dtype() const { return result_.at("problem").at("dtype").get<std::string>(); }

  plot::Roofline roofline() const {
    plot::Roofline out = device_roofline(device_);
    out.title = fmt::format("Where the kernels stand on {}", device_.title);
    // Attention has 4 d FLOPs per exp, so the special-function units are one more ceiling.
    const Json& problem = result_.at("problem");
    if (problem.contains("d") && problem.at("op") == "attention") {
      const double d = problem.at("d").get<double>();
      out.ceilings.push_back({fmt::format("special functions at d = {:g}", d),
                              roof_of(device_, Resource::kSpecial, RoofSet::kDatasheet).rate * 4 * d / 1e12,
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
      for (const Json& k : kernels) {
        plot::Point p = kernel_point(v, k);
        if (p.ai > 0) out.points.push_back(std::move(p));  // softmax alone has no MMA FLOPs
      }
      if (kernels.size() > 1) {
        plot::Point all;
        all.name = v.at("name").get<std::string>() + ", all kernels";
        all.time_us = total_us(v);
        all.ai = v.at("arithmetic_intensity").get<double>();
        all.tflops = all.time_us > 0 ? v.at("flops").get<double>() / all.time_us * 1e-6 : 0;
        all.share = 1;
        all.roof_tflops = attainable_tflops(device_, dtype(), all.ai);
        all.origin = origin();
        out.points.push_back(std::move(all));
      }
      sum[kernels.size() == 1] = out.points.size() - 1;
    }
    if (sum.size() == 2)
      out.arrows.push_back({sum.at(false), sum.at(true),
                            fmt::format("fused: {:.2f}x", result_.at("verdict").at("speedup").get<double>())});
    return out;
  }

  template <class F>
  void each_kernel(F f) const {
    for (const Json& v : result_.at("variants"))
      for (const Json& k : v.at("kernels")) f(v.at("name").get<std::string>(), k);
  }

  plot::TableBlock kernels() const {
    plot::TableBlock t{"Kernels",
                       {"variant", "kernel", "time", "bound by", "regs", "spills", "occ", "waves", "DRAM", "L2", "AI",
                        "waste", "idle", "stall", "err/tol"},
                       {}};
    each_kernel([&](const std::string& variant, const Json& k) {
      const auto number = [&](const char* key) { return k.at(key).get<double>(); };
      t.rows.push_back({variant, k.at("name").get<std::string>(), time_text(1e-6 * number("time_us")),
                        k.at("bound_by").get<std::string>(), fmt::format("{:g}", number("registers")),
                        bytes_text(number("spill_bytes")), percent(number("occupancy")),
                        fmt::format("{:.1f}", number("waves")), bytes_text(number("dram_bytes")),
                        bytes_text(number("l2_bytes")), fmt::format("{:.0f}", number("arithmetic_intensity")),
                        fmt::format("{:.2f}", number("waste")), fmt::format("{:.2f}", number("idle")),
                        fmt::format("{:.2f}", number("stall")),
                        fmt::format("{:.2f}", k.at("verification").at("error_over_tolerance").get<double>())});
    });
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
        t.rows.push_back({variant, k.at("name").get<std::string>(), f.at("schedule").get<std::string>(),
                          time_text(1e-6 * f.at("median_us").get<double>()),
                          fmt::format("{:.3f}", f.at("over_winner").get<double>()),
                          fmt::format("{:.3f} to {:.3f}", f.at("low").get<double>(), f.at("high").get<double>()),
                          f.at("tied").get<bool>() ? "yes" : ""});
    });
    return t;
  }

  plot::Bars factors() const {
    plot::Bars b{
        "T = T_problem x waste x idle x stall", "factor", false, {}, {{"waste", {}}, {"idle", {}}, {"stall", {}}}};
    each_kernel([&](const std::string& variant, const Json& k) {
      b.labels.push_back(variant + " " + k.at("name").get<std::string>());
      for (auto& s : b.series) s.values.push_back(k.at(s.name).get<double>());
    });
    return b;
  }

  plot::Bars traffic() const {
    plot::Bars b{"FLOPs, bytes and intensity of each kernel",
                 "",
                 true,
                 {},
                 {{"GFLOP", {}}, {"DRAM MB", {}}, {"L2 MB", {}}, {"FLOP per DRAM byte", {}}}};
    each_kernel([&](const std::string& variant, const Json& k) {
      b.labels.push_back(variant + " " + k.at("name").get<std::string>());
      b.series[0].values.push_back(k.at("flops").get<double>() / 1e9);
      b.series[1].values.push_back(k.at("dram_bytes").get<double>() / 1e6);
      b.series[2].values.push_back(k.at("l2_bytes").get<double>() / 1e6);
      b.series[3].values.push_back(k.at("arithmetic_intensity").get<double>());
    });
    return b;
  }

  plot::TableBlock schedules() const {
    plot::TableBlock t{"Schedules", {"schedule", "registers", "shared memory", "threads", "binary"}, {}};
    each_kernel([&](const std::string&, const Json& k) {
      t.rows.push_back({k.at("schedule").at("text").get<std::string>(), fmt::to_string(k.at("registers").get<int>()),
                        bytes_text(k.at("smem_bytes").get<double>()), fmt::to_string(k.at("threads").get<int>()),
                        k.at("digest").get<std::string>().substr(0, 12)});
    });
    return t;
  }

  const Json& result_;
  const Device& device_;
};

}  // namespace

/// A measured result contains its device, which may be missing in the catalogue or have measured cells.
Result<Device> result_device(const Json& j, const DataFiles& files) {
  const std::string name = j.at("name").get<std::string>();
  if (!j.contains("cells")) return load_device(files, name);
  Device device;
  device.name = name;
  device.title = j.at("title").get<std::string>();
  device.arch = j.at("arch").get<std::string>();
  for (const auto& [cell, c] : j.at("cells").items()) {
    Origin origin = Origin::kModel;
    for (Origin o : {Origin::kDatasheet, Origin::kMeasured})
      if (c.at("origin") == to_string(o)) origin = o;
    device.cells[cell] = {c.at("value").get<double>(), c.at("unit").get<std::string>(), origin,
                          c.at("source").get<std::string>()};
  }
  for (const char* needed :
       {"sms", "clock_tensor_mhz", "clock_fp32_mhz", "dram_gb_s", "mufu_lanes", "fp32_lanes", "smem_bytes_per_clk"})
    if (!device.has(needed)) return Error{Exit::kUsage, fmt::format("the result's device has no cell {}", needed)};
  return device;
}

Result<plot::Page> tune_page(const Json& result, const std::string& file, const DataFiles& files) {
  try {
    if (result.at("schema") != kTuneSchema)
      return Error{Exit::kUsage, fmt::format("schema {} was expected", kTuneSchema), {file}};
    ROOFGEN_TRY(const Device device, result_device(result.at("device"), files));
    return PageBuilder(result, device).build();
  } catch (const Json::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole tuning result: {}", e.what()), {file}};
  }
}

}  // namespace roofgen
