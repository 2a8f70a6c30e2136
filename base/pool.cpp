#include "base/pool.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ThreadPool.h>

#include <atomic>
#include <chrono>
#include <optional>

namespace roofgen {

struct Pool::Threads {
#if LLVM_VERSION_MAJOR >= 19
  llvm::DefaultThreadPool pool;
#else
  llvm::ThreadPool pool;
#endif
};

Pool::Pool(int threads) : threads_(new Threads{.pool{llvm::hardware_concurrency(static_cast<unsigned>(threads))}}) {}
Pool::~Pool() = default;

void Pool::push(std::function<void()> job) { pending_.push_back(threads_->pool.async(std::move(job))); }

void Pool::drain(const std::function<void()>& tick) {
  for (const std::shared_future<void>& job : pending_)
    while (job.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) tick();
  pending_.clear();
}

Result<void> for_each_index(int threads, size_t count, const std::function<Result<void>(size_t)>& body) {
  std::vector<std::optional<Error>> failed(count);
  std::atomic<size_t> next{0};
  {
    Pool pool(threads);
    for (int t = 0; t < threads; ++t)
      pool.push([&] {
        for (size_t i = next++; i < count; i = next++)
          if (auto ran = body(i); !ran) failed[i] = std::move(ran).error();
      });
  }
  for (std::optional<Error>& error : failed)
    if (error) return *std::move(error);
  return {};
}

}  // namespace roofgen
