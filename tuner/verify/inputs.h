// The inputs of one problem on one executor, which the verifiers of all its variants share.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/executor.h"

namespace roofgen {

/// Thread-safe. The buffers are released at the end; the executor must outlive them.
class SharedInputs {
 public:
  explicit SharedInputs(Executor& executor) : executor_(executor) {}
  ~SharedInputs();
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  /// The buffer of these contents: the text of all that they are made from. `make` makes it the first time.
  Result<DevicePtr> get(const std::string& contents, const std::string& buffer,
                        const std::function<Result<DevicePtr>()>& make);

 private:
  Executor& executor_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, DevicePtr> buffers_;
};

/// Releases a buffer that begins up to one step of allocation after the start of its allocation.
void release_allocation(Executor& executor, DevicePtr buffer);

}  // namespace roofgen
