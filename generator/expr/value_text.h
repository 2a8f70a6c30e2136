#pragma once

#include <string>

#include "generator/expr/expr.h"

namespace roofgen::expr {

/// Appends Python's str(v); false once `out` is longer than `limit`, with `out` cut anywhere.
bool append_text(const Value& v, std::string& out, size_t limit);

}  // namespace roofgen::expr
