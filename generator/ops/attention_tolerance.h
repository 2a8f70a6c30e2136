// How far a correct kernel may be from the double-precision reference: derived from where 16-bit
// rounding happens, never fitted. The derivation is docs/verification.md.
#pragma once

#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

class Tolerance {
 public:
  Tolerance(const Shape& shape, InputPattern pattern, const Path& path);

  /// An element of S (products, scores or masked scores) whose exact value is s; `sigma` is the standard deviation of
  /// what a score expression adds.
  double score(Value value, double s, double sigma) const;
  /// An element of P whose exact value is p and whose score is s, in a row with these facts.
  double probability(double p, double s, double sigma, const RowFacts& facts) const;
  /// What all elements of an output row share; `row_rms` is that of the exact row.
  struct Row {
    double absolute_variance, sums, equal_p;
  };
  Row output_row(const RowFacts& facts, double row_rms) const;
  /// An element of O whose exact value is o; `variance` is BandReference's.
  double output(double o, double variance, const Row& row) const;
  double lse(const RowFacts& facts) const;

 private:
  /// A score expression makes the answers of the structured patterns as inexact as any.
  bool exact() const {
    return (pattern_ == InputPattern::kZeroQuery || pattern_ == InputPattern::kOneHot) && !shape_.has_score();
  }
  Shape shape_;
  InputPattern pattern_;
  /// What the sums of products may be off, once they are scaled.
  double products() const;
  Path path_;
};

}  // namespace roofgen::attention
