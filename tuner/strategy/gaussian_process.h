// A Gaussian process over the points of a search space: from the times measured so far, the expected time of every
// candidate and its uncertainty.
//
// The covariance of two points is a product of one Matern-3/2 function for each axis. An axis of positive numbers is
// taken by logarithms: tile sizes and numbers of threads act by their ratios. Rasmussen, Williams: Gaussian Processes
// for Machine Learning (2006), chapters 2, 4 and 5; Jones, Schonlau, Welch (1998) for the expected improvement.
#pragma once

#include <Eigen/Core>
#include <cstddef>
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
    Eigen::VectorXd mean, deviation;
  };
  /// `values`: one per observation.
  Prediction predict(const std::vector<double>& values) const;

 private:
  void tabulate(size_t axis);
  /// Of one point with others, by all axes but one.
  Eigen::VectorXd covariances(size_t point, const std::vector<size_t>& others, size_t without = SIZE_MAX) const;
  void observe(size_t point);                             ///< adds it to the factor
  void reduce(size_t first);                              ///< the candidates by the observations from this one on
  Eigen::VectorXd solve(const Eigen::VectorXd& b) const;  ///< factor^-1 b, of the observations

  const PointSpace& space_;
  std::vector<std::vector<double>> places_;  ///< of each value of an axis, 0 to 1; empty: the axis has no order
  std::vector<double> lengths_;              ///< of each axis, in units of its places
  double noise_;                             ///< variance, in units of the values' variance
  std::vector<Eigen::MatrixXd> tables_;      ///< of each axis: covariance of two values
  std::vector<size_t> points_;
  Eigen::MatrixXd factor_;  ///< lower Cholesky factor of the observations' covariance, with room for more
  Eigen::VectorXd ones_;    ///< factor^-1 times ones, with room for more
  std::vector<size_t> candidates_;
  Eigen::MatrixXd reduced_;    ///< a row per candidate: factor^-1 times its covariances; with room for more columns
  Eigen::VectorXd explained_;  ///< of each candidate: the part of its variance that is known
};

}  // namespace roofgen
