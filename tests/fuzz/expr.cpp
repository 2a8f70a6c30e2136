// Arbitrary bytes as an expression: an Error or a Value, never a crash, and all entry points agree.
#include "generator/expr/expr.h"

#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_expr {
FUZZ_TARGET(expr) {
  using namespace expr;
  static const Map kScope{{"a", 3},
                          {"b", -7},
                          {"f", 0.5},
                          {"s", "xyz"},
                          {"p", true},
                          {"n", Value()},
                          {"xs", List{1, 2, List{3, "q"}}},
                          {"m", Map{{"k", 5}, {"l", List{1}}}}};
  const auto e = Expr::parse({reinterpret_cast<const char*>(data), size});
  if (!e) {
    if (e.error().message.empty()) std::abort();
    return 0;
  }
  e->names();
  const auto value = e->eval(kScope);
  std::string why;
  const auto holds = e->check(kScope, &why);
  if (value) value->str();
  if (value && holds && value->truthy() != *holds) std::abort();
  if (holds && !*holds && why.empty()) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_expr
