// Compares a measured time with measured ceilings (rule R12).
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"
#include "roofline/lint/lint.h"

namespace roofgen {

/// The measured time of a kernel or variant, and its counted work. 0: unknown.
struct MeasuredWork {
  std::string name;
  double seconds = 0;
  double dram_bytes = 0;  ///< 0 also if an intermediate stays in L2
  double mma_flops = 0;   ///< by mma.sync
  std::string kind;       ///< of those: "bf16", "fp16_acc16"
  double sm_mhz = 0;      ///< the clock it ran at
};

/// R12 for each measured ceiling of the device that the work exceeds by more than 2 %: then the ceiling, the work or
/// the time is wrong. Other cells are skipped: rule R12 itself compares with them.
std::vector<Warning> above_measured_ceilings(const Device& device, const MeasuredWork& work);

}  // namespace roofgen
