// The functions of one argument, in one table: name, work, reference, derivative, and the error of what
// templates/lib/pointwise.cuh computes. There each is called <name>_fast and <name>_exact.
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
  /// A bound of the error of the kernel's result at an exact x, y = value(x).
  double (*fast_error)(double x, double y);
  double (*exact_error)(double x, double y);
};

const std::vector<Function>& functions();
/// Its place in the table, -1 when there is none.
int find_function(std::string_view name);

/// Divisors are replaced by reciprocals; users have no name for this one.
inline constexpr const char* kReciprocal = "rcp";

}  // namespace roofgen::pointwise
