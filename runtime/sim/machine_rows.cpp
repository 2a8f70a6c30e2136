// The common access to device memory, done for a whole warp at once: all 32 lanes, one after the other in memory. It makes
// the same checks as the general way, and leaves everything that is not in order to it.
#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kAll = ~0u;

/// Bits [begin, end) of the two words of a line's written bytes.
struct LineBits {
  uint64_t low, high;
};
LineBits bits_of(uint32_t begin, uint32_t end) {
  const auto below = [](uint32_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  return {below(std::min(end, 64u)) & ~below(std::min(begin, 64u)), below(std::max(end, 64u) - 64) & ~below(std::max(begin, 64u) - 64)};
}

/// Whether another CTA of this launch wrote one of the words. What of a word it wrote is not asked: then the general way decides.
bool any_by_another(const uint32_t* writers, uint32_t begin, uint32_t end, uint32_t writer, const LaunchState& state) {
  if (state.n_writers > kWriterMask) return true;
  // In the sign bit, for hosts without comparisons of unsigned vectors: that it is another's, and one of this launch.
  const uint32_t me = writer & kWriterMask, first = state.first_writer, n = state.n_writers;
  uint32_t found = 0;
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t other = writers[i] >> 4, apart = other ^ me;
    found |= (apart | (0 - apart)) & (((other - first) & kWriterMask) - n);
  }
  return found >> 31;
}

}  // namespace

/// The first address, 0: the lanes' accesses are not one piece of one buffer, aligned.
uint64_t Machine::row_address(const Warp& w, const Inst& in, uint32_t bytes, Buffer** buffer) {
  const auto space = static_cast<Space>(in.space);
  if ((space != Space::kGlobal && space != Space::kGeneric) || !(in.flags & kFlagAddr64) || in.flags & kFlagStrong) return 0;
  const uint64_t* base = wide_row(w, in.a);
  uint64_t apart = 0;
  for (uint32_t l = 0; l < kWarpSize; ++l) apart |= base[l] ^ (base[0] + uint64_t{l} * bytes);
  const uint64_t first = base[0] + static_cast<uint64_t>(in.imm), total = uint64_t{bytes} * kWarpSize;
  if (apart || first < kGlobalBase || first % bytes) return 0;
  Buffer* b = last_buffer_;
  if (!b || first - b->base >= b->bytes) b = DeviceMemory::find(*state_.buffers, first);
  if (!b || first - b->base >= b->bytes || b->bytes - (first - b->base) < total) return 0;
  *buffer = last_buffer_ = b;
  return first;
}

bool Machine::load_row(Warp& w, const Inst& in) {
  const uint32_t bytes = uint32_t{in.size} * in.count, total = bytes * kWarpSize;
  if ((in.size != 4 && in.size != 8) || (in.size == 4 && in.flags & kFlagWide) || in.type == 2 || (in.sub && !w.holes.empty())) return false;
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first) return false;
  alignas(64) std::byte data[16 * kWarpSize];
  for (uint32_t done = 0; done < total;) {
    const uint64_t offset = first - b->base + done;
    const uint32_t at = offset % kLineBytes, n = std::min<uint32_t>(kLineBytes - at, total - done);
    const uint32_t slot = state_.memory.slot_for_read(*b, offset / kLineBytes);
    if (!slot) return false;
    if (!b->fill) {
      const LineBits need = bits_of(at, at + n);
      const uint64_t* valid = state_.memory.valid(slot);
      if (need.low & ~valid[0] || need.high & ~valid[1] || any_by_another(state_.memory.writers(slot), at / 4, (at + n) / 4, writer_, state_)) return false;
    }
    std::memcpy(data + done, state_.memory.data(slot) + at, n);
    done += n;
  }
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t* d = row(w, kernel_.lists[in.list + i]);
    if (in.count == 1) {
      std::memcpy(d, data, total);
    } else if (in.size == 4) {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(d + l, data + (l * in.count + i) * 4, 4);
    } else {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(d + 2 * l, data + (l * in.count + i) * 8, 8);
    }
  }
  counter_.at(w.pc);
  counter_.global_row(first, total, false);
  counter_.load_lanes(kAll, bytes);
  return true;
}

bool Machine::store_row(Warp& w, const Inst& in) {
  const uint32_t bytes = uint32_t{in.size} * in.count, total = bytes * kWarpSize;
  if ((in.size != 4 && in.size != 8) || (in.size == 4 && in.flags & kFlagWide) || (in.sub && !w.holes.empty())) return false;
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first || b->fill) return false;
  alignas(64) std::byte data[16 * kWarpSize];
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t* s = row(w, kernel_.lists[in.list + i]);
    if (in.count == 1) {
      std::memcpy(data, s, total);
    } else if (in.size == 4) {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(data + (l * in.count + i) * 4, s + l, 4);
    } else {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(data + (l * in.count + i) * 8, s + 2 * l, 8);
    }
  }
  for (uint32_t done = 0; done < total;) {
    const uint64_t offset = first - b->base + done;
    const uint32_t at = offset % kLineBytes, n = std::min<uint32_t>(kLineBytes - at, total - done);
    const uint32_t slot = state_.memory.slot_for_write(*b, offset / kLineBytes);
    if (!slot) return false;
    uint32_t* writers = state_.memory.writers(slot);
    // What is written already of this row the general way writes again, the same.
    if (any_by_another(writers, at / 4, (at + n) / 4, writer_, state_)) return false;
    const uint32_t mine = (writer_ & kWriterMask) << 4 | 15;
    for (uint32_t i = at / 4; i < (at + n) / 4; ++i) writers[i] = mine;
    const LineBits bits = bits_of(at, at + n);
    uint64_t* valid = state_.memory.valid(slot);
    valid[0] |= bits.low;
    valid[1] |= bits.high;
    std::memcpy(state_.memory.data(slot) + at, data + done, n);
    done += n;
  }
  counter_.at(w.pc);
  counter_.global_row(first, total, true);
  return true;
}

}  // namespace roofgen::sim
