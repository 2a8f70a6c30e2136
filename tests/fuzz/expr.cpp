// Arbitrary bytes as an expression: an Error or a Value, never a crash, and all entry points agree.
#include "generator/expr/expr.h"

#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/scope.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_expr {
FUZZ_TARGET(expr) {
  using namespace expr;
  const auto e = Expr::parse({reinterpret_cast<const char*>(data), size});
  if (!e) {
    if (e.error().message.empty()) std::abort();
    return 0;
  }
  e->names();
  const auto value = e->eval(fuzz_scope());
  std::string why;
  const auto holds = e->check(fuzz_scope(), &why);
  if (value) value->str();
  if (value && holds && value->truthy() != *holds) std::abort();
  if (holds && !*holds && why.empty()) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_expr
