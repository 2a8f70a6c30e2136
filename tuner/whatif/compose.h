// From kernels that were tuned alone to the partitions that are made of them.
#pragma once

#include <string>
#include <vector>

#include "generator/ops/chain.h"
#include "tuner/whatif/report.h"

namespace roofgen {

/// A part of a chain, tuned as a problem of its own: what it reads comes from DRAM, what it writes goes there.
struct TunedPart {
  Part part;
  std::string failed;   ///< why there is no kernel
  KernelReport kernel;
};

struct ComposeContext {
  const Chain& chain;
  const Device& device;
  int64_t rows = 1, columns = 1;  ///< of every value
  double floor_seconds = 0;       ///< T_problem of the whole chain
  DType dtype = DType::kBf16;
};

/// One partition of tuned parts: which values would stay in L2 between its kernels, and its times and traffic with
/// that. A value stays when it and all that passes before it is read again fit the usable L2.
PartitionReport compose(const ComposeContext& context, const Partition& partition, const std::vector<TunedPart>& tuned);

}  // namespace roofgen
