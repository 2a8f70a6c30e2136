// The operations of a Llama block in double precision. Each result has the standard deviation of the error that correct
// kernels make, by the rules of docs/internals/verification.md carried from operation to operation.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../device.h"

/// A matrix before it is rounded, and the variance of each element's error.
struct Field {
  size_t cols = 0;
  std::vector<double> value, variance;
  Field(size_t rows, size_t columns) : cols(columns), value(rows * columns), variance(rows * columns) {}
  /// Inputs are as they are.
  Field(const Tensor& x, size_t columns) : Field(x.values.size() / columns, columns) {
    std::copy(x.values.begin(), x.values.end(), value.begin());
  }
  size_t rows() const { return value.size() / cols; }
};

constexpr double kFp32 = 0x1p-24, kBf16 = 0x1p-8;  ///< the largest relative errors of one rounding
constexpr double kDeviations = 6;                  ///< that an error stays below
constexpr double square(double x) { return x * x; }
/// The largest variance of an error that is at most `bound`.
constexpr double bounded(double bound) { return square(bound) / 3; }

/// The distance between neighbours of x in bf16.
inline double ulp(double x) {
  return std::ldexp(1.0, std::max(std::ilogb(std::max(std::fabs(x), std::numeric_limits<double>::min())), -126) - 7);
}
inline double round_bf16(double x) { return std::nearbyint(x / ulp(x)) * ulp(x); }

/// The error that a kernel's output may have: half an ulp of its rounding, and the errors before.
inline double tolerance(const Field& f, size_t i) {
  const double errors = kDeviations * std::sqrt(f.variance[i]);
  return ulp(std::fabs(f.value[i]) + errors) / 2 + errors;
}

/// As the next kernel reads it. Only near a tie may a kernel round to the other neighbour, with a probability of at
/// most 1/2; elsewhere rounding hides the error.
inline Field rounded(Field f) {
  for (size_t i = 0; i < f.value.size(); ++i) {
    const double x = f.value[i], errors = kDeviations * std::sqrt(f.variance[i]);
    f.value[i] = round_bf16(x);
    const bool hidden = round_bf16(x - errors) == round_bf16(x + errors);
    f.variance[i] = hidden ? 0 : f.variance[i] + square(ulp(x)) / 2;
  }
  return f;
}

/// Stored between two kernels, where the other form stores nothing: the rounding is an error.
inline Field stored(Field f) {
  for (size_t i = 0; i < f.value.size(); ++i) f.variance[i] += square(ulp(f.value[i])) / 12;
  return f;
}

/// Of a sum of n products in fp32 by tensor cores, with 16 products in a step; `squares` is the sum of their squares.
inline double sum_variance(size_t n, double squares) {
  const double terms = static_cast<double>(n);
  return square(kFp32 * (2.0 / 3 * terms / 16 + std::sqrt(terms / 6) + 1)) * squares;
}

inline Field rmsnorm(const Field& x, const Field& weight, double eps) {
  Field out(x.rows(), x.cols);
  const double n = static_cast<double>(x.cols);
  // The sum of squares of one sign (docs/use/epilogues.md) under a root, rsqrt.approx, three products.
  const double relative = (std::max(64.0, std::sqrt(n)) / 2 + std::log2(n)) / 2 * kFp32 + 0x1p-22 + 3 * kFp32;
  for (size_t row = 0; row < x.rows(); ++row) {
    const double *v = &x.value[row * x.cols], *variance = &x.variance[row * x.cols];
    double squares = 0, common = 0;
    for (size_t i = 0; i < x.cols; ++i) squares += v[i] * v[i], common += v[i] * v[i] * variance[i];
    const double r = 1 / std::sqrt(squares / n + eps);
    for (size_t i = 0; i < x.cols; ++i) {
      const double y = v[i] * r * weight.value[i];
      out.value[row * x.cols + i] = y;
      // dy = w r (dx - x r^2 mean(x dx))
      out.variance[row * x.cols + i] =
          square(weight.value[i] * r) * (variance[i] + square(v[i] * r * r / n) * common) + bounded(relative * y);
    }
  }
  return out;
}

/// A row of `weight` has the factors of a column of the result.
inline Field product(const Field& a, const Field& weight) {
  Field out(a.rows(), weight.rows());
  for (size_t m = 0; m < a.rows(); ++m)
    for (size_t n = 0; n < weight.rows(); ++n) {
      double sum = 0, squares = 0, variance = 0;
      for (size_t k = 0; k < a.cols; ++k) {
        const double w = weight.value[n * a.cols + k], p = a.value[m * a.cols + k] * w;
        sum += p;
        squares += p * p;
        variance += a.variance[m * a.cols + k] * w * w;
      }
      out.value[m * out.cols + n] = sum;
      out.variance[m * out.cols + n] = variance + sum_variance(a.cols, squares);
    }
  return out;
}

