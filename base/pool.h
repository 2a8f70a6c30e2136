// A queue of jobs for a few threads, over llvm::ThreadPool.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// Jobs are independent; the order of completion does not show in any result. Jobs do not throw.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();  ///< waits for the jobs
  void push(std::function<void()> job);
  /// A job that returns false, because another process is at it, is called again after the others.
  void push_until(std::function<bool()> job);
  /// Waits until no job is pending, and calls `tick` about every 100 ms.
  void drain(const std::function<void()>& tick);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
  std::vector<std::shared_future<void>> pending_;
  std::mutex mutex_;
  std::vector<std::function<bool()>> again_;
};

/// Runs body(0), ..., body(count - 1) on a few threads, each index once and all of them even after an error. The error
/// of the least index.
Result<void> for_each_index(int threads, size_t count, const std::function<Result<void>(size_t)>& body);

}  // namespace roofgen
