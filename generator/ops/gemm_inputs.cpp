#include "generator/ops/gemm_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "generator/ops/counter_random.h"
#include "generator/ops/elements.h"

namespace roofgen::gemm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool has_extremes(InputPattern p) { return p == InputPattern::kExtremes || p == InputPattern::kExtremeRows; }

}  // namespace

OperandContents::OperandContents(const Shape& shape, InputPattern pattern, Operand operand)
    : shape_(shape),
      pattern_(pattern),
      is_a_(operand == Operand::kA),
      k_contiguous_(is_a_ ? shape.a_rows : !shape.b_rows),
      stride_(is_a_ ? shape.a_stride() : shape.b_stride()),
      length_(k_contiguous_ ? shape.k
              : is_a_       ? shape.m
                            : shape.n),
      large_(std::exp2(std::floor(std::log2(8192 / std::sqrt(static_cast<double>(shape.k)))))) {}

bool OperandContents::plain() const { return stride_ == length_ && !has_extremes(pattern_); }

/// `outer`: the row of A, the column of B.
double OperandContents::extreme(int64_t outer, int64_t k, double value) const {
  const auto single =
      static_cast<int64_t>(mix(static_cast<uint64_t>(outer)) % static_cast<uint64_t>(std::max<int64_t>(1, shape_.k)));
  if (shape_.dtype == DType::kInt8) {  // products of 127 and 128, with odd sums
    const double low_bits = static_cast<double>(static_cast<int64_t>(value) & 3);
    if (outer % 3 == 2) return value;
    return outer % 3 == 0 ? 127 - low_bits : -128 + low_bits;
  }
  if (!is_a_) return pattern_ == InputPattern::kExtremes && outer % 32 == 17 && k == single ? kNan : value;
  switch (outer % 8) {
    case 0: return large_ * value;
    case 1: return k == single ? kNan : value;
    case 2: return 0;
    case 3: return large_ / 8192 * value;
    // An infinite factor of a value that underflows gives NaN in fp32 and an infinity in double precision.
    case 4: return shape_.has_factors ? value : 4096 * value;
    case 5: return k == single && !shape_.has_factors ? std::numeric_limits<double>::infinity() : value;
    case 6: return value / 4096;
    default: return large_ / 4096 * value;
  }
}

void OperandContents::values(uint64_t first, std::span<double> out) const {
  // The extremes are made of normal numbers.
  const InputPattern letters = has_extremes(pattern_) ? InputPattern::kNormal : pattern_;
  TensorContents{letters, is_a_ ? "A" : "B", shape_.dtype}.values(first, out);
  if (plain()) return;
  int64_t line = static_cast<int64_t>(first) / stride_, place = static_cast<int64_t>(first) % stride_;
  for (double& value : out) {
    if (place >= length_)
      value = round_to_dtype(is_integer(shape_.dtype) ? 127 : kNan, shape_.dtype);
    else if (has_extremes(pattern_))
      value = round_to_dtype(extreme(k_contiguous_ ? line : place, k_contiguous_ ? place : line, value), shape_.dtype);
    if (++place == stride_) place = 0, ++line;
  }
}

void OperandContents::fill(uint64_t byte_offset, std::span<std::byte> out) const {
  if (plain()) return TensorContents{pattern_, is_a_ ? "A" : "B", shape_.dtype}.fill(byte_offset, out);
  fill_values(
      shape_.dtype, [&](uint64_t first, std::span<double> numbers) { values(first, numbers); }, byte_offset, out);
}

void scale_values(InputPattern pattern, Operand operand, uint64_t first, std::span<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t hash = mix(2 * (first + i) + (operand == Operand::kA ? 1 : 0));
    out[i] = pattern == InputPattern::kIntegers
                 ? std::exp2(static_cast<double>(hash % 3) - 1)
                 : static_cast<float>(std::exp2(2 * static_cast<double>(hash >> 40) * 0x1p-24 - 1));
  }
}

void fill_scales(InputPattern pattern, Operand operand, uint64_t byte_offset, std::span<std::byte> out) {
  fill_values(
      DType::kFp32, [&](uint64_t first, std::span<double> numbers) { scale_values(pattern, operand, first, numbers); },
      byte_offset, out);
}

}  // namespace roofgen::gemm
