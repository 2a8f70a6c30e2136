#include "generator/expr/expr.h"

#include <fmt/format.h>

#include <set>

#include "base/costs.h"
#include "generator/expr/eval.h"
#include "generator/expr/operators.h"
#include "generator/expr/parser.h"

namespace roofgen::expr {
namespace {

constexpr size_t kMaxExpressionBytes = 1 << 16;

/// Runs `job` on the tree's evaluator. A Failure becomes the Error, as does a default-constructed expression.
template <class Job>
auto evaluate(const std::shared_ptr<const Tree>& tree, const Map& scope, Job job)
    -> Result<decltype(job(std::declval<Evaluator&>(), tree->root))> {
  if (!tree) return Error{Exit::kFailed, "an empty expression has no value"};
  spend(Cost::kExpressions, 1);
  try {
    Budget budget;
    const MapScope map_scope(scope);
    Evaluator evaluator(tree->source, map_scope, budget);
    return job(evaluator, tree->root);
  } catch (Failure& failure) {
    return std::move(failure.error);
  }
}

[[noreturn]] void wrong_type(const Tree& tree, const char* expected, const Value& v) {
  fail_at(tree.source, tree.root.span, fmt::format("expected {}, this is a {}", expected, v.type_name()));
}

}  // namespace

void collect_names(const Node& node, std::set<std::string>& out) {
  if (node.kind == Kind::kName) out.insert(node.name);
  for (size_t i = node.kind == Kind::kCall ? 1 : 0; i < node.args.size(); ++i) collect_names(node.args[i], out);
}

Result<Expr> Expr::parse(std::string_view text, Where where) {
  return parse(Source{std::string(text), std::move(where)});
}

Result<Expr> Expr::parse(Source source) {
  if (source.text.size() > kMaxExpressionBytes)
    return Error{Exit::kFailed,
                 fmt::format("an expression of {} bytes; the limit is {}", source.text.size(), kMaxExpressionBytes),
                 source.origin};
  auto tree = std::make_shared<Tree>();
  tree->source = std::move(source);
  try {
    const Tokens tokens = tokenize(tree->source, 0, Until::kEndOfText);
    Parser parser(tree->source, tokens.list, Dialect::kExpression);
    tree->root = parser.expression();
    parser.expect_end();
  } catch (Failure& failure) {
    return std::move(failure.error);
  }
  Expr out;
  out.tree_ = std::move(tree);
  return out;
}

Result<Value> Expr::eval(const Map& scope) const {
  return evaluate(tree_, scope, [](Evaluator& e, const Node& root) { return e.eval(root); });
}

Result<int64_t> Expr::eval_int(const Map& scope) const {
  return evaluate(tree_, scope, [&](Evaluator& e, const Node& root) {
    const Value v = e.eval(root);
    if (auto i = as_int(v)) return *i;
    wrong_type(*tree_, "an int", v);
  });
}

Result<double> Expr::eval_number(const Map& scope) const {
  return evaluate(tree_, scope, [&](Evaluator& e, const Node& root) {
    const Value v = e.eval(root);
    if (auto d = as_number(v)) return *d;
    wrong_type(*tree_, "a number", v);
  });
}

Result<bool> Expr::check(const Map& scope, std::string* why) const {
  return evaluate(tree_, scope, [&](Evaluator& e, const Node& root) {
    const bool ok = e.truth(root);
    if (!ok && why) *why = e.explain(root);
    return ok;
  });
}

std::vector<std::string> Expr::names() const {
  std::set<std::string> out;
  if (tree_) collect_names(tree_->root, out);
  return {out.begin(), out.end()};
}

const std::string& Expr::text() const {
  static const std::string kEmpty;
  return tree_ ? tree_->source.text : kEmpty;
}

}  // namespace roofgen::expr
