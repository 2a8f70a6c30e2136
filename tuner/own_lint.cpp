#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "tuner/ceilings/ceilings.h"
#include "tuner/verdict.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// A time more than 2 % faster than its roof is a mistake; up to that, clocks and intervals are inexact.
constexpr double kAboveRoof = 1.02;

/// The form of the formula with as many kernels as the variant, and with the CTAs of the real launch. A fused variant
/// of several kernels has the form of one kernel: the others only combine its parts. Without such a form, rules that
/// need a formula are skipped.
std::optional<OpWork> variant_work(const WorkFormula& formula, const Problem& problem, const VariantReport& variant) {
  for (int64_t passes : {0, 2, 4, 6}) {
    WorkRequest request = work_request(problem);
    if (std::any_of(formula.dims().begin(), formula.dims().end(), [](const WorkDim& d) { return d.name == "passes"; }))
      request.dims["passes"] = passes;
    auto work = formula.evaluate(request);
    if (!work || work->kernels.size() != (variant.fused ? 1 : variant.kernels.size())) continue;
    work->kernels.resize(variant.kernels.size());
    for (size_t i = 0; i < work->kernels.size(); ++i) {
      work->kernels[i].ctas = variant.kernels[i].work.ctas;
      if (work->kernels.size() > 1) work->kernels[i].name = variant.kernels[i].stage;
    }
    return std::move(*work);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Warning> own_warnings(const WorkFormula* formula, const TuneReport& report) {
  std::vector<Warning> out;
  for (const VariantReport& v : report.variants) {
    if (!v.verified || v.kernels.empty() || !(v.seconds > 0)) continue;
    if (std::any_of(v.kernels.begin(), v.kernels.end(), [](const KernelReport& k) { return !k.counted; })) continue;
    const std::optional<OpWork> work = formula ? variant_work(*formula, report.problem, v) : std::nullopt;
    Claim claim;
    claim.name = v.name;
    claim.device = &report.device;
    claim.op = report.problem.op;
    claim.work = work ? &*work : nullptr;
    claim.matrix_work = v.flops > 0;
    // The FLOPs of tiles beyond the output are not FLOPs of the problem.
    const double useful = work && work->mma_flops() > 0 ? std::min(v.flops, work->mma_flops()) : v.flops;
    claim.flops = useful;
    // The DRAM bytes exclude intermediates that stay in L2.
    if (std::none_of(v.kernels.begin(), v.kernels.end(), [](const KernelReport& k) { return k.intermediate_in_l2; })) {
      claim.bytes = v.dram_bytes;
      claim.ai = v.dram_bytes > 0 ? useful / v.dram_bytes : 0;
    }
    claim.achieved_tflops = useful / v.seconds / 1e12;
    claim.time_us = 1e6 * v.seconds;
    claim.launches = static_cast<double>(v.kernels.size());
    claim.dtype = to_string(report.problem.dtype);
    claim.accumulate = "fp32";
    claim.origin = v.measurement ? to_string(report.time_origin()) : "simulated";
    claim.fused = v.fused;
    for (Warning& w : lint(claim)) out.push_back({w.rule, v.name + ": " + w.text, w.field});
  }
  const VariantReport* best = report.find(report.best_variant);
  if (report.gpu && best) {
    // A time below the floor means that the work, a ceiling or the timing is wrong.
    const GpuRun& gpu = *report.gpu;
    if (gpu.score_at_clock > kAboveRoof)
      out.push_back({"R12",
                     fmt::format("{}: {} is less than the {} ({}) that {}'s datasheet ceilings allow at the {:.0f} MHz "
                                 "it ran at: the work or a ceiling is wrong",
                                 best->name, time_text(best->seconds), time_text(gpu.floor_at_clock.seconds),
                                 gpu.floor_at_clock.bound_by, report.device.name, gpu.sm_mhz),
                     "time"});
    // Sustained rates may come from another card and are then no bound.
    else if (report.score.value > kAboveRoof)
      out.push_back({"R12",
                     fmt::format("{}: {} is less than the {} ({}) of {}'s sustained ceilings: they are too low for "
                                 "this GPU; roofgen roofline --measure finds its own",
                                 best->name, time_text(best->seconds), time_text(report.score.floor.seconds),
                                 report.score.floor.bound_by, report.device.name),
                     "time"});
    for (const VariantReport& v : report.variants) {
      if (!v.measurement || !v.verified) continue;
      const bool in_l2 =
          std::any_of(v.kernels.begin(), v.kernels.end(), [](const KernelReport& k) { return k.intermediate_in_l2; });
      for (Warning& w :
           above_measured_ceilings(report.device, {v.name, v.seconds, in_l2 ? 0 : v.dram_bytes, v.flops,
                                                   to_string(report.problem.dtype), v.measurement->sm_mhz}))
        out.push_back(std::move(w));
    }
  }
  return out;
}

}  // namespace roofgen
