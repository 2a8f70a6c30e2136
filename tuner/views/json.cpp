#include "tuner/views/json.h"

#include "generator/space/problem_json.h"
#include "tuner/views/measured.h"

namespace roofgen {
inline void to_json(Json& j, const Finalist& f) {
  j = {{"schedule", to_string(f.schedule)}, {"median_us", 1e-3 * f.median_ns}, {"over_winner", f.ratio}};
  ROOFGEN_PUT(j, f, low, high, tied)
}

namespace {

Json verification_json(const Verification& v) {
  Json j;
  ROOFGEN_PUT(j, v, ctas_run, ctas_total, launch_ctas_run, launch_ctas_total, launch_in_tiles, rows_checked, inputs,
              grid_ctas, grid, error_over_tolerance)
  if (!v.division.empty()) j["division"] = v.division;
  if (!v.not_run.empty()) j["not_run"] = v.not_run;
  if (!v.failure.empty()) j["failure"] = v.failure;
  return j;
}

Json problem_and_convention(const TuneReport& r) {
  Json j = problem_json(r.problem);
  j["flop_convention"] = r.words.flops;
  return j;
}

double ratio(uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

Json kernel_json(const KernelReport& k, Origin gpu) {
  const Counts& c = k.counts;
  Json j{{"name", k.stage},
         {"schedule", {{"text", to_string(k.schedule)}, {"params", params_json(k.schedule.params)}}}};
  ROOFGEN_PUT(j, k, digest, registers, spill_bytes, smem_bytes, threads)
  j["ctas"] = k.work.ctas;
  j["occupancy"] = k.occupancy.fraction;
  j["ctas_per_sm"] = k.occupancy.ctas_per_sm;
  j["occupancy_limited_by"] = k.occupancy.limited_by;
  j["waves"] = k.time.waves;
  ROOFGEN_PUT(j, k.work, dram_bytes, l2_bytes, smem_wavefronts)
  ROOFGEN_PUT(j, k, flops, exps)
  j["smem_excess"] = c.smem_ideal_wavefronts ? ratio(c.smem_wavefronts, c.smem_ideal_wavefronts) - 1 : 0.0;
  j["non_mma_per_mma"] = c.mma ? ratio(c.warp_instructions - c.mma, c.mma) : 0.0;
  j["narrow_load_lanes"] = c.narrow_load;
  ROOFGEN_PUT(j, k, compulsory_bytes, arithmetic_intensity, intermediate_in_l2)
  j["time_us"] = 1e6 * k.seconds;
  if (!k.measurement) {
    j["time_model"] = to_string(k.time.model);
    j["error_band"] = k.time.band;
  }
  if (k.code) {
    j["interval_time_us"] = 1e6 * k.code->interval_seconds;
    j["warp_instructions"] = k.code->counts.warp_instructions;
    j["time_doubts"] = k.code->doubts;
    j["branches_by_ptx"] = k.code->guessed_by_ptx;
  }
  j["bound_by"] = k.time.bound_by;
  ROOFGEN_PUT(j, k, waste, idle, stall)
  j["verification"] = verification_json(k.verification);
  if (k.measurement) {
    j["measurement"] = measurement_json(*k.measurement, gpu);
    j["model_time_us"] = k.counted ? Json(1e6 * k.time.seconds) : Json(nullptr);
    if (k.preset) j["default"] = measurement_json(*k.preset, gpu);
    j["finalists"] = k.finalists;
    j["counted"] = k.counted;
  }
  if (!k.advisories.empty()) j["ptxas_advisories"] = k.advisories;
  const Origin counted = k.work_exact ? Origin::kSimulated : Origin::kModel;
  const Origin timed = k.measurement ? gpu : Origin::kModel;
  Json& origins = j["origins"];
  for (const char* name : {"registers", "spill_bytes", "smem_bytes", "occupancy"}) origins[name] = Origin::kCompiled;
  origins["dram_bytes"] = Origin::kModel;
  for (const char* name : {"l2_bytes", "smem_wavefronts", "flops", "exps"}) origins[name] = counted;
  origins["arithmetic_intensity"] = Origin::kModel;
  origins["time_us"] = timed;
  origins["waste"] = origins["idle"] = Origin::kModel;
  origins["stall"] = timed;
  if (k.measurement) origins["model_time_us"] = Origin::kModel;
  if (k.code) origins["interval_time_us"] = origins["warp_instructions"] = Origin::kModel;
  return j;
}

namespace {

Json variant_json(const VariantReport& v, Origin gpu) {
  Json j;
  ROOFGEN_PUT(j, v, name, description, available)
  if (!v.available) {
    j["rejected_because"] = v.rejected_because;
    j["time_us"] = nullptr;
    j["verified"] = j["partly_verified"] = false;
    j["verification"] = verification_json(v.verification);
    j["kernels"] = Json::array();
    return j;
  }
  j["time_us"] = v.kernels.empty() ? Json(nullptr) : Json(1e6 * v.seconds);
  if (v.measurement) j["measurement"] = measurement_json(*v.measurement, gpu);
  j["verified"] = v.wholly_verified();
  j["partly_verified"] = v.verified && !v.wholly_verified();
  j["verification"] = verification_json(v.verification);
  ROOFGEN_PUT(j, v, dram_bytes, l2_bytes, flops)
  j["arithmetic_intensity"] = v.arithmetic_intensity();
  j["launches"] = v.kernels.size();
  j["kernels"] = Json::array();
  for (const KernelReport& k : v.kernels) j["kernels"].push_back(kernel_json(k, gpu));
  return j;
}

Json side_json(const Side& s) {
  Json j{{"time_us", 1e6 * s.seconds}};
  ROOFGEN_PUT(j, s, dram_bytes, l2_bytes, arithmetic_intensity, registers, spill_bytes, occupancy, launches)
  return j;
}

}  // namespace

Json tune_json(const TuneReport& r) {
  Json j{{"schema", kTuneSchema},
         {"problem", problem_and_convention(r)},
         {"device",
          {{"name", r.device.name},
           {"origin", r.time_origin() == Origin::kMeasured ? "measured" : "simulated"},
           {"description", r.executor_device},
           {"arch", r.arch}}},
         {"compiler", r.compiler},
         {"strategy", {{"name", r.strategy}, {"seed", r.seed}}},
         {"ended", r.ended},
         {"considered", r.considered},
         {"rejected", r.rejected},
         {"compiled", r.compiled},
         {"simulated", r.simulated_binaries},
         {"fresh", {{"compiled", r.compiled_now}, {"simulated", r.simulated_now}, {"evaluated", r.evaluated_now}}}};
  for (const WarmStart& w : r.warm_starts)
    j["warm_starts"].push_back({{"problem", w.problem}, {"device", w.device}, {"candidates", w.candidates}});
  if (r.gpu) {
    j["gpu"] = gpu_json(*r.gpu);
    j["device"]["title"] = r.device.title;
    j["device"]["cells"] = r.device.cells;
  }
  j["variants"] = Json::array();
  for (const VariantReport& v : r.variants) j["variants"].push_back(variant_json(v, r.time_origin()));
  for (const OtherVariant& v : r.untried)
    j["untried"].push_back({{"name", v.name}, {"fused", v.fused}, {"ctas", v.ctas}, {"because", v.because}});
  j["best_variant"] = r.best_variant.empty() ? Json(nullptr) : Json(r.best_variant);
  j["floor"] = {{"time_us", 1e6 * r.score.floor.seconds},
                {"bound_by", r.score.floor.bound_by},
                {"time_us_datasheet", 1e6 * r.score.floor_datasheet.seconds},
                {"origin", "model"}};
  j["score"] = r.score.value;
  j["score_datasheet"] = r.score.datasheet;
  const FusionVerdict& v = r.verdict;
  Json& verdict = j["verdict"];
  ROOFGEN_PUT(verdict, v, decision, reason, speedup)
  verdict["error_band"] = v.band;
  verdict["origin"] = v.measured ? r.time_origin() : Origin::kModel;
  if (v.measured) verdict["interval"] = {{"low", v.measured->low}, {"high", v.measured->high}};
  if (v.fused && v.unfused) verdict["causes"] = v.causes;
  if (v.fused) verdict["fused"] = side_json(*v.fused);
  if (v.unfused) verdict["unfused"] = side_json(*v.unfused);
  j["warnings"] = r.warnings;
  j["interrupted"] = r.interrupted;
  return j;
}

}  // namespace roofgen
