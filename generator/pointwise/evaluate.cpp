// The reference: the definitions as written, in double precision, with the error of a correct kernel. It does not use
// phases or the carried value x.
//
// Every value has its derivative by the element's source, so that two uses of the source have correlated errors, and
// the variance of all other errors, which count as independent. Each fp32 operation adds one rounding. An error bounded
// by b has a standard deviation of at most b / sqrt 3 (uniform distribution).
#include <algorithm>
#include <cmath>
#include <limits>

#include "generator/pointwise/body.h"
#include "generator/pointwise/functions.h"

namespace roofgen::pointwise {
namespace {

// Elements evaluated at a time. A row that is reduced and has no more than kKept is evaluated as a whole, each
// operation once; a longer one again for each reduction and for the outputs.
constexpr size_t kBlock = 1024, kKept = 8192;
constexpr double kReach = 6;  // standard deviations that may flip a comparison
constexpr double kThird = 1.0 / 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// From this magnitude on an fp32 result rounds to infinity.
constexpr double kOverflow = 0x1.ffffffp127;

double square(double v) { return v * v; }

/// One value with its errors. Conditions are 0 and 1; a variance above 0 means that errors may flip the condition.
struct Number {
  double value = 0, slope = 0, variance = 0;
};

/// Values along a row; a single one if all are equal.
struct Numbers {
  std::vector<double> value, slope, variance;
  void resize(size_t n) {
    value.resize(n);
    slope.resize(n);
    variance.resize(n);
  }
  Number operator[](size_t i) const {
    i = value.size() == 1 ? 0 : i;
    return {value[i], slope[i], variance[i]};
  }
  void set(size_t i, const Number& n) {
    value[i] = n.value;
    slope[i] = n.slope;
    variance[i] = n.variance;
  }
};

/// The result of an fp32 operation with an error of at most `bound` in addition to its rounding to fp32.
inline Number rounded(Number n, double bound = 0) {
  if (std::abs(n.value) >= kOverflow) n.value = std::copysign(kInfinity, n.value);
  // Infinities are exact; results derived from them (exp of minus infinity) inherit no error.
  n.variance =
      std::isfinite(n.value) ? n.variance + kThird * square(0x1p-24 * std::abs(n.value) + bound + 0x1p-150) : 0;
  return n;
}

/// The error of f(x) = y in the kernel. Of an infinite x, y is exact; the formulas of errors are not defined there.
double error_of(const Function& f, bool fast, double x, double y) {
  return std::isinf(x) ? 0 : fast ? f.fast_error(x, y) : f.exact_error(x, y);
}

/// Rounds to `bits` of significand (the leading one counts) above the exponent of the smallest normal number.
double round_to(double v, int bits, int min_exponent) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(v), min_exponent) - bits + 1);
  return std::nearbyint(v / unit) * unit;
}

double cast(double v, DType dtype) {
  switch (dtype) {
    case DType::kBf16: {
      const double r = round_to(v, 8, -126);
      return std::abs(r) >= 0x1p128 ? std::copysign(kInfinity, r) : r;
    }
    case DType::kFp16: {
      const double r = round_to(v, 11, -14);
      return std::abs(r) > 65504 ? std::copysign(kInfinity, r) : r;
    }
    case DType::kFp8: return v != v ? v : std::clamp(round_to(v, 4, -6), -448.0, 448.0);
    case DType::kInt8: return v != v ? v : std::nearbyint(std::clamp(v, -128.0, 127.0));
    default: return v;
  }
}

class RowEvaluator {
 public:
  RowEvaluator(const Body& body, std::span<const Estimate> source, std::span<const int64_t> row, int64_t first_col,
               const TensorReader& read)
      : body_(body),
        source_(source),
        row_(row),
        first_col_(first_col),
        read_(read),
        keeps_(!body.phases.empty() && source.size() <= kKept),
        block_(keeps_ ? source.size() : kBlock),
        numbers_(static_cast<size_t>(body.graph.size())),
        totals_(numbers_.size()) {}

  std::vector<std::vector<Estimate>> run() {
    for (const Phase& phase : body_.phases) reduce(phase);
    std::vector<std::vector<Estimate>> out(body_.outputs.size());
    std::vector<int> per_row, per_element;
    for (size_t i = 0; i < out.size(); ++i)
      (body_.outputs[i].per_row ? per_row : per_element).push_back(body_.planned[i].value);
    for (size_t i = 0; i < out.size(); ++i) out[i].reserve(body_.outputs[i].per_row ? 1 : source_.size());
    const std::vector<int> order = operations(per_element);
    for (size_t begin = 0; begin < source_.size() && !order.empty(); begin += block_) {
      const size_t count = std::min(block_, source_.size() - begin);
      compute(order, begin, count);
      for (size_t i = 0; i < out.size(); ++i)
        for (size_t j = 0; j < count && !body_.outputs[i].per_row; ++j) {
          const Number n = numbers_[static_cast<size_t>(body_.planned[i].value)][j];
          out[i].push_back({n.value, deviation(n, begin + j)});
        }
    }
    if (!per_row.empty()) compute(operations(per_row), 0, 1);
    for (size_t i = 0; i < out.size(); ++i)
      if (body_.outputs[i].per_row) {
        const Number n = numbers_[static_cast<size_t>(body_.planned[i].value)][0];
        out[i].push_back({n.value, std::sqrt(n.variance)});
      }
    return out;
  }

