// The common accesses, done for a whole warp at once: of device memory, all 32 lanes, one after the other; of shared
// memory, all 32 wherever they are. They make the same checks as the general way, and leave everything that is not in
// order to it. Where they give up half way, nothing has changed that going again would not change the same way.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kAll = ~0u;

// Sizes that compilers know.
constexpr std::integral_constant<uint32_t, 4> k4;
constexpr std::integral_constant<uint32_t, 8> k8;
constexpr std::integral_constant<uint32_t, 16> k16;

/// The chunks of 16 bytes of 32 elements one after the other, and the elements that only share one. False as soon as
/// one is.
template <class Chunk, class Element>
bool each_piece(uint32_t begin, uint32_t bytes, Chunk chunk, Element element) {
  uint32_t at = begin;
  const uint32_t end = begin + bytes * kWarpSize;
  for (; at % 16; at += bytes)
    if (!element(at)) return false;
  for (; at + 16 <= end; at += 16)
    if (!chunk(at)) return false;
  for (; at < end; at += bytes)
    if (!element(at)) return false;
  return true;
}

}  // namespace

// ---- registers -----------------------------------------------------------------------------------------

/// The lanes' elements, lane after lane, into their registers.
void Machine::spread(const Warp& w, const Inst& in, const std::byte* from) {
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t* d = row(w, kernel_.lists[in.list + i]);
    if (in.count == 1 && in.size == 4) {
      std::memcpy(d, from, 4 * kWarpSize);
    } else if (in.count == 1) {
      std::memcpy(d, from, 8 * kWarpSize);
    } else if (in.size == 4) {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(d + l, from + (l * in.count + i) * 4, 4);
    } else {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(d + 2 * l, from + (l * in.count + i) * 8, 8);
    }
  }
}

/// The reverse, in `room` where they do not lie like that already.
const std::byte* Machine::collect(const Warp& w, const Inst& in, std::byte* room) const {
  if (in.count == 1) return reinterpret_cast<const std::byte*>(row(w, kernel_.lists[in.list]));
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t* s = row(w, kernel_.lists[in.list + i]);
    if (in.size == 4) {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(room + (l * in.count + i) * 4, s + l, 4);
    } else {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(room + (l * in.count + i) * 8, s + 2 * l, 8);
    }
  }
  return room;
}

bool Machine::load_row(Warp& w, const Inst& in) {
  if ((in.size != 4 && in.size != 8) || (in.size == 4 && in.flags & kFlagWide) || in.type == 2 ||
      in.flags & kFlagStrong || (in.sub && !w.holes.empty()))
    return false;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  return load_global_row(w, in, bytes) || load_shared_row(w, in, bytes);
}

bool Machine::store_row(Warp& w, const Inst& in) {
  if ((in.size != 4 && in.size != 8) || (in.size == 4 && in.flags & kFlagWide) || in.flags & kFlagStrong ||
      (in.sub && !w.holes.empty()))
    return false;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  return store_global_row(w, in, bytes) || store_shared_row(w, in, bytes);
}

// ---- device memory -------------------------------------------------------------------------------------

/// The first address, 0: the lanes' accesses are not one piece of one buffer, aligned.
uint64_t Machine::row_address(const Warp& w, const Inst& in, uint32_t bytes, Buffer** buffer) {
  const auto space = static_cast<Space>(in.space);
  if ((space != Space::kGlobal && space != Space::kGeneric) || !(in.flags & kFlagAddr64)) return 0;
  const uint64_t* base = wide_row(w, in.a);
  const uint64_t first = base[0] + static_cast<uint64_t>(in.imm), total = uint64_t{bytes} * kWarpSize;
  if (first < kGlobalBase || first % bytes || !lanes_.rows.climbs(base, static_cast<uint32_t>(__builtin_ctz(bytes))))
    return 0;
  Buffer*& b = row_buffer_[w.pc];
  if (!b || first - b->base >= b->bytes) b = DeviceMemory::find(*state_.buffers, first);
  if (!b || b->bytes - (first - b->base) < total) return 0;
  *buffer = b;
  return first;
}

