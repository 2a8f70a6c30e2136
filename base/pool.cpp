#include "base/pool.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ThreadPool.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace roofgen {
namespace {

constexpr auto kPause = std::chrono::milliseconds(10);  ///< between calls of a job that waits for another process

}  // namespace

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

void Pool::push_until(std::function<bool()> job) {
  push([this, job = std::move(job)] {
    if (job()) return;
    const std::lock_guard lock(mutex_);
    again_.push_back(job);
  });
}

void Pool::drain(const std::function<void()>& tick) {
  while (true) {
    for (const std::shared_future<void>& job : pending_)
      while (job.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) tick();
    pending_.clear();
    if (again_.empty()) return;
    std::this_thread::sleep_for(kPause);
    for (std::function<bool()>& job : std::exchange(again_, {})) push_until(std::move(job));
  }
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
