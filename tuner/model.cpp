#include "tuner/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {
namespace {

/// FMA-pipe instructions of one emulated exp2: about nine for FlashAttention-4's range reduction and cubic, and a
/// clamp.
constexpr double kExpEmulationOps = 10;

/// A scheduler with w resident warps hides the share w / (w + kOverlapHalf) of the other pipes' time behind the busiest
/// pipe. The only fitted constant; docs/internals/model.md has the two points.
constexpr double kOverlapHalf = 1.4;

Amounts amounts(const Work& w) {
  Amounts out{};
  out[Resource::kTensor] = w.mma_flops;
  out[Resource::kSpecial] = w.mufu_ops;
  out[Resource::kFp32] = w.fp32_ops;
  out[Resource::kAlu] = w.alu_ops;
  out[Resource::kSharedMemory] = 128 * w.smem_wavefronts;
  out[Resource::kIssue] = w.issue_slots;
  out[Resource::kL2] = w.l2_bytes;
  out[Resource::kDram] = w.dram_bytes;
  return out;
}

const RoofTime& slowest(const std::vector<RoofTime>& roofs) {
  return *std::max_element(roofs.begin(), roofs.end(),
                           [](const RoofTime& a, const RoofTime& b) { return a.seconds < b.seconds; });
}

/// Error bands of the models by kernel class; docs/internals/model.md, "Error", derives them.
struct Bands {
  double interval, event;
};
constexpr Bands kTensor{0.43, 0.14}, kMemory{0.12, 0.12}, kPipes{0.18, 0.17};
/// Of the closed form, and of every model where no measured kernel is like this one: few CTAs, or mostly launch.
constexpr double kWidest = 0.30;

}  // namespace

const char* to_string(TimeModel model) {
  constexpr const char* kNames[] = {"closed form", "interval model", "event model"};
  return kNames[static_cast<size_t>(model)];
}

double error_band(TimeModel model, const std::string& bound_by) {
  if (model == TimeModel::kClosedForm || bound_by == "launch" || bound_by == "parallelism") return kWidest;
  const Bands& bands = bound_by.starts_with("tensor")           ? kTensor
                       : bound_by == "DRAM" || bound_by == "L2" ? kMemory
                                                                : kPipes;
  return model == TimeModel::kEvent ? bands.event : bands.interval;
}

std::string matrix_math(DType dtype) {
  return dtype == DType::kFp32 ? "tf32" : dtype == DType::kInt32 ? "int8" : to_string(dtype);
}

Result<void> known_rates(const Device& d, MatrixInstruction instruction, DType dtype, double mma_flops) {
  const std::string math = matrix_math(dtype);
  for (const std::string& cell : {rate_cell(instruction, math), fmt::format("peak_{}_tflops", math)})
    if (mma_flops > 0 && !d.has(cell))
      return Error{Exit::kUnavailable, fmt::format("{} has no {}: the rate of {} matrix work there is not known",
                                                   d.name, cell, to_string(dtype))};
  return {};
}

std::vector<RoofTime> roof_times(const Device& d, const Work& w, RoofSet set) {
  return roof_times(kernel_roofs(d, w.matrix, w.math, set), amounts(w));
}

Device at_clock(Device device, double sm_mhz) {
  const auto put = [&](const char* cell, double value) {
    Cell& c = device.cells[cell];
    c = {value, c.unit, Origin::kModel, "at the clock of the samples"};
  };
  put("clock_sustained_mhz", sm_mhz);
  put("dram_sustained_gb_s", device.at("dram_gb_s"));
  if (device.has("l2_gb_s")) put("l2_sustained_gb_s", device.at("l2_gb_s"));
  return device;
}

double launch_seconds(const Device& d, bool dependent) {
  return 1e-6 * (d.at("launch_us") - (dependent && d.has(kDependentSaving) ? d.at(kDependentSaving) : 0));
}

ProblemFloor problem_floor(const Device& d, const RequiredWork& f, DType dtype, RoofSet set) {
  Amounts required{};
  required[Resource::kTensor] = f.mma_flops;
  required[Resource::kSpecial] = f.exps;
  required[Resource::kDram] = f.dram_bytes;
  const auto peak = matrix_roof(d, matrix_math(dtype), "fp32", set);
  const double exp_rate =
      d.at("sms") * sm_clock_hz(d, set) * (d.at("mufu_lanes") + d.at("fp32_lanes") / kExpEmulationOps);
  const RoofTime top = slowest(roof_times({{"tensor", Resource::kTensor, peak ? peak->rate : 0},
                                           {"SFU", Resource::kSpecial, exp_rate},
                                           roof_of(d, Resource::kDram, set)},
                                          required));
  const double launch = launch_seconds(d, false);
  return {top.seconds + launch, launch > top.seconds ? "launch" : top.name};
}

KernelTime estimate(const Device& d, const Work& w, const Occupancy& occ) {
  KernelTime out;
  const std::vector<RoofTime> roofs = roof_times(d, w, RoofSet::kSustained);
  const double sms = d.at("sms"), clock = sm_clock_hz(d, RoofSet::kSustained);
  const double resident = std::max(1, occ.ctas_per_sm);
  const double ctas = std::max(1.0, w.ctas);
  out.waves = ctas / (sms * resident);

  // Idle: the busiest SM runs ceil(ctas / sms) CTAs, the average SM ctas / sms. L2 and DRAM rates need many SMs,
  // because each reads at most the rate of its own L2 port.
  const double imbalance = std::ceil(ctas / sms) * sms / ctas;
  const double active_sms = std::min(sms, ctas);
  const double port_seconds = w.l2_bytes / (active_sms * d.at("l2_bytes_per_clk_sm") * clock);
  double chip = port_seconds, busiest = 0, sum = 0;
  for (const RoofTime& r : roofs) {
    if (!per_sm(r.resource)) {
      chip = std::max(chip, r.seconds);
      continue;
    }
    busiest = std::max(busiest, r.seconds);
    if (r.resource != Resource::kIssue) sum += r.seconds;  // issue slots bound the pipes and are none of them
  }
  if (const RoofTime& top = slowest(roofs); top.seconds > 0) out.roof = out.bound_by = top.name;
  out.work_seconds = slowest(roofs).seconds;
  const double launch = launch_seconds(d, w.dependent);
  out.work_seconds += launch;
  const double ideal = std::max(busiest * imbalance, chip);
  out.kernel_seconds = ideal + launch;
  if (launch > ideal)
    out.bound_by = "launch";
  else if (busiest * imbalance > chip && imbalance > 1.5)
    out.bound_by = "parallelism";

  // Stall: pipes that the resident warps do not overlap, and the first memory access of each wave.
  const double warps = resident * std::max(1, w.warps_per_cta) / 4.0;
  const double overlap = warps / (warps + kOverlapHalf);
  const double pipes = busiest + (1 - overlap) * std::max(0.0, sum - busiest);
  const double busy = pipes * imbalance;
  // A wait for a copy before its latency has passed stops the CTA; other resident CTAs fill the gap. Between issue and
  // wait, the SM issues one instruction of every resident warp for each instruction of this warp.
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
  out.band = error_band(out.model, out.bound_by);
  out.stalled_by = first_trip > unhidden ? "first loads" : exposed > unhidden / 2 ? "copies" : "pipes";
  return out;
}

}  // namespace roofgen
