// Launches through the driver: parameters, tensor maps, attributes. The executor and the library's pipelines share
// them.
#pragma once

#include <functional>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/cuda/driver.h"

namespace roofgen::cuda {

/// The descriptor of a tensor at `address` for a kernel; the driver must have the entry point.
Status encode(const Driver& driver, const TensorMap& map, Address address, TensorMapBytes* out);

/// The parameters of a kernel as the driver takes them. They point into `args`, which must not change.
class Parameters {
 public:
  /// `encode`: the descriptor of an argument with a tensor map.
  Result<void> set(std::vector<Arg>& args, const std::function<Result<void>(const Arg&, TensorMapBytes*)>& encode);
  void** data() { return pointers_.data(); }

 private:
  std::vector<uint64_t> words_;
  std::vector<TensorMapBytes> maps_;
  std::vector<void*> pointers_;
};

/// Queues the launch. `overlap`: it may begin before the kernel in front of it has ended. Overlap and clusters need
/// Driver::launch_ex.
Status queue(const Driver& driver, Handle function, Handle stream, const Launch& launch, bool overlap,
             Parameters& parameters);

}  // namespace roofgen::cuda
