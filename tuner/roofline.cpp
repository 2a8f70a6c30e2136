#include "tuner/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {
namespace {

/// FMA-pipe instructions that emulate one exp2 (FlashAttention-4's range reduction and cubic:
/// about nine, and the clamp).
constexpr double kExpEmulationOps = 10;

/// Overlap of the pipes of one SM: a scheduler with w resident warps hides w / (w + kOverlapHalf)
/// of what the busiest pipe leaves over. The one fitted constant; docs/model.md has the points.
constexpr double kOverlapHalf = 1.4;

double clock_hz(const Device& d, RoofSet set) {
  return 1e6 * d.at(set == RoofSet::kSustained ? "clock_sustained_mhz" : "clock_tensor_mhz");
}

/// Seconds of matrix work at a rate that is a cell. Infinite where the device does not state it: known_rates()
/// has refused such work, and no time must look like zero.
double tensor_seconds(const Device& d, double flops, const std::string& cell, double flops_per_unit) {
  if (flops == 0) return 0;
  return d.has(cell) ? flops / (d.at(cell) * flops_per_unit) : std::numeric_limits<double>::infinity();
}

}  // namespace

TensorCells tensor_cells(DType dtype) {
  // fp32 reaches the tensor cores as tf32 only, int32 not at all.
  const std::string kind = dtype == DType::kFp32 ? "tf32" : dtype == DType::kInt32 ? "int8" : to_string(dtype);
  return {"mma_sync_flops_per_clk_" + kind, "peak_" + kind + "_tflops"};
}

Result<void> known_rates(const Device& d, DType dtype, double mma_flops) {
  const TensorCells cells = tensor_cells(dtype);
  for (const std::string& cell : {cells.rate, cells.peak})
    if (mma_flops > 0 && !d.has(cell))
      return Error{Exit::kUnavailable, fmt::format("{} has no {}: how long {} matrix work takes there is not known",
                                                   d.name, cell, to_string(dtype))};
  return {};
}

std::vector<RoofTime> roof_times(const Device& d, const Work& w, DType dtype, RoofSet set) {
  const double sm_clocks = d.at("sms") * clock_hz(d, set);
  const bool sustained = set == RoofSet::kSustained;
  return {
      {"tensor (mma.sync)", tensor_seconds(d, w.mma_flops, tensor_cells(dtype).rate, sm_clocks), true},
      {"SFU", w.mufu_ops / (d.at("mufu_lanes") * sm_clocks), true},
      {"FP32", w.fp32_ops / (d.at("fp32_lanes") * sm_clocks), true},
      {"ALU", w.alu_ops / (d.at("int_lanes") * sm_clocks), true},
      {"shared memory", w.smem_wavefronts * 128 / (d.at("smem_bytes_per_clk") * sm_clocks), true},
      {"issue", w.issue_slots / (d.at("issue_per_clk") * sm_clocks), true},
      {"L2", w.l2_bytes / (1e9 * d.at(sustained ? "l2_sustained_gb_s" : "l2_gb_s")), false},
      {"DRAM", w.dram_bytes / (1e9 * d.at(sustained ? "dram_sustained_gb_s" : "dram_gb_s")), false},
  };
}

Device at_clock(Device device, double sm_mhz) {
  const auto put = [&](const char* cell, double value) {
    Cell& c = device.cells[cell];
    c = {value, c.unit, Origin::kModel, "at the clock of the samples"};
  };
  put("clock_tensor_mhz", sm_mhz);
  put("clock_sustained_mhz", sm_mhz);
  put("dram_sustained_gb_s", device.at("dram_gb_s"));
  if (device.has("l2_gb_s")) put("l2_sustained_gb_s", device.at("l2_gb_s"));
  return device;
}

