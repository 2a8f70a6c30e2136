#include "generator/ops/attention_tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {
namespace {

/// Largest standard deviation of the relative error of one rounding.
double rounding_sigma(Format16 f) { return unit_roundoff(f) / std::sqrt(3.0); }

}  // namespace

Tolerance::Tolerance(const Numbers& shape, InputPattern pattern, const Path& path)
    : shape_(shape), pattern_(pattern), path_(path) {}

double Tolerance::products(bool hidden) const {
  if (path_.from != Value::kInputs) return 0;
  // |q k| sums to 2/pi d on average; d bounds atypical rows.
  const double d = static_cast<double>(shape_.d);
  const double added = kDeepest - kLowest * kOffset + (hidden || shape_.has_mask() ? kLateHidden : kLate);
  // One-hot: without rotary positions, sums are exact; a code has d products of its magnitude.
  const double codes = pattern_ == InputPattern::kOneHot && shape_.rotary()
                           ? shape_.scale * Inputs(shape_, pattern_).largest_product()
                           : 0;
  return shape_.sum_error(d) * (shape_.scale * d + (pattern_ == InputPattern::kGrowing ? added : codes));
}

double Tolerance::score(Value value, double s, double sigma) const {
  const Format16 format = format_of(shape_.dtype);
  // A mask hides or copies. Scaling an input is one product in fp32 and one rounding.
  if (path_.from == Value::kScores) return 0;
  if (path_.from == Value::kProducts) return spacing(s, format) / 2 + 0x1p-23 * std::fabs(s) + kSigmas * sigma;
  // Structured inputs have exact sums, and the format represents their products.
  if (exact_scores()) return spacing(s, format);
  if (value == Value::kProducts) return spacing(s, format) / 2 + products(true) / shape_.scale;
  const double before = path_.rounding.products && !shape_.has_score() ? unit_roundoff(format) * std::fabs(s) : 0;
  return spacing(s, format) / 2 + products(value < Value::kMasked) + before + kSigmas * sigma;
}

double Tolerance::one_rounding(double x) const {
  const Format16 format = format_of(shape_.dtype);
  return pattern_ == InputPattern::kZeroQuery ? spacing(x, format) / 2 + 0x1p-21 * std::fabs(x) : spacing(x, format);
}

double Tolerance::probability(double p, double s, double sigma, const RowFacts& facts) const {
  const Format16 format = format_of(shape_.dtype);
  // Under kOneHot all other keys are below e^-128 before, and below e^-80 after, S is rounded.
  if (exact()) return one_rounding(p) + (pattern_ == InputPattern::kOneHot ? 0x1p-57 : 0);
  const double own = score_roundings(shape_, path_) * unit_roundoff(format) * std::fabs(s);
  const double modified = kSigmas * (sigma + facts.p_sigma);
  // The key that leads a decided row has 1, whatever the errors; they change the others, which are below e^-40.
  const bool leads = facts.decided && p > 0.5;
  const double change = leads ? 0 : own + normaliser(facts) + modified + products();
  // ex2.approx.ftz flushes subnormal results to 0, before the division by the row's sum.
  const double flushed = 0x1p-126 * std::exp(facts.max - facts.lse);
  // e^x - 1 < x + x^2 for x up to 1.79. No probability is above 1.
  return spacing(p, format) + flushed +
         (change < 1.5 ? p * (change + change * change) : std::exp(std::min(0.0, s - facts.lse + change)));
}

double Tolerance::least_score(double s) const {
  return path_.from == Value::kScores ? 0 : spacing(s, format_of(shape_.dtype)) / 2;
}

double Tolerance::least_probability(double p) const {
  const double ulp = spacing(p, format_of(shape_.dtype));
  return exact() && pattern_ == InputPattern::kZeroQuery ? ulp / 2 : ulp;
}

Tolerance::Row Tolerance::output_row(const RowFacts& facts, double row_rms) const {
  const double n = static_cast<double>(facts.keys);
  // Structured inputs have exact sums in e4m3 too: of one product, or of small integers.
  Row row{0, (exact() ? fp32_sum_error(n) : shape_.sum_error(n)) * row_rms, 0, 1};
  const Format16 format = shape_.p_format();
  if (exact()) {
    // Zero query: every p is 1 / keys, rounded the same way unless it is exactly 1.
    // The product of a rounded p and an integer has more bits than a sum of integers may have.
    if (pattern_ == InputPattern::kZeroQuery && path_.rounding.probabilities) {
      row.equal_p = n * spacing(1 / n, format) / 2;
      row.sums += fp32_sum_error(n) * kLargeValue;
    }
    return row;
  }
  if (path_.from == Value::kProbabilities) return row;
  // Small p are subnormal numbers with an absolute error. The fused kernel rounds p relative to the row's maximum, the
  // unfused one the final p. V has mean square 1.
  const double absolute = rms_subnormal_error(format) / shape_.largest_p() *
                          (path_.rounding.probabilities ? 1.0 : std::exp(facts.max - facts.lse));
  const double largest = pattern_ == InputPattern::kGrowing ? kGrowingValue * growing_unit(shape_) : 1;
  row.absolute_variance = n * absolute * absolute * largest * largest;
  if (facts.decided) return row;
  // The sum of p e^error (v - o) has this variance; the sum of p e^error, by which it is divided, may be below 1.
  row.widening = std::exp(normaliser(facts) + kSigmas * facts.p_sigma);
  // Any mean of the values is as right as another.
  if (facts.largest_error > kMaxExponent) row.sums = std::numeric_limits<double>::max();
  return row;
}

double Tolerance::output(double o, double variance, const Row& row) const {
  const Format16 format = format_of(shape_.dtype);
  if (exact()) return one_rounding(o) + row.sums + std::fabs(o) * row.equal_p;
  const double bound = spacing(o, format) + row.sums;
  const double sigma = rounding_sigma(shape_.p_format());
  return bound + row.widening * kSigmas * std::sqrt(sigma * sigma * variance + row.absolute_variance);
}

double Tolerance::lse(const RowFacts& facts) const {
  // Errors in fp32: the product m * c, lg2.approx (2^-22 absolute), the ex2 of the sum.
  double tolerance = 0x1p-20 * (4 + std::fabs(facts.lse)) + products();
  tolerance += kSigmas * facts.p_sigma;
  const int roundings = score_roundings(shape_, path_);
  if (roundings == 0) return tolerance;
  const Format16 format = format_of(shape_.dtype);
  if (exact()) return tolerance + roundings * unit_roundoff(format) * std::fabs(facts.max);
  return tolerance + normaliser(facts);
}

double Tolerance::normaliser(const RowFacts& facts) const {
  const Format16 format = format_of(shape_.dtype);
  // 1 + x and 1 - x: the sum of p e^error, with five deviations and at worst. By the inequality of the arithmetic and
  // the harmonic mean the logarithm of the worst sum has the same bound below 0 as above.
  const double deviations = kSigmas * rounding_sigma(format) * std::sqrt(facts.ties_squared),
               worst = std::log1p(unit_roundoff(format) * facts.roundings);
  const double likely = deviations < 1 ? -std::log1p(-deviations) : worst;
  return facts.largest_error > kMaxExponent ? facts.largest_error : std::min(likely, worst);
}

}  // namespace roofgen::attention