 private:
  std::vector<int> operations(const std::vector<int>& roots) const {
    const std::set<int> all = body_.below(roots, [&](int i) { return body_[i].code == Code::kReduce; });
    return {all.begin(), all.end()};
  }
  double deviation(const Number& n, size_t element) const {
    return std::sqrt(square(n.slope == 0 ? 0 : n.slope * source_[element].sigma) + n.variance);
  }

  void reduce(const Phase& phase) {
    const Reduce kind = static_cast<Reduce>(body_[phase.reduce].which);
    const int term = body_.term(phase);
    const std::vector<int> order = operations({term});
    const double sign = kind == Reduce::kMin ? -1 : 1;
    double total = 0, squares = 0, variance = 0;                   // of a sum
    double best = -kInfinity, best_sigma = 0, reach = -kInfinity;  // of a maximum
    for (size_t begin = 0; begin < source_.size(); begin += block_) {
      const size_t count = std::min(block_, source_.size() - begin);
      compute(order, begin, count);
      for (size_t j = 0; j < count; ++j) {
        const Number n = numbers_[static_cast<size_t>(term)][j];
        const double sigma = deviation(n, begin + j), v = sign * n.value;
        total += n.value;
        squares += square(n.value);
        variance += square(sigma);
        if (v > best || v != v) best = v, best_sigma = sigma;
        if (v != v) reach = best;
        reach = std::max(reach, v + kReach * sigma);
        if (best != best) break;
      }
      if (kind != Reduce::kSum && best != best) break;
    }
    Number out{total, 0, variance};
    if (kind == Reduce::kSum) {
      // A thread adds up to L terms in order, and P threads combine their sums in a tree: P L = n, L <= max(64, sqrt
      // n). Each addition rounds a partial sum. For equal terms the partial sums add up to (L / 2 + log2 n) total, and
      // all roundings have the same sign: a bound. For terms of random sign the squares of the partial sums add up to
      // the same factor times sum t^2.
      const double n = static_cast<double>(source_.size()),
                   levels = 0.5 * std::max(64.0, std::sqrt(n)) + std::log2(n + 1);
      out.variance += square(0x1p-24 * levels * total / kReach) + kThird * square(0x1p-24) * levels * squares;
      if (std::abs(out.value) >= kOverflow) out.value = std::copysign(kInfinity, out.value);
    } else {
      out = {sign * best, 0, square(std::isfinite(best) ? std::max(best_sigma, (reach - best) / kReach) : 0)};
    }
    totals_[static_cast<size_t>(phase.reduce)] = out;
  }

  void compute(const std::vector<int>& order, size_t begin, size_t count) {
    for (int i : order) {
      const Operation& op = body_[i];
      Numbers& out = numbers_[static_cast<size_t>(i)];
      if (keeps_ && !out.value.empty()) continue;
      const size_t size = op.along_row ? count : 1;
      out.resize(size);
      if (op.code == Code::kTensor) {
        read_(body_.vocabulary.tensors[static_cast<size_t>(op.which)], row_, first_col_ + static_cast<int64_t>(begin),
              out.value);
        std::fill(out.slope.begin(), out.slope.end(), 0);
        std::fill(out.variance.begin(), out.variance.end(), 0);
      } else if (op.args[0] < 0) {
        for (size_t j = 0; j < size; ++j) out.set(j, leaf(i, begin + j));
      } else if (op.code == Code::kReduce) {
        out.set(0, totals_[static_cast<size_t>(i)]);
      } else if (op.type == Type::kFloat && op.code == Code::kAdd) {
        combine(op, out, [](const Number& a, const Number& b) { return sum(a, b); });
      } else if (op.type == Type::kFloat && op.code == Code::kMul && op.args[0] != op.args[1]) {
        combine(op, out, [](const Number& a, const Number& b) {
          return product(a, b, square(b.value) * a.variance + square(a.value) * b.variance);
        });
      } else {
        for (size_t j = 0; j < size; ++j) {
          Number args[3];
          for (size_t k = 0; k < 3 && op.args[k] >= 0; ++k) args[k] = numbers_[static_cast<size_t>(op.args[k])][j];
          out.set(j, apply(op, args, begin + j));
        }
      }
    }
  }

