#include "tuner/strategy/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <utility>

#define ROOFGEN_WIDE __attribute__((target_clones("avx2", "default")))

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

std::vector<float> places_of(const Axis& axis) {
  if (axis.numbers.empty()) return {};
  const auto [low, high] = std::ranges::minmax(axis.numbers);
  double unit = high;  // the least number above 0
  for (const double x : axis.numbers)
    if (x > 0) unit = std::min(unit, x);
  std::vector<float> out;
  for (const double x : axis.numbers) {
    const auto place = [&](double y) { return low > 0 ? std::log(y) : low == 0 ? std::log1p(y / unit) : y; };
    out.push_back(low == high ? 0 : static_cast<float>((place(x) - place(low)) / (place(high) - place(low))));
  }
  return out;
}

/// The upper factor U of a symmetric matrix, U^T U, in place; rows of n. Only the upper half is read.
ROOFGEN_WIDE void factor_upper(std::vector<double>& a, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    double* const row = &a[k * n];
    const double root = std::sqrt(std::max(row[k], 1e-10));
    for (size_t i = k; i < n; ++i) row[i] /= root;
    row[k] = root;
    for (size_t j = k + 1; j < n; ++j) {
      double* const below = &a[j * n];
      const double f = row[j];
      for (size_t i = j; i < n; ++i) below[i] -= f * row[i];
    }
  }
}

/// U^-T b, in place.
ROOFGEN_WIDE void solve_upper(const std::vector<double>& u, size_t n, std::vector<double>& b) {
  for (size_t k = 0; k < n; ++k) {
    const double* const row = &u[k * n];
    const double x = b[k] /= row[k];
    for (size_t i = k + 1; i < n; ++i) b[i] -= x * row[i];
  }
}

/// L^-1 b in place, with the columns of L from its diagonal on.
ROOFGEN_WIDE void solve_lower(const std::vector<std::vector<double>>& columns, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    const double* const column = columns[k].data();
    const double x = b[k] /= column[0];
    for (size_t i = k + 1; i < n; ++i) b[i] -= x * column[i - k];
  }
}

/// to -= the sum of f[k] * from[k]. Each lane on its own and in the order of k, so that all processors give the same
/// result; four rows at a time, because memory limits the rate.
ROOFGEN_WIDE void subtract(const std::vector<float>& f, const std::vector<std::vector<float>>& from,
                           std::vector<float>& to) {
  float* const __restrict out = to.data();
  const size_t n = to.size();
  size_t k = 0;
  for (; k + 4 <= f.size(); k += 4) {
    const float *const r0 = from[k].data(), *const r1 = from[k + 1].data(), *const r2 = from[k + 2].data(),
                       *const r3 = from[k + 3].data();
    const float f0 = f[k], f1 = f[k + 1], f2 = f[k + 2], f3 = f[k + 3];
    for (size_t c = 0; c < n; ++c) out[c] = out[c] - f0 * r0[c] - f1 * r1[c] - f2 * r2[c] - f3 * r3[c];
  }
  for (; k < f.size(); ++k) {
    const float* const row = from[k].data();
    for (size_t c = 0; c < n; ++c) out[c] -= f[k] * row[c];
  }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

double square(double x) { return x * x; }

}  // namespace

GaussianProcess::GaussianProcess(const PointSpace& space)
    : space_(space), lengths_(space.axes().size(), kFirstLength), noise_(kFirstNoise), tables_(space.axes().size()) {
  for (const Axis& axis : space.axes()) {
    places_.push_back(places_of(axis));
    sizes_.push_back(axis.size());
  }
  for (size_t axis = 0; axis < tables_.size(); ++axis) tabulate(axis);
}

void GaussianProcess::tabulate(size_t axis) {
  const size_t n = space_.axes()[axis].size();
  const std::vector<float>& places = places_[axis];
  tables_[axis].resize(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double distance = places.empty() ? i != j : std::fabs(places[i] - places[j]);
      tables_[axis][i * n + j] = static_cast<float>(covariance_at(distance / lengths_[axis]));
    }
}

