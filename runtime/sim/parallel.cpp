#include "runtime/sim/parallel.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>

#include "runtime/sim/grid_order.h"

namespace roofgen::sim {
namespace {

constexpr uint64_t kLeastCtasPerWorker = 4;  ///< of a wave, so that workers end at about the same time
/// CTAs may differ, and the first be the least of them: waves grow from a small one.
constexpr uint64_t kCtasOfFirstWave = 16, kGrowth = 8;
/// Neighbours often share lines, so a worker takes a few at a time.
constexpr uint64_t kChunksPerWorker = 16;
constexpr uint32_t kWordsPerLine = kLineBytes / 4, kWordsPerSector = 8;

struct Worker {
  Worker(const LaunchState& launch, std::vector<std::vector<LineAccess>>* trace)
      : lines(launch.memory.all()),
        state(of_own(launch)),
        counter(launch.kernel),
        machine(state, counter, OpcodeTable::host().lanes()) {
    counter.trace_to(trace);
  }

  PrivateLines lines;
  GridOrder order{false};  ///< a CTA that may synchronise ends the wave
  std::vector<Finding> findings;
  LaunchState state;
  Counter counter;
  Machine machine;

 private:
  LaunchState of_own(LaunchState launch) {
    launch.memory = MemoryView(launch.memory.all(), lines);
    launch.order = &order;
    launch.locks = nullptr;  // the first CTAs, which ran alone, have shown how locks of a CTA are taken
    return launch;
  }
};

class Parallel {
 public:
  Parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, const RunOptions& options,
           uint64_t wave_instructions)
      : state_(state),
        memory_(state.memory.all()),
        counter_(counter),
        options_(options),
        wave_instructions_(wave_instructions),
        n_(n),
        begin_(begin),
        workers_(std::min<uint64_t>(static_cast<uint64_t>(options.threads), n - begin)),
        all_(static_cast<ptrdiff_t>(workers_.size())) {
    for (auto& w : workers_) w = std::make_unique<Worker>(state_, options.trace);
  }

  uint64_t run(uint64_t instructions) {
    plan_wave(instructions, kCtasOfFirstWave * workers_.size());
    // All threads or none: those already started would wait for the missing ones at the end of the wave.
    std::atomic<int> go{0};
    std::vector<std::thread> threads;
    try {
      for (size_t i = 1; i < workers_.size(); ++i)
        threads.emplace_back([this, i, &go] {
          go.wait(0);
          if (go > 0) run_waves(i);
        });
      go = 1;
    } catch (const std::exception&) {
      go = -1;
    }
    go.notify_all();
    if (go > 0) run_waves(0);
    for (std::thread& t : threads) t.join();
    if (order_matters_) memory_.drop_filled_since(filled_before_);
    return begin_;
  }

 private:
  void plan_wave(uint64_t instructions_per_cta, uint64_t most) {
    const uint64_t workers = workers_.size(), left = n_ - begin_;
    const uint64_t ctas = std::min(
        {left, most,
         std::max(workers * kLeastCtasPerWorker, wave_instructions_ / std::max<uint64_t>(instructions_per_cta, 1))});
    filled_before_ = memory_.filled_so_far();
    end_ = begin_ + ctas;
    chunk_ = std::max<uint64_t>(1, ctas / (workers * kChunksPerWorker));
    next_ = begin_ + workers * chunk_;
  }

  void run_waves(size_t i) {
    Worker& w = *workers_[i];
    while (begin_ < n_) {
      run_ctas(w, begin_ + i * chunk_);
      all_.arrive_and_wait();
      if (!order_matters_) look_at_words(w);
      if (!order_matters_) look_at_history(w);
      all_.arrive_and_wait();
      if (order_matters_) return;
      keep(w, false);
      all_.arrive_and_wait();
      if (i == 0) end_wave();
      all_.arrive_and_wait();
    }
  }

  /// The worker's first CTAs are always the same, so that each has some.
  void run_ctas(Worker& w, uint64_t first) try {
    for (; first < end_; first = next_.fetch_add(chunk_)) {
      for (uint64_t i = first, end = std::min(first + chunk_, end_); i < end; ++i) {
        if (order_matters_) return;
        w.machine.begin_cta(options_.ctas ? options_.ctas->ctas[i] : i, static_cast<uint32_t>(i));
        if (!w.machine.go_on(w.findings) || !w.findings.empty()) order_matters_ = true;
      }
    }
  } catch (const std::bad_alloc&) {
    order_matters_ = true;
  }