ProblemFloor problem_floor(const Device& d, const RequiredWork& f, DType dtype, RoofSet set) {
  const double clock = clock_hz(d, set);
  const double scale = clock / (1e6 * d.at("clock_tensor_mhz"));
  const double exp_rate = d.at("sms") * clock * (d.at("mufu_lanes") + d.at("fp32_lanes") / kExpEmulationOps);
  const RoofTime roofs[] = {
      {"tensor", tensor_seconds(d, f.mma_flops, tensor_cells(dtype).peak, 1e12 * scale), true},
      {"SFU", f.exps / exp_rate, true},
      {"DRAM", f.dram_bytes / (1e9 * d.at(set == RoofSet::kSustained ? "dram_sustained_gb_s" : "dram_gb_s")), false},
  };
  const RoofTime& top = *std::max_element(std::begin(roofs), std::end(roofs),
                                          [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const double launch = 1e-6 * d.at("launch_us");
  return {top.seconds + launch, launch > top.seconds ? "launch" : top.name};
}

KernelTime estimate(const Device& d, const Work& w, DType dtype, const Occupancy& occ) {
  KernelTime out;
  const std::vector<RoofTime> roofs = roof_times(d, w, dtype, RoofSet::kSustained);
  const double sms = d.at("sms"), clock = clock_hz(d, RoofSet::kSustained);
  const double resident = std::max(1, occ.ctas_per_sm);
  const double ctas = std::max(1.0, w.ctas);
  out.waves = ctas / (sms * resident);

  // Idle: the busiest SM gets ceil(ctas / sms) CTAs, the average one ctas / sms. The chip-wide
  // roofs are only reached when enough SMs ask: each draws at most its own L2 port.
  const double imbalance = std::ceil(ctas / sms) * sms / ctas;
  const double active_sms = std::min(sms, ctas);
  const double port_seconds = w.l2_bytes / (active_sms * d.at("l2_bytes_per_clk_sm") * clock);
  double chip = port_seconds, busiest = 0, sum = 0;
  for (const RoofTime& r : roofs) {
    if (r.seconds > out.work_seconds) {
      out.work_seconds = r.seconds;
      out.roof = out.bound_by = r.name;
    }
    if (!r.per_sm) {
      chip = std::max(chip, r.seconds);
    } else {
      busiest = std::max(busiest, r.seconds);
      if (r.name != "issue") sum += r.seconds;  // issue slots bound the pipes, they are not one
    }
  }
  const double launch = 1e-6 * d.at("launch_us");
  out.work_seconds += launch;
  const double ideal = std::max(busiest * imbalance, chip);
  out.kernel_seconds = ideal + launch;
  if (launch > ideal)
    out.bound_by = "launch";
  else if (busiest * imbalance > chip && imbalance > 1.5)
    out.bound_by = "parallelism";

  // Stall: what the resident warps fail to overlap, and each wave's first trip to memory.
  const double warps = resident * std::max(1, w.warps_per_cta) / 4.0;
  const double overlap = warps / (warps + kOverlapHalf);
  const double pipes = busiest + (1 - overlap) * std::max(0.0, sum - busiest);
  const double busy = pipes * imbalance;
  // A copy that is waited for before its latency has passed leaves the CTA standing; other resident
  // CTAs fill the gap. Between issue and wait a warp advances one instruction while the SM issues
  // one of each resident warp.
  double exposed = 0;
  if (w.async_waits > 0 && w.issue_slots > 0) {
    const double clocks_per_slot = pipes * clock * sms / w.issue_slots;
    const double covered = w.async_distance * resident * w.warps_per_cta * clocks_per_slot;
    const double transfer = w.l2_bytes / ctas / w.async_waits / d.at("l2_bytes_per_clk_sm");
    const double gap = std::max(0.0, d.at("l2_latency") + transfer - covered) / clock;
    exposed = gap * w.async_waits * std::ceil(ctas / sms) / (resident * resident);
  }
  const double first_trip = std::ceil(out.waves) * (d.at("dram_latency") + d.at("l2_latency")) / clock / resident;
  out.seconds = std::max(busy + exposed, chip) + first_trip + launch;
  const double unhidden = std::max(busy + exposed - std::max(busiest * imbalance, chip), 0.0);
  out.stalled_by = first_trip > unhidden ? "first loads" : exposed > unhidden / 2 ? "copies" : "pipes";
  return out;
}

}  // namespace roofgen
