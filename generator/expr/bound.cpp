#include "generator/expr/bound.h"

#include <algorithm>
#include <set>

#include "generator/expr/eval.h"

namespace roofgen::expr {
namespace {

class Places final : public Scope {
 public:
  explicit Places(const std::vector<Value>& values) : values_(values) {}
  const Value* find(const std::string&) const override { return nullptr; }
  std::vector<std::string> names() const override { return {}; }
  const Value* variable(size_t place) const override { return &values_[place]; }

 private:
  const std::vector<Value>& values_;
};

void collect_variables(const Node& node, std::set<size_t>& out) {
  if (node.kind == Kind::kVariable) out.insert(node.variable);
  for (const Node& arg : node.args) collect_variables(arg, out);
}

Node literal(const Node& at, Value value) {
  Node out;
  out.span = at.span;
  out.at = at.at;
  out.value = std::move(value);
  return out;
}

class Binder {
 public:
  Binder(const Source& source, const std::map<std::string, size_t>& variables, const Map& constants)
      : source_(source), variables_(variables), constants_(constants) {}

  Node bind(const Node& node) const {
    switch (node.kind) {
      case Kind::kLiteral: return node;
      case Kind::kName: return name(node);
      case Kind::kAnd:
      case Kind::kOr: return chain(node);
      case Kind::kIf:
        if (const Node condition = bind(node.args[0]); condition.kind == Kind::kLiteral)
          return bind(node.args[condition.value.truthy() ? 1 : 2]);
        break;
      default: break;
    }
    Node out = without_args(node);
    for (const Node& arg : node.args) {
      const bool callee = node.kind == Kind::kCall && &arg == &node.args[0];
      out.args.push_back(callee ? arg : bind(arg));
    }
    return evaluated(std::move(out));
  }

 private:
  Node name(const Node& node) const {
    if (const auto variable = variables_.find(node.name); variable != variables_.end()) {
      Node out = without_args(node);
      out.kind = Kind::kVariable;
      out.variable = variable->second;
      return out;
    }
    const auto constant = constants_.find(node.name);
    return constant == constants_.end() ? node : literal(node, constant->second);
  }

  /// Constants that do not decide an `and` or `or` are left out, as is everything behind one that does.
  Node chain(const Node& node) const {
    Node out = without_args(node);
    for (const Node& arg : node.args) {
      Node bound = bind(arg);
      const bool decides = bound.kind == Kind::kLiteral && bound.value.truthy() == (node.kind == Kind::kOr);
      if (bound.kind == Kind::kLiteral && !decides && &arg != &node.args.back()) continue;
      out.args.push_back(std::move(bound));
      if (decides) break;
    }
    return out.args.size() == 1 ? Node(out.args[0]) : out;
  }

  static Node without_args(const Node& node) {
    Node out = literal(node, node.value);
    out.kind = node.kind;
    out.height = node.height;
    out.name = node.name;
    out.ops = node.ops;
    out.keywords = node.keywords;
    out.builtin = node.builtin;
    return out;
  }

  /// A node without variables becomes its value; one whose evaluation fails stays, and fails again.
  Node evaluated(Node node) const {
    std::set<size_t> read;
    collect_variables(node, read);
    if (!read.empty()) return node;
    try {
      Budget budget;
      const std::vector<Value> none;
      const Places places(none);
      return literal(node, Evaluator(source_, places, budget).eval(node));
    } catch (const Failure&) {
      return node;
    }
  }

  const Source& source_;
  const std::map<std::string, size_t>& variables_;
  const Map& constants_;
};

}  // namespace

BoundExpr::BoundExpr(const Expr& e, const std::map<std::string, size_t>& variables, const Map& constants) {
  if (!e.tree_) return;
  tree_ = std::make_shared<const Tree>(
      Tree{e.tree_->source, Binder(e.tree_->source, variables, constants).bind(e.tree_->root)});
  std::set<size_t> read;
  collect_variables(tree_->root, read);
  variables_.assign(read.begin(), read.end());
}

std::optional<Value> BoundExpr::eval(const std::vector<Value>& values, uint64_t& steps) const {
  if (!tree_) return std::nullopt;
  Budget budget;
  const uint64_t before = budget.steps;
  std::optional<Value> out;
  try {
    const Places places(values);
    out = Evaluator(tree_->source, places, budget).eval(tree_->root);
  } catch (const Failure&) {
  }
  steps += before - budget.steps;
  return out;
}

}  // namespace roofgen::expr
