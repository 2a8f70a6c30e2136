#include "tuner/views/measured.h"

#include <fmt/format.h>

#include "base/units.h"
#include "tuner/views/json.h"

namespace roofgen {

inline void to_json(Json& j, const Timing& t) {
  j = {{"median_us", 1e-3 * t.median_ns}, {"q1_us", 1e-3 * t.q1_ns},   {"q3_us", 1e-3 * t.q3_ns},
       {"min_us", 1e-3 * t.min_ns},       {"low_us", 1e-3 * t.low_ns}, {"high_us", 1e-3 * t.high_ns}};
  ROOFGEN_PUT(j, t, samples, discarded, stopped)
}

namespace {

/// "13.0" for 13000.
std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

Json measurement_json(const Measurement& m, Origin timed) {
  Json j;
  ROOFGEN_PUT(j, m, cold, hot, batch)
  j["sm_mhz"] = known(m.sm_mhz);
  j["power_w"] = known(m.power_w);
  j["temperature_c"] = known(m.temperature_c);
  j["power_capped"] = m.power_capped;
  j["origin"] = timed;
  return j;
}

Json gpu_json(const GpuRun& g) {
  const GpuIdentity& id = g.identity;
  Json j;
  ROOFGEN_PUT(j, id, name, uuid, pci_bus_id, driver)
  j["cuda"] = id.cuda_version > 0 ? Json(cuda_text(id.cuda_version)) : Json(nullptr);
  j["max_sm_mhz"] = known(id.max_sm_mhz);
  j["default_sm_mhz"] = known(id.default_sm_mhz);
  j["max_memory_mhz"] = known(id.max_memory_mhz);
  j["power_limit_w"] = known(id.power_limit_w);
  ROOFGEN_PUT(j, id, memory_bytes, l2_bytes)
  j["started"] = g.started;
  j["protocol"] = to_string(g.protocol.mode);
  j["ranked_by"] = g.protocol.cold ? "cold" : "hot";
  j["check"] = to_string(g.check);
  ROOFGEN_PUT(j, g, timed, buffer_sets, notes)
  if (!g.lost_because.empty()) j["lost"] = g.lost_because;
  if (g.score_at_clock > 0)
    j["at_clock"] = {{"sm_mhz", g.sm_mhz},
                     {"floor_us", 1e6 * g.floor_at_clock.seconds},
                     {"bound_by", g.floor_at_clock.bound_by},
                     {"score", g.score_at_clock}};
  return j;
}

std::string spread_text(const Measurement& m) {
  const Timing* t = ranking_timing(m);
  if (!t || t->median_ns <= 0) return "";
  return fmt::format("{:.1f}%", 50 * (t->high_ns - t->low_ns) / t->median_ns);
}

std::string gpu_line(const GpuRun& g) {
  const GpuIdentity& id = g.identity;
  std::string out = g.origin == Origin::kMeasured ? "" : "simulated driver: ";
  out += id.uuid.empty() ? id.name : id.uuid;
  if (!id.driver.empty()) out += ", driver " + id.driver;
  if (id.cuda_version > 0) out += ", CUDA " + cuda_text(id.cuda_version);
  if (id.power_limit_w > 0) out += fmt::format(", {:.0f} W", id.power_limit_w);
  return out + fmt::format("; {}, {}, {} set{} of buffers, {}", to_string(g.protocol.mode),
                           g.protocol.cold ? "L2 flushed" : "hot L2", g.buffer_sets, g.buffer_sets == 1 ? "" : "s",
                           g.started);
}

std::string finalists_text(const TuneReport& r) {
  std::string out;
  for (const VariantReport& v : r.variants)
    for (const KernelReport& k : v.kernels) {
      if (!k.measurement) continue;
      size_t tied = 0;
      for (const Finalist& f : k.finalists) tied += f.tied && to_string(f.schedule) != to_string(k.schedule);
      const Timing* own = ranking_timing(*k.measurement);
      const Timing* preset = k.preset ? ranking_timing(*k.preset) : nullptr;
      std::string line;
      if (preset && own && own->median_ns > 0)
        line = fmt::format("{:.2f}x as fast as the default schedule", preset->median_ns / own->median_ns);
      if (tied > 0)
        line += fmt::format("{}tied with {} other{}, taken for fewer registers, less shared memory or its name",
                            line.empty() ? "" : "; ", tied, tied == 1 ? "" : "s");
      if (k.measurement->batch > 1)
        line +=
            fmt::format("{}{} launches to a sample: overhead-bound", line.empty() ? "" : "; ", k.measurement->batch);
      if (k.measurement->hot && k.measurement->cold)
        line += fmt::format("{}hot {}", line.empty() ? "" : "; ", time_text(1e-9 * k.measurement->hot->median_ns));
      if (!line.empty()) out += fmt::format("{:<9} {}: {}\n", v.name, k.stage, line);
    }
  return out;
}

std::string notes_text(const GpuRun& g) {
  std::string out;
  for (const std::string& note : g.notes) out += fmt::format("note      {}\n", note);
  if (!g.lost_because.empty())
    out += fmt::format("lost      the GPU went away: {}; what was finished is above\n", g.lost_because);
  return out;
}

}  // namespace roofgen
