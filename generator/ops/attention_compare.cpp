#include "generator/ops/attention_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_judge.h"
#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_tolerance.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {
namespace {

/// The rows of O from the parts of the splits, merged in double precision. It does not matter which keys a split has.
class Merged {
 public:
  Merged(const Shape& shape, const ElementReader& read, int64_t splits)
      : shape_(shape), splits_(splits), parts_(read, "partial_O"), logs_(read, "partial_LSE") {}

  /// The row into `row`; returns its LSE. Missing parts make elements invalid, and the LSE a NaN.
  Result<double> read(const Region& band, int64_t r, RowReader& row) {
    const int64_t d = shape_.d, index = shape_.lse_index(band.batch, band.head, r) * splits_;
    ROOFGEN_CHECK(parts_.read(index * d, splits_ * d));
    ROOFGEN_CHECK(logs_.read(index, splits_));
    row.values.assign(static_cast<size_t>(d), 0);
    row.valid.assign(static_cast<size_t>(d), true);
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    bool whole = true;
    for (int64_t s = 0; s < splits_; ++s) {
      whole &= logs_.valid[s];
      top = std::max(top, logs_.values[s]);
    }
    for (int64_t s = 0; s < splits_; ++s) {
      const double weight = std::isfinite(top) ? std::exp2(logs_.values[s] - top) : 0;
      sum += weight;
      for (int64_t c = 0; c < d; ++c) {
        row.values[c] += weight * parts_.values[s * d + c];
        row.valid[c] = row.valid[c] && whole && parts_.valid[s * d + c];
      }
    }
    for (double& x : row.values) x = sum > 0 ? x / sum : x;
    if (!whole) return std::numeric_limits<double>::quiet_NaN();
    return (top + std::log2(sum)) * std::log(2.0);
  }