float GaussianProcess::covariance(size_t a, size_t b) const {
  const uint16_t* const left = space_.row(a).data();
  const uint16_t* const right = space_.row(b).data();
  float out = 1;
  for (size_t axis = 0; axis < tables_.size(); ++axis) out *= tables_[axis][left[axis] * sizes_[axis] + right[axis]];
  return out;
}

void GaussianProcess::add(size_t point) {
  points_.push_back(point);
  factor_last();
  reduce(points_.size() - 1);
}

void GaussianProcess::factor_last() {
  const size_t n = points_.size() - 1;
  std::vector<double> row(n);
  for (size_t i = 0; i < n; ++i) row[i] = covariance(points_[n], points_[i]);
  solve_lower(factor_, row);
  double rest = 1 + noise_, one = 1;
  for (size_t k = 0; k < n; ++k) {
    rest -= square(row[k]);
    one -= row[k] * ones_[k];
  }
  const double root = std::sqrt(std::max(rest, 1e-10));
  for (size_t k = 0; k < n; ++k) factor_[k].push_back(row[k]);
  factor_.push_back({root});
  ones_.push_back(one / root);
}

void GaussianProcess::reduce(size_t observation) {
  const size_t n = candidates_.size();
  if (reduced_.size() <= observation) reduced_.resize(observation + 1);
  std::vector<float>& out = reduced_[observation];
  out.assign(n, 1);
  const auto row = space_.row(points_[observation]);
  for (size_t axis = 0; axis < tables_.size(); ++axis) {
    const float* const table = &tables_[axis][row[axis] * sizes_[axis]];
    const uint16_t* const column = columns_[axis].data();
    for (size_t c = 0; c < n; ++c) out[c] *= table[column[c]];
  }
  std::vector<float> f;
  for (size_t k = 0; k < observation; ++k) f.push_back(static_cast<float>(factor_[k][observation - k]));
  subtract(f, reduced_, out);
  const float scale = static_cast<float>(1 / factor_[observation][0]);
  for (size_t c = 0; c < n; ++c) {
    out[c] *= scale;
    explained_[c] += out[c] * out[c];
  }
}

void GaussianProcess::keep(size_t n) {
  if (n >= points_.size()) return;
  points_.resize(n);
  factor_.resize(n);
  for (size_t k = 0; k < n; ++k) factor_[k].resize(n - k);
  ones_.resize(n);
  reduced_.resize(n);
  explained_.assign(candidates_.size(), 0);
  for (const std::vector<float>& row : reduced_)
    for (size_t c = 0; c < row.size(); ++c) explained_[c] += row[c] * row[c];
}

void GaussianProcess::set_candidates(std::vector<size_t> candidates) {
  candidates_ = std::move(candidates);
  columns_.assign(tables_.size(), std::vector<uint16_t>(candidates_.size()));
  for (size_t c = 0; c < candidates_.size(); ++c)
    for (size_t axis = 0; axis < tables_.size(); ++axis) columns_[axis][c] = space_.row(candidates_[c])[axis];
  explained_.assign(candidates_.size(), 0);
  for (size_t i = 0; i < points_.size(); ++i) reduce(i);
}

void GaussianProcess::replace_candidate(size_t slot, size_t point) {
  candidates_[slot] = point;
  for (size_t axis = 0; axis < tables_.size(); ++axis) columns_[axis][slot] = space_.row(point)[axis];
  const size_t n = points_.size();
  std::vector<double> column(n);
  for (size_t i = 0; i < n; ++i) column[i] = covariance(points_[i], point);
  solve_lower(factor_, column);
  explained_[slot] = 0;
  for (size_t k = 0; k < n; ++k) {
    reduced_[k][slot] = static_cast<float>(column[k]);
    explained_[slot] += reduced_[k][slot] * reduced_[k][slot];
  }
}

