// A pool of compile worker processes. Workers start when first needed, are reused, and are killed
// and replaced when a candidate exceeds its time or takes the process down.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/frame.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {

inline constexpr int kWorkerFailed = -1;  ///< status of a reply when the worker has no NVRTC

Fields encode_request(const CompileRequest& request);
std::optional<CompileRequest> decode_request(const Fields& fields);
Fields encode_reply(const CompileReply& reply);
std::optional<CompileReply> decode_reply(const Fields& fields);

struct PoolOptions {
  std::string executable = "/proc/self/exe";  ///< run with the one argument `__compile-worker`
  std::string library;                        ///< absolute path of NVRTC
  int jobs = 1;
  std::chrono::milliseconds timeout{20000};  ///< CPU time per request; ten times as long by the clock
  uint64_t memory_limit_bytes = 0;           ///< 0: none
};

class WorkerPool {
 public:
  explicit WorkerPool(PoolOptions options);
  ~WorkerPool();  ///< kills the workers
  WorkerPool(const WorkerPool&) = delete;

  /// A reply, or an Error of this request alone: time-out, crash, no worker could be started.
  using Done = std::function<bool(size_t index, Result<CompileReply> reply, double seconds)>;

  /// Compiles all, in order of the list as workers become free. `done` runs on the calling thread
  /// while the workers go on; when it returns false the rest is abandoned.
  void run(const std::vector<CompileRequest>& requests, const Done& done);

  /// Process ids of the living workers.
  std::vector<int> worker_pids() const;

 private:
  class Worker;
  class Service;
  PoolOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace roofgen
