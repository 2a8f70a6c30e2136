// What the contenders need on the GPU: sets of buffers, loaded modules; made anew after a worker's replacement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/measure/measure.h"

namespace roofgen {

class Rig {
 public:
  /// rotates: samples are cold, and find their data in another set than the one before did. Else one set is enough.
  Rig(GpuExecutor& gpu, const Workload& workload, bool rotates) : gpu_(gpu), workload_(workload), rotates_(rotates) {}
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// Allocates and prepares as many sets as are wanted and fit. Error: not even one.
  Result<void> set_up();
  /// After a fault: everything anew when the worker was replaced, nothing otherwise.
  Result<void> refresh();
  /// The contender's kernels on that set of buffers, loaded where they are not yet.
  Result<std::vector<Step>> steps(const Contender& contender, size_t set);

  /// False after the worker was replaced, until refresh().
  bool current() const { return gpu_.generation() == generation_; }

  size_t sets() const { return sets_.size(); }
  uint64_t set_bytes() const;
  uint64_t l2_bytes() const;  ///< 0: unknown
  bool enough_sets() const;   ///< all together are three times L2

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
