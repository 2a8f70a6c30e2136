// Warp-wide loads and stores that need no work per lane: contiguous accesses to device memory, and all accesses to
// shared memory. Everything else, out-of-bounds and misaligned accesses too, is left to the general way
// (machine_memory.cpp).
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
constexpr uint32_t kMostLines = 5;  ///< 32 elements of 16 bytes that do not begin at a line

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

/// Whether the elements fill whole registers of every lane.
bool Machine::fits_rows(const Inst& in) {
  return (in.size == 8 || (in.size == 4 && !(in.flags & kFlagWide))) && !(in.flags & kFlagStrong);
}

/// `emitted`: the request was emitted, whether or not the data could be moved.
bool Machine::load_row(Warp& w, const Inst& in, bool* emitted) {
  if (in.type == 2 || !fits_rows(in)) return false;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  return load_device_row(w, in, bytes, emitted) || (!*emitted && load_shared_row(w, in, bytes, emitted));
}

bool Machine::store_row(Warp& w, const Inst& in) {
  if (w.follow || !fits_rows(in)) return false;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  return store_device_row(w, in, bytes) || store_shared_row(w, in, bytes);
}

// ---- device memory -------------------------------------------------------------------------------------

/// The first address; 0: the lanes' accesses are not one aligned piece of one buffer.
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

/// The next warp goes on where this one stops, most often in the next slot.
void Machine::prefetch_next(uint32_t slot) {
  __builtin_prefetch(state_.memory.data(slot + 1));
  __builtin_prefetch(state_.memory.data(slot + 1) + kLineBytes / 2);
}

/// Words of one line.
void Machine::write_words(uint32_t slot, uint32_t at, uint32_t bytes, const std::byte* from) {
  state_.memory.note_written(slot, at, bytes);
  ++state_.changes;
  uint64_t* valid = state_.memory.valid(slot);
  if (bytes == kLineBytes) {  // a size that compilers know
    valid[0] = valid[1] = ~uint64_t{0};
    std::memcpy(state_.memory.data(slot), from, kLineBytes);
    return;
  }
  const LineBits bits = LineBits::of(at, at + bytes);
  valid[0] |= bits.low;
  valid[1] |= bits.high;
  std::memmove(state_.memory.data(slot) + at, from, bytes);
}

bool Machine::load_device_row(Warp& w, const Inst& in, uint32_t bytes, bool* emitted) {
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first) return false;
  const uint64_t offset = first - b->base, begin = offset / kLineBytes;
  const auto lines = static_cast<uint32_t>((offset + bytes * kWarpSize - 1) / kLineBytes + 1 - begin);
  uint32_t slot[kMostLines];
  for (uint32_t i = 0; i < lines; ++i) {
    slot[i] = state_.memory.slot_for_read(*b, begin + i);
    if (!slot[i]) return false;
    prefetch_next(slot[i]);
  }
  DeviceAccess e{{site(w), Op::kRead, kAll, bytes}, nullptr, first, slot, b->is_input() ? kAll : 0};
  e.lazily = true;
  emit(e);
  *emitted = true;
  if (checker_.unwritten()) return false;
  alignas(64) std::byte together[kMostLines][kLineBytes];
  const std::byte* from = lines == 1 ? state_.memory.data(slot[0]) : together[0];
  for (uint32_t i = 0; lines > 1 && i < lines; ++i) std::memcpy(together[i], state_.memory.data(slot[i]), kLineBytes);
  spread(w, in, from + offset % kLineBytes);
  return true;
}

bool Machine::store_device_row(Warp& w, const Inst& in, uint32_t bytes) {
  Buffer* b = nullptr;
  const uint64_t first = row_address(w, in, bytes, &b);
  if (!first || b->is_input()) return false;
  const uint64_t offset = first - b->base, begin = offset / kLineBytes, end = offset + bytes * kWarpSize;
  uint32_t slot[kMostLines];
  for (uint32_t i = 0; (begin + i) * kLineBytes < end; ++i) {
    slot[i] = state_.memory.slot_for_write(*b, begin + i);
    if (!slot[i]) return false;
    prefetch_next(slot[i]);
  }
  alignas(64) std::byte room[16 * kWarpSize];
  const std::byte* from = collect(w, in, room);
  DeviceAccess e{{site(w), Op::kWrite, kAll, bytes}, nullptr, first, slot};
  e.values = from;
  e.stride = bytes;
  emit(e);
  uint32_t at = offset % kLineBytes;
  for (uint64_t done = 0; done < end - offset; at = 0) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kLineBytes - at, end - offset - done));
    write_words(slot[(offset + done) / kLineBytes - begin], at, n, from + done);
    done += n;
  }
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

bool Machine::load_shared_row(Warp& w, const Inst& in, uint32_t bytes, bool* emitted) {
  uint32_t offset[kWarpSize];
  SharedRow shared;
  if (!shared_row(w, in, bytes, offset, &shared)) return false;
  SharedAccess e{{site(w), Op::kRead, kAll, bytes}, offset, nullptr, shared.climbs, shared.step};
  e.lazily = true;
  emit(e);
  *emitted = true;
  if (checker_.unwritten()) return false;
  if (shared.climbs && shared.step == bytes) {
    spread(w, in, shared_.data() + offset[0]);
    return true;
  }
  alignas(64) std::byte room[16 * kWarpSize];
  const auto gather = [&]<uint32_t n>(std::integral_constant<uint32_t, n>) {
    for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(room + l * n, shared_.data() + offset[l], n);
  };
  bytes == 4 ? gather(k4) : bytes == 8 ? gather(k8) : gather(k16);
  spread(w, in, room);
  return true;
}

bool Machine::store_shared_row(Warp& w, const Inst& in, uint32_t bytes) {
  uint32_t offset[kWarpSize];
  SharedRow shared;
  if (!shared_row(w, in, bytes, offset, &shared)) return false;
  shared_looks_ = 0;
  alignas(64) std::byte room[16 * kWarpSize];
  const std::byte* from = collect(w, in, room);
  SharedAccess e{{site(w), Op::kWrite, kAll, bytes}, offset, nullptr, shared.climbs, shared.step};
  e.values = from;
  e.stride = bytes;
  emit(e);
  if (shared.climbs && shared.step == bytes) {
    std::memmove(shared_.data() + offset[0], from, bytes * kWarpSize);
    return true;
  }
  const auto scatter = [&]<uint32_t n>(std::integral_constant<uint32_t, n>) {
    for (uint32_t l = 0; l < kWarpSize; ++l) std::memcpy(shared_.data() + offset[l], from + l * n, n);
  };
  bytes == 4 ? scatter(k4) : bytes == 8 ? scatter(k8) : scatter(k16);
  return true;
}

}  // namespace roofgen::sim
