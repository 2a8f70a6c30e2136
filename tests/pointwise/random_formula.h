// Random formulas from a grammar over the names of a GEMM's epilogue, for tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "generator/pointwise/formula.h"

namespace roofgen::test {

/// acc; bias[n], row_bias[m], residual[m,n] and gain; alpha, scale; m, n.
inline pointwise::Vocabulary epilogue_vocabulary() {
  return {.tensors = {{"bias", DType::kFp32, {"n"}},
                      {"row_bias", DType::kFp32, {"m"}},
                      {"residual", DType::kFp32, {"m", "n"}},
                      {"gain", DType::kFp32, {}}},
          .scalars = {{"alpha", 0.7}, {"scale", -1.3}},
          .no_reductions = ""};
}

class RandomFormula {
 public:
  RandomFormula(uint64_t seed, int max_reductions) : bits_(seed), reductions_(max_reductions) {}

  std::vector<pointwise::Definition> definitions() {
    std::vector<pointwise::Definition> out;
    for (int i = static_cast<int>(below(3)); i >= 0; --i) {
      out.push_back({"v" + std::to_string(i), number(3 + static_cast<int>(below(2)))});
      names_.push_back(out.back().name);
    }
    return out;
  }

 private:
  uint64_t below(uint64_t n) { return bits_() % n; }
  std::string pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  std::string leaf() {
    if (!names_.empty() && below(3) == 0) return pick(names_);
    return pick({"acc", "acc", "acc", "bias[n]", "row_bias[m]", "residual[m,n]", "gain", "alpha", "scale", "0.5", "2",
                 "-1.25", "1e-3"});
  }
  std::string whole(int depth) {
    if (depth <= 0) return pick({"m", "n", "n", "3", "7", "16"});
    switch (below(6)) {
      case 0: return "(" + whole(depth - 1) + " + " + whole(depth - 1) + ")";
      case 1: return "(" + whole(depth - 1) + " - " + whole(depth - 1) + ")";
      case 2: return "(" + whole(depth - 1) + " * " + whole(0) + ")";
      case 3: return "(" + whole(depth - 1) + " // " + pick({"2", "3", "8", "-5"}) + ")";
      case 4: return "(" + whole(depth - 1) + " % " + pick({"2", "3", "8", "-5"}) + ")";
      default: return pick({"min", "max"}) + "(" + whole(depth - 1) + ", " + whole(depth - 1) + ")";
    }
  }
  std::string condition(int depth) {
    switch (below(5)) {
      case 0: return whole(1) + pick({" < ", " <= ", " == ", " != ", " > ", " >= "}) + whole(1);
      case 1: return "0 <= " + whole(1) + " < 40";
      case 2:
        return depth > 0 ? "(" + condition(depth - 1) + pick({" and ", " or "}) + condition(depth - 1) + ")"
                         : "acc > 0";
      case 3: return depth > 0 ? "not (" + condition(depth - 1) + ")" : "n > m";
      default: return number(depth - 1) + pick({" < ", " >= "}) + number(depth - 1);
    }
  }
  /// Arguments of functions with an edge stay away from the edge, where the first-order error is meaningless.
  std::string number(int depth) {
    if (depth <= 0) return leaf();
    if (reductions_ > 0 && below(8) == 0) {
      --reductions_;
      return pick({"sum", "mean", "amax", "max", "min"}) + "(" + number(depth - 1) + ")";
    }
    const std::string a = number(depth - 1);
    switch (below(16)) {
      case 0:
      case 1: return "(" + a + " + " + number(depth - 1) + ")";
      case 2: return "(" + a + " - " + number(depth - 1) + ")";
      case 3:
      case 4: return "(" + a + " * " + number(depth - 1) + ")";
      case 5: return "(" + a + " / (abs(" + number(depth - 1) + ") + 0.5))";
      case 6:
      case 7: return pick({"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "erf", "abs"}) + "(" + a + ")";
      case 8: return "exp(min(" + a + ", 3))";
      case 9: return pick({"log", "rsqrt", "sqrt"}) + "(abs(" + a + ") + 0.25)";
      case 10: return "clamp(" + a + ", -1.5, " + pick({"2", "alpha + 3"}) + ")";
      case 11: return pick({"min", "max"}) + "(" + a + ", " + number(depth - 1) + ")";
      case 12: return "(" + a + " if " + condition(1) + " else " + number(depth - 1) + ")";
      case 13: return "cast(" + a + ", \"" + pick({"bf16", "fp16", "fp8", "int8"}) + "\")";
      case 14: return "(-" + a + ")";
      default: return "(" + a + " * " + whole(2) + " / 64.0)";
    }
  }

  std::mt19937_64 bits_;
  int reductions_;
  std::vector<std::string> names_;
};

}  // namespace roofgen::test
