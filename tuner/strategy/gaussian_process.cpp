#include "tuner/strategy/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#define ROOFGEN_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))

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

// The functions below take four rows or columns at a time, because memory limits their rate. Each element has its
// operations in the order of the rows, so that all processors give the same result.

/// out[i] -= the sum of f(k) * from(k)[i], for `rows` rows of n elements.
template <class Number, class Factor, class Row>
[[gnu::always_inline]] inline void subtract(size_t rows, const Factor& f, const Row& from, Number* __restrict out,
                                            size_t n) {
  size_t k = 0;
  for (; k + 4 <= rows; k += 4) {
    const Number *const r0 = from(k), *const r1 = from(k + 1), *const r2 = from(k + 2), *const r3 = from(k + 3);
    const Number f0 = f(k), f1 = f(k + 1), f2 = f(k + 2), f3 = f(k + 3);
    for (size_t i = 0; i < n; ++i) out[i] = out[i] - f0 * r0[i] - f1 * r1[i] - f2 * r2[i] - f3 * r3[i];
  }
  for (; k < rows; ++k) {
    const Number* const row = from(k);
    const Number factor = f(k);
    for (size_t i = 0; i < n; ++i) out[i] -= factor * row[i];
  }
}

ROOFGEN_WIDE void subtract(const std::vector<float>& f, const std::vector<std::vector<float>>& from,
                           std::vector<float>& to) {
  subtract(
      f.size(), [&](size_t k) { return f[k]; }, [&](size_t k) { return from[k].data(); }, to.data(), to.size());
}

/// The upper factor U of a symmetric matrix, U^T U, in place; rows of n. Only the upper half is read.
ROOFGEN_WIDE void factor_upper(std::vector<double>& a, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    double* const row = &a[j * n + j];
    subtract(
        j, [&](size_t k) { return a[k * n + j]; }, [&](size_t k) { return &a[k * n + j]; }, row, n - j);
    const double root = std::sqrt(std::max(*row, 1e-10));
    for (size_t i = 0; i < n - j; ++i) row[i] /= root;
    *row = root;
  }
}

/// L^-1 b in place; `column`: of L, from its diagonal on.
template <class Column>
[[gnu::always_inline]] inline void solve(const Column& column, std::vector<double>& b) {
  const size_t n = b.size();
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const double *const c0 = column(k), *const c1 = column(k + 1), *const c2 = column(k + 2), *const c3 = column(k + 3);
    double* const __restrict x = &b[k];
    const double x0 = x[0] /= c0[0];
    const double x1 = x[1] = (x[1] - x0 * c0[1]) / c1[0];
    const double x2 = x[2] = (x[2] - x0 * c0[2] - x1 * c1[1]) / c2[0];
    const double x3 = x[3] = (x[3] - x0 * c0[3] - x1 * c1[2] - x2 * c2[1]) / c3[0];
    for (size_t i = 4; i < n - k; ++i) x[i] = x[i] - x0 * c0[i] - x1 * c1[i - 1] - x2 * c2[i - 2] - x3 * c3[i - 3];
  }
  for (; k < n; ++k) {
    const double* const c = column(k);
    const double x = b[k] /= c[0];
    for (size_t i = k + 1; i < n; ++i) b[i] -= x * c[i - k];
  }
}

/// U^-T b, in place.
ROOFGEN_WIDE void solve_upper(const std::vector<double>& u, std::vector<double>& b) {
  solve([&](size_t k) { return &u[k * b.size() + k]; }, b);
}

ROOFGEN_WIDE void solve_lower(const std::vector<std::vector<double>>& columns, std::vector<double>& b) {
  solve([&](size_t k) { return columns[k].data(); }, b);
}

constexpr size_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef int32_t Places __attribute__((vector_size(4 * kLanes)));
typedef uint16_t ShortPlaces __attribute__((vector_size(2 * kLanes)));

/// Each of n elements times the value at its place in a table of `size` values, behind which kLanes more can be read. A
/// table of one register is looked up by a shuffle of lanes.
ROOFGEN_WIDE void multiply(const float* __restrict table, size_t size, const uint16_t* __restrict places, size_t n,
                           float* __restrict out) {
  size_t i = 0;
#ifndef __clang__  // it has shuffles by constants only
  if (size <= kLanes) {
    Lanes values, product;
    std::memcpy(&values, table, sizeof values);
    for (; i + kLanes <= n; i += kLanes) {
      ShortPlaces at;
      std::memcpy(&at, places + i, sizeof at);
      std::memcpy(&product, out + i, sizeof product);
      product *= __builtin_shuffle(values, __builtin_convertvector(at, Places));
      std::memcpy(out + i, &product, sizeof product);
    }
  }
#endif
  for (; i < n; ++i) out[i] *= table[places[i]];
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

double square(double x) { return x * x; }

}  // namespace

