#include "tuner/strategy/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
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
// operations in the order of the rows, so that all processors give the same result. Rows begin at cache lines:
// without alignas, the alignment of a vector type depends on the processor for which a function is compiled.

typedef float Wide __attribute__((vector_size(64), may_alias));
typedef double Doubles __attribute__((vector_size(64), may_alias));
constexpr size_t kDoubles = sizeof(Doubles) / sizeof(double);
struct alignas(64) Line {
  Doubles each;
};

/// A symmetric matrix or its factor, the upper half. Lines at the diagonal have elements of the lower half, too, which
/// are computed and not used.
struct Matrix {
  explicit Matrix(size_t rows) : n(rows), width((n + kDoubles - 1) / kDoubles), lines(n * width) {}
  double* row(size_t i) { return reinterpret_cast<double*>(&lines[i * width].each); }

  const size_t n, width;  ///< width: of a row, in lines
  std::vector<Line> lines;
};

/// The upper factor U, U^T U, in place.
ROOFGEN_WIDE void factor_upper(Matrix& a) {
  for (size_t j = 0; j < a.n; ++j) {
    const size_t begin = j / kDoubles;
    Doubles* const out = &a.lines[j * a.width].each;
    const auto line = [&](size_t k) { return &a.lines[k * a.width].each; };
    const auto at = [&](size_t k) { return a.row(k)[j]; };
    size_t k = 0;
    for (; k + 4 <= j; k += 4) {
      const Doubles *const r0 = line(k), *const r1 = line(k + 1), *const r2 = line(k + 2), *const r3 = line(k + 3);
      const double f0 = at(k), f1 = at(k + 1), f2 = at(k + 2), f3 = at(k + 3);
      for (size_t i = begin; i < a.width; ++i) out[i] = out[i] - f0 * r0[i] - f1 * r1[i] - f2 * r2[i] - f3 * r3[i];
    }
    for (; k < j; ++k)
      for (size_t i = begin; i < a.width; ++i) out[i] -= at(k) * line(k)[i];
    const double root = std::sqrt(std::max(a.row(j)[j], 1e-10));
    for (size_t i = begin; i < a.width; ++i) out[i] /= root;
    a.row(j)[j] = root;
  }
}

using Strip = GaussianProcess::Strip;
static_assert(sizeof(Strip) == 4 * sizeof(Wide));

/// (out - the sum of f[k] * from[k]) * scale; the sums stay in registers.
[[gnu::always_inline]] inline void subtract(size_t rows, const float* f, const Strip* from, float scale, Strip& out) {
  Wide* const to = reinterpret_cast<Wide*>(out.at);
  Wide s0 = to[0], s1 = to[1], s2 = to[2], s3 = to[3];
  for (size_t k = 0; k < rows; ++k) {
    const Wide* const row = reinterpret_cast<const Wide*>(from[k].at);
    s0 -= f[k] * row[0], s1 -= f[k] * row[1], s2 -= f[k] * row[2], s3 -= f[k] * row[3];
  }
  to[0] = s0 * scale, to[1] = s1 * scale, to[2] = s2 * scale, to[3] = s3 * scale;
}
ROOFGEN_WIDE void subtract(size_t rows, const float* f, const Strip* from, Strip& out) {
  subtract(rows, f, from, 1, out);
}

/// Adds the squares to `squares`.
[[gnu::always_inline]] inline void add_squares(const Strip& strip, Strip& squares) {
  for (size_t c = 0; c < std::size(strip.at); ++c) squares.at[c] += strip.at[c] * strip.at[c];
}
ROOFGEN_WIDE void reduce_strip(size_t rows, const float* f, const Strip* from, float scale, Strip& out,
                               Strip& explained) {
  subtract(rows, f, from, scale, out);
  add_squares(out, explained);
}

/// L^-1 b in place, b of n elements; `column`: of L, from its diagonal on. Number: of one right-hand side, or of
/// several.
template <class Number, class Column>
[[gnu::always_inline]] inline void solve(const Column& column, Number* b, size_t n) {
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const double *const c0 = column(k), *const c1 = column(k + 1), *const c2 = column(k + 2), *const c3 = column(k + 3);
    Number* const __restrict x = &b[k];
    const Number x0 = x[0] /= c0[0];
    const Number x1 = x[1] = (x[1] - x0 * c0[1]) / c1[0];
    const Number x2 = x[2] = (x[2] - x0 * c0[2] - x1 * c1[1]) / c2[0];
    const Number x3 = x[3] = (x[3] - x0 * c0[3] - x1 * c1[2] - x2 * c2[1]) / c3[0];
    for (size_t i = 4; i < n - k; ++i) x[i] = x[i] - x0 * c0[i] - x1 * c1[i - 1] - x2 * c2[i - 2] - x3 * c3[i - 3];
  }
  for (; k < n; ++k) {
    const double* const c = column(k);
    const Number x = b[k] /= c[0];
    for (size_t i = k + 1; i < n; ++i) b[i] -= x * c[i - k];
  }
}