/// Whether another CTA of this launch wrote one of the bytes' words. What of a word it wrote is not asked: then the
/// general way decides.
bool Machine::written_by_another(uint32_t slot, uint32_t begin, uint32_t end) {
  return state_.n_writers > kWriterMask ||
         lanes_.rows.any_other_writer(state_.memory.writers(slot) + begin / 4, (end - begin) / 4, writer_ & kWriterMask,
                                      state_.first_writer, state_.n_writers);
}

/// The next warp goes on where this one stops, most often in the next slot.
void Machine::prefetch_next(uint32_t slot) {
  __builtin_prefetch(state_.memory.data(slot + 1));
  __builtin_prefetch(state_.memory.data(slot + 1) + kLineBytes / 2);
  __builtin_prefetch(state_.memory.writers(slot + 1));
  __builtin_prefetch(state_.memory.writers(slot + 1) + kLineBytes / 8);
}

bool Machine::load_global_row(Warp& w, const Inst& in, uint32_t bytes) {
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first) return false;
  const uint64_t offset = first - b->base, begin = offset / kLineBytes,
                 end = (offset + bytes * kWarpSize - 1) / kLineBytes + 1;
  const bool is_input = b->fill != nullptr;
  alignas(64) std::byte lines[5][kLineBytes];
  const std::byte* from = lines[0];
  for (uint64_t line = begin; line < end; ++line) {
    const uint32_t slot = state_.memory.slot_for_read(*b, line);
    if (!slot) return false;
    prefetch_next(slot);
    if (!is_input) {
      const auto at = static_cast<uint32_t>(line == begin ? offset % kLineBytes : 0);
      const auto past =
          static_cast<uint32_t>(std::min<uint64_t>(offset + bytes * kWarpSize - line * kLineBytes, kLineBytes));
      const LineBits need = LineBits::of(at, past);
      const uint64_t* valid = state_.memory.valid(slot);
      if (need.low & ~valid[0] || need.high & ~valid[1] || written_by_another(slot, at, past)) return false;
      if (!device_.read(w.index, b->base + line * kLineBytes + at, past - at).ok()) return false;
    }
    if (end - begin == 1)
      from = state_.memory.data(slot);
    else
      std::memcpy(lines[line - begin], state_.memory.data(slot), kLineBytes);
  }
  spread(w, in, from + offset % kLineBytes);
  counter_.at(w.pc);
  counter_.global_row(first, bytes * kWarpSize, false);
  counter_.load_lanes(kAll, bytes);
  return true;
}

bool Machine::store_global_row(Warp& w, const Inst& in, uint32_t bytes) {
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first || b->fill) return false;
  const uint32_t total = bytes * kWarpSize, mine = (writer_ & kWriterMask) << 4 | 15;
  alignas(64) std::byte room[16 * kWarpSize];
  const std::byte* from = collect(w, in, room);
  for (uint32_t done = 0; done < total;) {
    const uint64_t offset = first - b->base + done;
    const uint32_t at = offset % kLineBytes, n = std::min<uint32_t>(kLineBytes - at, total - done);
    const uint32_t slot = state_.memory.slot_for_write(*b, offset / kLineBytes);
    // What is written already of this row the general way writes again, the same.
    if (!slot || written_by_another(slot, at, at + n) || !device_.write(w.index, first + done, n).ok()) return false;
    prefetch_next(slot);
    uint32_t* writers = state_.memory.writers(slot);
    uint64_t* valid = state_.memory.valid(slot);
    if (n == kLineBytes) {  // a size that compilers know
      std::fill_n(writers, kLineBytes / 4, mine);
      valid[0] = valid[1] = ~uint64_t{0};
      std::memcpy(state_.memory.data(slot), from + done, kLineBytes);
    } else {
      const LineBits bits = LineBits::of(at, at + n);
      std::fill_n(writers + at / 4, n / 4, mine);
      valid[0] |= bits.low;
      valid[1] |= bits.high;
      std::memmove(state_.memory.data(slot) + at, from + done, n);
    }
    done += n;
  }
  counter_.at(w.pc);
  counter_.global_row(first, total, true);
  return true;
}

