// Evaluates a Node. Python's semantics, but strict: see docs/internals/expressions.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/expr/ast.h"

namespace roofgen::expr {

/// The remaining budget of one render() or eval(): hostile input ends in an error, not in a hang.
struct Budget {
  uint64_t steps = 1'000'000;
  int depth = 1000;  ///< nested evaluations and statements; about 1 KiB of stack each
};

/// The position of an operation for errors, and its budget.
struct Site {
  const Source& source;
  Span at;
  Budget& budget;

  [[noreturn]] void fail(std::string message) const { fail_at(source, at, std::move(message)); }
  void charge(uint64_t steps) const {
    if (budget.steps < steps) fail("too many evaluation steps");
    budget.steps -= steps;
  }
};

/// Occupies one level of depth during its lifetime.
class Depth {
 public:
  explicit Depth(const Site& site) : budget_(site.budget) {
    if (budget_.depth <= 0) site.fail("nested too deeply");
    --budget_.depth;
  }
  ~Depth() { ++budget_.depth; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Budget& budget_;
};

class Evaluator;

/// Resolves names.
class Scope {
 public:
  virtual ~Scope() = default;
  /// The value of a variable, or nullptr. Valid during the evaluation of the expression.
  virtual const Value* find(const std::string& name) const = 0;
  /// The value of a kVariable.
  virtual const Value* variable(size_t) const { return nullptr; }
  /// Names of all variables, for suggestions.
  virtual std::vector<std::string> names() const = 0;
  /// Is this the name of a macro or an imported template? Neither is a value.
  virtual bool is_macro(const std::string&) const { return false; }
  /// `module.name` of an imported template; nullptr if `module` is not one.
  virtual const Value* member(const Node&, const Site&) const { return nullptr; }
  /// A call of a macro; nullopt if there is none of this name.
  virtual std::optional<Value> call(const Node&, Evaluator&, const Site&) const { return std::nullopt; }
};

/// The scope of an expression outside a template.
class MapScope final : public Scope {
 public:
  explicit MapScope(const Map& map) : map_(map) {}
  const Value* find(const std::string& name) const override {
    auto it = map_.find(name);
    return it == map_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> names() const override;

 private:
  const Map& map_;
};

class Evaluator {
 public:
  Evaluator(const Source& source, const Scope& scope, Budget& budget)
      : source_(source), scope_(scope), budget_(budget) {}

  Value eval(const Node& node);  ///< throws Failure
  bool truth(const Node& node);  ///< eval(node).truthy(), without creating the value if possible
  /// Why `node` is false: the failing comparison with its values, e.g. `a <= b (3 > 2)`.
  std::string explain(const Node& node);
  Site site(const Node& node) const { return {source_, node.at, budget_}; }

 private:
  /// A reference to an existing value, or to `scratch` with a new one.
  const Value& read(const Node& node, Value& scratch);
  const Value* element(const Node& node, Value& scratch);
  const Value* find_element(const Value& base, const Value& key, const Node& node) const;
  Value list(const Node& node);
  Value call(const Node& node);
  Value filter(const Node& node);
  Value fallback(const Node& node);
  bool compare(Op op, const Value& a, const Value& b, const Node& node);
  std::string explain_compare(const Node& node);
  std::string text(const Node& node) const;

  const Source& source_;
  const Scope& scope_;
  Budget& budget_;
};

}  // namespace roofgen::expr
