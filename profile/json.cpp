#include "base/json.h"

#include "profile/profile.h"

namespace roofgen::profile {
namespace {

Json of(const Dim3& d) { return {d.x, d.y, d.z}; }

}  // namespace

std::string profile_json(const Report& r) {
  const timing::LaunchTime& t = r.time;
  const timing::StreamCounts& c = t.counts;
  Json out;
  out["schema"] = "roofgen.profile.1";
  out["model_version"] = timing::model_version();
  out["kernel"] = r.kernel;
  out["file"] = r.file;
  out["device"] = r.device;
  out["arch"] = r.arch;
  out["sm_mhz"] = r.sm_mhz;
  out["compiler"] = r.compiler;
  out["grid"] = of(r.grid);
  out["block"] = of(r.block);
  out["smem_bytes"] = r.smem_bytes;
  out["registers"] = r.registers;
  out["spill_bytes"] = r.spill_bytes;
  out["static_smem_bytes"] = r.static_smem_bytes;
  out["code_bytes"] = r.code_bytes;
  out["occupancy"] = {{"ctas_per_sm", t.occupancy.ctas_per_sm},
                      {"warps_per_sm", t.occupancy.warps_per_sm},
                      {"limited_by", t.occupancy.limited_by},
                      {"achieved_warps", r.achieved_warps},
                      {"waves", t.waves}};
  out["models"] = {{"event", {{"time_us", 1e6 * t.event_s}}},
                   {"interval", {{"time_us", 1e6 * t.interval_s}}},
                   {"roofline", {{"time_us", 1e6 * t.roofline_s}, {"bound_by", t.roof}}}};
  out["origin"] = "model";
  out["confidence"] = r.confidence;
  out["limiter"] = r.limiter;
  out["next"] = r.next;
  Json units = Json::object(), stalls = Json::object();
  for (const Utilisation& u : r.units) units[u.unit] = u.share;
  for (size_t i = 0; i < r.stalls.size(); ++i) stalls[to_string(static_cast<timing::Stall>(i))] = r.stalls[i];
  out["units"] = std::move(units);
  out["stalls"] = std::move(stalls);
  out["issuing"] = r.issuing;
  const double load = static_cast<double>(t.sm.load_sectors);
  out["l1_hit_rate"] = load > 0 ? static_cast<double>(t.sm.l1_hit_sectors) / load : 0;
  out["l2_miss_rate"] = t.l2_miss;
  out["counts"] = {{"warp_instructions", c.warp_instructions},
                   {"thread_instructions", c.thread_instructions},
                   {"fp32_ops", c.fp32_operations},
                   {"fp32_thread_instructions", c.fp32_thread_instructions},
                   {"shared_load_wavefronts", c.shared_load_wavefronts},
                   {"shared_store_wavefronts", c.shared_store_wavefronts},
                   {"global_load_requests", c.global_load_requests},
                   {"global_store_requests", c.global_store_requests},
                   {"global_load_sectors", c.global_load_sectors},
                   {"l2_read_sectors", c.l2_read_sectors},
                   {"l2_write_sectors", c.l2_write_sectors},
                   {"dram_read_bytes", c.dram_read_bytes},
                   {"dram_write_bytes", c.dram_write_bytes}};
  Json lines = Json::array();
  for (const LineTime& l : r.lines)
    lines.push_back({{"file", l.source.file},
                     {"line", l.source.line},
                     {"issues", l.issues},
                     {"busy", l.busy},
                     {"waiting", l.waiting},
                     {"stalled", l.stalled},
                     {"cause", to_string(l.cause)}});
  out["lines"] = std::move(lines);
  out["unknown_opcodes"] = r.unknown_opcodes;
  out["guesses"] = r.doubts;
  out["notes"] = r.notes;
  return json_document(out);
}

}  // namespace roofgen::profile
