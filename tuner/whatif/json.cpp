#include "tuner/views/json.h"

#include "generator/space/problem_json.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {

ROOFGEN_TO_JSON(Sweep::Crossover, from, to, below, above, at, decided)

namespace {

Json intermediate_json(const WhatIfReport& r, const Intermediate& t) {
  return {{"value_of", t.name.empty() ? r.steps[t.after] : t.name},
          {"bytes", t.bytes},
          {"passing_bytes", t.distance},
          {"stays_in_l2", t.in_l2}};
}

Json partition_json(const WhatIfReport& r, const PartitionReport& p) {
  Json j{{"plan", p.name}, {"legal", p.illegal.empty()}};
  if (!p.illegal.empty() || !p.failed.empty()) j["reason"] = p.illegal.empty() ? p.failed : p.illegal;
  j["time_us"] = p.timed() ? Json(1e6 * p.seconds) : Json(nullptr);
  if (!p.timed()) return j;
  const TimeGap gap = r.best() && r.best() != &p ? time_gap(r, p, *r.best()) : TimeGap{};
  j["slower_us"] = 1e6 * gap.seconds;
  j["slower_error_us"] = 1e6 * gap.error;
  j["launches"] = p.kernels.size();
  ROOFGEN_PUT(j, p, dram_bytes, l2_bytes, flops)
  j["arithmetic_intensity"] = p.arithmetic_intensity();
  ROOFGEN_PUT(j, p, waste, idle, stall)
  if (p.together) {
    Json& together = j["verified_together"];
    ROOFGEN_PUT(together, (*p.together), passed, rows_checked, error_over_tolerance, grid_ctas, grid)
    if (!p.together->division.empty()) together["division"] = p.together->division;
    if (!p.together->not_run.empty()) together["not_run"] = p.together->not_run;
  }
  j["intermediates"] = Json::array();
  for (const Intermediate& t : p.intermediates) j["intermediates"].push_back(intermediate_json(r, t));
  j["kernels"] = Json::array();
  for (const KernelReport& k : p.kernels) j["kernels"].push_back(kernel_json(k, r.times));
  return j;
}

Json side_json(const EdgeSide& s) {
  Json j{{"plan", s.partition}, {"time_us", 1e6 * s.seconds}};
  ROOFGEN_PUT(j, s, dram_bytes, l2_bytes, arithmetic_intensity, registers, occupancy, spill_bytes, ctas, launches)
  ROOFGEN_PUT(j, s, waste, idle, stall)
  return j;
}

Json edge_json(const WhatIfReport& r, const EdgeReport& e) {
  Json j;
  ROOFGEN_PUT(j, e, before, after, decision, reason)
  j["speedup"] = e.speedup();
  j["gain_us"] = 1e6 * e.gain.seconds;
  j["gain_error_us"] = 1e6 * e.gain.error;
  j["dram_bytes_saved"] = e.dram_saved;
  if (e.dependent_gain != 0) j["dependent_launches_save_us"] = 1e6 * e.dependent_gain;
  if (e.intermediate) j["intermediate"] = intermediate_json(r, *e.intermediate);
  if (e.fused && e.cut) j["causes"] = e.causes;
  if (e.fused) j["fused"] = side_json(*e.fused);
  if (e.cut) j["cut"] = side_json(*e.cut);
  return j;
}

Json split_json(const SplitReport& s, const WhatIfReport& r) {
  Json j;
  ROOFGEN_PUT(j, s, variant, decision, reason)
  j["speedup"] = s.speedup();
  j["gain_us"] = 1e6 * s.gain.seconds;
  j["gain_error_us"] = 1e6 * s.gain.error;
  if (s.parts) j["parts"] = intermediate_json(r, *s.parts);
  if (s.whole && s.split) j["causes"] = s.causes;
  if (s.whole) j["whole"] = side_json(*s.whole);
  if (s.split) j["split"] = side_json(*s.split);
  return j;
}

}  // namespace

Json whatif_json(const WhatIfReport& r) {
  Json j{{"schema", kWhatIfSchema}, {"chain", r.title}, {"steps", r.steps}, {"problem", problem_json(r.problem)}};
  j["problem"]["flop_convention"] =
      r.matrix_flops ? "MMA FLOPs only" : "operations of the FP32 pipe: the chain has no matrix work";
  j["device"] = {{"name", r.device.name}, {"description", r.executor_device}, {"arch", r.arch}};
  if (r.times != Origin::kModel) {
    j["device"]["title"] = r.device.title;
    j["device"]["cells"] = r.device.cells;
  }
  ROOFGEN_PUT(j, r, compiler, parts, considered, compiled)
  j["fresh"] = {{"compiled", r.compiled_now}, {"evaluated", r.evaluated_now}};
  j["origins"] = {{"time_us", r.times},     {"dram_bytes", "model"},   {"l2_bytes", "simulated"},
                  {"flops", "simulated"},   {"registers", "compiled"}, {"spill_bytes", "compiled"},
                  {"occupancy", "compiled"}};
  double band = 0;  // the widest
  for (const PartitionReport& p : r.partitions)
    for (const KernelReport& k : p.kernels) band = std::max(band, k.time.band);
  j["error_band"] = band;
  j["floor"] = {{"time_us", 1e6 * r.floor.seconds}, {"bound_by", r.floor.bound_by}, {"origin", "model"}};
  j["best"] = r.best() ? Json(r.best()->name) : Json(nullptr);
  j["score"] = r.best() ? r.floor.seconds / r.best()->seconds : 0.0;
  if (r.forced) j["plan"] = {{"plan", *r.forced}, {"verdict", r.forced_verdict}};
  j["edges"] = Json::array();
  for (const EdgeReport& e : r.edges) j["edges"].push_back(edge_json(r, e));
  if (r.split) j["split_keys"] = split_json(*r.split, r);
  j["partitions"] = Json::array();
  for (const PartitionReport& p : r.partitions) j["partitions"].push_back(partition_json(r, p));
  ROOFGEN_PUT(j, r, notes, interrupted)
  return j;
}

Json sweep_json(const Sweep& sweep) {
  if (sweep.runs.empty()) return {};
  Json j = whatif_json(sweep.runs.back());
  Json runs = Json::array();
  for (const WhatIfReport& r : sweep.runs) {
    Json run{{"size", r.problem.dims.at(sweep.dim)},
             {"best", r.best() ? Json(r.best()->name) : Json(nullptr)},
             {"time_us", r.best() ? Json(1e6 * r.best()->seconds) : Json(nullptr)}};
    run["partitions"] = Json::array();
    for (const PartitionReport& p : r.partitions)
      if (p.timed()) run["partitions"].push_back({{"plan", p.name}, {"time_us", 1e6 * p.seconds}});
    run["edges"] = Json::array();
    for (const EdgeReport& e : r.edges)
      run["edges"].push_back(
          {{"before", e.before}, {"after", e.after}, {"decision", e.decision}, {"speedup", e.speedup()}});
    runs.push_back(std::move(run));
  }
  j["sweep"] = {{"dim", sweep.dim}, {"runs", std::move(runs)}, {"crossovers", sweep.crossovers}};
  return j;
}

}  // namespace roofgen
