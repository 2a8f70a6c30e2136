#include "tuner/strategy/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

namespace roofgen {
namespace {

// Lengths and noise are climbed in factors of kStep within these limits; the likelihood is multiplied by log-normal
// priors around the first values, as few observations say little about them.
constexpr double kFirstLength = 1, kShortest = 0.05, kLongest = 30;
constexpr double kFirstNoise = 1e-3, kLeastNoise = 1e-5, kMostNoise = 0.3;
constexpr double kStep = 2;

// Of an axis' covariance, the part that falls with the distance. The rest lets points that differ in several axes tell
// of each other: the product over the axes then has terms of few axes, too (Duvenaud, Nickisch, Rasmussen 2011).
constexpr double kOwnPart = 0.7;

double covariance_at(double distance) {
  const double r = std::sqrt(3.0) * distance;  // Matern 3/2
  return 1 - kOwnPart + kOwnPart * (1 + r) * std::exp(-r);
}

std::vector<double> places_of(const Axis& axis) {
  if (axis.numbers.empty()) return {};
  const auto [low, high] = std::ranges::minmax(axis.numbers);
  double unit = high;  // the least number above 0
  for (const double x : axis.numbers)
    if (x > 0) unit = std::min(unit, x);
  std::vector<double> out;
  for (const double x : axis.numbers) {
    const auto place = [&](double y) { return low > 0 ? std::log(y) : low == 0 ? std::log1p(y / unit) : y; };
    out.push_back(low == high ? 0 : (place(x) - place(low)) / (place(high) - place(low)));
  }
  return out;
}

Eigen::Index index(size_t i) { return static_cast<Eigen::Index>(i); }

Eigen::Map<const Eigen::VectorXd> vector_of(const std::vector<double>& values) {
  return {values.data(), index(values.size())};
}

/// Twice as many rows and columns as are needed, when there are too few.
void make_room(Eigen::MatrixXd& matrix, Eigen::Index rows, Eigen::Index columns) {
  if (rows > matrix.rows() || columns > matrix.cols())
    matrix.conservativeResize(rows > matrix.rows() ? 2 * rows : matrix.rows(),
                              columns > matrix.cols() ? 2 * columns : matrix.cols());
}

double square(double x) { return x * x; }

}  // namespace

GaussianProcess::GaussianProcess(const PointSpace& space)
    : space_(space), lengths_(space.axes().size(), kFirstLength), noise_(kFirstNoise), tables_(space.axes().size()) {
  for (const Axis& axis : space.axes()) places_.push_back(places_of(axis));
  for (size_t axis = 0; axis < tables_.size(); ++axis) tabulate(axis);
}

void GaussianProcess::tabulate(size_t axis) {
  const std::vector<double>& places = places_[axis];
  const Eigen::Index n = index(space_.axes()[axis].size());
  tables_[axis] = Eigen::MatrixXd::NullaryExpr(n, n, [&](Eigen::Index i, Eigen::Index j) {
    const double distance = places.empty() ? i != j : std::fabs(places[i] - places[j]);
    return covariance_at(distance / lengths_[axis]);
  });
}

Eigen::VectorXd GaussianProcess::covariances(size_t point, const std::vector<size_t>& others, size_t without) const {
  const auto row = space_.row(point);
  Eigen::VectorXd out(index(others.size()));
  for (size_t i = 0; i < others.size(); ++i) {
    const auto other = space_.row(others[i]);
    double product = 1;
    for (size_t axis = 0; axis < tables_.size(); ++axis)
      if (axis != without) product *= tables_[axis](other[axis], row[axis]);
    out[index(i)] = product;
  }
  return out;
}

Eigen::VectorXd GaussianProcess::solve(const Eigen::VectorXd& b) const {
  return factor_.topLeftCorner(b.size(), b.size()).triangularView<Eigen::Lower>().solve(b);
}

void GaussianProcess::add(size_t point) {
  observe(point);
  reduce(size() - 1);
}

void GaussianProcess::observe(size_t point) {
  const Eigen::Index n = index(size());
  const Eigen::VectorXd row = solve(covariances(point, points_));
  make_room(factor_, n + 1, n + 1);
  ones_.conservativeResize(factor_.rows());
  const double root = std::sqrt(std::max(1 + noise_ - row.squaredNorm(), 1e-10));
  factor_.row(n).head(n) = row;
  factor_(n, n) = root;
  ones_[n] = (1 - row.dot(ones_.head(n))) / root;
  points_.push_back(point);
}

void GaussianProcess::reduce(size_t first) {
  make_room(reduced_, index(candidates_.size()), index(size()));
  for (Eigen::Index i = index(first); i < index(size()); ++i) {
    const auto rows = index(candidates_.size());
    const Eigen::VectorXd column =
        (covariances(points_[i], candidates_) - reduced_.topLeftCorner(rows, i) * factor_.row(i).head(i).transpose()) /
        factor_(i, i);
    reduced_.col(i).head(rows) = column;
    explained_ += column.cwiseAbs2();
  }
}

void GaussianProcess::keep(size_t n) {
  if (n >= size()) return;
  points_.resize(n);
  explained_ = reduced_.topLeftCorner(index(candidates_.size()), index(n)).rowwise().squaredNorm();
}

void GaussianProcess::set_candidates(std::vector<size_t> candidates) {
  candidates_ = std::move(candidates);
  explained_ = Eigen::VectorXd::Zero(index(candidates_.size()));
  reduce(0);
}

void GaussianProcess::replace_candidates(size_t slot, const std::vector<size_t>& points) {
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t at = (slot + i) % candidates_.size();
    const Eigen::VectorXd row = solve(covariances(points[i], points_));
    candidates_[at] = points[i];
    reduced_.row(index(at)).head(row.size()) = row;
    explained_[index(at)] = row.squaredNorm();
  }
}

