// A queue of jobs for a few threads, over llvm::ThreadPool.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

namespace roofgen {

/// Jobs are independent; the order of completion does not show in any result. Jobs do not throw.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();  ///< waits for the jobs
  void push(std::function<void()> job);
  /// Waits until no job is pending, and calls `tick` about every 100 ms.
  void drain(const std::function<void()>& tick);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
  std::vector<std::shared_future<void>> pending_;
};

}  // namespace roofgen