size_t GaussianProcess::fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives) {
  const size_t n = points.size(), axes = tables_.size();
  std::vector<double> others(n * n), matrix(n * n), ones, reduced;
  // Minus the logarithm of the likelihood, the values' mean and variance being the likeliest ones, and of the priors.
  size_t chosen = 0;
  const auto loss = [&](size_t axis, double noise) {
    for (size_t i = 0; i < n; ++i) {
      const uint16_t* const row = space_.row(points[i]).data();
      for (size_t j = i; j < n; ++j) {
        double k = others[i * n + j];
        if (axis < axes) k *= tables_[axis][row[axis] * sizes_[axis] + space_.row(points[j])[axis]];
        matrix[i * n + j] = i == j ? 1 + noise : k;
      }
    }
    factor_upper(matrix, n);
    ones.assign(n, 1);
    reduced = alternatives[chosen];
    solve_upper(matrix, n, ones);
    solve_upper(matrix, n, reduced);
    const double mean = dot(ones, reduced) / dot(ones, ones);
    double logs = 0, squares = 1e-12;
    for (size_t i = 0; i < n; ++i) {
      logs += std::log(matrix[i * n + i]);
      squares += square(reduced[i] - mean * ones[i]);
    }
    double prior = square(std::log(noise / kFirstNoise) / 2) / 2;
    for (const double length : lengths_) prior += square(std::log(length / kFirstLength)) / 4;
    return logs + 0.5 * static_cast<double>(n) * std::log(squares / static_cast<double>(n)) + prior;
  };
  double least = HUGE_VAL;
  for (size_t axis = 0; axis <= axes; ++axis) {  // the last one is the noise
    if (axis < axes && space_.axes()[axis].size() == 1) continue;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i + 1; j < n; ++j) {
        const auto left = space_.row(points[i]), right = space_.row(points[j]);
        float k = 1;
        for (size_t other = 0; other < axes; ++other)
          if (other != axis) k *= tables_[other][left[other] * sizes_[other] + right[other]];
        others[i * n + j] = k;
      }
    double& parameter = axis < axes ? lengths_[axis] : noise_;
    const double low = axis < axes ? kShortest : kLeastNoise, high = axis < axes ? kLongest : kMostNoise;
    if (least == HUGE_VAL) {
      std::vector<double> losses;
      for (chosen = 0; chosen < alternatives.size(); ++chosen) losses.push_back(loss(axis, noise_));
      chosen = static_cast<size_t>(std::ranges::min_element(losses) - losses.begin());
      least = losses[chosen];
    }
    const auto climb = [&](double factor) {
      bool moved = false;
      while (true) {
        const double before = parameter;
        parameter *= factor;
        if (axis < axes) tabulate(axis);
        const double there = parameter < low || parameter > high ? HUGE_VAL : loss(axis, noise_);
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
  // The observations' factor is that of the new covariance.
  const std::vector<size_t> observed = std::exchange(points_, {});
  factor_.clear();
  ones_.clear();
  for (const size_t point : observed) {
    points_.push_back(point);
    factor_last();
  }
  set_candidates(std::move(candidates_));
  return chosen;
}

void GaussianProcess::predict(const std::vector<double>& values, Prediction& out) const {
  const size_t n = points_.size(), candidates = candidates_.size();
  std::vector<double> reduced = values;
  solve_lower(factor_, reduced);
  const double mean = dot(ones_, reduced) / dot(ones_, ones_);
  double variance = 0;
  for (size_t k = 0; k < n; ++k) {
    reduced[k] -= mean * ones_[k];
    variance += square(reduced[k]) / static_cast<double>(n);
  }
  out.mean.assign(candidates, static_cast<float>(mean));
  std::vector<float> f;
  for (size_t k = 0; k < n; ++k) f.push_back(static_cast<float>(-reduced[k]));
  subtract(f, reduced_, out.mean);
  out.deviation.resize(candidates);
  const float scale = static_cast<float>(variance);
  for (size_t c = 0; c < candidates; ++c) out.deviation[c] = std::sqrt(scale * std::max(1 - explained_[c], 1e-6f));
}

}  // namespace roofgen
