// Work, roofs and time. The work of a kernel is counted; a roof is a rate of the device; the time of
// a kernel is explained as T = T_problem x waste x idle x stall:
//   T_problem  the floor any implementation of the problem pays, at full-chip rates
//   waste      T_work / T_problem:   work really done over work required (fusion removes it)
//   idle       T_kernel / T_work:    waves, tails, too few CTAs, launches (tile shape removes it)
//   stall      T / T_kernel:         what scheduling fails to overlap
// docs/model.md derives each term, states the fitted constant and how far the model is off.
#pragma once

#include <string>
#include <vector>

#include "generator/ops/op.h"
#include "roofgen/pipeline.h"
#include "roofline/roofs.h"

namespace roofgen {

/// Work of one whole launch. Bytes and events, not rates.
struct Work {
  double mma_flops = 0;
  double mufu_ops = 0;         ///< lane operations on the special function unit
  double fp32_ops = 0;         ///< lane operations on the FP32 pipe
  double alu_ops = 0;          ///< lane operations on the integer/min-max/convert pipe
  double issue_slots = 0;      ///< warp-instructions
  double smem_wavefronts = 0;  ///< 128-byte port cycles
  double l2_bytes = 0;         ///< requests between L1 and L2, both directions
  double dram_bytes = 0;       ///< model on top of the counted sectors
  double ctas = 0;
  int warps_per_cta = 0;
  double async_waits = 0;     ///< waits for asynchronous copies, per warp
  double async_distance = 0;  ///< warp-instructions between issue and wait, mean
};

/// The cells of a device that rate matrix work in a format: mma.sync's FLOP per clock and SM, and the datasheet's peak.
struct TensorCells {
  std::string rate, peak;
};
TensorCells tensor_cells(DType dtype);
/// Exit::kUnavailable naming the cell where matrix work in `dtype` is to be timed and the device does not rate it.
Result<void> known_rates(const Device& device, DType dtype, double mma_flops);

/// One ceiling and the time the work needs under it alone, at full-chip rate.
struct RoofTime {
  std::string name;  ///< "tensor (mma.sync)", "DRAM", "L2", "SFU", "shared memory", "issue", "FP32", "ALU"
  double seconds = 0;
  bool per_sm = true;  ///< an SM-local unit, idle on an SM without a CTA; DRAM and L2 are not
};
std::vector<RoofTime> roof_times(const Device& device, const Work& work, DType dtype,
                                 RoofSet set);  ///< after known_rates()

/// T_problem in seconds, and the roof that sets it.
struct ProblemFloor {
  double seconds = 0;
  std::string bound_by;
};
/// The device with its SMs at `sm_mhz` and its memory as the datasheet says: its sustained ceilings are then
/// the datasheet's, scaled to that clock.
Device at_clock(Device device, double sm_mhz);
ProblemFloor problem_floor(const Device& device, const RequiredWork& work, DType dtype, RoofSet set);

/// The closed-form estimate of one launch. Origin: model.
struct KernelTime {
  double seconds = 0;
  double work_seconds = 0;    ///< T_work: the slowest roof at full-chip rate, and the launch
  double kernel_seconds = 0;  ///< T_kernel
  std::string roof;           ///< the slowest roof at full-chip rate
  std::string bound_by;       ///< that roof, "parallelism" or "launch"
  std::string stalled_by;     ///< the largest part of T - T_kernel: "pipes", "copies", "first loads"
  double waves = 0;
};
KernelTime estimate(const Device& device, const Work& work, DType dtype, const Occupancy& occupancy);

/// Relative error band of `estimate`, from its comparison with published times (docs/model.md).
inline constexpr double kModelErrorBand = 0.30;

}  // namespace roofgen
