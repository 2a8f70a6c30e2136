#include "generator/ops/formula_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {
namespace {

/// Sizes of `count` indices of an element; the last is its column.
std::vector<int64_t> index_sizes(const Extent& extent, size_t count) {
  const std::vector<int64_t> all = {extent.batch, extent.heads, extent.rows, extent.cols};
  return {all.end() - static_cast<ptrdiff_t>(std::min(count, all.size())), all.end()};
}

/// Clamps to the range of a saturating format. Clamping never increases a distance, so the tolerance stays valid.
double saturated(double value, DType dtype) {
  if (dtype != DType::kFp8 && dtype != DType::kInt8 && dtype != DType::kInt32) return value;
  if (std::isnan(value)) return round_to_dtype(value, dtype);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return std::clamp(value, round_to_dtype(-infinity, dtype), round_to_dtype(infinity, dtype));
}

}  // namespace

Result<void> OutputJudge::compare(int64_t first, const std::vector<pointwise::Estimate>& expected, const Place& place) {
  values_.resize(expected.size());
  valid_.assign(expected.size(), true);
  ROOFGEN_CHECK(read_(output_.buffer, static_cast<uint64_t>(first), values_, &valid_));
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto [row, col] = place(static_cast<int64_t>(i));
    if (valid_[i])
      element(row, col, values_[i], expected[i]);
    else
      judge_.unwritten(row, col);
  }
  return {};
}

void OutputJudge::element(int64_t row, int64_t col, double got, const pointwise::Estimate& e) {
  const double sigma = std::isfinite(e.sigma) ? e.sigma : 0;
  const DType dtype = output_.dtype;
  const double slack = kSigmas * sigma, rounded = round_to_dtype(e.value, dtype);
  double expected = saturated(e.value, dtype);
  if (std::isinf(got) || std::isinf(rounded)) {
    // Near the end of the range an error decides between the largest number and infinity.
    const bool in_reach =
        round_to_dtype(e.value - slack, dtype) <= got && got <= round_to_dtype(e.value + slack, dtype);
    expected = in_reach ? got : rounded;
  }
  judge_.element(row, col, got, expected, spacing_of(e.value, dtype) / 2 + slack);
}

pointwise::TensorReader contents_reader(std::vector<std::string> indices, const Extent& extent, InputPattern pattern) {
  std::vector<int64_t> sizes = index_sizes(extent, indices.size());
  return contents_reader(std::move(indices), std::move(sizes), pattern);
}

pointwise::TensorReader contents_reader(std::vector<std::string> indices, std::vector<int64_t> sizes,
                                        InputPattern pattern) {
  return [indices = std::move(indices), sizes = std::move(sizes), pattern](
             const TensorArg& tensor, std::span<const int64_t> row, int64_t first, std::span<double> out) {
    // Row-major over the tensor's own indices: element = base + stride * column.
    int64_t base = 0, stride = 0, size = 1;
    for (size_t i = tensor.indices.size(); i-- > 0;) {
      const size_t at =
          static_cast<size_t>(std::find(indices.begin(), indices.end(), tensor.indices[i]) - indices.begin());
      if (at + 1 == indices.size())
        stride += size;
      else
        base += size * row[at];
      size *= sizes[at];
    }
    const TensorContents contents{pattern, tensor.name, tensor.dtype};
    if (stride == 1) return contents.values(static_cast<uint64_t>(base + first), out);
    if (stride == 0) {
      double value;
      contents.values(static_cast<uint64_t>(base), {&value, 1});
      return std::fill(out.begin(), out.end(), value);
    }
    for (size_t i = 0; i < out.size(); ++i)
      contents.values(static_cast<uint64_t>(base + stride * (first + static_cast<int64_t>(i))), out.subspan(i, 1));
  };
}

Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   InputPattern pattern, const SourceRow& source, const ElementReader& read) {
  const pointwise::TensorReader tensors = contents_reader(formula.vocabulary().indices, extent, pattern);
  return compare_formula(formula, region, extent, tensors, source, read);
}

Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   const pointwise::TensorReader& tensors, const SourceRow& source,
                                   const ElementReader& read) {
  const int64_t end = region.col_end < 0 ? extent.cols : region.col_end, count = end - region.col_begin;
  if (formula.reductions() > 0 && count != extent.cols)
    return Error{Exit::kFailed,
                 fmt::format("columns {} to {} of {} cannot be compared: the formula reduces over the row",
                             region.col_begin, end, extent.cols)};
  const std::vector<std::string>& indices = formula.vocabulary().indices;
  std::vector<OutputJudge> judges;
  for (const pointwise::Output& output : formula.outputs()) judges.emplace_back(output, read);

  for (int64_t r = region.row_begin; r < region.row_end; ++r) {
    const int64_t all[] = {region.batch, region.head, r};
    const std::span<const int64_t> row = std::span(all).last(std::min<size_t>(indices.size() - 1, std::size(all)));
    const auto expected = formula.evaluate(source(r, region.col_begin, count), row, region.col_begin, tensors);
    for (size_t i = 0; i < judges.size(); ++i) {
      const bool per_row = formula.outputs()[i].per_row;
      if (per_row && region.col_begin != 0) continue;
      ROOFGEN_CHECK(judges[i].compare(per_row ? r : r * extent.cols + region.col_begin, expected[i],
                                      [&](int64_t c) { return std::pair(r, per_row ? -1 : region.col_begin + c); }));
    }
  }
  Comparison out;
  out.rows = static_cast<uint64_t>(region.row_end - region.row_begin);
  for (const OutputJudge& judge : judges) judge.add_to(out);
  return out;
}

}  // namespace roofgen
