// Exact accounting of one launch: instructions by class from per-instruction execution counts,
// memory requests from the events the machine reports. Knows no values and no time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/executor.h"
#include "runtime/sim/code.h"

namespace roofgen::sim {

/// Which 32-byte sectors of which lines were requested, over a whole launch. Neighbouring lines lie together, because
/// kernels go through memory mostly in order.
class SectorSet {
 public:
  SectorSet();
  /// Bits of `reads` and `writes` are sectors of the line.
  void add(uint64_t line, uint8_t reads, uint8_t writes) {
    if (line / kPageLines != last_) last_ = line / kPageLines, last_at_ = page(last_);
    pages_[last_at_][line % kPageLines] |= static_cast<uint8_t>(reads | writes << 4);
  }
  void add(const SectorSet& other);
  void clear();
  uint8_t reads_of(uint64_t line) const;
  uint64_t reads() const;
  uint64_t writes() const;

 private:
  static constexpr uint64_t kPageLines = 64;
  using Page = std::array<uint8_t, kPageLines>;  ///< per line; low half reads, high half writes
  struct Entry {
    uint64_t number_plus_1 = 0;
    uint32_t at = 0;
  };
  /// The page's entry, or the empty one where it belongs.
  size_t find(uint64_t number) const;
  /// Where the page is, made when needed.
  uint32_t page(uint64_t number);
  std::vector<Entry> entries_;
  std::vector<Page> pages_;
  uint64_t last_ = ~uint64_t{0};
  uint32_t last_at_ = 0;
};

/// Number of passes through the shared-memory port: each lane group (32, 16 or 8 lanes for accesses
/// of up to 4, 8, 16 bytes) takes as many as the most distinct words any bank of 4 bytes must serve.
struct Wavefronts {
  uint32_t needed = 0, ideal = 0;
};
Wavefronts shared_wavefronts(const uint32_t* addresses, uint32_t mask, uint32_t bytes);
/// The same of all lanes of a warp, each `step` further than the one before; 4, 8 or 16 bytes.
Wavefronts climbing_wavefronts(uint32_t step, uint32_t bytes);

class Counter {
 public:
  explicit Counter(const Kernel& kernel)
      : kernel_(kernel), executed_(kernel.code.size(), 0), requests_(kernel.code.size()) {}
  uint64_t* executed() { return executed_.data(); }
  /// Memory requests from here on are those of this instruction.
  void at(uint32_t inst) { site_ = inst; }

  void begin_cta(std::vector<LineAccess>* trace) {
    trace_ = trace;
    ++counts_.ctas;
  }
  /// A CTA that was begun before goes on.
  void resume_cta(std::vector<LineAccess>* trace) { trace_ = trace; }
  /// One warp request to device memory; `bytes` per active lane. Requests are merged into sectors
  /// within the request only: no L1 hits across instructions are assumed.
  void global_access(const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool write);
  /// The same of 32 lanes whose bytes lie one after the other: `total` of them from `first`.
  void global_row(uint64_t first, uint32_t total, bool write);
  void shared_access(const uint32_t* addresses, uint32_t mask, uint32_t bytes) {
    const Wavefronts w = shared_wavefronts(addresses, mask, bytes);
    shared_wavefronts_are(w.needed, w.ideal);
  }
  void shared_wavefronts_are(uint32_t needed, uint32_t ideal) {
    Requests& r = requests_[site_];
    r.wavefronts += needed;
    r.ideal_wavefronts += ideal;
  }
  void load_lanes(uint32_t mask, uint32_t bytes) {
    (bytes == 16 ? counts_.bulk_load_16 : counts_.narrow_load) += static_cast<uint64_t>(__builtin_popcount(mask));
  }
  void async_wait(uint64_t distance) {
    ++counts_.async_waits;
    counts_.async_distance += distance;
  }
  void exps(uint32_t mask) { counts_.exps += static_cast<uint64_t>(__builtin_popcount(mask)); }
  /// What another one counted of the same kernel.
  void add(const Counter& other);
  void clear();
  uint64_t warp_instructions() const;
  /// Sectors of a line (address / 128) that were read, a bit each.
  uint8_t sectors_read(uint64_t line) const { return sectors_.reads_of(line); }
  Counts finish() const;
  /// The instructions that were executed, each with its own counts.
  std::vector<SiteCounts> sites() const;

 private:
  struct Requests {
    uint64_t sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0;
  };
  const Kernel& kernel_;
  std::vector<uint64_t> executed_;
  std::vector<Requests> requests_;  ///< per instruction
  uint32_t site_ = 0;
  Counts counts_;
  SectorSet sectors_;
  std::vector<LineAccess>* trace_ = nullptr;
};

}  // namespace roofgen::sim
