#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "base/units.h"
#include "profile/profile.h"

namespace roofgen::profile {
namespace {

std::string dims(const Dim3& d) {
  return d.z > 1   ? fmt::format("{},{},{}", d.x, d.y, d.z)
         : d.y > 1 ? fmt::format("{},{}", d.x, d.y)
                   : fmt::format("{}", d.x);
}

}  // namespace

std::string profile_text(const Report& r, size_t top) {
  const timing::LaunchTime& t = r.time;
  const std::string kernel =
      fmt::format("kernel    {} of {}, grid {}, block {}{}\n", r.kernel, r.file, dims(r.grid), dims(r.block),
                  r.smem_bytes ? fmt::format(", {} B of dynamic shared memory", r.smem_bytes) : "");
  std::string out =
      fmt::format("compiled  {} for {}: {} registers, {} B of spills, {} B of static shared memory, {} B of code\n",
                  r.compiler.substr(0, r.compiler.find(" at ")), r.arch, r.registers, r.spill_bytes,
                  r.static_smem_bytes, r.code_bytes);
  out += fmt::format("device    {} at {:.0f} MHz; {} CTAs ({} warps) on an SM, limited by {}; {:.2f} waves\n", r.device,
                     r.sm_mhz, t.occupancy.ctas_per_sm, t.occupancy.warps_per_sm, t.occupancy.limited_by, t.waves);
  out += fmt::format(
      "time      {} by the event model, {} by the interval model, {} by the roofline ({}); modelled, "
      "confidence {}\n",
      time_text(t.event_s), time_text(t.interval_s), time_text(t.roofline_s), t.roof, r.confidence);
  out += fmt::format("limiter   {}\nnext      {}\n\n", r.limiter, r.next);
  out += "units     ";
  for (size_t i = 0; i < r.units.size() && i < 8; ++i)
    out += fmt::format("{}{} {:.0f} %", i ? ", " : "", r.units[i].unit, 100 * r.units[i].share);
  out += fmt::format("\nwarps     {:.1f} resident of {} possible; schedulers issue in {:.0f} % of cycles\n",
                     r.achieved_warps, t.occupancy.warps_per_sm, 100 * r.issuing);
  const double hits =
      t.sm.load_sectors ? static_cast<double>(t.sm.l1_hit_sectors) / static_cast<double>(t.sm.load_sectors) : 0;
  out += fmt::format("memory    L1 hits {:.0f} % of loaded sectors; L2 read {}, {:.0f} % of it from DRAM; written {}\n",
                     100 * hits, bytes_text(32 * t.counts.l2_read_sectors), 100 * t.l2_miss,
                     bytes_text(32 * t.counts.l2_write_sectors));
  out += "stalls    ";
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < r.stalls.size(); ++i)
    if (r.stalls[i] >= 0.005) order.emplace_back(r.stalls[i], i);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < order.size(); ++i)
    out += fmt::format("{}{} {:.0f} %", i ? ", " : "", to_string(static_cast<timing::Stall>(order[i].second)),
                       100 * order[i].first);
  out += order.empty() ? "none\n" : " of warp-cycles\n";
  if (!r.lines.empty() && top) out += "\n   busy  waits for it  waits at it  cause              issues  line\n";
  for (size_t i = 0; i < r.lines.size() && i < top; ++i) {
    const LineTime& l = r.lines[i];
    if (l.busy + l.waiting + l.stalled < 0.005) break;
    out += fmt::format("  {:>3.0f} %  {:>10.1f} %  {:>9.1f} %  {:<17}  {:>6}  {}:{}", 100 * l.busy, 100 * l.waiting,
                       100 * l.stalled, to_string(l.cause), count_text(static_cast<double>(l.issues)), l.source.file,
                       l.source.line);
    out += '\n';
  }
  for (const std::string& name : r.unknown_opcodes)
    out += fmt::format("\nunknown   {}: not in the opcode table, counted as an integer instruction\n", name);
  for (const std::string& d : r.doubts) out += fmt::format("\nguess     {}\n", d);
  for (const std::string& n : r.notes) out += fmt::format("\nnote      {}\n", n);
  return kernel + wrapped(out, 10);
}

}  // namespace roofgen::profile
