// What the instructions of the tensor cores of sm_100 mean: the shapes of accesses to tensor memory, descriptors, and
// where the rows of a product lie (PTX ISA, "TensorCore 5th Generation Family Instructions"; the fields of descriptors
// and the layouts also as in CUTLASS, mma_sm100_desc.hpp and mma_traits_sm100_frag.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

inline constexpr uint32_t kTensorLanes = 128, kTensorColumns = 512;  ///< of a CTA's tensor memory
inline constexpr uint32_t kTensorUnit = 32;                          ///< columns: the least allocation
inline constexpr uint32_t kTensorHalf = 16;                          ///< lanes that every instruction uses together
inline constexpr uint32_t kTensorHalves = kTensorLanes / kTensorHalf;
inline constexpr uint32_t kMostMmaRows = 128, kMostMmaColumns = 256, kMostMmaDepth = 128;

/// Inst::sub of Kind::kTensor. `count` has the CTAs of the group.
enum class TensorOp : uint8_t {
  kAlloc,       ///< a: where to write the address; b: columns
  kDealloc,     ///< a: the address; b: columns
  kRelinquish,  ///< the right to allocate
  kLoad,  ///< the list: registers, and that of a reduction; a: the address; `type` a TensorShape, `size` 2: packed
  kStore,
  kWaitLoad,
  kWaitStore,
  kFenceBefore,
  kFenceAfter,
  kCommit,  ///< a: the mbarrier; b: CTAs of a multicast
  kCopy,    ///< a: the address; b: the descriptor; `type` a TensorCopy
  kMma,  ///< d: D; a: A's address or descriptor; b: B's descriptor; e: the instruction descriptor; c: enable-input-d;
         ///< the list: metadata of a sparse A, scales of A and B, then the disabled lanes or the mask of columns
};

/// Data movement shapes of ld and st: lanes of tensor memory and bits of columns.
enum class TensorShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };
/// Registers of each lane for `.x1`.
constexpr uint32_t registers_of(TensorShape s) {
  return s == TensorShape::k16x128b ? 2 : s == TensorShape::k16x256b ? 4 : 1;
}
struct TensorPlace {
  uint32_t lane, column;
};
/// Where a register of a lane of the warp lies, from the address on. `offset`: of the second half of k16x32bx2.
constexpr TensorPlace place_of(TensorShape shape, uint32_t reg, uint32_t lane, uint32_t offset) {
  switch (shape) {
    case TensorShape::k32x32b: return {lane, reg};
    case TensorShape::k16x64b: return {lane / 4 + 8 * (lane % 2), lane / 2 % 2 + 2 * reg};
    case TensorShape::k16x128b: return {lane / 4 + 8 * (reg % 2), lane % 4 + 4 * (reg / 2)};
    case TensorShape::k16x256b: return {lane / 4 + 8 * (reg / 2 % 2), reg % 2 + 2 * (lane % 4) + 8 * (reg / 4)};
    case TensorShape::k16x32bx2: break;
  }
  return {lane % 16, reg + lane / 16 * offset};
}

/// Shapes of tcgen05.cp.
enum class TensorCopy : uint8_t { k128x256b, k128x128b, k64x128b_02_13, k64x128b_01_23, k32x128b };

enum class TensorKind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };
constexpr bool is_scaled(TensorKind k) { return k >= TensorKind::kMxf8f6f4; }
const char* name_of(TensorKind kind);

/// Bits of an mma's `imm`: its TensorKind in the lowest three, then whether it is weight-stationary, has A in tensor
/// memory, has a mask of disabled lanes, or of columns that are zero, or a sparse A; 1 + the scales of a row that the
/// opcode names; 1 + scale-input-d.
inline constexpr int64_t kTensorKindMask = 7, kTensorStationary = 8, kTensorAInTensor = 16, kTensorDisables = 32,
                         kTensorMasks = 64, kTensorSparse = 128;
inline constexpr uint32_t kTensorScalesShift = 8, kTensorScaleDShift = 16;
/// Of the other operations: the displacement of an address in the lower 32 bits, the offset of k16x32bx2 above.

/// Inst::space of a load that reduces: bits of extremum() (atomics.h), 1 for fp32, and these.
inline constexpr uint8_t kReducesToLeast = 8, kReducesUnsigned = 16, kReducesSigned = 32;

/// Elements of A and B, and scales.
enum class TensorElement : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kU8, kS8, kUe4m3, kUe8m0 };
/// Bits of an element in tensor memory or as packed in shared memory.
constexpr uint32_t bits_of(TensorElement e) {
  switch (e) {
    case TensorElement::kTf32: return 32;
    case TensorElement::kF16:
    case TensorElement::kBf16: return 16;
    case TensorElement::kE2m3:
    case TensorElement::kE3m2: return 6;
    case TensorElement::kE2m1: return 4;
    default: return 8;
  }
}
/// Values of all bit patterns, of elements of up to 16 bits.
const float* values_of(TensorElement e);

