// A measured time held against measured ceilings (rule R12).
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"
#include "roofline/lint/lint.h"

namespace roofgen {

/// What was measured of a kernel or variant, with the work that is counted for it. 0: unknown.
struct MeasuredWork {
  std::string name;
  double seconds = 0;
  double dram_bytes = 0;  ///< 0 as well where they may come from L2 on purpose
  double mma_flops = 0;   ///< by mma.sync
  std::string kind;       ///< of those: "bf16", "fp16_acc16"
  double sm_mhz = 0;      ///< the clock it ran at
};

/// R12 for each measured ceiling of the device that the work exceeds by more than 2 %: then the ceiling, the work or
/// the time is wrong. Cells that were not measured say nothing here; the rule itself holds rows against those.
std::vector<Warning> above_measured_ceilings(const Device& device, const MeasuredWork& work);

}  // namespace roofgen
