// Which evaluations run now, among the processes that share a store.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tuner/store/store.h"

namespace roofgen::store {

/// A claim is the lock of one byte of an empty file beside the store, at the hash of the key. The system ends the locks
/// of a process with the process, however that ends: no claim is left behind, and none expires.
class Claims {
 public:
  explicit Claims(std::string path) : path_(std::move(path)) {}
  ~Claims();
  Claims(const Claims&) = delete;
  /// nullptr: another process has it. Where the file cannot be made or locked, no claim excludes another.
  std::unique_ptr<EvaluationClaim> claim(const StoreKey& key);

 private:
  const std::string path_;
  std::once_flag opened_;
  int file_ = -1;
};

}  // namespace roofgen::store