inline Field sum(Field a, const Field& b) {
  for (size_t i = 0; i < a.value.size(); ++i) {
    a.value[i] += b.value[i];
    a.variance[i] += b.variance[i] + bounded(kFp32 * a.value[i]);
  }
  return a;
}

/// silu of the even columns times the odd ones.
inline Field swiglu(const Field& x) {
  Field out(x.rows(), x.cols / 2);
  for (size_t i = 0; i < out.value.size(); ++i) {
    const double gate = x.value[2 * i], up = x.value[2 * i + 1], sigmoid = 1 / (1 + std::exp(-gate));
    const double silu = gate * sigmoid, slope = sigmoid * (1 + gate * (1 - sigmoid));
    // silu = gate/2 + gate/2 tanh(gate/2), with tanh.approx: 2^-11 of the tanh
    const double approximation = 0x1p-12 * gate * std::tanh(gate / 2);
    out.value[i] = silu * up;
    out.variance[i] = square(slope * up) * x.variance[2 * i] + square(silu) * x.variance[2 * i + 1] +
                      bounded(approximation * up) + bounded(2 * kFp32 * silu * up);
  }
  return out;
}

struct Heads {
  size_t heads, kv_heads, d;
  double rotary_base, scale;
  size_t columns() const { return (heads + 2 * kv_heads) * d; }
};

/// `count` heads of columns from `first` on, with column i and i + d/2 turned by the row's position, and rounded again.
inline Field rotary(const Field& qkv, size_t first, size_t count, const Heads& h) {
  Field out(qkv.rows(), count * h.d);
  for (size_t row = 0; row < out.rows(); ++row)
    for (size_t column = 0; column < out.cols; ++column) {
      const size_t i = column % h.d, pair = i % (h.d / 2), from = row * qkv.cols + first + column - i + pair;
      const double angle =
          static_cast<double>(row) * std::pow(h.rotary_base, -2 * static_cast<double>(pair) / static_cast<double>(h.d));
      const double c = std::cos(angle), s = std::sin(angle);
      const double x = qkv.value[from], y = qkv.value[from + h.d / 2];
      const double var_x = qkv.variance[from], var_y = qkv.variance[from + h.d / 2];
      const size_t at = row * out.cols + column;
      out.value[at] = i == pair ? x * c - y * s : x * s + y * c;
      out.variance[at] = (i == pair ? c * c * var_x + s * s * var_y : s * s * var_x + c * c * var_y) +
                         bounded(0x1p-19 * std::hypot(x, y));  // of angle, sine and cosine
    }
  return rounded(std::move(out));
}

/// Causal, with one head of K and V for heads / kv_heads of Q. `scores_stored`: rounded between two kernels.
inline Field attention(const Field& qkv, const Heads& h, bool scores_stored) {
  const Field q = rotary(qkv, 0, h.heads, h), k = rotary(qkv, h.heads * h.d, h.kv_heads, h);
  Field out(qkv.rows(), h.heads * h.d);
  std::vector<double> p(qkv.rows()), variance(qkv.rows());
  for (size_t head = 0; head < h.heads; ++head)
    for (size_t row = 0; row < qkv.rows(); ++row) {
      const size_t kv_head = head / (h.heads / h.kv_heads), keys = row + 1;
      double most = -std::numeric_limits<double>::infinity(), total = 0;
      for (size_t key = 0; key < keys; ++key) {
        double score = 0, squares = 0, inputs = 0;
        for (size_t i = 0; i < h.d; ++i) {
          const size_t a = row * q.cols + head * h.d + i, b = key * k.cols + kv_head * h.d + i;
          score += q.value[a] * k.value[b];
          squares += square(q.value[a] * k.value[b]);
          inputs += square(q.value[a]) * k.variance[b] + q.variance[a] * square(k.value[b]);
        }
        p[key] = h.scale * score;
        variance[key] =
            square(h.scale) * (inputs + sum_variance(h.d, squares)) + (scores_stored ? bounded(kBf16 * p[key]) : 0);
        most = std::max(most, p[key]);
      }
      for (size_t key = 0; key < keys; ++key) total += p[key] = std::exp(p[key] - most);
      for (size_t i = 0; i < h.d; ++i) {
        const auto v = [&](size_t key) { return key * qkv.cols + (h.heads + h.kv_heads + kv_head) * h.d + i; };
        double o = 0, squares = 0, errors = 0;
        for (size_t key = 0; key < keys; ++key) o += p[key] / total * qkv.value[v(key)];
        for (size_t key = 0; key < keys; ++key) {
          const double term = p[key] / total * qkv.value[v(key)];
          squares += square(term);
          errors += square(p[key] / total) * (qkv.variance[v(key)] + variance[key] * square(qkv.value[v(key)] - o));
        }
        const size_t at = row * out.cols + head * h.d + i;
        out.value[at] = o;
        out.variance[at] = errors + bounded(kBf16) * squares + sum_variance(keys, squares);  // p is rounded to bf16
      }
    }
  return out;
}
