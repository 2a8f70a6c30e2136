#include "generator/ops/chain_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "generator/ops/chain_op.h"
#include "generator/ops/formula_reference.h"

namespace roofgen {
namespace {

using pointwise::Estimate;

bool has_row_step(const Chain& chain, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i)
    if (chain.steps()[i].kind == ChainStep::Kind::kRow) return true;
  return false;
}

}  // namespace

rows::SourceContents chain_source(const Chain& chain, size_t first, const Problem& problem, InputPattern pattern) {
  const auto row_step = std::find_if(chain.steps().begin() + static_cast<std::ptrdiff_t>(first), chain.steps().end(),
                                     [](const ChainStep& step) { return step.kind == ChainStep::Kind::kRow; });
  const bool softmax = row_step != chain.steps().end() && row_step->label.starts_with("softmax");
  return {pattern, chain.dtype_before(first), chain_columns(problem),
          softmax ? -std::numeric_limits<double>::infinity() : 0, chain.buffer_before(first)};
}

Extent ChainReference::extent() const { return {1, 1, chain_rows(problem_), chain_columns(problem_)}; }

/// The steps from the start of the plan to `until`, in runs. A run ends where a value is rounded in memory, and before
/// and after every sum with an earlier value, which has its own errors.
Result<std::vector<ChainReference::Run>> ChainReference::runs(size_t until) const {
  std::set<size_t> ends{until};
  for (const Part& p : plan_) ends.insert(p.last);
  const size_t begin = plan_.front().first;
  for (size_t i = begin; i < until; ++i) {
    const ChainStep& s = chain_.steps()[i];
    if (s.kind == ChainStep::Kind::kGemm) ends.insert(i + 1);
    if (s.adds) ends.insert({i, i + 1, *s.adds + 1});
  }
  std::vector<Run> out;
  for (size_t first = begin; first < until;) {
    const size_t last = *ends.upper_bound(first);
    Run run{{first, last}, {}};
    const ChainStep& s = chain_.steps()[first];
    if (s.kind != ChainStep::Kind::kGemm && !s.adds) {
      ROOFGEN_TRY(run.formula, chain_.formula(run.steps, {chain_.outputs(run.steps).back()}));
    }
    out.push_back(std::move(run));
    first = last;
  }
  return out;
}

bool ChainReference::cut_between(size_t step, size_t reader) const {
  return std::any_of(plan_.begin(), plan_.end(), [&](const Part& p) { return step < p.last && p.last <= reader; });
}

/// The value before step `before` as step `reader` reads it: rounded if it was stored in memory.
ChainReference::Row ChainReference::as_read(Row row, size_t before, size_t reader) const {
  if (before == plan_.front().first || !cut_between(before - 1, reader)) return row;
  const DType dtype = chain_.dtype_before(before);
  for (Estimate& e : row) e.sigma = std::hypot(e.sigma, rounding_sigma(e.value, dtype));
  return row;
}

ChainReference::Accumulators ChainReference::accumulators(const Region& region, bool whole_rows) const {
  if (chain_.steps()[plan_.front().first].kind != ChainStep::Kind::kGemm) return {};
  Accumulators out;
  const int64_t cols = chain_columns(problem_);
  out.where = {
      region.row_begin,     region.row_end, whole_rows ? 0 : region.col_begin, whole_rows ? cols : region.col_end, 0,
      problem_.dims.at("K")};
  out.products = gemm::products_of(gemm::Shape(*chain_gemm(problem_)), pattern_, out.where);
  return out;
}

/// The value before the first step; for a gemm its accumulators, the value after it.
ChainReference::Row ChainReference::source(const Accumulators& sums, int64_t row, int64_t first, int64_t count) const {
  const size_t begin = plan_.front().first;
  if (sums.products) {
    Row out;
    const size_t at =
        static_cast<size_t>((row - sums.where.row_begin) * sums.products->cols + first - sums.where.col_begin);
    for (size_t i = at; i < at + static_cast<size_t>(count); ++i) {
      const double sum = sums.products->sum[i], square = sums.products->square[i];
      out.push_back({sum, gemm::accumulation_sigma(chain_.dtype(), false, pattern_, sums.where.k_end, sum, square)});
    }
    return out;
  }
  std::vector<double> values(static_cast<size_t>(count));
  chain_source(chain_, begin, problem_, pattern_).values(row, first, values);
  Row out;
  for (double v : values) out.push_back({v, 0});
  return out;
}

