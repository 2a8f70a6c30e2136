#include "tuner/code_time.h"

#include <algorithm>

namespace roofgen {

void count_by_code(const CodeTime& code, const Device& device, Work& w) {
  using sass::Pipe;
  const auto of = [&](Pipe p) { return 32 * code.counts.pipe_instructions[static_cast<size_t>(p)]; };
  // Half of the FP32 lanes multiply integers, at most 64 of an SM.
  const double heavy = std::max(1.0, device.at("fp32_lanes") / 64);
  w.mufu_ops = of(Pipe::kXu);
  w.fp32_ops = of(Pipe::kFma) + of(Pipe::kHalf) + heavy * of(Pipe::kFmaHeavy);
  w.alu_ops = of(Pipe::kAlu);
  w.issue_slots = code.counts.warp_instructions;
  w.smem_wavefronts = code.counts.shared_load_wavefronts + code.counts.shared_store_wavefronts;
}

KernelTime estimate(const Device& device, const Work& work, const Occupancy& occupancy, const CodeTime& code) {
  Work at_l2 = work;
  // L2 serves tensor copies of lines that several SMs read faster than loads: they count for less of its roof.
  if (device.has("shared_copy_l2_bytes_per_clk")) {
    const double copied = std::min(work.l2_bytes, 32 * code.counts.tile_sectors);
    const double rate = device.at("shared_copy_l2_bytes_per_clk") * sm_clock_hz(device, RoofSet::kSustained);
    at_l2.l2_bytes -= copied * std::max(0.0, 1 - 1e9 * device.at("l2_sustained_gb_s") / rate);
  }
  KernelTime out = estimate(device, at_l2, occupancy);
  // The last bytes of a launch may leave after its last instruction: no time is below the roofs.
  const double saved = launch_seconds(device, false) - launch_seconds(device, work.dependent);
  out.seconds = std::max(code.seconds - saved, out.kernel_seconds);
  // A doubt leaves no validated band.
  if (code.doubts.empty()) out.band = error_band(code.model, out.bound_by);
  out.model = code.model;
  return out;
}

}  // namespace roofgen
