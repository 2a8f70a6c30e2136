// A model's predictions as the order in which candidates are measured; the run learns how far the model is off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace roofgen {

class LearntPrior {
 public:
  /// A candidate's parameter values as numbers from 0 on. Equal numbers: the same value of the same parameter.
  using Values = std::vector<uint32_t>;
  /// `seconds`: predicted, above 0. Returns the candidate's number: 0, 1, ...
  size_t add(double seconds, Values values);
  /// The time of a candidate that was measured.
  void learn(size_t candidate, double seconds);
  /// The predicted time times the model's mean error and a factor for each parameter value: the mean error of those
  /// measured with this value, beside the mean of all, drawn towards none as if kPriorPoints had no error.
  double corrected(size_t candidate) const;
  /// The factor by which 90 % of the corrected predictions of measured candidates are off at most; infinity with fewer
  /// than kLeastLearnt.
  double error() const;

  /// Held against recorded spaces (docs/evidence/fidelity.md, "Evaluations saved").
  static constexpr double kPriorPoints = 4;
  static constexpr size_t kLeastLearnt = 10;

 private:
  struct Sum {
    double errors = 0;
    size_t number = 0;
  };
  struct Candidate {
    double log_seconds;
    Values values;
  };
  std::vector<Candidate> candidates_;
  std::vector<Sum> by_value_;
  Sum all_;
  std::vector<std::pair<size_t, double>> learnt_;  ///< candidate, log of its time
};

}  // namespace roofgen
