#include "tuner/verify/inputs.h"

namespace roofgen {
namespace {

/// Both executors allocate at multiples of this.
constexpr uint64_t kAllocationStep = 256;

}  // namespace

SharedInputs::~SharedInputs() {
  for (const auto& [name, buffer] : buffers_) release_allocation(executor_, buffer);
}

Result<DevicePtr> SharedInputs::get(const std::string& contents, const std::string& buffer,
                                    const std::function<Result<DevicePtr>()>& make) {
  const std::lock_guard lock(mutex_);
  const auto known = buffers_.find({contents, buffer});
  if (known != buffers_.end()) return known->second;
  ROOFGEN_TRY(const DevicePtr made, make());
  buffers_[{contents, buffer}] = made;
  return made;
}

void release_allocation(Executor& executor, DevicePtr buffer) {
  executor.release({buffer.address / kAllocationStep * kAllocationStep});
}

}  // namespace roofgen
