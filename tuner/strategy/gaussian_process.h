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
  /// Candidates at slots `slot`, `slot` + 1, ..., after the last one the first, make room for `points`.
  void replace_candidates(size_t slot, const std::vector<size_t>& points);
  const std::vector<size_t>& candidates() const { return candidates_; }

  /// Chooses the length of each axis and the noise: climbs the likelihood of the values at `points`, one parameter at a
  /// time, about points^3 / 6 operations a step. Of several alternatives it takes the values that are likeliest with
  /// the present lengths, and returns their index.
  size_t fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives);

  /// Of each candidate: the mean and the standard deviation of a measurement of it; the noise counts.
  struct Prediction {
    std::vector<float> mean, deviation;
  };
  /// `values`: one per observation.
  void predict(const std::vector<double>& values, Prediction& out) const;

  static constexpr size_t kStrip = 64;
  /// A number of each of kStrip candidates, in whole cache lines.
  struct alignas(64) Strip {
    float at[kStrip] = {};
  };

 private:
  void tabulate(size_t axis);
  /// With n points, of which `others` has the values of each axis from `begin` on; without the factor of one axis.
  void covariances(size_t point, const std::vector<std::vector<int32_t>>& others, size_t begin, size_t n, float* out,
                   size_t without = SIZE_MAX) const;
  std::vector<std::vector<int32_t>> values_of(const std::vector<size_t>& points) const;  ///< of each axis
  std::vector<double> factored(size_t point) const;  ///< factor^-1 times its covariance with the observations
  void observe(size_t point);                        ///< adds it to the factor
  void factorize();                                  ///< of the covariance of all observations
  void reduce(size_t first);                         ///< the observations from this one on

  const PointSpace& space_;
  std::vector<size_t> sizes_;               ///< values of each axis
  std::vector<std::vector<float>> places_;  ///< of each value of an axis, 0 to 1; empty: the axis has no order
  std::vector<double> lengths_;             ///< of each axis, in units of its places
  double noise_;                            ///< variance, in units of the values' variance
  std::vector<std::vector<float>> tables_;  ///< of each axis: covariance of two values, row by row
  std::vector<size_t> points_;
  std::vector<std::vector<int32_t>> observed_;  ///< of each axis: the points' values
  std::vector<std::vector<double>> factor_;     ///< columns of the Cholesky factor of the observations' covariance
  std::vector<std::vector<float>> rows_;        ///< its rows, without the diagonal
  std::vector<double> ones_;                    ///< factor^-1 times ones
  std::vector<size_t> candidates_;
  std::vector<std::vector<int32_t>> columns_;  ///< of each axis: the candidates' values
  std::vector<std::vector<Strip>> reduced_;    ///< factor^-1 times covariance: by strip of candidates, by observation
  std::vector<Strip> explained_;               ///< of each candidate: the part of its variance that is known
};

}  // namespace roofgen
