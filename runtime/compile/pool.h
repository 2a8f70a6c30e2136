// A pool of compile worker processes. Workers start on first use and are reused. A worker is killed and replaced when a
// candidate exceeds its time limit or crashes the process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/frame.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {

inline constexpr int kWorkerFailed = -1;  ///< reply status of a worker without NVRTC

Fields encode_request(const CompileRequest& request);
std::optional<CompileRequest> decode_request(const Fields& fields);
Fields encode_reply(const CompileReply& reply);
std::optional<CompileReply> decode_reply(const Fields& fields);

struct PoolOptions {
  std::string executable;  ///< run with the one argument `__compile-worker`; empty: threads of this process
  std::string library;     ///< absolute path of NVRTC
  int jobs = 1;
  std::chrono::milliseconds timeout{20000};  ///< CPU time limit per request; the wall-clock limit is ten times as long
  uint64_t memory_limit_bytes = 0;           ///< 0: none
};

class WorkerPool {
 public:
  explicit WorkerPool(PoolOptions options);
  ~WorkerPool();  ///< kills the workers
  WorkerPool(const WorkerPool&) = delete;

  /// Receives a reply, or an Error of this request alone: time-out, crash, no worker could be started.
  using Done = std::function<bool(size_t index, Result<CompileReply> reply, double seconds)>;

  /// Asked when a worker is free for a request, on another thread than `done`: the request begins, waits, or has its
  /// reply from elsewhere.
  struct Elsewhere {
    bool wait = false;
    std::optional<CompileReply> reply = std::nullopt;
  };
  using Look = std::function<Elsewhere(size_t index)>;

  /// Compiles all requests in order as workers become free. `done` runs on the calling thread while the workers
  /// continue; returning false abandons the rest.
  void run(const std::vector<CompileRequest>& requests, const Done& done, const Look& look = {});

  /// Process ids of the running workers.
  std::vector<int> worker_pids() const;

 private:
  class Worker;
  class Service;
  void run_here(const std::vector<CompileRequest>& requests, const Done& done) const;
  PoolOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace roofgen
