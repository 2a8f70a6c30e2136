// What the machine code of a kernel says of one launch: its time by the models of one SM, and its work.
#pragma once

#include <string>
#include <vector>

#include "tuner/model.h"
#include "tuner/timing/stream_counts.h"

namespace roofgen {

/// Origin: model.
struct CodeTime {
  TimeModel model = TimeModel::kInterval;  ///< of `seconds`
  double seconds = 0;
  double interval_seconds = 0;  ///< equal to `seconds`, unless the event model ran
  timing::StreamCounts counts;  ///< of the whole launch
  std::vector<std::string> doubts =
      {};                       ///< what the models did not know, each kind once: "a branch on an unknown value"
  bool guessed_by_ptx = false;  ///< a branch on an unknown value is taken as often as in the simulated PTX
};

/// Replaces what was counted in PTX, which ptxas shortens, by counts of executed machine instructions.
void count_by_code(const CodeTime& code, const Device& device, Work& work);

/// The closed form's factors for this work, with the time of the machine code.
KernelTime estimate(const Device& device, const Work& work, const Occupancy& occupancy, const CodeTime& code);

}  // namespace roofgen
