#include "tuner/strategy/learnt_prior.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {

size_t LearntPrior::add(double seconds, Values values) {
  candidates_.push_back({std::log(seconds), std::move(values)});
  return candidates_.size() - 1;
}

void LearntPrior::learn(size_t candidate, double seconds) {
  const Candidate& c = candidates_[candidate];
  const double time = std::log(seconds), error = time - c.log_seconds;
  const auto count = [error](Sum& sum) { sum.errors += error, ++sum.number; };
  count(all_);
  for (const uint32_t value : c.values) {
    if (by_value_.size() <= value) by_value_.resize(value + 1);
    count(by_value_[value]);
  }
  learnt_.emplace_back(candidate, time);
}

double LearntPrior::corrected(size_t candidate) const {
  const Candidate& c = candidates_[candidate];
  const double mean = all_.number ? all_.errors / static_cast<double>(all_.number) : 0;
  double time = c.log_seconds + mean;
  for (const uint32_t value : c.values) {
    if (value >= by_value_.size()) continue;
    const Sum& sum = by_value_[value];
    const auto number = static_cast<double>(sum.number);
    time += (sum.errors - number * mean) / (number + kPriorPoints);
  }
  return std::exp(time);
}

double LearntPrior::error() const {
  if (learnt_.size() < kLeastLearnt) return std::numeric_limits<double>::infinity();
  std::vector<double> errors;
  for (const auto& [candidate, time] : learnt_) errors.push_back(std::abs(std::log(corrected(candidate)) - time));
  const auto at = static_cast<size_t>(std::ceil(0.9 * static_cast<double>(errors.size()))) - 1;
  std::nth_element(errors.begin(), errors.begin() + static_cast<ptrdiff_t>(at), errors.end());
  return std::exp(errors[at]);
}

}  // namespace roofgen
