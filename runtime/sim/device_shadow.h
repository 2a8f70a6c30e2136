// What the simulator remembers about device memory that a launch writes: which warps of the running CTA touched what
// since they last synchronised. A line is most often one warp's alone, between two barriers: then who it was, when, and
// which bytes is enough. A line that warps share without a barrier between gets records of its bytes in the shadow of
// shared memory, which has the time and the rules of races for both.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/memory.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

/// Bits [begin, end) of a line's 128.
struct LineBits {
  uint64_t low = 0, high = 0;
  static LineBits of(uint32_t begin, uint32_t end) {
    const auto below = [](uint32_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
    return {below(end < 64 ? end : 64) & ~below(begin < 64 ? begin : 64),
            below(end > 64 ? end - 64 : 0) & ~below(begin > 64 ? begin - 64 : 0)};
  }
  void add(LineBits b) { low |= b.low, high |= b.high; }
  void remove(LineBits b) { low &= ~b.low, high &= ~b.high; }
  bool meets(LineBits b) const { return (low & b.low) || (high & b.high); }
  LineBits without(LineBits b) const { return {low & ~b.low, high & ~b.high}; }
  /// Those of the `chunk`th 16 bytes.
  uint32_t of_chunk(uint32_t chunk) const {
    return static_cast<uint16_t>((chunk < 4 ? low : high) >> (chunk & 3) * 16);
  }
};

class DeviceShadow {
 public:
  using Outcome = SharedShadow::Outcome;
  explicit DeviceShadow(SharedShadow& shadow) : shadow_(shadow) {}

  /// A CTA of `warps` begins.
  void reset(uint32_t warps);
  /// After a barrier. Where all warps have seen all there was, nothing of it matters any more.
  void settle() {
    if (shadow_.settled() + 1 == shadow_.now() && !alone_ && free_ < lines_.size() / 2) forget();
  }

  /// An access is of one line. `strong`: as SharedShadow has it.
  Outcome read(uint32_t warp, uint64_t address, uint32_t bytes, bool strong = false) {
    return alone_   ? Outcome{}
           : strong ? read_strongly(warp, address, bytes)
                    : touch(warp, address, bytes, false, false);
  }
  Outcome write(uint32_t warp, uint64_t address, uint32_t bytes, bool strong = false) {
    return alone_ ? Outcome{} : touch(warp, address, bytes, true, strong);
  }

  static constexpr uint32_t kNowhere = ~0u;
  /// Where in the shadow of shared memory an address has its records; kNowhere: it has none there, and nobody handed
  /// anything over there.
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
  Outcome touch(uint32_t warp, uint64_t address, uint32_t bytes, bool writes, bool strong);
  Outcome read_strongly(uint32_t warp, uint64_t address, uint32_t bytes);
  Outcome closely(Line& l, uint32_t warp, uint32_t at, uint32_t bytes, bool writes, bool strong);

  SharedShadow& shadow_;
  std::vector<Line> lines_;   ///< a power of two; at most half are in use
  size_t free_ = 0;           ///< more lines that fit
  uint32_t first_place_ = 0;  ///< where shared memory ends
  uint32_t shift_ = 64;       ///< 64 - log2 of their number
  uint32_t epoch_ = 0;
  bool alone_ = true;  ///< one warp races with nobody
};

}  // namespace roofgen::sim
