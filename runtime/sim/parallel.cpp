#include "runtime/sim/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace roofgen::sim {
namespace {

/// Neighbours often share lines, so a worker takes a few at a time; but all should end at about the same time.
constexpr uint64_t kChunksPerWorker = 16;
constexpr uint32_t kWordsPerLine = kLineBytes / 4, kWordsPerSector = 8;

struct Worker {
  explicit Worker(const LaunchState& launch)
      : lines(launch.memory.all()), state(of_own(launch)), counter(launch.kernel), machine(state, counter, OpcodeTable::host().lanes()) {}

  PrivateLines lines;
  std::vector<Finding> findings, tolerated;
  LaunchState state;
  Counter counter;
  Machine machine;

 private:
  LaunchState of_own(LaunchState launch) {
    launch.memory = MemoryView(launch.memory.all(), lines);
    if (launch.tolerated) launch.tolerated = &tolerated;
    return launch;
  }
};

class Parallel {
 public:
  Parallel(const LaunchState& state, uint64_t begin, uint64_t n, const RunOptions& options)
      : state_(state), memory_(state.memory.all()), options_(options), begin_(begin), n_(n) {}

  bool run(Counter& counter) {
    const auto threads = static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(options_.threads), n_ - begin_));
    chunk_ = std::max<uint64_t>(1, (n_ - begin_) / (threads * kChunksPerWorker));
    for (size_t i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(state_));
    next_ = begin_ + threads * chunk_;
    each_worker([this](size_t i) { run_ctas(*workers_[i], begin_ + i * chunk_); });
    if (!order_matters_) each_worker([this](size_t i) { look_at_words(*workers_[i]); });
    if (order_matters_) return false;
    for (const auto& w : workers_) keep(*w);
    for (const auto& w : workers_) counter.add(w->counter);
    return true;
  }

 private:
  template <class F>
  void each_worker(F f) {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < workers_.size(); ++i) threads.emplace_back([f, i] { f(i); });
    f(0);
    for (std::thread& t : threads) t.join();
  }

  /// The worker's first CTAs are always the same, so that each has some.
  void run_ctas(Worker& w, uint64_t first) {
    for (; first < n_; first = next_.fetch_add(chunk_)) {
      for (uint64_t i = first, end = std::min(first + chunk_, n_); i < end; ++i) {
        if (order_matters_) return;
        w.counter.begin_cta(options_.trace ? &(*options_.trace)[i] : nullptr);
        w.machine.begin_cta(options_.ctas ? options_.ctas->ctas[i] : i, static_cast<uint32_t>(i));
        if (!w.machine.go_on(w.findings) || !w.findings.empty() || !w.tolerated.empty()) order_matters_ = true;
      }
    }
  }

  /// Bit i: word i of the line was written by a CTA that ran here.
  uint32_t words_written(uint32_t slot) const {
    const uint32_t *writers = memory_.writers(slot), first = state_.first_writer + static_cast<uint32_t>(begin_), ctas = static_cast<uint32_t>(n_ - begin_);
    uint32_t words = 0;
    for (uint32_t i = 0; i < kWordsPerLine; ++i) words |= uint32_t{(((writers[i] >> 4) - first) & kWriterMask) < ctas} << i;
    return words;
  }

  /// Did anybody else read or write what this worker wrote? Reads are known by sector.
  void look_at_words(Worker& w) {
    for (const PrivateLines::Line& l : w.lines.lines()) {
      const uint32_t words = words_written(l.slot);
      uint8_t sectors = 0;
      for (uint32_t i = 0; i < kWordsPerLine / kWordsPerSector; ++i)
        if (words >> (i * kWordsPerSector) & 0xff) sectors |= static_cast<uint8_t>(1u << i);
      const uint64_t address = l.buffer->base / kLineBytes + l.line;
      for (const auto& other : workers_) {
        if (other.get() == &w) continue;
        const uint32_t slot = other->lines.find(*l.buffer, l.line);
        if ((slot && words_written(slot) & words) || other->counter.sectors_read(address) & sectors || other->lines.reads_uncounted(l.buffer)) order_matters_ = true;
      }
      if (order_matters_) return;
    }
  }

  void keep(Worker& w) {
    for (size_t i = 0; i < w.lines.lines().size(); ++i) {
      const PrivateLines::Line& l = w.lines.lines()[i];
      const uint32_t to = l.buffer->table[l.line].load(std::memory_order_acquire);
      if (!to) {
        memory_.place(*l.buffer, l.line, l.slot);
        w.lines.forget(i);
      } else {
        merge(l.slot, to);
      }
    }
  }
  void merge(uint32_t from, uint32_t to) {
    for (uint32_t words = words_written(from); words; words &= words - 1) {
      const auto i = static_cast<uint32_t>(__builtin_ctz(words));
      std::memcpy(memory_.data(to) + 4 * i, memory_.data(from) + 4 * i, 4);
      memory_.writers(to)[i] = memory_.writers(from)[i];
      const uint64_t bits = uint64_t{15} << (4 * i & 63);
      uint64_t& valid = memory_.valid(to)[i / 16];
      valid = (valid & ~bits) | (memory_.valid(from)[i / 16] & bits);
    }
  }

  const LaunchState& state_;
  DeviceMemory& memory_;
  const RunOptions& options_;
  uint64_t begin_, n_, chunk_ = 1;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> order_matters_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

bool run_in_parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, const RunOptions& options) {
  if (options.trace) options.trace->resize(n);
  if (Parallel(state, begin, n, options).run(counter)) return true;
  if (options.trace) options.trace->resize(begin);
  return false;
}

}  // namespace roofgen::sim
