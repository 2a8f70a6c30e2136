// The table of functions of one argument: name, work, reference, derivative, and the error of the implementations
// <name>_fast and <name>_exact in templates/lib/pointwise.cuh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/pointwise/formula.h"

namespace roofgen::pointwise {

/// fp32, alu and mufu (of them ex2) instructions of one call, counted on the text of pointwise.cuh.
struct Work {
  double fp32 = 0, alu = 0, mufu = 0, exps = 0;
};

struct Function {
  const char* name;
  Work fast, exact;
  double (*value)(double x);
  double (*slope)(double x);
  /// A bound on the error of the kernel's result y = value(x) at an exact x.
  double (*fast_error)(double x, double y);
  double (*exact_error)(double x, double y);
};

const std::vector<Function>& functions();
/// Its place in the table, -1 when there is none.
int find_function(std::string_view name);

/// Reciprocals replace divisors; this function has no name for users.
inline constexpr const char* kReciprocal = "rcp";

}  // namespace roofgen::pointwise
