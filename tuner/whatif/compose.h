// Composes partitions from kernels that were tuned alone.
#pragma once

#include <string>
#include <vector>

#include "tuner/whatif/report.h"
#include "tuner/whatif/subject.h"

namespace roofgen {

/// A part of a chain, tuned as its own problem: inputs come from DRAM, outputs go to DRAM.
struct TunedPart {
  Part part;
  std::string failed;  ///< why there is no kernel
  KernelReport kernel;
};

/// The times and the traffic of one partition, given the intermediates that stay in L2 between its kernels. A value
/// stays if it and all traffic until it is read fit the usable L2. `floor_seconds`: T_problem of all steps.
PartitionReport compose(const Subject& subject, const Device& device, double floor_seconds, const Partition& partition,
                        const std::vector<TunedPart>& tuned);

}  // namespace roofgen
