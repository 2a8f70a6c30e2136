#include "generator/ops/gemm_reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/memo.h"
#include "generator/ops/elements.h"
#include "generator/ops/gemm_groups.h"
#include "generator/ops/gemm_inputs.h"
#include "generator/ops/small_gemm.h"

namespace roofgen::gemm {
namespace {

constexpr int64_t kDepth = 256;  // k of a block: its rows of B stay in L2 as doubles
constexpr int64_t kWidth = 256;  // columns of a block
constexpr size_t kCacheBytes = size_t{128} << 20;

/// Rows [first, first + rows) and columns [k, k + depth) of an operand, to out[row * row_step + column * col_step].
/// `along_k`: contiguous along k, else along the column. `extent`: the operand's size in the other direction.
void operand_block(const OperandContents& contents, DType dtype, bool along_k, int64_t stride, int64_t first,
                   int64_t rows, int64_t k, int64_t depth, double* out, int64_t row_step, int64_t col_step) {
  std::vector<double> line(static_cast<size_t>(along_k ? depth : rows));
  const int64_t lines = along_k ? rows : depth;
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t start = along_k ? (first + i) * stride + k : (k + i) * stride + first;
    contents.values(static_cast<uint64_t>(start), line);
    double* to = out + i * (along_k ? row_step : col_step);
    const int64_t step = along_k ? col_step : row_step;
    for (size_t x = 0; x < line.size(); ++x) to[static_cast<int64_t>(x) * step] = as_operand(line[x], dtype);
  }
}

/// Multiplies rows [first, first + rows) of a block with their scales: element (i, j), at block[i * row_step + j *
/// col_step], has the one of row (first + i) / group and of column k + j.
void apply_scales(const Shape& shape, InputPattern pattern, Operand operand, int64_t first, int64_t rows, int64_t k,
                  int64_t depth, double* block, int64_t row_step, int64_t col_step) {
  const int64_t group = operand == Operand::kA ? 1 : kScaleBlock;
  std::vector<double> scales(static_cast<size_t>(shape.k_blocks()));
  for (int64_t i = 0; i < rows; ++i) {
    if (i == 0 || (first + i) % group == 0)
      scale_values(pattern, operand, static_cast<uint64_t>((first + i) / group * shape.k_blocks()), scales);
    for (int64_t j = 0; j < depth; ++j)
      block[i * row_step + j * col_step] *= scales[static_cast<size_t>((k + j) / kScaleBlock)];
  }
}

Products multiply(const Shape& shape, InputPattern pattern, const Rectangle& at) {
  const int64_t rows = at.row_end - at.row_begin, cols = at.col_end - at.col_begin, padded = round_up(rows, kRowBlock),
                pitch = round_up(cols, 8);
  const OperandContents a_contents(shape, pattern, Operand::kA), b_contents(shape, pattern, Operand::kB);
  std::vector<double> sum(static_cast<size_t>(padded * pitch), 0.0), square(sum.size(), 0.0);
  std::vector<double> a(static_cast<size_t>(padded * kDepth)), b(static_cast<size_t>(kDepth * kWidth));
  std::optional<Routing> routing;
  if (shape.tokens > 0) routing.emplace(shape.tokens);
  for (int64_t k = at.k_begin; k < at.k_end; k += kDepth) {
    const int64_t depth = std::min(kDepth, at.k_end - k);
    std::fill(a.begin(), a.end(), 0.0);
    if (routing || !at.rows.empty()) {
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = at.rows.empty() ? at.row_begin + r : at.rows[static_cast<size_t>(r)];
        operand_block(a_contents, shape.dtype, shape.a_rows, shape.a_stride(), routing ? routing->token_of(row) : row,
                      1, k, depth, &a[r * kDepth], kDepth, 1);
      }
    } else {
      operand_block(a_contents, shape.dtype, shape.a_rows, shape.a_stride(), at.row_begin, rows, k, depth, a.data(),
                    kDepth, 1);
    }
    if (shape.scaled) apply_scales(shape, pattern, Operand::kA, at.row_begin, rows, k, depth, a.data(), kDepth, 1);
    std::vector<double> a_square(a);
    for (double& x : a_square) x *= x;
    for (int64_t n = 0; n < cols; n += kWidth) {
      const int64_t width = std::min(kWidth, cols - n), wide = round_up(width, 8);
      std::fill(b.begin(), b.end(), 0.0);
      operand_block(b_contents, shape.dtype, !shape.b_rows, shape.b_stride(), at.col_begin + n, width, k, depth,
                    b.data(), 1, wide);
      if (shape.scaled) apply_scales(shape, pattern, Operand::kB, at.col_begin + n, width, k, depth, b.data(), 1, wide);
      for (int64_t r = 0; r < padded; r += kRowBlock)
        gemm4(&a[r * kDepth], kDepth, b.data(), wide, &sum[r * pitch + n], pitch, wide, depth);
      for (double& x : b) x *= x;
      for (int64_t r = 0; r < padded; r += kRowBlock)
        gemm4(&a_square[r * kDepth], kDepth, b.data(), wide, &square[r * pitch + n], pitch, wide, depth);
    }
  }
  Products out{cols, {}, {}};
  for (auto [from, to] : {std::pair{&sum, &out.sum}, std::pair{&square, &out.square}})
    for (int64_t r = 0; r < rows; ++r)
      to->insert(to->end(), from->begin() + r * pitch, from->begin() + r * pitch + cols);
  return out;
}

