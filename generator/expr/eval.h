// Evaluates a Node. Python's semantics, but strict: see docs/expressions.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/expr/ast.h"

namespace roofgen::expr {

/// What an evaluation may still spend. Shared by everything one render() or eval() does, so that
/// hostile input ends in an error and not in a hang.
struct Budget {
  uint64_t steps = 1'000'000;
  int depth = 1000;  ///< nested evaluations and statements; about 1 KiB of stack each
};

/// Where an operation stands: whom to blame, who pays.
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

/// Takes one level of depth for its lifetime.
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

/// Where names come from.
class Scope {
 public:
  virtual ~Scope() = default;
  /// The value of a variable, nullptr when there is none. Stays valid while the expression is evaluated.
  virtual const Value* find(const std::string& name) const = 0;
  /// Names of all variables, for suggestions.
  virtual std::vector<std::string> names() const = 0;
  /// Is this the name of a macro or an imported template? Those are no values.
  virtual bool is_macro(const std::string&) const { return false; }
  /// `module.name` of an imported template; nullptr when `module` is none.
  virtual const Value* member(const Node&, const Site&) const { return nullptr; }
  /// A call of something that is not a built-in function; nullopt when there is no such thing.
  virtual std::optional<Value> call(const Node&, Evaluator&, const Site&) const { return std::nullopt; }
};

/// The scope of an expression on its own.
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
  bool truth(const Node& node);  ///< eval(node).truthy(), without making the value where possible
  /// Why `node` is false: the failing comparison with its values, e.g. `a <= b (3 > 2)`.
  std::string explain(const Node& node);
  Site site(const Node& node) const { return {source_, node.at, budget_}; }

 private:
  /// The value without a copy where it exists already; `scratch` holds it otherwise.
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
