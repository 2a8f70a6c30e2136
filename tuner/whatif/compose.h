// From kernels that were tuned alone to the partitions that are made of them.
#pragma once

#include <string>
#include <vector>

#include "tuner/whatif/report.h"
#include "tuner/whatif/subject.h"

namespace roofgen {

/// A part of a chain, tuned as a problem of its own: what it reads comes from DRAM, what it writes goes there.
struct TunedPart {
  Part part;
  std::string failed;  ///< why there is no kernel
  KernelReport kernel;
};

/// One partition of tuned parts: which values would stay in L2 between its kernels, and its times and traffic with
/// that; `floor_seconds` is T_problem of all steps. A value stays when it and all that passes before it is read again
/// fit the usable L2.
PartitionReport compose(const Subject& subject, const Device& device, double floor_seconds, const Partition& partition,
                        const std::vector<TunedPart>& tuned);

}  // namespace roofgen