  /// The frequent operations, each with a loop of its own.
  template <class F>
  void combine(const Operation& op, Numbers& out, F f) const {
    const Numbers &a = numbers_[static_cast<size_t>(op.args[0])], &b = numbers_[static_cast<size_t>(op.args[1])];
    for (size_t j = 0; j < out.value.size(); ++j) out.set(j, f(a[j], b[j]));
  }
  static Number sum(const Number& a, const Number& b) {
    return rounded({a.value + b.value, a.slope + b.slope, a.variance + b.variance});
  }
  static Number product(const Number& a, const Number& b, double variance) {
    return rounded({a.value * b.value, a.slope * b.value + b.slope * a.value, variance});
  }

  /// A value that the kernel holds in fp32.
  static Number constant(double v) {
    return {v, 0, kThird * square(std::abs(v - static_cast<double>(static_cast<float>(v))))};
  }

  Number leaf(int i, size_t element) const {
    const Operation& op = body_[i];
    switch (op.code) {
      case Code::kSource: return {source_[element].value, 1, 0};
      case Code::kScalar:
        return constant(body_.vocabulary.scalars.at(body_.scalar_names[static_cast<size_t>(op.which)]));
      case Code::kInverseCols: return rounded({1.0 / static_cast<double>(source_.size()), 0, 0});
      case Code::kIndex:
        if (static_cast<size_t>(op.which) < row_.size())
          return {static_cast<double>(row_[static_cast<size_t>(op.which)]), 0, 0};
        return {static_cast<double>(first_col_ + static_cast<int64_t>(element)), 0, 0};
      default: return op.type == Type::kFloat ? constant(op.number) : Number{op.number, 0, 0};
    }
  }

  /// An integer; beyond 32 bits it has no defined value in the kernel, and none here.
  static Number whole(double v) { return {std::abs(v) < 0x1p31 ? v : kNaN, 0, 0}; }

