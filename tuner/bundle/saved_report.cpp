#include "tuner/bundle/saved_report.h"

#include "generator/space/problem_json.h"
#include "tuner/code_time_json.h"
#include "tuner/verify/result_json.h"
#include "tuner/views/json.h"

namespace roofgen {

// Of each type the list of its members stands here once and is expanded to both directions.
#define ROOFGEN_BOTH_WAYS(Type, ...) \
  ROOFGEN_TO_JSON(Type, __VA_ARGS__) \
  ROOFGEN_FROM_JSON(Type, __VA_ARGS__)

inline void to_json(Json& j, const Schedule& s) {
  ROOFGEN_PUT(j, s, variant, stage)
  j["params"] = params_json(s.params);
}
inline void from_json(const Json& j, Schedule& s) {
  ROOFGEN_GET(j, s, variant, stage)
  for (const auto& [name, value] : j.at("params").items()) s.params.emplace_back(name, param_value(value).value());
}
ROOFGEN_FROM_JSON(Cause, name, contribution, fused, separate, text)
ROOFGEN_FROM_JSON(Warning, rule, text)
ROOFGEN_BOTH_WAYS(Occupancy, ctas_per_sm, warps_per_sm, fraction, limited_by)
ROOFGEN_BOTH_WAYS(Work, matrix, math, mma_flops, mufu_ops, fp32_ops, alu_ops, issue_slots, smem_wavefronts, l2_bytes,
                  dram_bytes, ctas, warps_per_cta, async_waits, async_distance, dependent)
ROOFGEN_BOTH_WAYS(KernelTime, seconds, model, band, work_seconds, kernel_seconds, roof, bound_by, stalled_by, waves)
ROOFGEN_BOTH_WAYS(KernelReport, schedule, stage, digest, registers, spill_bytes, smem_bytes, threads, advisories,
                  occupancy, work, work_exact, counts, exps, compulsory_bytes, flops, arithmetic_intensity, time, code,
                  intermediate_in_l2, verification, seconds, counted, waste, idle, stall)
ROOFGEN_BOTH_WAYS(VariantReport, op, name, description, fused, available, rejected_because, verified, verification,
                  kernels, seconds, dram_bytes, l2_bytes, flops, default_ctas)
ROOFGEN_BOTH_WAYS(OtherVariant, name, fused, ctas, because)
ROOFGEN_BOTH_WAYS(Side, seconds, dram_bytes, l2_bytes, arithmetic_intensity, occupancy, registers, spill_bytes,
                  launches)
ROOFGEN_BOTH_WAYS(ProblemFloor, seconds, bound_by)
ROOFGEN_BOTH_WAYS(Score, floor, floor_datasheet, value, datasheet)
ROOFGEN_BOTH_WAYS(FusionVerdict, decision, reason, speedup, band, fused, unfused, causes)
ROOFGEN_BOTH_WAYS(WarmStart, problem, device, candidates)
ROOFGEN_BOTH_WAYS(TuneReport, executor_device, arch, compiler, strategy, seed, warm_starts, ended, considered, rejected,
                  compiled, simulated_binaries, sliced_binaries, closed_form_because, variants, untried, score,
                  best_variant, verdict, warnings)

Json saved_report(const TuneReport& report) { return report; }

std::optional<TuneReport> read_report(const Json& saved) {
  try {
    return saved.get<TuneReport>();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace roofgen