// ---- shared memory -------------------------------------------------------------------------------------

/// False: a lane is not in the CTA's own shared memory, or not aligned.
bool Machine::shared_row(const Warp& w, const Inst& in, uint32_t bytes, uint32_t* offset, SharedRow* shared) const {
  const auto space = static_cast<Space>(in.space);
  const auto displacement = static_cast<uint64_t>(in.imm) - kSharedBase;
  if (space != Space::kShared && space != Space::kGeneric) return false;
  *shared = in.flags & kFlagAddr64 ? lanes_.rows.shared_wide(wide_row(w, in.a), displacement, offset)
                                   : lanes_.rows.shared(row(w, in.a), static_cast<uint32_t>(displacement), offset);
  return shared_bytes_ >= bytes && shared->highest <= shared_bytes_ - bytes && !(shared->bits & (bytes - 1));
}

void Machine::count_shared_row(const Warp& w, const SharedRow& shared, const uint32_t* offset, uint32_t bytes) {
  counter_.at(w.pc);
  const Wavefronts n = shared.climbs ? climbing_wavefronts(shared.step, bytes) : shared_wavefronts(offset, kAll, bytes);
  counter_.shared_wavefronts_are(n.needed, n.ideal);
}

bool Machine::load_shared_row(Warp& w, const Inst& in, uint32_t bytes) {
  uint32_t offset[kWarpSize];
  SharedRow shared;
  if (!shared_row(w, in, bytes, offset, &shared)) return false;
  const auto chunk = [&](uint32_t at) { return shadow_.read_chunk(w.index, at / 16).ok(); };
  const auto words = [&](uint32_t at) { return shadow_.read_words(w.index, at / 4, bytes / 4).ok(); };
  alignas(64) std::byte room[16 * kWarpSize];
  const std::byte* from = room;
  if (shared.climbs && shared.step == bytes) {
    if (!each_piece(offset[0], bytes, chunk, words)) return false;
    from = shared_.data() + offset[0];
  } else {
    const uint32_t places = shared.climbs && shared.step == 0 ? 1 : kWarpSize;
    if (bytes == 4) {
      if (!shadow_.read_each_word(w.index, offset, places)) return false;
    } else {
      for (uint32_t l = 0; l < places; ++l)
        if (!(bytes == 16 ? chunk(offset[l]) : words(offset[l]))) return false;
    }
    const auto gather = [&]<uint32_t n>(std::integral_constant<uint32_t, n>) {
      for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(room + l * n, shared_.data() + offset[l], n);
    };
    bytes == 4 ? gather(k4) : bytes == 8 ? gather(k8) : gather(k16);
  }
  spread(w, in, from);
  count_shared_row(w, shared, offset, bytes);
  return true;
}

bool Machine::store_shared_row(Warp& w, const Inst& in, uint32_t bytes) {
  uint32_t offset[kWarpSize];
  SharedRow shared;
  if (!shared_row(w, in, bytes, offset, &shared)) return false;
  const auto chunk = [&](uint32_t at) { return shadow_.write_chunk(w.index, at / 16, 0).ok(); };
  const auto words = [&](uint32_t at) { return shadow_.write_words(w.index, at / 4, bytes / 4).ok(); };
  alignas(64) std::byte room[16 * kWarpSize];
  const std::byte* from = collect(w, in, room);
  if (shared.climbs && shared.step == bytes) {
    if (!each_piece(offset[0], bytes, chunk, words)) return false;
    std::memmove(shared_.data() + offset[0], from, bytes * kWarpSize);
  } else {
    const auto scatter = [&]<uint32_t n>(std::integral_constant<uint32_t, n>) {
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        if (!(n == 16 ? chunk(offset[l]) : words(offset[l]))) return false;
        std::memcpy(shared_.data() + offset[l], from + l * n, n);
      }
      return true;
    };
    if (!(bytes == 4 ? scatter(k4) : bytes == 8 ? scatter(k8) : scatter(k16))) return false;
  }
  count_shared_row(w, shared, offset, bytes);
  return true;
}

}  // namespace roofgen::sim