 private:
  const Shape& shape_;
  const int64_t splits_;
  RowReader parts_, logs_;
};

Result<void> compare_output(const Shape& shape, const Region& band, int64_t splits, const BandReference& reference,
                            const Tolerance& tolerance, const ElementReader& read, Comparison& out) {
  Judge judge = judge_in(band, "O", read), judge_of_logs = judge_in(band, "LSE", read);
  RowReader row(read, "O");
  Merged merged(shape, read, splits);
  const Layout layout = shape.layout_of_o();
  const int64_t first = shape.varlen() ? shape.first_token(band.batch) * layout.row : band.batch * layout.block;
  for (int64_t i = 0; i < reference.rows; ++i) {
    const int64_t r = band.row_begin + i;
    if (splits > 0) {
      ROOFGEN_TRY(const double lse, merged.read(band, r, row));
      judge_of_logs.element(r, -1, lse, reference.facts[i].lse, tolerance.lse(reference.facts[i]));
    } else {
      ROOFGEN_CHECK(row.read(first + band.head * layout.head + r * layout.row, shape.d));
    }
    const double* expected = &reference.o[i * shape.d];
    const double* variance = &reference.variance[i * shape.d];
    double squares = 0;
    for (int64_t c = 0; c < shape.d; ++c) squares += expected[c] * expected[c];
    const Tolerance::Row shared =
        tolerance.output_row(reference.facts[i], std::sqrt(squares / static_cast<double>(shape.d)));
    for (int64_t c = 0; c < shape.d; ++c) {
      if (!row.valid[c])
        judge.unwritten(r, c);
      else if (reference.facts[i].keys == 0)
        judge.element(r, c, row.values[c], 0, 0);
      else
        judge.element(r, c, row.values[c], expected[c], tolerance.output(expected[c], variance[c], shared));
    }
  }
  judge.add_to(out);
  judge_of_logs.add_to(out);
  return {};
}

Result<void> compare_lse(const Shape& shape, const Region& band, const BandReference& reference,
                         const Tolerance& tolerance, const ElementReader& read, Comparison& out) {
  Judge judge = judge_in(band, "LSE", read);
  RowReader row(read, "LSE");
  ROOFGEN_CHECK(row.read(shape.lse_index(band.batch, band.head, band.row_begin), reference.rows));
  for (int64_t i = 0; i < reference.rows; ++i) {
    const RowFacts& facts = reference.facts[i];
    if (!row.valid[i])
      judge.unwritten(band.row_begin + i, -1);
    else
      judge.element(band.row_begin + i, -1, row.values[i], facts.lse, tolerance.lse(facts));
  }
  judge.add_to(out);
  return {};
}

/// Compares S or P, in bands small enough for the score cache. With a mask, hidden elements need not be written; if
/// written, they must be -inf in S and 0 in P.
Result<void> compare_matrix(const Shape& shape, InputPattern pattern, const Written& written, const Region& band,
                            const BandReference* reference, const Tolerance& tolerance, const ElementReader& read,
                            Comparison& out) {
  const Value value = std::min(written.value, Value::kMasked);
  Judge judge = judge_in(band, written.buffer, read);
  RowReader row(read, written.buffer);
  const int64_t step = std::max<int64_t>(1, kScoreLimit / shape.kv_len), pitch = shape.kv_pitch();
  for (int64_t begin = band.row_begin; begin < band.row_end; begin += step) {
    const Region part{band.batch, band.head, begin, std::min(band.row_end, begin + step)};
    const auto scores = scores_of(shape, pattern, written.path, value, part);
    for (int64_t r = part.row_begin; r < part.row_end; ++r) {
      const int64_t keys = value < Value::kMasked ? shape.keys(band.batch) : shape.allowed(band.batch, r);
      if (keys == 0) continue;
      ROOFGEN_CHECK(row.read(((band.batch * shape.heads + band.head) * shape.q_len + r) * pitch, keys));
      const float* s = scores->s.data() + (r - part.row_begin) * pitch;
      const float* sigma = scores->sigma.empty() ? nullptr : scores->sigma.data() + (r - part.row_begin) * pitch;
      const RowFacts* facts = reference ? &reference->facts[r - band.row_begin] : nullptr;
      for (int64_t j = 0; j < keys; ++j) {
        const bool hidden = s[j] == -std::numeric_limits<float>::infinity();
        const double error = sigma ? sigma[j] : 0;
        if (!row.valid[j]) {
          if (!hidden) judge.unwritten(r, j);
          continue;
        }
        const double got = row.values[j];
        if (hidden) {
          // A score of -inf gives 0, beside a NaN it gives NaN; what the mask hides is 0.
          const bool is_nan = facts && !shape.has_mask() && std::isnan(facts->lse);
          judge.element(r, j, got, is_nan ? facts->lse : facts ? 0 : s[j], 0);
        } else if (facts) {
          // Of large scores s is rounded, the sum is not. A NaN score makes a NaN p.
          const double log_p = s[j] - facts->lse, p = std::exp(log_p > 0 ? 0 : log_p);
          if (!judge.passes(got, p, tolerance.least_probability(p)))
            judge.element(r, j, got, p, tolerance.probability(p, s[j], error, *facts));
        } else if (!judge.passes(got, s[j], tolerance.least_score(s[j]))) {
          judge.element(r, j, got, s[j], tolerance.score(value, s[j], error));
        }
      }
    }
  }
  judge.add_to(out);
  return {};
}

/// Whether a band holds the exact result of its pattern, bit by bit. False: only a comparison by element can tell.
bool holds_exact_result(const Shape& shape, InputPattern pattern, const Written& written, const Region& band,
                        const ElementReader& read) {
  const bool one_hot = pattern == InputPattern::kOneHot && written.path.from == Value::kInputs && !shape.has_score(),
             one_key = pattern == InputPattern::kOneKey && written.path.from >= Value::kMasked,
             probabilities = written.value == Value::kProbabilities && one_key,
             output = written.value == Value::kOutput && (one_hot || one_key);
  if (shape.has_mask() || written.splits > 0 || (shape.lse && written.lse) || (!probabilities && !output)) return false;
  const Inputs inputs(shape, pattern);
  const Layout layout = shape.layout_of_o();
  const int64_t first = shape.varlen() ? shape.first_token(band.batch) * layout.row : band.batch * layout.block;
  const uint16_t one = encode16(1, shape.dtype);
  std::vector<uint16_t> row(static_cast<size_t>(probabilities ? shape.kv_len : shape.d), 0);
  std::vector<double> value(static_cast<size_t>(shape.d));
  for (int64_t r = band.row_begin; r < band.row_end; ++r) {
    const int64_t keys = shape.allowed(band.batch, r);
    if (keys == 0) return false;
    const int64_t key = one_hot ? inputs.target(band.batch, band.head, r) : inputs.one_key(band.batch, band.head, r);
    if (probabilities) {
      row[static_cast<size_t>(key)] = one;
      const int64_t at = ((band.batch * shape.heads + band.head) * shape.q_len + r) * shape.kv_pitch();
      if (!read.holds(written.buffer, static_cast<uint64_t>(at),
                      std::as_bytes(std::span(row).first(static_cast<size_t>(keys)))))
        return false;
      row[static_cast<size_t>(key)] = 0;
    } else {
      inputs.operand(Tensor::kV, band.batch, band.head / shape.group(), key, value.data(), nullptr);
      for (size_t c = 0; c < row.size(); ++c)
        row[c] = encode16(round_to(value[c], format_of(shape.dtype)), shape.dtype);
      const int64_t at = first + band.head * layout.head + r * layout.row;
      if (!read.holds(written.buffer, static_cast<uint64_t>(at), std::as_bytes(std::span(row)))) return false;
    }
  }
  return true;
}

}  // namespace

Result<Comparison> compare(const Shape& shape, InputPattern pattern, const Written& written, const Region& region,
                           const ElementReader& read) {
  Comparison out;
  Region band = region;
  band.row_end = std::min(band.row_end, shape.rows(band.batch));
  if (band.row_begin >= band.row_end) return out;  // beyond the end of a short sequence
  out.rows = static_cast<uint64_t>(band.row_end - band.row_begin);
  if (holds_exact_result(shape, pattern, written, band, read)) return out;
  const Tolerance tolerance(shape, pattern, written.path);
  if (written.value <= Value::kMasked) {
    ROOFGEN_CHECK(compare_matrix(shape, pattern, written, band, nullptr, tolerance, read, out));
    return out;
  }
  const auto reference = reference_of(shape, pattern, written.path, band);
  if (written.value == Value::kProbabilities) {
    ROOFGEN_CHECK(compare_matrix(shape, pattern, written, band, reference.get(), tolerance, read, out));
  } else {
    ROOFGEN_CHECK(compare_output(shape, band, written.splits, *reference, tolerance, read, out));
  }
  if (shape.lse && written.lse) ROOFGEN_CHECK(compare_lse(shape, band, *reference, tolerance, read, out));
  return out;
}

}  // namespace roofgen::attention