GaussianProcess::GaussianProcess(const PointSpace& space)
    : space_(space),
      lengths_(space.axes().size(), kFirstLength),
      noise_(kFirstNoise),
      tables_(space.axes().size()),
      observed_(space.axes().size()),
      columns_(space.axes().size()) {
  for (const Axis& axis : space.axes()) {
    places_.push_back(places_of(axis));
    sizes_.push_back(axis.size());
  }
  for (size_t axis = 0; axis < tables_.size(); ++axis) tabulate(axis);
}

void GaussianProcess::tabulate(size_t axis) {
  const size_t n = space_.axes()[axis].size();
  const std::vector<float>& places = places_[axis];
  tables_[axis].resize(n * n + kLanes);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double distance = places.empty() ? i != j : std::fabs(places[i] - places[j]);
      tables_[axis][i * n + j] = static_cast<float>(covariance_at(distance / lengths_[axis]));
    }
}

void GaussianProcess::covariances(size_t point, const std::vector<std::vector<uint16_t>>& others, float* out, size_t n,
                                  size_t without) const {
  const auto row = space_.row(point);
  std::fill_n(out, n, 1.f);
  for (size_t axis = 0; axis < tables_.size(); ++axis)
    if (axis != without) multiply(&tables_[axis][row[axis] * sizes_[axis]], sizes_[axis], others[axis].data(), n, out);
}

std::vector<std::vector<uint16_t>> GaussianProcess::values_of(const std::vector<size_t>& points) const {
  std::vector<std::vector<uint16_t>> out(tables_.size(), std::vector<uint16_t>(points.size()));
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t axis = 0; axis < tables_.size(); ++axis) out[axis][i] = space_.row(points[i])[axis];
  return out;
}

void GaussianProcess::add(size_t point) {
  observe(point);
  reduce(points_.size() - 1);
}

void GaussianProcess::observe(size_t point) {
  const size_t n = points_.size();
  std::vector<double> row = factored(point);
  points_.push_back(point);
  for (size_t axis = 0; axis < tables_.size(); ++axis) observed_[axis].push_back(space_.row(point)[axis]);
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

std::vector<double> GaussianProcess::factored(size_t point) const {
  std::vector<float> covariance(points_.size());
  covariances(point, observed_, covariance.data(), covariance.size());
  std::vector<double> out(covariance.begin(), covariance.end());
  solve_lower(factor_, out);
  return out;
}

void GaussianProcess::reduce(size_t observation) {
  const size_t n = candidates_.size();
  if (reduced_.size() <= observation) reduced_.resize(observation + 1);
  std::vector<float>& out = reduced_[observation];
  out.resize(n);
  covariances(points_[observation], columns_, out.data(), n);
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
  for (std::vector<uint16_t>& values : observed_) values.resize(n);
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
  columns_ = values_of(candidates_);
  explained_.assign(candidates_.size(), 0);
  for (size_t i = 0; i < points_.size(); ++i) reduce(i);
}

void GaussianProcess::replace_candidate(size_t slot, size_t point) {
  candidates_[slot] = point;
  for (size_t axis = 0; axis < tables_.size(); ++axis) columns_[axis][slot] = space_.row(point)[axis];
  const std::vector<double> column = factored(point);
  explained_[slot] = 0;
  for (size_t k = 0; k < column.size(); ++k) {
    reduced_[k][slot] = static_cast<float>(column[k]);
    explained_[slot] += reduced_[k][slot] * reduced_[k][slot];
  }
}

size_t GaussianProcess::fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives) {
  const size_t n = points.size(), axes = tables_.size();
  std::vector<double> matrix(n * n), ones, reduced;
  std::vector<float> others(n * n);  // the covariances without the factor of one axis
  const std::vector<std::vector<uint16_t>> values = values_of(points);
  // Minus the logarithm of the likelihood, the values' mean and variance being the likeliest ones, and of the priors.
  size_t chosen = 0;
  const auto loss = [&](size_t axis, double noise) {
    for (size_t i = 0; i < n; ++i) {
      double* const row = &matrix[i * n];
      const float* const rest = &others[i * n];
      std::copy(rest + i, rest + n, row + i);
      if (axis < axes) {
        const float* const table = &tables_[axis][values[axis][i] * sizes_[axis]];
        for (size_t j = i; j < n; ++j) row[j] *= table[values[axis][j]];
      }
      row[i] = 1 + noise;
    }
    factor_upper(matrix, n);
    ones.assign(n, 1);
    reduced = alternatives[chosen];
    solve_upper(matrix, ones);
    solve_upper(matrix, reduced);
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
    for (size_t i = 0; i < n; ++i) covariances(points[i], values, &others[i * n], n, axis);
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
  for (std::vector<uint16_t>& column : observed_) column.clear();
  for (const size_t point : observed) observe(point);
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
