#include "roofline/views/model_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace roofgen {

const ModelPhase& phase_of(const ModelView& v) {
  return *std::find_if(v.model.phases.begin(), v.model.phases.end(),
                       [&](const ModelPhase& p) { return p.name == v.runs.front().request.phase; });
}

std::string assumed_text(const ModelRequest& q) {
  return fmt::format(
      "{:g} % of each bandwidth, {:g} % of each arithmetic rate, {}", 100 * q.bandwidth_efficiency,
      100 * q.compute_efficiency,
      q.launches == Launches::kGraph ? "no gaps between kernels (CUDA graph)" : "one launch before each kernel");
}

std::string assumed_ridge_text(const ModelRun& r) {
  if (std::fabs(r.assumed_ridge() - r.ridge) <= 1e-9 * r.ridge) return "";
  return fmt::format("With these assumptions the ridge is at {:.1f}; the limits use that ridge", r.assumed_ridge());
}

std::vector<std::string> notes_of(const ModelView& v) {
  std::vector<std::string> out = v.model.notes;
  for (const ModelRun& r : v.runs)
    for (const std::string& note : r.notes)
      if (std::find(out.begin(), out.end(), note) == out.end()) out.push_back(note);
  return out;
}

std::vector<const OperatorRun*> operators_by_time(const ModelRun& r) {
  std::vector<const OperatorRun*> out;
  for (const OperatorRun& o : r.operators) out.push_back(&o);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  return out;
}

plot::TableBlock operator_table(const ModelRun& r) {
  plot::TableBlock out{"Operators", {"operator", "op", "times", "FLOPs", "DRAM", "AI", "time", "share", "limit"}, {}};
  for (const OperatorRun* o : operators_by_time(r))
    out.rows.push_back({o->name, o->explanation.work->op, fmt::to_string(o->count), count_text(o->flops),
                        bytes_text(o->dram_bytes), fmt::format("{:.2f}", o->explanation.arithmetic_intensity),
                        time_text(o->seconds), fmt::format("{:.1f} %", 100 * o->share), to_string(o->regime)});
  return out;
}

plot::TableBlock sweep_table(const ModelView& v) {
  plot::TableBlock out{"Steps",
                       {"batch", phase_of(v).length, "FLOPs", "DRAM", "AI", v.runs.front().unit + "/s", "ms/step",
                        "ms/request", "memory", "fits", "limit"},
                       {}};
  for (const ModelRun& r : v.runs)
    out.rows.push_back({fmt::to_string(r.request.batch), fmt::to_string(r.kv), count_text(r.flops),
                        bytes_text(r.dram_bytes), fmt::format("{:.2f}", r.arithmetic_intensity()),
                        fmt::format("{:.1f}", r.units_per_s()), fmt::format("{:.3f}", 1e3 * r.seconds),
                        fmt::format("{:.3f}", r.ms_per_request()), bytes_text(r.memory.total()),
                        r.memory.fits() ? "yes" : "no", to_string(r.regime)});
  return out;
}

}  // namespace roofgen
