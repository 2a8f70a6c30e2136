// The time of a kernel: its work under the roofs of the device, explained as T = T_problem x waste x idle x stall.
//   T_problem  the floor of any implementation of the problem, at full-chip rates
//   waste      T_work / T_problem:   work done over work required (fusion reduces it)
//   idle       T_kernel / T_work:    waves, tails, too few CTAs, launches (the tile shape reduces it)
//   stall      T / T_kernel:         units that wait (scheduling reduces it)
// docs/internals/model.md derives each term, the fitted constant and the error.
#pragma once

#include <string>
#include <vector>

#include "generator/ops/op.h"
#include "roofgen/pipeline.h"
#include "roofline/roofs.h"

namespace roofgen {

/// Work of one whole launch, and the matrix instructions that do part of it.
struct Work {
  MatrixInstruction matrix = MatrixInstruction::kMmaSync;
  std::string math = "bf16";  ///< operands of the matrix instructions, as in the names of device cells
  double mma_flops = 0;
  double mufu_ops = 0;         ///< lane operations on the special-function units
  double fp32_ops = 0;         ///< lane operations on the FP32 pipe
  double alu_ops = 0;          ///< lane operations on the integer/min-max/convert pipe
  double issue_slots = 0;      ///< warp instructions
  double smem_wavefronts = 0;  ///< 128-byte port cycles
  double l2_bytes = 0;         ///< requests between L1 and L2, both directions
  double dram_bytes = 0;       ///< model on top of the counted sectors
  double ctas = 0;
  int warps_per_cta = 0;
  double async_waits = 0;     ///< waits for asynchronous copies, per warp
  double async_distance = 0;  ///< warp instructions between issue and wait, mean
  bool dependent = false;     ///< a programmatic dependent launch
};

/// The format that matrix instructions multiply for a dtype: tf32 for fp32, int8 for int32.
std::string matrix_math(DType dtype);
/// Exit::kUnavailable naming the missing cell if the device does not rate matrix work of this kind.
Result<void> known_rates(const Device& device, MatrixInstruction instruction, DType dtype, double mma_flops);

/// The work under each roof of its kernel, at full-chip rates; call known_rates() first.
std::vector<RoofTime> roof_times(const Device& device, const Work& work, RoofSet set);

/// The cell with the time by which a dependent launch follows sooner on the kernel before it than a normal one.
inline constexpr const char* kDependentSaving = "dependent_launch_saves_us";
/// The part of a kernel's time between it and the kernel before it.
double launch_seconds(const Device& device, bool dependent);

/// T_problem, and the roof that determines it.
ProblemFloor problem_floor(const Device& device, const RequiredWork& work, DType dtype, RoofSet set);
/// The device with datasheet bandwidths and its SMs at `sm_mhz` as its sustained ceilings.
Device at_clock(Device device, double sm_mhz);

/// The models of a kernel's time, the crudest first: from counts in PTX alone, and from the machine code
/// (tuner/timing).
enum class TimeModel { kClosedForm, kInterval, kEvent };
const char* to_string(TimeModel model);  ///< "closed form", "interval model", "event model"

/// The time of one launch and its factors. Origin: model.
struct KernelTime {
  double seconds = 0;
  TimeModel model = TimeModel::kClosedForm;  ///< of `seconds`
  double band = 0;                           ///< relative error, as error_band() says
  double work_seconds = 0;                   ///< T_work: the slowest roof at full-chip rate, and the launch
  double kernel_seconds = 0;                 ///< T_kernel
  std::string roof;                          ///< the slowest roof at full-chip rate
  std::string bound_by;                      ///< that roof, "parallelism" or "launch"
  std::string stalled_by;                    ///< the largest part of T - T_kernel: "pipes", "copies", "first loads"
  double waves = 0;
};
/// By the closed form.
KernelTime estimate(const Device& device, const Work& work, const Occupancy& occupancy);

/// Relative error of one of two times that are compared: the ratio of two independent times of one device is within
/// sqrt(2) of it in 9 of 10 comparisons with measured pairs (docs/internals/model.md). `bound_by`: as in KernelTime.
double error_band(TimeModel model, const std::string& bound_by);

}  // namespace roofgen
