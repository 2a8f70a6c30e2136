// A Gaussian process over the points of a search space: from the times measured so far, the expected time of every
// candidate and its uncertainty.
//
// The covariance of two points is a product of one Matern-3/2 function for each axis. An axis of positive numbers is
// taken by logarithms: tile sizes and numbers of threads act by their ratios. Rasmussen, Williams: Gaussian Processes
// for Machine Learning (2006), chapters 2, 4 and 5; Jones, Schonlau, Welch (1998) for the expected improvement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tuner/strategy/point_space.h"

namespace roofgen {

class GaussianProcess {
 public:
  explicit GaussianProcess(const PointSpace& space);

  /// Adds an observed point.
  void add(size_t point);
  /// Forgets all but the first `n` observations.
  void keep(size_t n);
  size_t size() const { return points_.size(); }

  /// The points that predict() is about, instead of those before.
  void set_candidates(std::vector<size_t> candidates);
  void replace_candidate(size_t slot, size_t point);
  const std::vector<size_t>& candidates() const { return candidates_; }

  /// Chooses the length of each axis and the noise: climbs the likelihood of the values at `points`, one parameter at a
  /// time, about points^3 / 6 operations a step. Of several alternatives it takes the values that are likeliest with
  /// the present lengths, and returns their index.
  size_t fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives);

  /// Of each candidate: the mean of its value, and the standard deviation of that.
  struct Prediction {
    std::vector<float> mean, deviation;
  };
  /// `values`: one per observation.
  void predict(const std::vector<double>& values, Prediction& out) const;

 private:
  void tabulate(size_t axis);
  /// With n points of which `others` has the values of each axis; without the factor of one axis.
  void covariances(size_t point, const std::vector<std::vector<uint16_t>>& others, float* out, size_t n,
                   size_t without = SIZE_MAX) const;
  std::vector<std::vector<uint16_t>> values_of(const std::vector<size_t>& points) const;  ///< of each axis
  std::vector<double> factored(size_t point) const;  ///< factor^-1 times its covariance with the observations
  void observe(size_t point);                        ///< adds it to the factor
  void reduce(size_t observation);
  void explain();

  const PointSpace& space_;
  std::vector<size_t> sizes_;               ///< values of each axis
  std::vector<std::vector<float>> places_;  ///< of each value of an axis, 0 to 1; empty: the axis has no order
  std::vector<double> lengths_;             ///< of each axis, in units of its places
  double noise_;                            ///< variance, in units of the values' variance
  std::vector<std::vector<float>> tables_;  ///< of each axis: covariance of two values, row by row
  std::vector<size_t> points_;
  std::vector<std::vector<uint16_t>> observed_;  ///< of each axis: the points' values
  std::vector<std::vector<double>> factor_;      ///< columns of the Cholesky factor of the observations' covariance
  std::vector<double> ones_;                     ///< factor^-1 times ones
  std::vector<size_t> candidates_;
  std::vector<std::vector<uint16_t>> columns_;  ///< of each axis: the candidates' values
  std::vector<std::vector<float>> reduced_;     ///< of each observation: factor^-1 times covariance with the candidates
  std::vector<float> explained_;                ///< of each candidate: the part of its variance that is known
};

}  // namespace roofgen
