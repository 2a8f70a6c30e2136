// Tiles of wmma between memory and registers, line by line.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/machine.h"
#include "runtime/sim/wmma.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kTilePiece = 16, kMostTileBytes = 1024;

}  // namespace

/// Calls `part(address, bytes, offset in the tile, lane)` for pieces of at most 16 bytes that do not cross a multiple
/// of 16, and counts the requests.
template <class F>
void Machine::each_tile_piece(Warp& w, const Inst& in, uint32_t mask, F&& part) {
  require_full(w, in, mask, "partial-warp", "wmma");
  counter_.at(w.pc);
  const WmmaFragment f = WmmaFragment::unpack(in.target);
  uint64_t address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  const uint32_t* strides = row(w, in.b);
  for (uint32_t l = 1; l < kWarpSize; ++l)
    if (address[l] != address[0] || strides[l] != strides[0])
      throw Fault{"partial-warp", "lanes give wmma different addresses or strides", l};
  const uint32_t lines = in.sub ? f.columns() : f.rows(), elements = in.sub ? f.rows() : f.columns(),
                 line_bytes = elements * f.bytes;
  const uint64_t stride = uint64_t{strides[0]} * f.bytes;
  // The programming guide wants 32 bytes for the address and 16 for lines, the PTX ISA the size of a fragment for both:
  // the weaker of the two.
  const uint32_t fragment = 4 * in.count;
  check_alignment(address[0], std::min(fragment, 32u), 0);
  if (stride % std::min(fragment, 16u))
    throw Fault{"misaligned",
                fmt::format("lines of wmma that are {} bytes apart; a multiple of {} was expected", stride,
                            std::min(fragment, 16u)),
                0};
  const bool shared = space_of(in, address[0]) == Space::kShared;
  uint64_t places[kWarpSize];
  uint32_t offsets[8], pieces = 0, piece_bytes = 0;
  const auto request = [&] {
    const uint32_t lanes = pieces == 32 ? ~0u : (1u << pieces) - 1;
    if (shared)
      counter_.shared_access(offsets, lanes, kTilePiece);
    else
      counter_.global_access(places, lanes, piece_bytes, in.kind == Kind::kWmmaStore);
    pieces = 0;
  };
  const auto chunk = [&](uint32_t line, uint32_t column) {
    uint64_t at = address[0] + line * stride;
    const uint32_t lane = line * kWarpSize / lines, end = std::min(column + kTilePiece, line_bytes);
    const Space space = space_of(in, at);
    if (&cta_at(at, lane) != this || space != (shared ? Space::kShared : Space::kGlobal))
      throw Fault{"out-of-bounds",
                  fmt::format("wmma at {}: device memory or the CTA's own shared memory was expected", describe(at)),
                  lane};
    for (uint32_t done = column; done < end;) {
      const uint32_t n = std::min<uint32_t>(end - done, kTilePiece - static_cast<uint32_t>((at + done) % kTilePiece));
      part(at + done, n, line * line_bytes + done, lane, shared);
      if (shared)
        offsets[pieces++] = static_cast<uint32_t>(at + done - kSharedBase);
      else
        places[pieces++] = at + done;
      piece_bytes = n;
      done += n;
      if (pieces == (shared ? 8 : 32)) request();
    }
  };
  if (shared) {  // eight at a time, one below the other, as ldmatrix takes them
    for (uint32_t column = 0; column < line_bytes; column += kTilePiece)
      for (uint32_t line = 0; line < lines; ++line) chunk(line, column);
  } else {
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t column = 0; column < line_bytes; column += kTilePiece) chunk(line, column);
  }
  if (pieces) request();
  if (!shared && in.kind == Kind::kWmmaLoad) counter_.load_lanes(~0u, std::min(fragment, kTilePiece));
}

/// Calls `element(its place in the tile, register row, lane, shift)`.
template <class F>
void Machine::each_fragment_element(Warp& w, const Inst& in, F&& element) {
  const WmmaFragment f = WmmaFragment::unpack(in.target);
  const uint32_t line = in.sub ? f.rows() : f.columns();
  for (uint32_t r = 0; r < in.count; ++r)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      for (uint32_t j = 0; j < f.per_register(); ++j) {
        const WmmaFragment::At at = f.at(l, r, j);
        element((in.sub ? at.column * line + at.row : at.row * line + at.column) * f.bytes,
                row(w, kernel_.lists[in.list + r])[l], 8 * f.bytes * j);
      }
}

void Machine::wmma_load(Warp& w, const Inst& in, uint32_t mask) {
  alignas(16) std::byte tile[kMostTileBytes];
  each_tile_piece(w, in, mask, [&](uint64_t address, uint32_t n, uint32_t to, uint32_t lane, bool shared) {
    if (shared)
      read_shared(w, shared_offset(address, n, lane), n, lane, tile + to, false);
    else
      read_global(address, n, lane, tile + to, false);
  });
  for (uint32_t r = 0; r < in.count; ++r) std::fill_n(row(w, kernel_.lists[in.list + r]), kWarpSize, 0u);
  each_fragment_element(w, in, [&](uint32_t from, uint32_t& word, uint32_t shift) {
    uint32_t value = 0;
    std::memcpy(&value, tile + from, in.size);
    word |= value << shift;
  });
}

void Machine::wmma_store(Warp& w, const Inst& in, uint32_t mask) {
  alignas(16) std::byte tile[kMostTileBytes];
  each_fragment_element(w, in, [&](uint32_t to, uint32_t word, uint32_t shift) {
    const uint32_t value = word >> shift;
    std::memcpy(tile + to, &value, in.size);
  });
  each_tile_piece(w, in, mask, [&](uint64_t address, uint32_t n, uint32_t from, uint32_t lane, bool shared) {
    if (shared)
      write_shared(w, shared_offset(address, n, lane), n, lane, tile + from, false);
    else
      write_global(address, n, lane, tile + from, false);
  });
}

}  // namespace roofgen::sim