size_t GaussianProcess::fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives) {
  const Eigen::Index n = index(points.size());
  const size_t axes = tables_.size();
  Eigen::MatrixXd others(n, n);  // the covariances without the factor of one axis
  const auto values_of = [&](size_t axis) {
    std::vector<Eigen::Index> out;
    for (const size_t point : points) out.push_back(space_.row(point)[axis]);
    return out;
  };
  // Minus the logarithm of the likelihood, the values' mean and variance being the likeliest ones, and of the priors.
  size_t chosen = 0;
  const auto loss = [&](size_t axis) {
    Eigen::MatrixXd matrix = others;
    if (axis < axes) {
      const std::vector<Eigen::Index> values = values_of(axis);
      matrix.array() *= tables_[axis](values, values).array();
    }
    matrix.diagonal().setConstant(1 + noise_);
    const Eigen::LLT<Eigen::MatrixXd> factor(matrix);
    const Eigen::VectorXd ones = factor.matrixL().solve(Eigen::VectorXd::Ones(n));
    const Eigen::VectorXd reduced = factor.matrixL().solve(vector_of(alternatives[chosen]));
    const double mean = ones.dot(reduced) / ones.squaredNorm();
    const double squares = 1e-12 + (reduced - mean * ones).squaredNorm();
    double prior = square(std::log(noise_ / kFirstNoise) / 2) / 2;
    for (const double length : lengths_) prior += square(std::log(length / kFirstLength)) / 4;
    return factor.matrixLLT().diagonal().array().log().sum() +
           0.5 * static_cast<double>(n) * std::log(squares / static_cast<double>(n)) + prior;
  };
  double least = HUGE_VAL;
  for (size_t axis = 0; axis <= axes; ++axis) {  // the last one is the noise
    if (axis < axes && space_.axes()[axis].size() == 1) continue;
    for (Eigen::Index i = 0; i < n; ++i) others.col(i) = covariances(points[i], points, axis);
    double& parameter = axis < axes ? lengths_[axis] : noise_;
    const double low = axis < axes ? kShortest : kLeastNoise, high = axis < axes ? kLongest : kMostNoise;
    if (least == HUGE_VAL) {
      std::vector<double> losses;
      for (chosen = 0; chosen < alternatives.size(); ++chosen) losses.push_back(loss(axis));
      chosen = static_cast<size_t>(std::ranges::min_element(losses) - losses.begin());
      least = losses[chosen];
    }
    const auto climb = [&](double factor) {
      bool moved = false;
      while (true) {
        const double before = parameter;
        parameter *= factor;
        if (axis < axes) tabulate(axis);
        const double there = parameter < low || parameter > high ? HUGE_VAL : loss(axis);
        if (there >= least) {
          parameter = before;
          if (axis < axes) tabulate(axis);
          return moved;
        }
        least = there;
        moved = true;
      }
    };
    if (!climb(kStep)) climb(1 / kStep);
  }
  const std::vector<size_t> observed = std::exchange(points_, {});
  for (const size_t point : observed) observe(point);
  set_candidates(std::move(candidates_));
  return chosen;
}

GaussianProcess::Prediction GaussianProcess::predict(const std::vector<double>& values) const {
  const Eigen::Index n = index(size()), candidates = index(candidates_.size());
  const auto ones = ones_.head(n);
  const Eigen::VectorXd reduced = solve(vector_of(values));
  const double mean = ones.dot(reduced) / ones.squaredNorm();
  const Eigen::VectorXd rest = reduced - mean * ones;
  const double variance = rest.squaredNorm() / static_cast<double>(n);
  return {(reduced_.topLeftCorner(candidates, n) * rest).array() + mean,
          (variance * (1 + noise_ - explained_.array()).max(1e-6)).sqrt()};
}

}  // namespace roofgen
