// The contents of A and B: pure functions of (pattern, place in memory).
#pragma once

#include <cstdint>
#include <span>

#include "generator/ops/gemm_shape.h"
#include "generator/ops/op.h"

namespace roofgen::gemm {

enum class Operand { kA, kB };

/// kExtremes, kExtremeRows: of eight rows of A one has large sums, one a NaN, one is zero, one tiny, two have sums near
/// 1, where functions bend; without a gate and tensors in the epilogue one has sums that overflow fp16 and one an
/// infinity. With kExtremes some columns of B have a NaN. int8: sums that fp32 cannot represent. Elements between the
/// end of a line and the next line are NaN.
class OperandContents {
 public:
  OperandContents(const Shape& shape, InputPattern pattern, Operand operand);

  void values(uint64_t first, std::span<double> out) const;  ///< from an element on, as load_element reads them
  void fill(uint64_t byte_offset, std::span<std::byte> out) const;

 private:
  bool plain() const;
  double extreme(int64_t outer, int64_t k, double value) const;

  Shape shape_;
  InputPattern pattern_;
  bool is_a_, k_contiguous_;
  int64_t stride_, length_;  ///< of a line in memory; its elements before the padding
  double large_;             ///< a factor that gives sums of about 8192
};

/// Elements [first, first + out.size()) of a_scale [M, k_blocks] or b_scale [n_blocks, k_blocks]: between 0.5 and 2,
/// all different numbers. kIntegers: 0.5, 1 or 2, so that sums stay exact.
void scale_values(InputPattern pattern, Operand operand, uint64_t first, std::span<double> out);
void fill_scales(InputPattern pattern, Operand operand, uint64_t byte_offset, std::span<std::byte> out);

}  // namespace roofgen::gemm
