// An expression as C: for code that computes at each launch what was computed once when a kernel was tuned.
#pragma once

#include <functional>
#include <string>

#include "generator/expr/expr.h"

namespace roofgen::expr {

struct CCode {
  std::string text;
  bool constant = false;  ///< nothing in it varies: `text` is a number
};

/// What stands in C for a name that varies; "" when the name is as constant as its value in the scope.
using CNames = std::function<Result<std::string>(const std::string& name)>;

/// Names that vary are whole numbers of 64 bits, none of them negative (so that C's / and % are those of the language).
/// min, max, ceil_div and align_up become calls of roofgen_min, roofgen_max and roofgen_ceil_div. What has no C form is
/// an error.
Result<CCode> to_c(const Expr& e, const Map& scope, const CNames& names);

}  // namespace roofgen::expr