  /// The result of an operation on integers of data, which wraps.
  static Number wrapped(int64_t v) {
    return {static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(v))), 0, 0};
  }
  static Number wrapping(Code code, double x, double y) {
    if (x != x || y != y) return {kNaN, 0, 0};
    const auto a = static_cast<int64_t>(x), b = static_cast<int64_t>(y);
    return wrapped(code == Code::kNeg ? -a : code == Code::kAdd ? a + b : code == Code::kSub ? a - b : a * b);
  }

  /// A comparison of a and b; the error of their difference may flip it.
  Number compared(bool holds, const Number& a, const Number& b, size_t element) const {
    const Number difference{a.value - b.value, a.slope - b.slope, a.variance + b.variance};
    const double sigma = deviation(difference, element);
    return {holds ? 1.0 : 0.0, 0, sigma > 0 && std::abs(difference.value) <= kReach * sigma ? square(1 / kReach) : 0.0};
  }

  /// min or max: where errors may swap the two, the result may have the error of either.
  Number either(const Number& chosen, const Number& other, double distance, size_t element) const {
    const double sigma = std::max(deviation(chosen, element), deviation(other, element));
    if (!(distance <= kReach * 2 * sigma)) return chosen;
    return {chosen.value, 0, square(sigma)};
  }

  Number extreme(const Number& a, const Number& b, bool is_max, bool is_float, size_t element) const {
    if (a.value != a.value || b.value != b.value) return {kNaN, 0, 0};
    const bool first = is_max ? a.value >= b.value : a.value <= b.value;
    const Number& chosen = first ? a : b;
    return is_float ? either(chosen, first ? b : a, std::abs(a.value - b.value), element) : chosen;
  }

  Number call(const Function& f, bool exact, const Number& x, size_t element) const {
    const double y = f.value(x.value), slope = f.slope(x.value);
    const double bound = error_of(f, !exact, x.value, y);
    if (!std::isfinite(slope)) {  // at the edge of a root or at a pole: the values within reach of the errors
      const double sigma = deviation(x, element);
      return rounded({y, 0, sigma > 0 ? square(f.value(x.value + sigma) - y) : 0}, bound);
    }
    const bool is_exact = std::string_view(f.name) == "abs" || std::string_view(f.name) == "relu";
    const Number out{y, slope * x.slope, square(slope) * x.variance};
    if (std::string_view(f.name) == "relu") return extreme(x, {0, 0, 0}, true, true, element);
    return is_exact ? out : rounded(out, bound);
  }

  Number select(const Number& test, const Number& yes, const Number& no, size_t element) const {
    const Number& chosen = test.value != 0 ? yes : no;
    if (test.variance == 0) return chosen;
    // Both values are correct, and no others: their distance is a bound.
    const double sigma =
        std::max(deviation(yes, element), deviation(no, element)) + std::abs(yes.value - no.value) / kReach;
    return {chosen.value, 0, square(sigma)};
  }

  Number apply(const Operation& op, const Number (&arg)[3], size_t element) const {
    const Number &a = arg[0], &b = arg[1];
    const bool is_float = op.type == Type::kFloat, floats = body_[op.args[0]].type == Type::kFloat;
    const bool arithmetic =
        op.code == Code::kNeg || op.code == Code::kAdd || op.code == Code::kSub || op.code == Code::kMul;
    if (op.type == Type::kInt && op.of_data && arithmetic) return wrapping(op.code, a.value, b.value);
    switch (op.code) {
      case Code::kConvert: return is_float && std::abs(a.value) > 0x1p24 ? rounded(a) : a;
      case Code::kNeg: return {-a.value, -a.slope, a.variance};
      case Code::kAdd: return is_float ? sum(a, b) : whole(a.value + b.value);
      case Code::kSub:
        return is_float ? rounded({a.value - b.value, a.slope - b.slope, a.variance + b.variance})
                        : whole(a.value - b.value);
      case Code::kMul: {
        if (!is_float) return whole(a.value * b.value);
        const bool square_of_one = op.args[0] == op.args[1];
        // With an error e, the square of a differs by 2 a e + e^2.
        const double variance = square_of_one ? (4 * square(a.value) + 3 * a.variance) * a.variance
                                              : square(b.value) * a.variance + square(a.value) * b.variance;
        return product(a, b, variance);
      }
      case Code::kFloorDiv: return whole(std::floor(a.value / b.value));
      case Code::kMod: return whole(a.value - std::floor(a.value / b.value) * b.value);
      case Code::kLess: return compared(a.value < b.value, a, b, element);
      case Code::kLessEqual: return compared(a.value <= b.value, a, b, element);
      case Code::kEqual: return compared(a.value == b.value, a, b, element);
      case Code::kNotEqual: return compared(a.value != b.value, a, b, element);
      case Code::kNot: return {a.value != 0 ? 0.0 : 1.0, 0, a.variance};
      case Code::kAnd:
      case Code::kOr: {
        // A single certain operand may decide.
        const double decides = op.code == Code::kAnd ? 0 : 1;
        if ((a.variance == 0 && a.value == decides) || (b.variance == 0 && b.value == decides)) return {decides, 0, 0};
        return {op.code == Code::kAnd ? a.value * b.value : std::max(a.value, b.value), 0,
                std::max(a.variance, b.variance)};
      }
      case Code::kSelect: return select(a, b, arg[2], element);
      case Code::kMin: return extreme(a, b, false, is_float, element);
      case Code::kMax: return extreme(a, b, true, is_float, element);
      case Code::kCall: return call(functions()[static_cast<size_t>(op.which)], op.exact, a, element);
      case Code::kCast: {
        const DType dtype = static_cast<DType>(op.which);
        const double v = cast(a.value, dtype), reach = kReach * deviation(a, element);
        if (!floats || !(reach > 0)) return {v, 0, 0};
        // The same rounded value, unless the errors cross the midpoint between two.
        const double low = cast(a.value - reach, dtype), high = cast(a.value + reach, dtype);
        return {v, 0, low == high ? 0 : square(std::max(high - v, v - low) / kReach)};
      }
      default: return {};
    }
  }

  const Body& body_;
  const std::span<const Estimate> source_;
  const std::span<const int64_t> row_;
  const int64_t first_col_;
  const TensorReader& read_;
  const bool keeps_;  ///< what was computed, for the whole row
  const size_t block_;
  std::vector<Numbers> numbers_;
  std::vector<Number> totals_;
};

}  // namespace

std::vector<std::vector<Estimate>> Formula::evaluate(std::span<const Estimate> source, std::span<const int64_t> row,
                                                     int64_t first_col, const TensorReader& read) const {
  return RowEvaluator(*body_, source, row, first_col, read).run();
}

Estimate apply(std::string_view function, const Estimate& x, bool fast) {
  const int which = find_function(function);
  if (which < 0) return {kNaN, 0};
  const Function& f = functions()[static_cast<size_t>(which)];
  // Errors that may move x across the kink of relu pass through.
  const bool turns = std::string_view(f.name) == "relu" && std::abs(x.value) <= kReach * x.sigma;
  const double y = f.value(x.value), slope = turns ? 1 : f.slope(x.value);
  const Number own = rounded({y, 0, 0}, error_of(f, fast, x.value, y));
  return {own.value, std::sqrt(own.variance + (std::isfinite(slope) ? square(slope * x.sigma) : 0))};
}

}  // namespace roofgen::pointwise
