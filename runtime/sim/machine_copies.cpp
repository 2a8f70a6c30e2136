// Matrices to and from shared memory, and asynchronous copies into it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

/// Shared-memory offsets of the 16-byte rows that lanes 0 to n-1 address, checked.
void Machine::matrix_offsets(const uint64_t* address, uint32_t n, uint32_t* offset) const {
  uint64_t misaligned = 0, highest = 0;
  for (uint32_t l = 0; l < n; ++l) {
    uint64_t at = address[l] - kSharedBase;
    misaligned |= address[l] & 15;
    highest = at > highest ? at : highest;
    offset[l] = static_cast<uint32_t>(at);
  }
  if (misaligned || shared_bytes_ < 16 || highest > shared_bytes_ - 16) [[unlikely]] {
    for (uint32_t l = 0; l < n; ++l) {
      check_alignment(address[l], 16, l);
      shared_offset(address[l], 16, l);
    }
  }
}

/// Lane 8i+r addresses row r of matrix i; the row of destination register i *is* that matrix.
void Machine::ldmatrix(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  require_full(w, in, mask, "partial-warp", "ldmatrix");
  uint64_t address[kWarpSize];
  uint32_t offset[kWarpSize], n = 8u * in.count;
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  matrix_offsets(address, n, offset);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t groups = 0;
    const uint32_t* from = offset + 8 * i;
    uint32_t* d = row(w, kernel_.lists[in.list + i]);
    alignas(16) std::byte tile[128];
    std::byte* to = in.sub ? tile : reinterpret_cast<std::byte*>(d);
    for (uint32_t r = 0; r < 8; ++r) {
      auto outcome = shadow_.read_chunk(w.index, from[r] >> 4);
      if (!outcome.ok()) [[unlikely]]
        if (notes_undefined()) undefined(shared_fault(outcome, w, from[r], 16, 8 * i + r));
      std::memcpy(to + 16 * r, shared_.data() + from[r], 16);
      groups |= 1u << (from[r] >> 4 & 7);
    }
    // Eight rows in eight different bank groups are one pass; anything else is looked at closely.
    needed += groups == 0xff ? 1 : shared_wavefronts(from, 0xff, 16).needed;
    if (in.sub) lanes_.transpose(tile, d);
  }
  counter_.shared_wavefronts_are(needed, in.count);
}

void Machine::stmatrix(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  require_full(w, in, mask, "partial-warp", "stmatrix");
  uint64_t address[kWarpSize];
  uint32_t offset[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  matrix_offsets(address, 8u * in.count, offset);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    alignas(16) std::byte tile[128];
    const uint32_t* s = row(w, kernel_.lists[in.list + i]);
    if (in.sub)
      lanes_.transpose(s, tile);
    else
      std::memcpy(tile, s, sizeof tile);
    for (uint32_t r = 0; r < 8; ++r) write_shared(w, offset[8 * i + r], 16, 8 * i + r, tile + 16 * r, false);
    needed += shared_wavefronts(offset + 8 * i, 0xff, 16).needed;
  }
  counter_.shared_wavefronts_are(needed, in.count);
}

/// The source is read now, the destination changes only at the wait: the latest moment the ISA
/// allows, so that data used too early is never there by luck.
void Machine::cp_async(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  uint64_t from[kWarpSize], to[kWarpSize];
  uint32_t offset[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, from);
  addresses(w, in.b, in.flags & kFlagDst64, static_cast<int32_t>(in.target), to);
  AsyncCopy& copy = w.copies.emplace_back();
  copy.mask = mask;
  copy.bytes = in.size;
  copy.issued = w.now;
  std::copy(std::begin(w.committed), std::end(w.committed), copy.group);
  uint32_t reads = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), bytes = in.size;
    if (in.sub == 1) {
      bytes = row(w, in.c)[l];
      if (bytes > in.size)
        throw Fault{"bad-copy-size", fmt::format("cp.async source size {} is over its copy size {}", bytes, in.size),
                    l};
    } else if (in.sub == 2 && ((w.regs.preds[in.c] >> l & 1) != 0) != ((in.flags & kFlagSigned) != 0)) {
      bytes = 0;  // ignore-src
    }
    check_alignment(to[l], in.size, l);
    offset[l] = copy.to[l] = shared_offset(to[l], in.size, l);
    auto outcome = shadow_.async_issue(w.index, offset[l], in.size);
    if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset[l], in.size, l));
    check_alignment(from[l], in.size, l);
    if (bytes) {
      reads |= 1u << l;
      read_global(from[l], bytes, l, copy.data[l], false, 0);
    }
    if (bytes < in.size) std::memset(copy.data[l] + bytes, 0, in.size - bytes);
  }
  if (reads) {
    counter_.global_access(from, reads, in.size, false);
    counter_.load_lanes(reads, in.size);
  }
  counter_.shared_access(offset, mask, in.size);
}

/// All copies of these lanes, in groups or not.
void Machine::land_copies(Warp& w, uint32_t mask) {
  for (AsyncCopy& copy : w.copies) {
    for (uint32_t m = copy.mask & mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      std::memcpy(shared_.data() + copy.to[l], copy.data[l], copy.bytes);
      shadow_.async_land(w.index, copy.to[l], copy.bytes);
    }
    copy.mask &= ~mask;
  }
}

void Machine::cp_wait(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == 1)  // wait_all also commits what is not in a group yet
    for (uint32_t m = mask; m; m &= m - 1) ++w.committed[first_lane(m)];
  std::optional<uint64_t> last_issued;
  for (size_t i = w.copies_begin; i < w.copies.size(); ++i) {
    AsyncCopy& copy = w.copies[i];
    uint32_t landing = 0;
    for (uint32_t l = 0; l < kWarpSize; ++l)
      landing |= static_cast<uint32_t>(copy.group[l] + static_cast<uint64_t>(in.imm) < w.committed[l]) << l;
    landing &= copy.mask & mask;
    if (landing) last_issued = copy.issued;
    for (uint32_t m = landing; m; m &= m - 1) {
      uint32_t l = first_lane(m);
      std::memcpy(shared_.data() + copy.to[l], copy.data[l], copy.bytes);
      shadow_.async_land(w.index, copy.to[l], copy.bytes);
    }
    copy.mask &= ~landing;
  }
  if (last_issued) counter_.async_wait(w.now - *last_issued);
  while (w.copies_begin < w.copies.size() && !w.copies[w.copies_begin].mask) ++w.copies_begin;
  if (w.copies_begin == w.copies.size() || w.copies_begin > 64) {
    w.copies.erase(w.copies.begin(), w.copies.begin() + static_cast<ptrdiff_t>(w.copies_begin));
    w.copies_begin = 0;
  }
}

}  // namespace roofgen::sim
