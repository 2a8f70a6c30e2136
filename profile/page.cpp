#include <fmt/format.h>

#include "base/units.h"
#include "profile/profile.h"
#include "roofline/analyses/figures.h"

namespace roofgen::profile {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// The launch under the roofs of its device, by FP32 or tensor arithmetic and DRAM bytes.
std::optional<plot::Roofline> roofline(const Report& r, const Device& device) {
  const timing::StreamCounts& c = r.time.counts;
  const double bytes = c.dram_read_bytes + c.dram_write_bytes, flops = c.fp32_operations + r.time.tensor_flops;
  if (bytes <= 0 || flops <= 0) return std::nullopt;
  plot::Roofline out;
  out.title = fmt::format("Roofline of {}", device.name);
  out.subtitle = "FP32 and tensor operations of the machine code over modelled DRAM bytes; open mark: modelled time";
  out.slopes.push_back({"DRAM", device.at("dram_sustained_gb_s"), device.cells.at("dram_sustained_gb_s").origin, true});
  const bool tensor = r.time.tensor_flops > c.fp32_operations;
  const double peak =
      tensor ? r.time.tensor_peak_flops : 2 * device.at("fp32_lanes") * device.at("sms") * r.sm_mhz * 1e6;
  out.ceilings.push_back(
      {tensor ? "tensor instructions of the kernel" : "FP32", 1e-12 * peak, Origin::kModel, "DRAM", true});
  plot::Point p;
  p.name = r.kernel;
  p.ai = flops / bytes;
  p.tflops = 1e-12 * flops / r.time.event_s;
  p.roof_tflops = std::min(1e-12 * peak, 1e-3 * device.at("dram_sustained_gb_s") * p.ai);
  p.bound_by = r.limiter;
  p.time_us = 1e6 * r.time.event_s;
  p.share = 1;
  out.points.push_back(std::move(p));
  return out;
}

}  // namespace

std::vector<plot::Block> time_blocks(const Report& r, const std::string& of) {
  std::vector<plot::Block> out;
  plot::Bars units{of + "busy units", "share of the time, %", false, {}, {{"busy", {}}}};
  for (const Utilisation& u : r.units) {
    units.labels.push_back(u.unit);
    units.series[0].values.push_back(100 * u.share);
  }
  out.emplace_back(std::move(units));
  plot::Bars stalls{of + "warps wait for", "share of warp-cycles, %", false, {}, {{"stalled", {}}}};
  for (size_t i = 0; i < r.stalls.size(); ++i) {
    stalls.labels.push_back(to_string(static_cast<timing::Stall>(i)));
    stalls.series[0].values.push_back(100 * r.stalls[i]);
  }
  out.emplace_back(std::move(stalls));
  plot::TableBlock lines{
      of + "lines of the source",
      {"line", "issues", "of the busiest unit", "warps wait for its results", "warps wait at it", "cause"},
      {}};
  for (const LineTime& l : r.lines) {
    if (l.busy + l.waiting + l.stalled < 0.005) continue;
    lines.rows.push_back({fmt::format("{}:{}", l.source.file, l.source.line), count_text(static_cast<double>(l.issues)),
                          percent(l.busy), percent(l.waiting), percent(l.stalled), to_string(l.cause)});
  }
  out.emplace_back(std::move(lines));
  return out;
}

plot::Page profile_page(const Report& r, const Device& device) {
  const timing::LaunchTime& t = r.time;
  plot::Page page;
  page.title = fmt::format("{} on {}", r.kernel, r.device);
  page.facts = {
      {"kernel", fmt::format("{} of {}, grid {} x {} x {}, block {} x {} x {}, {} B of dynamic shared memory", r.kernel,
                             r.file, r.grid.x, r.grid.y, r.grid.z, r.block.x, r.block.y, r.block.z, r.smem_bytes)},
      {"compiler", fmt::format("{}: {} registers, {} B of spills, {} B of static shared memory, {} B of code",
                               r.compiler, r.registers, r.spill_bytes, r.static_smem_bytes, r.code_bytes)},
      {"time",
       fmt::format("{} by the event model, {} by the interval model, {} by the roofline ({}); SM clock {:.0f} MHz",
                   time_text(t.event_s), time_text(t.interval_s), time_text(t.roofline_s), t.roof, r.sm_mhz)},
      {"limiter", r.limiter},
      {"next lever", r.next},
      {"occupancy",
       fmt::format("{} CTAs, {} warps on an SM, limited by {}; {:.1f} warps resident on average; {:.2f} waves",
                   t.occupancy.ctas_per_sm, t.occupancy.warps_per_sm, t.occupancy.limited_by, r.achieved_warps,
                   t.waves)},
      {"confidence", r.confidence},
      {"origin", "times, stalls and hit rates: modelled from the machine code; registers: compiled"}};
  for (const std::string& name : r.unknown_opcodes)
    page.warnings.push_back(fmt::format("{} is not in the opcode table and counts as an integer instruction", name));
  for (const std::string& d : r.doubts) page.warnings.push_back(d);
  for (const std::string& n : r.notes) page.warnings.push_back(n);
  const std::vector<plot::Block> blocks = time_blocks(r);
  page.blocks.insert(page.blocks.end(), blocks.begin(), blocks.end());
  if (auto figure = roofline(r, device)) page.blocks.emplace_back(std::move(*figure));
  const double load = static_cast<double>(t.sm.load_sectors);
  plot::TableBlock memory{"Memory of the whole launch", {"quantity", "value"}, {}};
  memory.rows = {
      {"sectors loaded that L1 has", percent(load > 0 ? static_cast<double>(t.sm.l1_hit_sectors) / load : 0)},
      {"read through L2", bytes_text(32 * t.counts.l2_read_sectors)},
      {"of that from DRAM", percent(t.l2_miss)},
      {"written", bytes_text(32 * t.counts.l2_write_sectors)},
      {"shared-memory wavefronts", count_text(t.counts.shared_load_wavefronts + t.counts.shared_store_wavefronts)}};
  page.blocks.emplace_back(std::move(memory));
  return page;
}

}  // namespace roofgen::profile
