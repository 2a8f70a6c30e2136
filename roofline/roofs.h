// The ceilings of a device: how fast arithmetic of each kind can go, and bytes at each level.
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"

namespace roofgen {

/// Which rates: what the datasheet says, or what is sustained in practice (measured where someone
/// measured it; the tensor rates at the sustained clock).
enum class RoofSet { kDatasheet, kSustained };
const char* to_string(RoofSet set);  ///< "datasheet", "sustained"
Result<RoofSet> parse_roof_set(const std::string& name);

/// One rate of arithmetic.
struct ComputeRoof {
  std::string name;        ///< "BF16 tensor, FP32 accumulate"
  std::string math;        ///< "bf16"
  std::string accumulate;  ///< "fp32"; empty on CUDA cores
  bool matrix_units = true;
  double flops_per_s = 0;
  Origin origin = Origin::kDatasheet;
  std::string cell;  ///< the device's cell it comes from
};

/// One rate of bytes.
struct BandwidthRoof {
  std::string level;  ///< "DRAM", "L2", "shared memory", "NVLink"
  double bytes_per_s = 0;
  Origin origin = Origin::kDatasheet;
};

/// Every dense peak the device states, the fastest first.
std::vector<ComputeRoof> compute_roofs(const Device& device, RoofSet set);
/// DRAM, L2, shared memory and NVLink, those that are known.
std::vector<BandwidthRoof> bandwidth_roofs(const Device& device, RoofSet set);
/// The clock of the SMs under tensor load: what special functions, shared memory and the L2 ports run at beside it.
double sm_clock_hz(const Device& device, RoofSet set);
/// Special-function operations per second of all SMs.
double special_function_rate(const Device& device, RoofSet set);

/// The ceiling of matrix work in `math` with accumulation in `accumulate`. Where the device multiplies no
/// such format, its operands are widened: the next wider format's ceiling, with `*note` saying so.
/// Exit::kUsage when there is none.
Result<ComputeRoof> matrix_roof(const Device& device, const std::string& math, const std::string& accumulate,
                                RoofSet set, std::string* note = nullptr);
/// The ceiling of work outside the matrix units: FP32 on the CUDA cores.
ComputeRoof vector_roof(const Device& device, RoofSet set);

/// FLOP per byte of DRAM at which `roof` meets the slope.
double ridge(const Device& device, const ComputeRoof& roof, RoofSet set);

}  // namespace roofgen