  /// Sets order_matters_ if another worker read or wrote a word that this worker wrote. Reads are known by sector.
  void look_at_words(Worker& w) {
    for (PrivateLines::Line& l : w.lines.lines()) {
      const uint32_t words = memory_.written_words(l.slot);
      uint8_t sectors = 0;
      for (uint32_t i = 0; i < kWordsPerLine / kWordsPerSector; ++i)
        if (words >> (i * kWordsPerSector) & 0xff) sectors |= static_cast<uint8_t>(1u << i);
      const uint64_t address = l.buffer->base / kLineBytes + l.line;
      for (const auto& other : workers_) {
        if (other.get() == &w) continue;
        const uint32_t slot = other->lines.find(*l.buffer, l.line);
        l.shared |= slot != 0;
        if ((slot && memory_.written_words(slot) & words) || other->counter.sectors_read(address) & sectors ||
            other->lines.reads_uncounted(l.buffer))
          order_matters_ = true;
      }
      if (order_matters_) return;
    }
  }

  /// Sets order_matters_ if CTAs of the worker accessed bytes that CTAs of earlier waves, or of the worker itself
  /// before it copied the line, accessed too, and one of them wrote.
  void look_at_history(Worker& w) {
    const AccessHistory &before = state_.order->history(), &own = w.order.history();
    bool found = own.any_line([&](uint32_t slot) { return before.races(slot, own, slot); });
    for (const PrivateLines::Line& l : w.lines.lines()) {
      if (found) break;
      const uint32_t slot = l.buffer->table[l.line].load(std::memory_order_acquire);
      found = slot && (before.races(slot, own, l.slot) || own.races(slot, own, l.slot));
    }
    if (found) order_matters_ = true;
  }

  /// After the copies were merged.
  void keep_history(Worker& w) {
    AccessHistory &all = state_.order->history(), &own = w.order.history();
    for (const PrivateLines::Line& l : w.lines.lines())
      if (l.slot) all.take(l.buffer->table[l.line].load(std::memory_order_acquire), own, l.slot), own.forget(l.slot);
    own.any_line([&](uint32_t slot) { return all.take(slot, own, slot), false; });
    own.clear();
  }

  /// Merges the copies into device memory; one worker merges the lines that several wrote.
  void keep(Worker& w, bool shared) {
    for (PrivateLines::Line& l : w.lines.lines()) {
      if (l.shared != shared) continue;
      if (const uint32_t to = l.buffer->table[l.line].load(std::memory_order_acquire)) {
        merge(l.slot, to);
      } else {
        memory_.place(*l.buffer, l.line, l.slot);
        l.slot = 0;
      }
    }
  }
  void merge(uint32_t from, uint32_t to) {
    const uint32_t words = memory_.written_words(from);
    if (words == ~0u) {
      std::memcpy(memory_.data(to), memory_.data(from), kLineBytes);
      std::memcpy(memory_.valid(to), memory_.valid(from), kLineBytes / 8);
      return;
    }
    for (uint32_t left = words; left; left &= left - 1) {
      const auto i = static_cast<uint32_t>(__builtin_ctz(left));
      std::memcpy(memory_.data(to) + 4 * i, memory_.data(from) + 4 * i, 4);
      const uint64_t bits = uint64_t{15} << (4 * i & 63);
      uint64_t& valid = memory_.valid(to)[i / 16];
      valid = (valid & ~bits) | (memory_.valid(from)[i / 16] & bits);
    }
  }

  void end_wave() {
    const uint64_t before = counter_.warp_instructions();
    for (const auto& w : workers_) {
      keep(*w, true);
      counter_.add(w->counter);
    }
    for (const auto& w : workers_) {
      keep_history(*w);
      w->lines.reset();
      w->counter.clear();
    }
    const uint64_t ctas = end_ - begin_;
    begin_ = end_;
    plan_wave((counter_.warp_instructions() - before) / ctas, kGrowth * ctas);
  }

  const LaunchState& state_;
  DeviceMemory& memory_;
  Counter& counter_;
  const RunOptions& options_;
  uint64_t wave_instructions_, n_, begin_, end_ = 0, chunk_ = 1;  ///< CTAs; of the wave
  std::vector<std::unique_ptr<Worker>> workers_;
  std::barrier<> all_;
  std::vector<std::pair<std::shared_ptr<Buffer>, size_t>> filled_before_;  ///< the wave
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> order_matters_{false};
};

}  // namespace

uint64_t run_in_parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, uint64_t instructions,
                         const RunOptions& options, uint64_t wave_instructions) {
  if (options.trace) options.trace->resize(n);
  std::unique_ptr<Parallel> parallel;
  try {
    parallel = std::make_unique<Parallel>(state, counter, begin, n, options, wave_instructions);
  } catch (const std::bad_alloc&) {  // there is room for one at a time
  }
  const uint64_t done = parallel ? parallel->run(instructions) : begin;
  if (options.trace) options.trace->resize(done);
  return done;
}

}  // namespace roofgen::sim
