// Exact accounting of one launch: instructions by class from per-instruction execution counts,
// memory requests from the events the machine reports. Knows no values and no time.
#pragma once

#include <cstdint>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/executor.h"
#include "runtime/sim/code.h"

namespace roofgen::sim {

/// Which 32-byte sectors of which lines were requested, over a whole launch.
class SectorSet {
 public:
  SectorSet();
  /// Bits of `reads` and `writes` are sectors of the line.
  void add(uint64_t line, uint8_t reads, uint8_t writes);
  void add(const SectorSet& other);
  void clear();
  uint8_t reads_of(uint64_t line) const { return entries_[find(line)].masks & 15; }
  uint64_t reads() const;
  uint64_t writes() const;

 private:
  struct Entry {
    uint64_t line_plus_1 = 0;
    uint8_t masks = 0;  ///< low half reads, high half writes
  };
  void grow();
  size_t find(uint64_t line) const;
  std::vector<Entry> entries_;
  size_t used_ = 0;
};

/// Number of passes through the shared-memory port: each lane group (32, 16 or 8 lanes for accesses
/// of up to 4, 8, 16 bytes) takes as many as the most distinct words any bank of 4 bytes must serve.
struct Wavefronts {
  uint32_t needed = 0, ideal = 0;
};
Wavefronts shared_wavefronts(const uint32_t* addresses, uint32_t mask, uint32_t bytes);

class Counter {
 public:
  explicit Counter(const Kernel& kernel) : kernel_(kernel), executed_(kernel.code.size(), 0), requests_(kernel.code.size()) {}
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
    (bytes == 16 ? counts_.bulk_load_16 : counts_.narrow_load) +=
        static_cast<uint64_t>(__builtin_popcount(mask));
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
