// Translates an expression to C, for emitted code that evaluates it at each launch.
#pragma once

#include <functional>
#include <string>

#include "generator/expr/expr.h"

namespace roofgen::expr {

struct CCode {
  std::string text;
  bool constant = false;  ///< no variable name in it: `text` is a number
};

/// The C text of a variable name; "" for a name with the constant value of the scope.
using CNames = std::function<Result<std::string>(const std::string& name)>;

/// Variable names are 64-bit integers and never negative, so that C's / and % agree with the language's. min, max,
/// ceil_div and align_up become calls of roofgen_min, roofgen_max and roofgen_ceil_div. An expression without a C form
/// is an error.
Result<CCode> to_c(const Expr& e, const Map& scope, const CNames& names);

/// Whether `code`, C or an expression, has this word.
bool has_word(const std::string& code, const std::string& word);

}  // namespace roofgen::expr
