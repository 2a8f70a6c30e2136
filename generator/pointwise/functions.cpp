#include "generator/pointwise/functions.h"

#include <cmath>
#include <limits>

namespace roofgen::pointwise {
namespace {

// ---- errors ---------------------------------------------------------------------------------------
// Error bounds of instructions, from the PTX ISA ("Floating Point Instructions"), and of functions of the CUDA math
// library, from its table of maximum ulp errors. docs/use/epilogues.md derives the sums below.

constexpr double kHalfUlp = 0x1p-24;  // one fp32 rounding, relative
constexpr double kUlp = 0x1p-23;
constexpr double kTanh = 0x1p-11;      // tanh.approx.f32: relative
constexpr double kEx2 = 2 * kUlp;      // ex2.approx.ftz.f32: 2 ulp
constexpr double kRcp = kUlp;          // rcp.approx.ftz.f32: 1 ulp
constexpr double kLg2 = 0x1p-22;       // lg2.approx.f32: absolute within (0.5, 2), relative elsewhere
constexpr double kFlushed = 0x1p-126;  // .ftz flushes smaller numbers to zero
constexpr double kSqrtHalf = 0.70710678118654752440, kLn2 = 0.69314718055994530942, kLog2e = 1.44269504088896340736;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCube = 0.044715;

double none(double, double) { return 0; }
double one_ulp(double, double y) { return kUlp * std::abs(y); }
double two_ulp(double, double y) { return 2 * kUlp * std::abs(y); }

/// Relative error of ex2(x * log2e): the instruction, the rounding of the product, and that of log2e itself.
double exp_error(double x) { return kEx2 + std::abs(x) * (kHalfUlp + 0x1p-26); }

// ---- values, slopes, errors by name -----------------------------------------------------------------

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_below(double x) { return 0.5 * std::erfc(-x * kSqrtHalf); }
double inner(double x) { return kGeluScale * (x + kGeluCube * x * x * x); }

double relu(double x) { return x != x || x > 0 ? x : 0; }
double relu_slope(double x) { return x > 0 ? 1 : 0; }

double gelu(double x) { return x * normal_below(x); }
double gelu_slope(double x) { return normal_below(x) + x * kInvSqrt2Pi * std::exp(-0.5 * x * x); }
double gelu_fast_error(double x, double y) {
  constexpr double kFit = 2.6e-5;  // of 0.5 x tanh(x P(x^2)) to 0.5 x erf(x / sqrt 2)
  return 0.5 * std::abs(x * std::erf(x * kSqrtHalf)) * (kTanh + 4 * kHalfUlp) + kFit + 2 * kHalfUlp * std::abs(y);
}
double gelu_exact_error(double x, double y) {
  constexpr double kFit = 3.3e-8, kPolynomial = 8 * kHalfUlp;  // relative, of the tail q = Phi(-|x|)
  const double tail = kFit + kPolynomial + kRcp + exp_error(0.5 * x * x) + 0.5 * x * x * kHalfUlp;
  return std::abs(x) * (normal_below(-std::abs(x)) * tail + kFlushed) + 2 * kHalfUlp * std::abs(y);
}

double gelu_tanh(double x) { return x / (1 + std::exp(-2 * inner(x))); }
double gelu_tanh_slope(double x) {
  // Not by tanh: 1 + tanh cancels in the tail.
  const double z = 2 * inner(x), below = sigmoid(z), slopes = below * sigmoid(-z);
  return below + (slopes == 0 ? 0 : 2 * x * slopes * kGeluScale * (1 + 3 * kGeluCube * x * x));
}
double gelu_tanh_fast_error(double x, double y) {
  const double z = inner(x), t = std::tanh(z);
  return 0.5 * std::abs(x) * (kTanh * std::abs(t) + std::abs(z) * (1 - t * t) * 4 * kHalfUlp) +
         2 * kHalfUlp * std::abs(y);
}
double gelu_tanh_exact_error(double x, double y) {
  const double z = 2 * inner(x);
  return std::abs(y) * (sigmoid(-z) * (exp_error(z) + 3 * std::abs(z) * kHalfUlp) + kRcp + 2 * kHalfUlp) +
         std::abs(x) * kFlushed;
}

double sigmoid_slope(double x) { return sigmoid(x) * sigmoid(-x); }
double sigmoid_fast_error(double x, double y) { return 0.5 * kTanh * std::abs(std::tanh(0.5 * x)) + kHalfUlp * y; }
double sigmoid_exact_error(double x, double y) { return y * (sigmoid(-x) * exp_error(x) + kRcp + kHalfUlp) + kFlushed; }

double silu(double x) { return x / (1 + std::exp(-x)); }
double silu_slope(double x) { return sigmoid(x) * (1 + (sigmoid(-x) == 0 ? 0 : x * sigmoid(-x))); }
double silu_fast_error(double x, double y) {
  return 0.5 * std::abs(x) * kTanh * std::abs(std::tanh(0.5 * x)) + kHalfUlp * std::abs(y);
}
double silu_exact_error(double x, double y) {
  return std::abs(x) * sigmoid_exact_error(x, sigmoid(x)) + kHalfUlp * std::abs(y);
}

double hyperbolic_tangent(double x) { return std::tanh(x); }
double tanh_slope(double x) { return 1 - std::tanh(x) * std::tanh(x); }
double tanh_fast_error(double, double y) { return kTanh * std::abs(y); }

double exponential(double x) { return std::exp(x); }
double exp_fast_error(double x, double y) { return std::abs(y) * exp_error(x) + kFlushed; }
double exp_exact_error(double, double y) { return std::abs(y) * (kEx2 + 3 * kHalfUlp) + kFlushed; }

double logarithm(double x) { return std::log(x); }
double log_slope(double x) { return 1 / x; }
double log_fast_error(double, double y) {
  return kLg2 * kLn2 * std::max(1.0, std::abs(y) * kLog2e) + 2 * kHalfUlp * std::abs(y);
}

double square_root(double x) { return std::sqrt(x); }
double sqrt_slope(double x) { return 0.5 / std::sqrt(x); }

double inverse_root(double x) { return 1 / std::sqrt(x); }
double inverse_root_slope(double x) { return -0.5 / (x * std::sqrt(x)); }
double inverse_root_error(double, double y) { return 0x1p-22 * std::abs(y); }  // rsqrt.approx.f32: 2^-22.9

double absolute(double x) { return std::abs(x); }
double absolute_slope(double x) { return x < 0 ? -1 : 1; }

double error_function(double x) { return std::erf(x); }
double error_function_slope(double x) { return 2 * kSqrtHalf * kGeluScale * std::exp(-x * x); }

/// Numbers below the smallest normal one count as zero.
double reciprocal(double x) { return 1 / (std::abs(x) < kFlushed ? std::copysign(0.0, x) : x); }
double reciprocal_slope(double x) { return -1 / (x * x); }
double reciprocal_error(double, double y) { return kRcp * std::abs(y) + kFlushed; }

}  // namespace

const std::vector<Function>& functions() {
  // fp32, alu, mufu, exps. The counts of the CUDA library's erff, tanhf and logf are estimates.
  static const std::vector<Function> kFunctions = {
      {"relu", {0, 1, 0, 0}, {0, 1, 0, 0}, relu, relu_slope, none, none},
      {"gelu", {6, 1, 1, 0}, {15, 2, 2, 1}, gelu, gelu_slope, gelu_fast_error, gelu_exact_error},
      {"gelu_tanh",
       {5, 0, 1, 0},
       {5, 0, 2, 1},
       gelu_tanh,
       gelu_tanh_slope,
       gelu_tanh_fast_error,
       gelu_tanh_exact_error},
      {"silu", {2, 0, 1, 0}, {3, 0, 2, 1}, silu, silu_slope, silu_fast_error, silu_exact_error},
      {"sigmoid", {2, 0, 1, 0}, {2, 0, 2, 1}, sigmoid, sigmoid_slope, sigmoid_fast_error, sigmoid_exact_error},
      {"tanh", {0, 0, 1, 0}, {9, 4, 2, 1}, hyperbolic_tangent, tanh_slope, tanh_fast_error, two_ulp},
      {"exp", {1, 0, 1, 1}, {4, 2, 1, 1}, exponential, exponential, exp_fast_error, exp_exact_error},
      {"log", {1, 0, 1, 0}, {14, 6, 0, 0}, logarithm, log_slope, log_fast_error, two_ulp},
      {"sqrt", {0, 0, 1, 0}, {0, 0, 1, 0}, square_root, sqrt_slope, one_ulp, one_ulp},
      {"rsqrt", {0, 0, 1, 0}, {0, 0, 1, 0}, inverse_root, inverse_root_slope, inverse_root_error, inverse_root_error},
      {"abs", {0, 1, 0, 0}, {0, 1, 0, 0}, absolute, absolute_slope, none, none},
      {"erf", {12, 10, 1, 1}, {12, 10, 1, 1}, error_function, error_function_slope, two_ulp, two_ulp},
      {kReciprocal, {0, 0, 1, 0}, {0, 0, 1, 0}, reciprocal, reciprocal_slope, reciprocal_error, reciprocal_error},
  };
  return kFunctions;
}

int find_function(std::string_view name) {
  for (size_t i = 0; i < functions().size(); ++i)
    if (name == functions()[i].name) return static_cast<int>(i);
  return -1;
}

}  // namespace roofgen::pointwise