/// What the 32 bits of an instruction descriptor say of a product.
struct TensorProduct {
  TensorKind kind{};
  TensorElement a{}, b{}, scale{};
  WgmmaSum sum{};
  uint32_t m = 0, n = 0, k = 0;       ///< of the group of CTAs
  uint32_t group = 1;                 ///< CTAs
  uint32_t scales = 0;                ///< of a row; 0: none
  uint32_t scale_a = 0, scale_b = 0;  ///< byte of the first in its word
  uint32_t selector = 0;              ///< of the metadata of a sparse A
  bool negates_a = false, negates_b = false, turned_a = false, turned_b = false, stationary = false, sparse = false,
       saturates = false;
  std::string not_modelled;  ///< what instructions may have, but this simulator does not; empty: nothing

  uint32_t rows() const { return m / group; }             ///< in each CTA
  uint32_t stored() const { return sparse ? k / 2 : k; }  ///< elements of a row of A
  /// Bits that an element of A and B takes of shared memory on average: 16 elements of 4 or 6 bits are packed at the
  /// beginning of 16 bytes, but for mxf4 without padding.
  uint32_t container() const {
    return kind == TensorKind::kTf32 ? 32 : kind == TensorKind::kF16 ? 16 : kind >= TensorKind::kMxf4 ? 4 : 8;
  }

  /// Of a sparse A: elements of a row of which a code says which half is stored.
  uint32_t chunk() const { return kind == TensorKind::kTf32 ? 2 : container() == 4 ? 8 : 4; }
  uint32_t metadata_columns() const { return container() >= 16 ? 1 : 2; }
  struct Code {
    uint32_t lane, column, shift;
  };
  /// Where the code of a chunk lies, with 128 rows (CUTLASS, mma_traits_sm100_frag.hpp, tmem_e_frg): 16 rows of 16- and
  /// 32-bit elements have 16 lanes, 8 for each half of K, with two rows in a word; of others a row has its lane.
  Code code_of(uint32_t row, uint32_t at) const {
    if (container() < 16) return {row, at * 4 / 32, at * 4 % 32};
    const uint32_t half = k / chunk() / 2;
    return {row / 16 * 16 + row % 8 + at / half * 8, 0, row / 8 % 2 * 16 + at % half * 4};
  }
  /// The element of the dense row that stored element i is (MmaForm::place_of).
  uint32_t place_of(uint32_t i, uint32_t code) const {
    if (chunk() == 2) return 2 * i + (code >> 3);
    if (chunk() == 8) return i / 4 * 8 + 2 * (i / 2 % 2 ? code >> 2 : code & 3) + i % 2;
    return i / 2 * 4 + (i % 2 ? code >> 2 : code & 3);
  }
  /// PTX ISA, "Sparse Matrices": meaningful codes.
  bool is_code(uint32_t code) const {
    if (chunk() == 2) return code == 4 || code == 14;
    return code == 6 || (code & 3) < code >> 2;
  }

  /// Why no instruction may have it; empty: one may.
  static std::string decode(uint32_t bits, const Inst& in, TensorProduct& out);
};

/// A part of a product on one set of data paths: rows in groups of 16 lanes, and some of the columns.
struct TensorPart {
  uint32_t first_column, columns;
  uint32_t lane, groups, stride;  ///< of the first group; how many; lanes from one group to the next
};
/// The layouts of the PTX ISA, "Data Path Layout Organization". `lane`: of the address of D, 0 or 16.
std::vector<TensorPart> parts_of(const TensorProduct& p, uint32_t lane);

/// A matrix in shared memory, as a 64-bit descriptor describes it.
struct TensorMatrix {
  uint32_t address = 0, leading = 0, stride = 0;  ///< bytes
  uint32_t base = 0;                              ///< of the pattern of the swizzle, in rows of 128 bytes
  uint32_t span = 16;                             ///< bytes of a row: 16 (no swizzle), 32, 64 or 128
  bool wide_atoms = false;                        ///< swizzled by 32 bytes
  bool absolute = false;                          ///< `leading` is an address: not modelled

  static TensorMatrix of(uint64_t bits);
  static std::string fault(uint64_t bits, bool turned, uint32_t along);
  /// Bytes 16 `piece` and further, along k, of a row.
  uint32_t along_k(uint32_t row, uint32_t piece) const {
    return swizzled(address + row % 8 * span + row / 8 * stride + piece * (span == 16 ? leading : 16));
  }
  /// Of a matrix that is contiguous along its rows (m or n): bytes 16 `piece` and further of a step of k.
  uint32_t along_rows(uint32_t piece, uint32_t k) const {
    if (span == 16) return address + piece * stride + k % 8 * 16 + k / 8 * leading;
    const uint32_t wide = span / 16, deep = wide_atoms ? 4 : 8;
    return swizzled(address + piece % wide * 16 + piece / wide * leading + k % deep * span + k / deep * stride);
  }

 private:
  uint32_t swizzled(uint32_t at) const {
    if (wide_atoms) return at ^ (((at >> 7) - base) & 3) << 5;
    return at ^ (((at >> 7) - base) & (span / 16 - 1)) << 4;
  }
};

}  // namespace roofgen::sim
