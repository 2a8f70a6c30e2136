// The contenders' resources on the GPU: sets of buffers and loaded modules. They are recreated after a worker's
// replacement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/measure/measure.h"

namespace roofgen {

class Rig {
 public:
  /// `rotates`: samples are cold, and each uses another set than the previous one. Otherwise one set suffices.
  Rig(GpuExecutor& gpu, const Workload& workload, bool rotates) : gpu_(gpu), workload_(workload), rotates_(rotates) {}
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// Allocates and prepares as many sets as are wanted and fit. Error when not even one fits.
  Result<void> set_up();
  /// After a fault: recreates everything if the worker was replaced; otherwise does nothing.
  Result<void> refresh();
  /// The contender's kernels bound to a set of buffers; loads modules on first use.
  Result<std::vector<Step>> steps(const Contender& contender, size_t set);

  /// False from the worker's replacement until refresh().
  bool current() const { return gpu_.generation() == generation_; }

  size_t sets() const { return sets_.size(); }
  uint64_t set_bytes() const;
  uint64_t l2_bytes() const;  ///< 0: unknown
  bool enough_sets() const;   ///< all sets together have three times the size of L2

 private:
  Result<void> add_set();
  void release(std::vector<DevicePtr>& set);
  Result<Step> bind(const Contender::Kernel& kernel, size_t set);

  GpuExecutor& gpu_;
  const Workload& workload_;
  const bool rotates_;
  std::vector<std::vector<DevicePtr>> sets_;
  std::map<const Binary*, ModuleId> modules_;
  uint64_t generation_ = 0;
};

}  // namespace roofgen
