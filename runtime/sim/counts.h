// Exact counts of one launch: instructions by class from the number of issues of each instruction, memory traffic from
// the requests. Knows neither values nor time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/executor.h"
#include "runtime/sim/events.h"

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

/// Neighbouring lanes that shared memory or L1 serves together: as many as 128 bytes go to, and twice as many if each
/// lane has the address of its neighbour, or each that of its second neighbour (Greg Smith of NVIDIA in its developer
/// forums, "Unexpected shared memory bank conflict", for compute capability 7.x).
template <class Address>
uint32_t lanes_served_together(const Address* addresses, uint32_t mask, uint32_t bytes) {
  if (bytes <= 4) return 32;
  bool next = true, second = true;
  for (uint32_t lane = 0; lane < 32 && (next || second); ++lane) {
    if (!(mask >> lane & 1)) continue;
    next = next && (!(mask >> (lane ^ 1) & 1) || addresses[lane ^ 1] == addresses[lane]);
    second = second && (!(mask >> (lane ^ 2) & 1) || addresses[lane ^ 2] == addresses[lane]);
  }
  return (next || second ? 256 : 128) / (bytes <= 8 ? 8 : 16);
}

/// Number of passes through the shared-memory port: each group of lanes that are served together takes as many as the
/// most distinct words any bank of 4 bytes must serve.
struct Wavefronts {
  uint32_t needed = 0, ideal = 0;
};
Wavefronts shared_wavefronts(const uint32_t* addresses, uint32_t mask, uint32_t bytes);
/// The same of all lanes of a warp, each `step` further than the one before; 4, 8 or 16 bytes.
Wavefronts climbing_wavefronts(uint32_t step, uint32_t bytes);

/// The listener that counts.
class Counter {
 public:
  explicit Counter(const Kernel& kernel)
      : kernel_(kernel), executed_(kernel.code.size(), 0), requests_(kernel.code.size()) {}
  /// Issues of each instruction. The machine increments them itself: an Issue event would cost more.
  uint64_t* issues() { return executed_.data(); }
  /// Lists the lines of device memory that each CTA requests, by ordinal; null: does not.
  void trace_to(std::vector<std::vector<LineAccess>>* traces) { traces_ = traces; }

  void on(const CtaBegin& e);
  void on(const CtaTurn& e) { trace_ = traces_ ? &(*traces_)[e.ordinal] : nullptr; }
  void on(const Exponentials& e) { counts_.exps += static_cast<uint64_t>(__builtin_popcount(e.mask)); }
  void on(const SharedAccess& e);
  /// Requests are merged into sectors within the request only: no L1 hits across instructions are assumed.
  void on(const DeviceAccess& e);
  void on(const BulkRequest& e) { add_row(e.site.pc, e.first, e.bytes, e.write); }
  void on(const AsyncWait& e);
  void on(const WgmmaIssue& e);
  void on(const TensorRead& e);
  void on(const TensorProducts& e) { counts_.mma_flops += 2 * e.products; }

  /// Adds the counts of another counter of the same kernel.
  void add(const Counter& other);
  void clear();
  uint64_t warp_instructions() const;
  /// Sectors of a line (address / 128) that were read, a bit each.
  uint8_t sectors_read(uint64_t line) const { return sectors_.reads_of(line); }
  Counts finish() const;
  /// The instructions that were executed, each with its own counts.
  std::vector<SiteCounts> sites(bool executed) const;

 private:
  struct Requests {
    uint64_t sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0;
  };
  void add_row(uint32_t pc, uint64_t first, uint32_t total, bool write);
  void add_lanes(const DeviceAccess& e);

  const Kernel& kernel_;
  std::vector<uint64_t> executed_;
  std::vector<Requests> requests_;  ///< per instruction
  Counts counts_;
  SectorSet sectors_;
  std::vector<std::vector<LineAccess>>* traces_ = nullptr;
  std::vector<LineAccess>* trace_ = nullptr;  ///< of the CTA whose turn it is
};

}  // namespace roofgen::sim
