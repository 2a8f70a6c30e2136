// Race records of device memory that a launch writes: the warps of the running CTA that accessed each line since their
// last synchronisation. Between two barriers most lines are accessed by one warp: its index, its stamp and a mask of
// bytes suffice. A line that several warps access without a barrier gets records per byte in the shadow of shared
// memory, which has the stamps and the race rules of both.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/memory.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

class DeviceShadow {
 public:
  using Outcome = SharedShadow::Outcome;
  explicit DeviceShadow(SharedShadow& shadow) : shadow_(shadow) {}

  /// Begins a CTA of `warps` warps.
  void reset(uint32_t warps);
  /// After a barrier: drops the records if every warp has seen all earlier accesses.
  void settle() {
    if (shadow_.settled() + 1 == shadow_.now() && !alone_ && free_ < lines_.size() / 2) forget();
  }

  /// An access lies within one line. `strong` as in SharedShadow.
  Outcome read(uint32_t warp, uint64_t address, uint32_t bytes, bool strong = false) {
    return alone_   ? Outcome{}
           : strong ? read_strongly(warp, address, bytes)
                    : touch(warp, address, bytes, false, false);
  }
  /// A plain read of some bytes of the line at `line`.
  Outcome read(uint32_t warp, uint64_t line, LineBits bits) { return alone_ ? Outcome{} : touch(warp, line, bits); }
  Outcome write(uint32_t warp, uint64_t address, uint32_t bytes, bool strong = false) {
    return alone_ ? Outcome{} : touch(warp, address, bytes, true, strong);
  }

  void note_strong_read(uint32_t warp, uint64_t address, uint32_t bytes) {
    if (const uint32_t at = make_place(address); at != kNowhere) shadow_.note_strong_read(warp, at, bytes);
  }

  static constexpr uint32_t kNowhere = ~0u;
  /// The offset of an address's records in the shadow of shared memory; kNowhere: it has none.
  uint32_t place(uint64_t address) const;
  /// The same, made when needed.
  uint32_t make_place(uint64_t address);
  uint64_t bytes() const { return lines_.size() * sizeof(Line); }

 private:
  static constexpr uint32_t kEpochBits = 24;

  struct alignas(64) Line {
    uint64_t key = 0;           ///< number of the line << kEpochBits | the CTA's epoch; another epoch: nothing is here
    uint32_t touched = 0;       ///< warp << 27 | stamp of all that follows
    uint32_t place = kNowhere;  ///< its records in the shadow, which then are all there is
    LineBits read, wrote, strong;
  };

  /// Where it is or could be put: multiples of the golden ratio keep lines that follow each other apart.
  size_t home(uint64_t number) const { return (number * 0x9e3779b97f4a7c15u) >> shift_; }
  bool is_here(const Line& l) const { return (l.key & ((1u << kEpochBits) - 1)) == epoch_; }
  Line& line(uint64_t number);
  const Line* find(uint64_t number) const;
  void forget();
  void grow();
  bool contest(Line& l);
  bool joins(Line& l, uint32_t warp);
  Outcome touch(uint32_t warp, uint64_t address, uint32_t bytes, bool writes, bool strong);
  Outcome touch(uint32_t warp, uint64_t address, LineBits read);
  Outcome read_strongly(uint32_t warp, uint64_t address, uint32_t bytes);
  Outcome closely(Line& l, uint32_t warp, uint32_t at, uint32_t bytes, bool writes, bool strong);

  SharedShadow& shadow_;
  std::vector<Line> lines_;   ///< a power of two; at most half are in use
  size_t free_ = 0;           ///< more lines that fit
  uint32_t first_place_ = 0;  ///< where shared memory ends
  uint32_t shift_ = 64;       ///< 64 - log2 of their number
  uint32_t epoch_ = 0;
  bool alone_ = true;  ///< the CTA has one warp: no races
};

}  // namespace roofgen::sim