/// U^-T b, in place.
ROOFGEN_WIDE void solve_upper(Matrix& u, std::vector<double>& b) {
  solve([&](size_t k) { return u.row(k) + k; }, b.data(), b.size());
}

ROOFGEN_WIDE void solve_lower(const std::vector<std::vector<double>>& columns, std::vector<double>& b) {
  solve([&](size_t k) { return columns[k].data(); }, b.data(), b.size());
}
ROOFGEN_WIDE void solve_lower(const std::vector<std::vector<double>>& columns, std::vector<Line>& b) {
  solve([&](size_t k) { return columns[k].data(); }, &b.data()->each, b.size());
}

/// The covariances of one point along an axis.
struct Factor {
  const float* table;  ///< with each value; past the last one kLanes more can be read
  size_t size;
  const int32_t* values;  ///< of the other points
};

constexpr size_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef int32_t Places __attribute__((vector_size(4 * kLanes)));

/// The product of all factors for as many times n points as fit, from the i-th on. A table of one register is looked up
/// by a shuffle of lanes.
template <size_t registers>
[[gnu::always_inline]] inline void multiply(const std::vector<Factor>& factors, size_t n, size_t& i, float* out) {
#ifndef __clang__  // it has shuffles by constants only
  for (; i + registers * kLanes <= n; i += registers * kLanes) {
    Lanes product[registers];
    for (Lanes& p : product) p = Lanes{} + 1;
    for (const Factor& f : factors) {
      Lanes table;
      std::memcpy(&table, f.table, sizeof table);
      for (size_t r = 0; r < registers; ++r) {
        Places at;
        std::memcpy(&at, f.values + i + r * kLanes, sizeof at);
        if (f.size <= kLanes)
          product[r] *= __builtin_shuffle(table, at);
        else
          for (size_t l = 0; l < kLanes; ++l) product[r][l] *= f.table[at[l]];
      }
    }
    for (size_t r = 0; r < registers; ++r) std::memcpy(out + i + r * kLanes, &product[r], sizeof product[r]);
  }
#endif
}

