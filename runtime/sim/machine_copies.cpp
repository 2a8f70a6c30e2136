// Matrices to and from shared memory, and asynchronous copies into it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
/// Checks the 16-byte rows that the first lanes address, and emits the request. Their offsets in shared memory, and
/// the lanes whose row is possible.
uint32_t Machine::emit_matrices(const Warp& w, const Inst& in, uint32_t mask, Op op, const char* name,
                                uint32_t* offset) {
  require_full(w, in, mask, "partial-warp", name);
  const uint32_t n = 8u * in.count;
  uint64_t address[kWarpSize], misaligned = 0, highest = 0;
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  for (uint32_t l = 0; l < n; ++l) {
    const uint64_t at = address[l] - kSharedBase;
    misaligned |= address[l] & 15;
    highest = at > highest ? at : highest;
    offset[l] = static_cast<uint32_t>(at);
  }
  uint32_t rows = ~0u >> (kWarpSize - n);
  if (misaligned || shared_bytes_ < 16 || highest > shared_bytes_ - 16) [[unlikely]]
    rows = possible(w, rows, [&](uint32_t l) {
      check_alignment(address[l], 16, l);
      shared_offset(address[l], 16, l);
    });
  emit(SharedAccess{{site(w), op, rows, 16}, offset});
  return rows;
}

/// Lane 8i+r addresses row r of matrix i; the row of destination register i *is* that matrix.
void Machine::ldmatrix(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t offset[kWarpSize];
  const uint32_t rows = emit_matrices(w, in, mask, Op::kRead, "ldmatrix", offset);
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t* d = row(w, kernel_.lists[in.list + i]);
    alignas(16) std::byte tile[128];
    std::byte* to = in.sub ? tile : reinterpret_cast<std::byte*>(d);
    for (uint32_t r = 0; r < 8; ++r) {
      if (rows >> (8 * i + r) & 1)
        std::memcpy(to + 16 * r, shared_.data() + offset[8 * i + r], 16);
      else
        std::memset(to + 16 * r, 0, 16);
    }
    if (in.sub) lanes_.transpose(tile, d);
  }
}

void Machine::stmatrix(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t offset[kWarpSize];
  const uint32_t rows = emit_matrices(w, in, mask, Op::kWrite, "stmatrix", offset);
  for (uint32_t i = 0; i < in.count; ++i) {
    alignas(16) std::byte tile[128];
    const uint32_t* s = row(w, kernel_.lists[in.list + i]);
    if (in.sub)
      lanes_.transpose(s, tile);
    else
      std::memcpy(tile, s, sizeof tile);
    for (uint32_t r = 0; r < 8; ++r)
      if (rows >> (8 * i + r) & 1) std::memcpy(shared_.data() + offset[8 * i + r], tile + 16 * r, 16);
  }
}

/// The source is read now, the destination changes only at the wait: the latest moment the ISA
/// allows, so that data used too early is never there by luck.
void Machine::cp_async(Warp& w, const Inst& in, uint32_t mask) {
  uint64_t from[kWarpSize], to[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, from);
  addresses(w, in.b, in.flags & kFlagDst64, static_cast<int32_t>(in.target), to);
  uint32_t slot[kWarpSize], at[kWarpSize], reads = 0, inputs = 0;
  Piece source[kWarpSize];
  AsyncCopy& copy = w.copies.emplace_back();
  copy.bytes = in.size;
  copy.issued = w.now;
  std::copy(std::begin(w.committed), std::end(w.committed), copy.group);
  mask = copy.mask = possible(w, mask, [&](uint32_t l) {
    uint32_t bytes = in.size;
    if (in.sub == 1) {
      bytes = row(w, in.c)[l];
      if (bytes > in.size)
        throw Fault{"bad-copy-size",
                    fmt::format("the cp.async source size {} is over its copy size {}", bytes, in.size), l};
    } else if (in.sub == 2 && ((w.regs.preds[in.c] >> l & 1) != 0) != ((in.flags & kFlagSigned) != 0)) {
      bytes = 0;  // ignore-src
    }
    check_alignment(to[l], in.size, l);
    copy.to[l] = shared_offset(to[l], in.size, l);
    check_alignment(from[l], in.size, l);
    source[l] = piece_of(l, bytes);
    if (!bytes) return;
    if (device_line(from[l], bytes, l, Op::kRead, false, &slot[l], &at[l])) inputs |= 1u << l;
    // The host's cache misses of all lanes overlap, with each other and with the events below.
    if (slot[l]) __builtin_prefetch(state_.memory.data(slot[l]) + at[l]);
    reads |= 1u << l;
  });
  emit(SharedAccess{{site(w), Op::kCopyIn, mask, in.size}, copy.to});
  if (reads) {
    DeviceAccess e{{site(w), Op::kRead, reads, in.size}, from, 0, slot, inputs};
    e.needed = 0;  // of an element whose bytes are partly written, the rest may be padding
    if (in.sub == 1) e.pieces = source;
    emit(e);
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m), bytes = source[l].bytes;
    if (bytes == 16 && slot[l])  // the compiler copies a constant size without a call
      std::memcpy(copy.data[l], state_.memory.data(slot[l]) + at[l], 16);
    else if (bytes && slot[l])
      std::memcpy(copy.data[l], state_.memory.data(slot[l]) + at[l], bytes);
    else
      std::memset(copy.data[l], 0xff, bytes);
    if (bytes < in.size) std::memset(copy.data[l] + bytes, 0, in.size - bytes);
  }
}

/// The copy arrives for these lanes.
void Machine::land(Warp& w, AsyncCopy& copy, uint32_t lanes) {
  uint32_t offsets[kWarpSize];
  size_t n = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    offsets[n++] = copy.to[l];
    std::memcpy(shared_.data() + copy.to[l], copy.data[l], copy.bytes);
  }
  copy.mask &= ~lanes;
  if (n) emit(AsyncLand{w.index, lanes, {offsets, n}, copy.bytes});
}

void Machine::cp_commit(Warp& w, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) ++w.committed[first_lane(m)];
  emit(AsyncCommit{site(w), mask});
}

void Machine::cp_wait(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == 1) cp_commit(w, mask);  // wait_all also waits for copies in no group yet
  std::optional<uint64_t> last_issued;
  for (size_t i = w.copies_begin; i < w.copies.size(); ++i) {
    AsyncCopy& copy = w.copies[i];
    uint32_t landing = 0;
    for (uint32_t l = 0; l < kWarpSize; ++l)
      landing |= static_cast<uint32_t>(copy.group[l] + static_cast<uint64_t>(in.imm) < w.committed[l]) << l;
    landing &= copy.mask & mask;
    if (landing) last_issued = copy.issued;
    land(w, copy, landing);
  }
  emit(AsyncWait{site(w), mask, static_cast<uint32_t>(in.imm), last_issued.has_value(),
                 w.now - last_issued.value_or(w.now)});
  while (w.copies_begin < w.copies.size() && !w.copies[w.copies_begin].mask) ++w.copies_begin;
  if (w.copies_begin == w.copies.size() || w.copies_begin > 64) {
    w.copies.erase(w.copies.begin(), w.copies.begin() + static_cast<ptrdiff_t>(w.copies_begin));
    w.copies_begin = 0;
  }
}

}  // namespace roofgen::sim
