#pragma once

#include <string>

#include "generator/expr/expr.h"

namespace roofgen::expr {

/// Appends Python's str(v); false if `out` exceeds `limit`, with an unspecified part of the text in `out`.
bool append_text(const Value& v, std::string& out, size_t limit);

}  // namespace roofgen::expr