/// All that multiply() is told.
struct Asked {
  Shape shape;
  InputPattern pattern;
  Rectangle where;
  bool operator==(const Asked&) const = default;
};

}  // namespace

std::shared_ptr<const Products> products_of(const Shape& shape, InputPattern pattern, const Rectangle& where) {
  static Memo<Asked, Products> memo(kCacheBytes, [](const Products& p) { return 16 * p.sum.size(); });
  return memo.get({shape, pattern, where},
                  [&] { return std::make_shared<const Products>(multiply(shape, pattern, where)); });
}

namespace {

/// Variance of the bits that tensor cores cut off in partial sums of kScaleBlock products each
/// (docs/internals/verification.md).
double cut_off_variance(double terms, double sum, double square) {
  constexpr double kUnit = 0x1p-13, kPowerOfTwo = 3 / (8 * std::numbers::ln2), kStep = 32;
  const double blocks = std::max(1.0, terms / kScaleBlock),
               steps = std::ceil(std::min<double>(terms, kScaleBlock) / kStep);
  const double ends = sum * sum / blocks + (1 - 1 / blocks) * square;
  const auto partial = [&](double part) { return part * part * ends + part * (1 - part) * square; };
  double out = 0;
  for (double step = 0; step < steps; ++step) {
    const double before = partial(step / steps), after = partial((step + 1) / steps);
    out += (kStep + 1) / 3 * (square / steps + before) + after / 3;
  }
  return kPowerOfTwo * kUnit * kUnit * out;
}

}  // namespace

double accumulation_sigma(DType dtype, bool scaled, InputPattern pattern, int64_t terms, double sum, double square) {
  if (dtype == DType::kInt8) return rounding_sigma(sum, DType::kFp32);  // exact until converted to float
  constexpr double kUnit = 0x1p-24;
  constexpr double kExact = 0x1p24;  // integers up to here
  const double n = static_cast<double>(terms);
  const double largest = scaled ? 4 * 2 * 2 / (0.5 * 0.5) : 4;  // of a product, in units of the smallest
  if (pattern == InputPattern::kIntegers && largest * n < kExact) return 0;
  const double steps = n / (32.0 / size_of(dtype));
  const double scale_products = scaled ? 1 / std::sqrt(3.0) : 0;  // rounded once for each block
  const double in_fp32 = kUnit * std::hypot(2.0 / 3 * steps + std::sqrt(n / 6) + 1, scale_products) * std::sqrt(square);
  return dtype == DType::kFp8 ? std::hypot(in_fp32, std::sqrt(cut_off_variance(n, sum, square))) : in_fp32;
}

}  // namespace roofgen::gemm
