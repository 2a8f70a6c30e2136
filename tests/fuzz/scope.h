// The variables of the fuzzed expressions and templates.
#pragma once

#include "generator/expr/expr.h"

namespace roofgen {

inline const expr::Map& fuzz_scope() {
  using namespace expr;
  static const Map kScope{{"a", 3},
                          {"b", -7},
                          {"f", 0.5},
                          {"s", "xyz"},
                          {"p", true},
                          {"n", Value()},
                          {"xs", List{1, 2, List{3, "q"}}},
                          {"m", Map{{"k", 5}, {"l", List{1}}}}};
  return kScope;
}

}  // namespace roofgen
