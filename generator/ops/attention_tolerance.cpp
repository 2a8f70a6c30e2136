#include "generator/ops/attention_tolerance.h"

#include <cmath>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {
namespace {

/// Standard deviations allowed. A search compares up to 2^26 elements (60 candidates of a 2048x64
/// head and slices); the largest of that many normal numbers exceeds 6 with probability 0.13 if all
/// were independent at the full sigma, and the added ulp, of which rounding the output takes at
/// most half, is 1 to 2 sigma more.
constexpr double kSigmas = 6;

/// Error of a sum of `terms` products in fp32, per unit of the sum's magnitude: one rounding (or
/// truncation, on tensor cores) of 2^-24 per step of 16.
double accumulation(double terms) { return (terms / 16 + 2) * 0x1p-24; }

}  // namespace

Tolerance::Tolerance(const Shape& shape, InputPattern pattern, Rounding rounding)
    : shape_(shape), pattern_(pattern), rounding_(rounding) {}

double Tolerance::score(double s) const {
  const double d = static_cast<double>(shape_.d);
  // |q k| sums to 2/pi d on average; d bounds atypical rows. Structured inputs have exact sums.
  const double sum = exact() ? 0 : accumulation(d) * shape_.scale * d;
  return spacing(s, format_of(shape_.dtype)) + sum;
}

double Tolerance::probability(double p, double s, const RowFacts& facts) const {
  const Format16 format = format_of(shape_.dtype);
  // Under kOneHot all other keys are below e^-64 before, and below e^-40 after, S is rounded.
  if (exact()) return spacing(p, format) + (pattern_ == InputPattern::kOneHot ? 0x1p-57 : 0);
  const double own = unit_roundoff(format) * std::fabs(s);
  const double normaliser = kSigmas * rms_relative_error(format) * std::sqrt(facts.ps_squared);
  const double d = static_cast<double>(shape_.d);
  const double change = own + normaliser + accumulation(d) * shape_.scale * d;
  // e^x - 1 lies below x + x^2 up to 1.79.
  return spacing(p, format) + p * (change < 1.5 ? change + change * change : std::expm1(change));
}

double Tolerance::output_row(const RowFacts& facts, int64_t keys, double row_rms) const {
  const double sums = accumulation(static_cast<double>(keys)) * row_rms;
  if (exact()) return sums;
  const Format16 format = format_of(shape_.dtype);
  const double relative = rms_relative_error(format);
  // Small p are subnormal numbers with an absolute error. The fused kernel rounds p relative to the
  // row's maximum, the unfused one the final p.
  const double scale = rounding_ == Rounding::kFused ? std::exp(facts.max - facts.lse) : 1.0;
  const double absolute = rms_subnormal_error(format) * scale;
  const double spread = facts.p_squared + (rounding_ == Rounding::kUnfused ? facts.ps_squared : 0.0);
  const double variance = relative * relative * spread + static_cast<double>(keys) * absolute * absolute;
  return kSigmas * std::sqrt(variance) * rms_of_values(pattern_) + sums;
}

double Tolerance::output(double o, int64_t keys, double row) const {
  const Format16 format = format_of(shape_.dtype);
  double tolerance = spacing(o, format) + row;
  if (pattern_ == InputPattern::kZeroQuery && rounding_ == Rounding::kUnfused) {
    // Every p of the row is 1 / keys, rounded the same way.
    const double n = static_cast<double>(keys);
    tolerance += std::fabs(o) * n * spacing(1 / n, format) / 2;
  }
  return tolerance;
}

double Tolerance::lse(const RowFacts& facts) const {
  // fp32 on the way out: the product m * c, lg2.approx (2^-22 absolute) and the ex2 behind the sum.
  double tolerance = 0x1p-20 * (4 + std::fabs(facts.lse)) + accumulation(static_cast<double>(shape_.d)) * shape_.scale * static_cast<double>(shape_.d);
  if (rounding_ == Rounding::kFused) return tolerance;
  const Format16 format = format_of(shape_.dtype);
  if (exact()) return tolerance + unit_roundoff(format) * std::fabs(facts.max);
  return tolerance + kSigmas * rms_relative_error(format) * std::sqrt(facts.ps_squared);
}

}  // namespace roofgen::attention
