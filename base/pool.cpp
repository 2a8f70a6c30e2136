#include "base/pool.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ThreadPool.h>

#include <chrono>

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

}  // namespace roofgen
