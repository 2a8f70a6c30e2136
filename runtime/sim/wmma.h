// Fragments of wmma. The place of an element in a fragment is unspecified for programs; here fragments are laid out as
// for mma.sync, so that one wmma.mma is two mma.sync. Products of 8 x 32 are computed transposed.
#pragma once

#include <cstdint>
#include <utility>

namespace roofgen::sim {

struct WmmaShape {
  uint32_t m = 0, n = 0, k = 0;
  bool transposed() const { return m == 8; }
  /// What mma.sync sees: blocks of 16 rows and of 8 columns.
  uint32_t row_blocks() const { return (transposed() ? n : m) / 16; }
  uint32_t column_blocks() const { return (transposed() ? m : n) / 8; }
};

struct WmmaFragment {
  enum class Matrix : uint8_t { kA, kB, kAccumulator };
  WmmaShape shape;
  Matrix matrix = Matrix::kA;
  uint32_t bytes = 0;  ///< of an element

  uint32_t rows() const { return matrix == Matrix::kB ? shape.k : shape.m; }
  uint32_t columns() const { return matrix == Matrix::kA ? shape.k : shape.n; }
  uint32_t per_register() const { return 4 / bytes; }
  /// The matrix is one of blocks of rows, as A of mma.sync is.
  bool is_left() const { return matrix == (shape.transposed() ? Matrix::kB : Matrix::kA); }
  uint32_t registers_of_block() const {
    return matrix == Matrix::kAccumulator ? bytes : (is_left() ? 2 : 1) * shape.k / (4 * per_register());
  }
  uint32_t blocks() const {
    return matrix == Matrix::kAccumulator ? 2 : is_left() ? shape.row_blocks() : shape.column_blocks();
  }
  /// Registers with elements of their own. PTX gives multiplicands of f16 eight, in which they lie more than once.
  uint32_t distinct_registers() const { return blocks() * registers_of_block(); }

  struct At {
    uint32_t row, column;
  };
  At at(uint32_t lane, uint32_t reg, uint32_t element) const {
    const uint32_t group = lane / 4, thread = lane % 4, r = reg % distinct_registers(),
                   block = r / registers_of_block(), s = r % registers_of_block(), p = per_register();
    At x{};
    if (matrix == Matrix::kAccumulator) {
      x.row = group + 8 * (bytes == 4 ? s >> 1 : s);
      x.column = 2 * thread + (bytes == 4 ? s & 1 : element);
      (shape.row_blocks() == 2 ? x.row : x.column) += block * (shape.row_blocks() == 2 ? 16 : 8);
    } else if (is_left()) {
      x = {16 * block + group + 8 * (s & 1), thread * p + 4 * p * (s >> 1) + element};
    } else {
      x = {thread * p + 4 * p * s + element, 8 * block + group};
    }
    if (shape.transposed()) std::swap(x.row, x.column);
    return x;
  }

  uint32_t packed() const {
    return shape.m | shape.n << 6 | shape.k << 12 | static_cast<uint32_t>(matrix) << 18 | bytes << 20;
  }
  static WmmaFragment unpack(uint32_t p) {
    return {{p & 63, p >> 6 & 63, p >> 12 & 63}, static_cast<Matrix>(p >> 18 & 3), p >> 20};
  }
};

}  // namespace roofgen::sim
