// How far a correct kernel may be from the double-precision reference: derived from where 16-bit
// rounding happens, never fitted. The derivation is docs/verification.md.
#pragma once

#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// Where P (and S) are rounded to the problem's dtype.
enum class Rounding { kFused, kUnfused };

class Tolerance {
 public:
  Tolerance(const Shape& shape, InputPattern pattern, Rounding rounding);

  /// An element of S whose exact value is s.
  double score(double s) const;
  /// An element of P whose exact value is p and whose score is s, in a row with these facts.
  double probability(double p, double s, const RowFacts& facts) const;
  /// The part of an output row's tolerance that all its elements share; row_rms is that of the exact row.
  double output_row(const RowFacts& facts, int64_t keys, double row_rms) const;
  /// An element of O whose exact value is o; `row` is what output_row returned.
  double output(double o, int64_t keys, double row) const;
  double lse(const RowFacts& facts) const;

 private:
  bool exact() const { return pattern_ != InputPattern::kNormal; }
  Shape shape_;
  InputPattern pattern_;
  Rounding rounding_;
};

}  // namespace roofgen::attention
