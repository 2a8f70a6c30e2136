// Tolerances relative to the double-precision reference, derived from the 16-bit roundings of a kernel, never fitted
// (docs/internals/verification.md).
#pragma once

#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

class Tolerance {
 public:
  Tolerance(const Numbers& shape, InputPattern pattern, const Path& path);

  /// An element of S (products, scores or masked scores) with exact value s; `sigma`: standard deviation of the errors
  /// of doubtful operands and of the score expression.
  double score(Value value, double s, double sigma) const;
  /// An element of P with exact value p and score s, in a row with these data.
  double probability(double p, double s, double sigma, const RowFacts& facts) const;
  /// Lower bounds of `score` and `probability`, without square roots and exponentials: most elements are well within.
  double least_score(double s) const;
  double least_probability(double p) const;
  /// The part that all elements of an output row share; `row_rms`: RMS of the exact row.
  struct Row {
    double absolute_variance, sums, equal_p, widening;
  };
  Row output_row(const RowFacts& facts, double row_rms) const;
  /// An element of O with exact value o; `variance` from BandReference.
  double output(double o, double variance, const Row& row) const;
  double lse(const RowFacts& facts) const;

 private:
  /// With a score expression, results of structured patterns are inexact too.
  bool exact() const {
    return (pattern_ == InputPattern::kZeroQuery || pattern_ == InputPattern::kOneHot) && !shape_.has_score();
  }
  /// Scores too. Codes that are rotated back, rounded, and rotated are not the codes; P and O are as exact as before.
  bool exact_scores() const { return exact() && (pattern_ == InputPattern::kZeroQuery || !shape_.rotary()); }
  /// Bound of a result of structured inputs. Zero query: sums are exact, their quotient and its rounding are not.
  /// One-hot: p is exact only relative to the same p in the sum.
  double one_rounding(double x) const;
  Numbers shape_;
  InputPattern pattern_;
  /// Error of the scaled sums of products; `hidden`: also for hidden keys.
  double products(bool hidden = false) const;
  /// Error of the log of a row's sum by the rounding of its scores.
  double normaliser(const RowFacts& facts) const;
  Path path_;
};

}  // namespace roofgen::attention
