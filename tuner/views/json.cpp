#include "base/json.h"

#include <fmt/format.h>

#include "generator/problem_json.h"
#include "tuner/views/kernel_json.h"
#include "tuner/views/measured.h"
#include "tuner/views/views.h"

namespace roofgen {
namespace {

Json verification_json(const Verification& v) {
  Json j{{"ctas_run", v.ctas_run},
         {"ctas_total", v.ctas_total},
         {"rows_checked", v.rows_checked},
         {"error_over_tolerance", v.error_over_tolerance}};
  if (!v.failure.empty()) j["failure"] = v.failure;
  return j;
}

Json problem_and_convention(const Problem& p) {
  Json j = problem_json(p);
  j["flop_convention"] =
      p.op == "attention" ? "MMA FLOPs only; exp is not a FLOP; causal counts the allowed pairs" : "MMA FLOPs only";
  return j;
}

Json schedule_json(const Schedule& s) {
  Json params = Json::object();
  for (const auto& [name, v] : s.params) std::visit([&, n = name](const auto& x) { params[n] = x; }, v);
  return Json{{"text", to_string(s)}, {"params", params}};
}

}  // namespace

Json kernel_json(const KernelReport& k, Origin gpu) {
  Json j{{"name", k.stage},
         {"schedule", schedule_json(k.schedule)},
         {"digest", k.digest},
         {"registers", k.registers},
         {"spill_bytes", k.spill_bytes},
         {"smem_bytes", k.smem_bytes},
         {"threads", k.threads},
         {"ctas", k.work.ctas},
         {"occupancy", k.occupancy.fraction},
         {"ctas_per_sm", k.occupancy.ctas_per_sm},
         {"occupancy_limited_by", k.occupancy.limited_by},
         {"waves", k.time.waves},
         {"dram_bytes", k.work.dram_bytes},
         {"l2_bytes", k.work.l2_bytes},
         {"smem_wavefronts", k.work.smem_wavefronts},
         {"flops", k.flops},
         {"exps", k.exps},
         {"smem_excess",
          k.counts.smem_ideal_wavefronts
              ? static_cast<double>(k.counts.smem_wavefronts) / static_cast<double>(k.counts.smem_ideal_wavefronts) - 1
              : 0.0},
         {"non_mma_per_mma", k.counts.mma ? static_cast<double>(k.counts.warp_instructions - k.counts.mma) /
                                                static_cast<double>(k.counts.mma)
                                          : 0.0},
         {"narrow_load_lanes", k.counts.narrow_load},
         {"compulsory_bytes", k.compulsory_bytes},
         {"arithmetic_intensity", k.arithmetic_intensity},
         {"intermediate_in_l2", k.intermediate_in_l2},
         {"time_us", 1e6 * k.seconds},
         {"bound_by", k.time.bound_by},
         {"waste", k.waste},
         {"idle", k.idle},
         {"stall", k.stall},
         {"verification", verification_json(k.verification)}};
  if (k.measurement) {
    j["measurement"] = measurement_json(*k.measurement, gpu);
    j["model_time_us"] = k.counted ? Json(1e6 * k.time.seconds) : Json(nullptr);
    if (k.preset) j["default"] = measurement_json(*k.preset, gpu);
    j["finalists"] = finalists_json(k.finalists);
    j["counted"] = k.counted;
  }
  if (!k.advisories.empty()) j["ptxas_advisories"] = k.advisories;
  const char* counted = k.work_exact ? "simulated" : "model";
  const char* timed = k.measurement ? to_string(gpu) : "model";
  j["origins"] = {{"registers", "compiled"},
                  {"spill_bytes", "compiled"},
                  {"smem_bytes", "compiled"},
                  {"occupancy", "compiled"},
                  {"dram_bytes", "model"},
                  {"l2_bytes", counted},
                  {"smem_wavefronts", counted},
                  {"flops", counted},
                  {"exps", counted},
                  {"arithmetic_intensity", "model"},
                  {"time_us", timed},
                  {"waste", "model"},
                  {"idle", "model"},
                  {"stall", timed}};
  if (k.measurement) j["origins"]["model_time_us"] = "model";
  return j;
}

namespace {

Json variant_json(const VariantReport& v, Origin gpu) {
  Json j{{"name", v.name}, {"description", v.description}, {"available", v.available}};
  if (!v.available) {
    j["rejected_because"] = v.rejected_because;
    j["time_us"] = nullptr;
    j["verified"] = false;
    j["verification"] = verification_json(v.verification);
    j["kernels"] = Json::array();
    return j;
  }
  j["time_us"] = v.kernels.empty() ? Json(nullptr) : Json(1e6 * v.seconds);
  if (v.measurement) j["measurement"] = measurement_json(*v.measurement, gpu);
  j["verified"] = v.verified;
  j["verification"] = verification_json(v.verification);
  j["dram_bytes"] = v.dram_bytes;
  j["l2_bytes"] = v.l2_bytes;
  j["flops"] = v.flops;
  j["arithmetic_intensity"] = v.arithmetic_intensity();
  j["launches"] = v.kernels.size();
  j["kernels"] = Json::array();
  for (const KernelReport& k : v.kernels) j["kernels"].push_back(kernel_json(k, gpu));
  return j;
}

Json side_json(const Side& s) {
  return Json{{"time_us", 1e6 * s.seconds}, {"dram_bytes", s.dram_bytes},
              {"l2_bytes", s.l2_bytes},     {"arithmetic_intensity", s.arithmetic_intensity},
              {"registers", s.registers},   {"spill_bytes", s.spill_bytes},
              {"occupancy", s.occupancy},   {"launches", s.launches}};
}

}  // namespace

Json causes_json(const std::vector<Cause>& causes) {
  Json out = Json::array();
  for (const Cause& c : causes)
    out.push_back({{"name", c.name},
                   {"contribution", c.contribution},
                   {"fused", c.fused},
                   {"separate", c.separate},
                   {"text", c.text}});
  return out;
}

std::string tune_json(const TuneReport& r) {
  Json j{{"schema", kTuneSchema},
         {"problem", problem_and_convention(r.problem)},
         {"device",
          {{"name", r.device.name},
           {"origin", r.time_origin() == Origin::kMeasured ? "measured" : "simulated"},
           {"description", r.executor_device},
           {"arch", r.arch}}},
         {"compiler", r.compiler},
         {"strategy", {{"name", r.strategy}, {"seed", r.seed}}},
         {"considered", r.considered},
         {"rejected", Json::object()},
         {"compiled", r.compiled},
         {"simulated", r.simulated_binaries},
         {"fresh", {{"compiled", r.compiled_now}, {"simulated", r.simulated_now}}}};
  for (const auto& [stage, n] : r.rejected) j["rejected"][stage] = n;
  if (r.gpu) {
    j["gpu"] = gpu_json(*r.gpu);
    j["device"]["title"] = r.device.title;
    j["device"]["cells"] = cells_json(r.device);
  }
  j["variants"] = Json::array();
  for (const VariantReport& v : r.variants) j["variants"].push_back(variant_json(v, r.time_origin()));
  j["best_variant"] = r.best_variant.empty() ? Json(nullptr) : Json(r.best_variant);
  j["floor"] = {{"time_us", 1e6 * r.score.floor.seconds},
                {"bound_by", r.score.floor.bound_by},
                {"time_us_datasheet", 1e6 * r.score.floor_datasheet.seconds},
                {"origin", "model"}};
  j["score"] = r.score.value;
  j["score_datasheet"] = r.score.datasheet;
  j["verdict"] = {{"decision", r.verdict.decision},
                  {"reason", r.verdict.reason},
                  {"speedup", r.verdict.speedup},
                  {"error_band", r.verdict.band},
                  {"origin", r.verdict.measured ? to_string(r.time_origin()) : "model"}};
  if (r.verdict.measured)
    j["verdict"]["interval"] = {{"low", r.verdict.measured->low}, {"high", r.verdict.measured->high}};
  if (r.verdict.fused && r.verdict.unfused) j["verdict"]["causes"] = causes_json(r.verdict.causes);
  if (r.verdict.fused) j["verdict"]["fused"] = side_json(*r.verdict.fused);
  if (r.verdict.unfused) j["verdict"]["unfused"] = side_json(*r.verdict.unfused);
  j["warnings"] = Json::array();
  for (const Warning& w : r.warnings) j["warnings"].push_back({{"rule", w.rule}, {"text", w.text}});
  j["interrupted"] = r.interrupted;
  return json_document(j);
}

}  // namespace roofgen
