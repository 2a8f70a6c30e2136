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

/// Moves a tile between memory and `tile`, in pieces of at most 16 bytes that do not cross a multiple of 16.
void Machine::move_tile(Warp& w, const Inst& in, uint32_t mask, std::byte* tile) {
  require_full(w, in, mask, "partial-warp", "wmma");
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
                fmt::format("a wmma stride of {} bytes is not a multiple of {}", stride, std::min(fragment, 16u)), 0};
  const bool shared = space_of(in, address[0]) == Space::kShared;
  const Op op = in.kind == Kind::kWmmaStore ? Op::kWrite : Op::kRead;
  uint64_t places[kWarpSize];
  uint32_t offset[kWarpSize], slot[kWarpSize], in_tile[kWarpSize], n_pieces = 0, inputs = 0;
  uint8_t part = 0;
  Piece pieces[kWarpSize];
  const auto request = [&] {
    const uint32_t all = ~0u >> (kWarpSize - n_pieces);
    const auto emit_it = [&](auto e) {
      e.part = part++;
      e.pieces = pieces;
      emit(e);
    };
    if (shared)
      emit_it(SharedAccess{{site(w), op, all, kTilePiece}, offset});
    else
      emit_it(DeviceAccess{{site(w), op, all, pieces[n_pieces - 1].bytes}, places, 0, slot, inputs});
    for (uint32_t i = 0; i < n_pieces; ++i) {
      const uint32_t n = pieces[i].bytes;
      std::byte* const here = tile + in_tile[i];
      if (op == Op::kWrite && !shared)
        write_device(slot[i], offset[i], n, here, 0);
      else if (op == Op::kWrite)
        std::memcpy(shared_.data() + offset[i], here, n);
      else if (shared)
        std::memcpy(here, shared_.data() + offset[i], n);
      else if (slot[i])
        std::memcpy(here, state_.memory.data(slot[i]) + offset[i], n);
      else
        std::memset(here, 0xff, n);
    }
    n_pieces = inputs = 0;
  };
  const auto chunk = [&](uint32_t line, uint32_t column) {
    uint64_t at = address[0] + line * stride;
    const uint32_t lane = line * kWarpSize / lines, end = std::min(column + kTilePiece, line_bytes);
    const Space space = space_of(in, at);
    if (&cta_at(at, lane) != this || space != (shared ? Space::kShared : Space::kGlobal))
      throw Fault{"out-of-bounds",
                  fmt::format("wmma at {}: expected device memory or the CTA's own shared memory", text(at)), lane};
    for (uint32_t done = column; done < end;) {
      const uint32_t n = std::min<uint32_t>(end - done, kTilePiece - static_cast<uint32_t>((at + done) % kTilePiece));
      const uint32_t i = n_pieces++;
      places[i] = at + done;
      in_tile[i] = line * line_bytes + done;
      pieces[i] = piece_of(lane, n);
      if (shared)
        offset[i] = shared_offset(at + done, n, lane);
      else if (device_line(at + done, n, lane, op, false, &slot[i], &offset[i]))
        inputs |= 1u << i;
      done += n;
      if (n_pieces == (shared ? 8 : 32)) request();
    }
  };
  if (shared) {  // eight at a time, one below the other, as ldmatrix takes them
    for (uint32_t column = 0; column < line_bytes; column += kTilePiece)
      for (uint32_t line = 0; line < lines; ++line) chunk(line, column);
  } else {
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t column = 0; column < line_bytes; column += kTilePiece) chunk(line, column);
  }
  if (n_pieces) request();
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
  move_tile(w, in, mask, tile);
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
  move_tile(w, in, mask, tile);
}

}  // namespace roofgen::sim
