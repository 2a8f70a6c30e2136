// Expressions that are evaluated for many points: names are numbers, and what is constant has been evaluated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generator/expr/expr.h"

namespace roofgen::expr {

class BoundExpr {
 public:
  /// `variables`: the names that vary, with their places in the values of eval(). All others are those of `constants`.
  BoundExpr(const Expr& e, const std::map<std::string, size_t>& variables, const Map& constants);
  /// Places of the variables that the result depends on, ascending.
  const std::vector<size_t>& variables() const { return variables_; }
  /// Nothing: the evaluation fails; Expr::eval says why. `steps` counts what it took.
  std::optional<Value> eval(const std::vector<Value>& values, uint64_t& steps) const;

 private:
  std::shared_ptr<const Tree> tree_;
  std::vector<size_t> variables_;
};

}  // namespace roofgen::expr