ChainReference::Row ChainReference::row_before(const std::vector<Run>& runs, const Accumulators& sums, size_t step,
                                               int64_t row, int64_t first, int64_t count) const {
  const size_t begin = plan_.front().first;
  const pointwise::TensorReader tensors = contents_reader({"m", "n"}, extent(), pattern_);
  std::map<size_t, Row> before;  // step -> the value before it
  before[begin] = source(sums, row, first, count);
  for (const Run& run : runs) {
    if (run.steps.first >= step) break;
    const size_t at = run.steps.first;
    Row value = as_read(before.at(at), at, at);
    if (run.formula) {
      value = run.formula->evaluate(value, std::span(&row, 1), first, tensors).back();
    } else if (const auto added = chain_.steps()[at].adds) {
      Row other;
      if (*added + 1 >= begin) {
        other = as_read(before.at(*added + 1), *added + 1, at);
      } else {
        std::vector<double> values(static_cast<size_t>(count));
        tensors({chain_.buffer_before(*added + 1), chain_.dtype_before(*added + 1), {"m", "n"}}, std::span(&row, 1),
                first, values);
        for (double v : values) other.push_back({v, 0});
      }
      // One rounding of the sum in fp32.
      for (size_t i = 0; i < value.size(); ++i) {
        const double sum = value[i].value + other[i].value;
        value[i] = {sum, std::hypot(std::hypot(value[i].sigma, other[i].sigma), rounding_sigma(sum, DType::kFp32))};
      }
    }
    before[run.steps.last] = std::move(value);
  }
  return before.at(step);
}

Result<Comparison> ChainReference::compare(Part part, const Region& region, const ElementReader& read) const {
  const Extent size = extent();
  const int64_t end = region.col_end < 0 ? size.cols : region.col_end;
  const size_t begin = plan_.front().first;
  Comparison out;
  out.rows = static_cast<uint64_t>(region.row_end - region.row_begin);
  const auto add = [&](const Comparison& c) {
    out.worst = std::max(out.worst, c.worst);
    if (out.failure.empty()) out.failure = c.failure;
  };
  for (const pointwise::Output& output : chain_.outputs(part)) {
    // The value of the output; for the scale of a row, the value before the step that computes it.
    size_t until = part.last;
    for (size_t i : chain_.kept(part))
      if (chain_.buffer_before(i + 1) == output.buffer) until = i + 1;
    if (output.per_row) --until;
    ROOFGEN_TRY(const std::vector<Run> before, runs(until));
    const bool whole_rows = has_row_step(chain_, begin, until);
    const Accumulators sums = accumulators({0, 0, region.row_begin, region.row_end, region.col_begin, end}, whole_rows);
    const SourceRow values = [&](int64_t row, int64_t first, int64_t count) {
      const int64_t begin_col = whole_rows ? 0 : first, cols = whole_rows ? size.cols : count;
      Row all = row_before(before, sums, until, row, begin_col, cols);
      // The scale of a row is computed from the value before its step, as this step reads it.
      if (output.per_row) all = as_read(std::move(all), until, until);
      return Row(all.begin() + first - begin_col, all.begin() + first - begin_col + count);
    };
    pointwise::Vocabulary vocabulary;
    vocabulary.source = output.value;
    vocabulary.source_dtype = DType::kFp32;
    ROOFGEN_TRY(pointwise::Formula judged, output.per_row ? chain_.formula({until, until + 1}, {output})
                                                          : pointwise::Formula::parse({}, {output}, vocabulary));
    ROOFGEN_TRY(
        const Comparison c,
        compare_formula(judged, {region.batch, region.head, region.row_begin, region.row_end, region.col_begin, end},
                        size, pattern_, values, read));
    add(c);
  }
  return out;
}

}  // namespace roofgen
