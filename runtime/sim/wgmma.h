// Matrices in shared memory as wgmma sees them: 64-bit descriptors and the places of pieces of 16 bytes (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Shared Memory Layout"; the fields as in CUTLASS, mma_sm90_desc.hpp).
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

inline constexpr uint32_t kWarpgroup = 4;  ///< warps
inline constexpr uint32_t kWgmmaRows = 64;

/// Registers of sums of a wgmma.
inline uint32_t sums_of(const Inst& in) {
  return in.count * ((in.imm & kWgmmaSumMask) == static_cast<int64_t>(WgmmaSum::kF16) ? 2u : 4u);
}

struct MatrixDescriptor {
  uint32_t address = 0, leading = 0, stride = 0;  ///< bytes
  uint32_t base = 0;                              ///< of the pattern of the swizzle, in rows of 128 bytes
  uint32_t span = 16;                             ///< bytes of a row: 16 (no swizzle), 32, 64 or 128

  static MatrixDescriptor of(uint64_t bits) {
    constexpr uint32_t kSpans[] = {16, 128, 64, 32};
    const auto field = [&](uint32_t from) { return static_cast<uint32_t>(bits >> from & 0x3fff) << 4; };
    return {field(0), field(16), field(32), static_cast<uint32_t>(bits >> 49 & 7), kSpans[bits >> 62]};
  }

  /// Piece `row` of 8 of a block: of 8 rows of the matrix (m or n) and 16 bytes along k; `turned`: of 8 values of k and
  /// 8 elements along m or n. `block` counts along m or n, `step` along k.
  uint32_t place(bool turned, uint32_t block, uint32_t step, uint32_t row) const {
    const auto shift = static_cast<uint32_t>(std::countr_zero(span / 16));
    const uint32_t mask = span / 16 - 1;
    uint32_t at = address + row * span;
    if (!turned)
      at += block * stride + step * (span == 16 ? leading : 16);
    else if (span == 16)
      at += block * stride + step * leading;
    else
      at += (block & mask) * 16 + (block >> shift) * leading + step * stride;
    return at ^ ((((at >> 7) - base) & mask) << 4);
  }

  /// Why no instruction may use it; empty: it may. `along`: bytes of the matrix along its rows of `span` bytes.
  std::string fault(uint64_t bits, uint32_t along) const;
};

}  // namespace roofgen::sim
