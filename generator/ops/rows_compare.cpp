#include "generator/ops/rows_compare.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace roofgen::rows {
namespace {

using pointwise::Estimate;
using pointwise::Formula;

SourceRow inputs(const SourceContents& contents) {
  return [contents](int64_t row, int64_t first, int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    contents.values(row, first, values);
    std::vector<Estimate> out(values.size());
    for (size_t i = 0; i < out.size(); ++i) out[i].value = values[i];
    return out;
  };
}

/// The first output of a formula, rounded as stored: the source of the next stage.
SourceRow through(const Formula& formula, SourceRow source, const Extent& extent, InputPattern pattern) {
  return [&formula, source = std::move(source), cols = extent.cols,
          tensors = contents_reader(formula.vocabulary().indices, extent, pattern)](int64_t row, int64_t first,
                                                                                    int64_t count) {
    const bool whole = formula.reductions() > 0;
    const int64_t begin = whole ? 0 : first;
    const int64_t indices[] = {row};
    std::vector<Estimate> out =
        formula.evaluate(source(row, begin, whole ? cols : count), indices, begin, tensors).front();
    for (Estimate& e : out) e.sigma = std::hypot(e.sigma, rounding_sigma(e.value, formula.outputs().front().dtype));
    return whole ? std::vector<Estimate>(out.begin() + first, out.begin() + first + count) : out;
  };
}

/// Compares maxima and totals of segments, each segment as a row.
Result<Comparison> compare_segments(const Formula& formula, const Region& region, int64_t cols, InputPattern pattern,
                                    const SourceRow& source, const ElementReader& read) {
  const int64_t segments = (cols + kSegmentCols - 1) / kSegmentCols;
  Comparison out;
  for (int64_t row = region.row_begin; row < region.row_end; ++row)
    for (int64_t i = 0; i < segments; ++i) {
      const int64_t first = i * kSegmentCols, count = std::min(kSegmentCols, cols - first), index = row * segments + i;
      const SourceRow part = [&](int64_t, int64_t begin, int64_t length) { return source(row, first + begin, length); };
      ROOFGEN_TRY(const Comparison c, compare_formula(formula, {0, 0, index, index + 1, 0, count},
                                                      {1, 1, index + 1, count}, pattern, part, read));
      out.worst = std::max(out.worst, c.worst);
      if (out.failure.empty()) out.failure = c.failure;
    }
  out.rows = static_cast<uint64_t>(region.row_end - region.row_begin);
  return out;
}

}  // namespace

SourceContents source_contents(const Spec& spec, const Problem& problem, InputPattern pattern) {
  const double hidden = &spec == &kSoftmax ? -std::numeric_limits<double>::infinity() : 0;
  return {pattern, problem.dtype, problem.dims.at("cols"), hidden, "x"};
}

Result<Comparison> compare(const Spec& spec, const Problem& problem, InputPattern pattern, const std::string& variant,
                           const std::string& stage, const Region& region, const ElementReader& read) {
  ROOFGEN_TRY(const Formulas by_name, formulas(spec, problem));
  const Extent extent{1, 1, problem.dims.at("rows"), problem.dims.at("cols")};
  SourceRow source = inputs(source_contents(spec, problem, pattern));
  if (variant == "split") {
    if (stage == "partial") return compare_segments(by_name.at("partial"), region, extent.cols, pattern, source, read);
    return compare_formula(by_name.at(stage == "combine" ? "statistics" : "fused"), region, extent, pattern, source,
                           read);
  }
  if (variant == "unfused") {
    for (const std::string& name : unfused_stages(spec, problem)) {
      if (name == stage) return compare_formula(by_name.at(name), region, extent, pattern, source, read);
      source = through(by_name.at(name), std::move(source), extent, pattern);
    }
    return Error{Exit::kFailed, fmt::format("{} has no stage {}", spec.name, stage)};
  }
  return compare_formula(by_name.at("fused"), region, extent, pattern, source, read);
}

}  // namespace roofgen::rows
