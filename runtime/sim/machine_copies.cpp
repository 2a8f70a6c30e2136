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
  const auto element = static_cast<MatrixElement>(in.type);
  const uint32_t bytes = element == MatrixElement::kFourBits || element == MatrixElement::kSixBits ? 8 : 16;
  emit(SharedAccess{{site(w), op, rows, bytes}, offset});
  if (element != MatrixElement::kSixBits) return rows;
  uint32_t rest[kWarpSize];
  for (uint32_t l = 0; l < n; ++l) rest[l] = offset[l] + 8;
  emit(SharedAccess{{site(w), op, rows, 4}, rest});
  return rows;
}

namespace {

/// The line, by lane, and the byte in it of byte k of a lane's register. Those of expanded elements and of m16n8 are
/// as in CUTLASS's traits of LDSM and STSM for sm_100, and so is m16n16: its lines go to lanes in pairs.
struct MatrixByte {
  uint32_t line, byte;
  static MatrixByte of(const Inst& in, uint32_t i, uint32_t lane, uint32_t k) {
    if (static_cast<MatrixElement>(in.type) != MatrixElement::kByte) return {8 * i + lane / 4, 4 * (lane % 4) + k};
    const uint32_t byte = lane / 4 + 8 * (k / 2), across = lane % 4;
    if (in.kind == Kind::kStmatrix) return {8 * i + 2 * across + k % 2, byte};
    return {16 * (i / 2) + 4 * across + 2 * (i % 2) + k % 2, byte};
  }
};

}  // namespace

void Machine::load_bytes(Warp& w, const Inst& in, const uint32_t* offset, uint32_t rows) {
  const auto element = static_cast<MatrixElement>(in.type);
  const uint32_t bits = element == MatrixElement::kFourBits ? 4 : element == MatrixElement::kSixBits ? 6 : 8;
  uint8_t lines[kWarpSize][16] = {};
  for (uint32_t m = rows; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    for (uint32_t e = 0; e < 16; ++e) {
      const uint32_t at = e * bits / 8;
      uint16_t both = 0;
      std::memcpy(&both, shared_.data() + offset[l] + at, at < 15 ? 2 : 1);
      lines[l][e] = static_cast<uint8_t>(both >> e * bits % 8 & ((1u << bits) - 1));
    }
  }
  for (uint32_t i = 0; i < in.count; ++i)
    for (uint32_t l = 0; l < kWarpSize; ++l) {
      uint32_t& d = row(w, kernel_.lists[in.list + i])[l];
      d = 0;
      for (uint32_t k = 0; k < 4; ++k) {
        const MatrixByte from = MatrixByte::of(in, i, l, k);
        d |= uint32_t{lines[from.line][from.byte]} << 8 * k;
      }
    }
}

void Machine::store_bytes(Warp& w, const Inst& in, const uint32_t* offset, uint32_t rows) {
  for (uint32_t i = 0; i < in.count; ++i)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      for (uint32_t k = 0; k < 4; ++k) {
        const MatrixByte to = MatrixByte::of(in, i, l, k);
        const uint32_t s = row(w, kernel_.lists[in.list + i])[l];
        if (rows >> to.line & 1) shared_[offset[to.line] + to.byte] = static_cast<std::byte>(s >> 8 * k);
      }
}

/// Lane 8i+r addresses row r of matrix i; the row of destination register i *is* that matrix.
void Machine::ldmatrix(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t offset[kWarpSize];
  const uint32_t rows = emit_matrices(w, in, mask, Op::kRead, "ldmatrix", offset);
  if (in.type) return load_bytes(w, in, offset, rows);
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
  if (in.type) return store_bytes(w, in, offset, rows);
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