ROOFGEN_WIDE void multiply(const std::vector<Factor>& factors, size_t n, float* out) {
  size_t i = 0;
  multiply<4>(factors, n, i, out);
  multiply<1>(factors, n, i, out);
  for (; i < n; ++i) {
    out[i] = 1;
    for (const Factor& f : factors) out[i] *= f.table[f.values[i]];
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

void GaussianProcess::covariances(size_t point, const std::vector<std::vector<int32_t>>& others, size_t begin, size_t n,
                                  float* out, size_t without) const {
  const auto row = space_.row(point);
  std::vector<Factor> factors;
  factors.reserve(tables_.size());
  for (size_t axis = 0; axis < tables_.size(); ++axis)
    if (axis != without && sizes_[axis] > 1)
      factors.push_back({&tables_[axis][row[axis] * sizes_[axis]], sizes_[axis], others[axis].data() + begin});
  multiply(factors, n, out);
}

std::vector<std::vector<int32_t>> GaussianProcess::values_of(const std::vector<size_t>& points) const {
  std::vector<std::vector<int32_t>> out(tables_.size(), std::vector<int32_t>(points.size()));
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
  rows_.emplace_back(row.begin(), row.end());
  ones_.push_back(one / root);
}

void GaussianProcess::factorize() {
  const size_t n = points_.size();
  Matrix matrix(n);
  std::vector<float> row(n);
  for (size_t i = 0; i < n; ++i) {
    covariances(points_[i], observed_, i, n - i, row.data());
    std::copy_n(row.begin(), n - i, matrix.row(i) + i);
    matrix.row(i)[i] = 1 + noise_;
  }
  factor_upper(matrix);
  ones_.assign(n, 1);
  solve_upper(matrix, ones_);
  for (size_t i = 0; i < n; ++i) {
    factor_[i].assign(matrix.row(i) + i, matrix.row(i) + n);
    for (size_t k = 0; k < i; ++k) rows_[i][k] = static_cast<float>(matrix.row(k)[i]);
  }
}

std::vector<double> GaussianProcess::factored(size_t point) const {
  std::vector<float> covariance(points_.size());
  covariances(point, observed_, 0, covariance.size(), covariance.data());
  std::vector<double> out(covariance.begin(), covariance.end());
  solve_lower(factor_, out);
  return out;
}

void GaussianProcess::reduce(size_t first) {
  for (size_t strip = 0; strip < reduced_.size(); ++strip)
    for (size_t i = first; i < points_.size(); ++i) {
      Strip& out = reduced_[strip].emplace_back();
      covariances(points_[i], columns_, strip * kStrip, kStrip, out.at);
      reduce_strip(i, rows_[i].data(), reduced_[strip].data(), static_cast<float>(1 / factor_[i][0]), out,
                   explained_[strip]);
    }
}

void GaussianProcess::keep(size_t n) {
  if (n >= points_.size()) return;
  points_.resize(n);
  for (std::vector<int32_t>& values : observed_) values.resize(n);
  factor_.resize(n);
  for (size_t k = 0; k < n; ++k) factor_[k].resize(n - k);
  rows_.resize(n);
  ones_.resize(n);
  for (size_t strip = 0; strip < reduced_.size(); ++strip) {
    reduced_[strip].resize(n);
    explained_[strip] = {};
    for (const Strip& row : reduced_[strip]) add_squares(row, explained_[strip]);
  }
}

void GaussianProcess::set_candidates(std::vector<size_t> candidates) {
  candidates_ = std::move(candidates);
  columns_ = values_of(candidates_);
  const size_t strips = (candidates_.size() + kStrip - 1) / kStrip;
  for (std::vector<int32_t>& column : columns_) column.resize(strips * kStrip);
  explained_.assign(strips, {});
  reduced_.assign(strips, {});
  reduce(0);
}

void GaussianProcess::replace_candidates(size_t slot, const std::vector<size_t>& points) {
  const size_t n = points_.size();
  std::vector<float> covariance(n);
  std::vector<Line> columns(n);
  for (size_t begin = 0; begin < points.size(); begin += kDoubles) {
    const size_t end = std::min(points.size(), begin + kDoubles);
    for (size_t i = begin; i < end; ++i) {
      covariances(points[i], observed_, 0, n, covariance.data());
      for (size_t k = 0; k < n; ++k) columns[k].each[i - begin] = covariance[k];
    }
    solve_lower(factor_, columns);
    for (size_t i = begin; i < end; ++i) {
      const size_t at = (slot + i) % candidates_.size();
      candidates_[at] = points[i];
      for (size_t axis = 0; axis < tables_.size(); ++axis) columns_[axis][at] = space_.row(points[i])[axis];
      float& explained = explained_[at / kStrip].at[at % kStrip] = 0;
      for (size_t k = 0; k < n; ++k) {
        const float x = reduced_[at / kStrip][k].at[at % kStrip] = static_cast<float>(columns[k].each[i - begin]);
        explained += x * x;
      }
    }
  }
}

size_t GaussianProcess::fit(const std::vector<size_t>& points, const std::vector<std::vector<double>>& alternatives) {
  const size_t n = points.size(), axes = tables_.size();
  Matrix matrix(n);
  std::vector<double> ones, reduced;
  std::vector<float> others(n * n);  // the covariances without the factor of one axis
  const std::vector<std::vector<int32_t>> values = values_of(points);
  // Minus the logarithm of the likelihood, the values' mean and variance being the likeliest ones, and of the priors.
  size_t chosen = 0;
  const auto loss = [&](size_t axis, double noise) {
    for (size_t i = 0; i < n; ++i) {
      double* const row = matrix.row(i);
      const float* const rest = &others[i * n];
      std::fill(row + i / kDoubles * kDoubles, row + i, 0);
      std::copy(rest + i, rest + n, row + i);
      if (axis < axes) {
        const float* const table = &tables_[axis][values[axis][i] * sizes_[axis]];
        for (size_t j = i; j < n; ++j) row[j] *= table[values[axis][j]];
      }
      row[i] = 1 + noise;
    }
    factor_upper(matrix);
    ones.assign(n, 1);
    reduced = alternatives[chosen];
    solve_upper(matrix, ones);
    solve_upper(matrix, reduced);
    const double mean = dot(ones, reduced) / dot(ones, ones);
    double logs = 0, squares = 1e-12;
    for (size_t i = 0; i < n; ++i) {
      logs += std::log(matrix.row(i)[i]);
      squares += square(reduced[i] - mean * ones[i]);
    }
    double prior = square(std::log(noise / kFirstNoise) / 2) / 2;
    for (const double length : lengths_) prior += square(std::log(length / kFirstLength)) / 4;
    return logs + 0.5 * static_cast<double>(n) * std::log(squares / static_cast<double>(n)) + prior;
  };
  double least = HUGE_VAL;
  for (size_t axis = 0; axis <= axes; ++axis) {  // the last one is the noise
    if (axis < axes && space_.axes()[axis].size() == 1) continue;
    for (size_t i = 0; i < n; ++i) covariances(points[i], values, 0, n, &others[i * n], axis);
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
  factorize();
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
  std::vector<float> f;
  for (size_t k = 0; k < n; ++k) f.push_back(static_cast<float>(-reduced[k]));
  const float first = static_cast<float>(mean), scale = static_cast<float>(variance);
  out.mean.resize(candidates);
  out.deviation.resize(candidates);
  for (size_t begin = 0; begin < candidates; begin += kStrip) {
    const size_t strip = begin / kStrip, size = std::min(kStrip, candidates - begin);
    Strip sum;
    std::ranges::fill(sum.at, first);
    subtract(n, f.data(), reduced_[strip].data(), sum);
    for (size_t c = 0; c < size; ++c) {
      out.mean[begin + c] = sum.at[c];
      out.deviation[begin + c] =
          std::sqrt(scale * std::max(1 + static_cast<float>(noise_) - explained_[strip].at[c], 1e-6f));
    }
  }
}

}  // namespace roofgen
