// Compares a kernel's outputs of a Formula with the reference, computed from rows of the source.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "generator/ops/elements.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

/// The source of row `row`, columns [first, first + count): values and errors before the formula.
using SourceRow = std::function<std::vector<pointwise::Estimate>(int64_t row, int64_t first, int64_t count)>;

/// Reads the tensors of a formula from their TensorContents, for Formula::evaluate. `indices`: of an element
/// (Vocabulary::indices); from last to first they run over cols, rows, heads and batch of `extent`.
pointwise::TensorReader contents_reader(std::vector<std::string> indices, const Extent& extent, InputPattern pattern);
/// `sizes`: of the indices.
pointwise::TensorReader contents_reader(std::vector<std::string> indices, std::vector<int64_t> sizes,
                                        InputPattern pattern);

/// Compares elements of one output with what a formula estimates. Tolerance: half an ulp of the output's dtype at the
/// expected value (its rounding) + kSigmas sigma.
class OutputJudge {
 public:
  OutputJudge(const pointwise::Output& output, const ElementReader& read, std::string within = "",
              const char* rows = "row", const char* cols = "column")
      : output_(output), read_(read), judge_(output.buffer, read, std::move(within), rows, cols) {}

  /// Row and column of the i-th element, for messages; column -1: there is none.
  using Place = std::function<std::pair<int64_t, int64_t>(int64_t i)>;
  /// Elements of the buffer from `first` on.
  Result<void> compare(int64_t first, const std::vector<pointwise::Estimate>& expected, const Place& place);
  void add_to(Comparison& out) const { judge_.add_to(out); }

 private:
  void element(int64_t row, int64_t col, double got, const pointwise::Estimate& e);
  const pointwise::Output& output_;
  const ElementReader& read_;
  Judge judge_;
  std::vector<double> values_;
  std::vector<bool> valid_;
};

/// Compares every output of the formula over a region of a problem of `extent`. If the formula reduces over the row,
/// the region must hold whole rows. Outputs are row-major with extent.cols (per_row: 1) elements per row; per_row
/// outputs are compared with the regions that start at column 0.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   InputPattern pattern, const SourceRow& source, const ElementReader& read);
/// The same with tensors read by `tensors`.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   const pointwise::TensorReader& tensors, const SourceRow& source,
                                   const ElementReader& read);

}  // namespace roofgen
