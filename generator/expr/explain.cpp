// Why a condition is false: its own text with its values.
#include <fmt/format.h>

#include "generator/expr/eval.h"
#include "generator/expr/value_text.h"

namespace roofgen::expr {
namespace {

Op opposite(Op op) {
  switch (op) {
    case Op::kEq: return Op::kNe;
    case Op::kNe: return Op::kEq;
    case Op::kLt: return Op::kGe;
    case Op::kLe: return Op::kGt;
    case Op::kGt: return Op::kLe;
    case Op::kGe: return Op::kLt;
    case Op::kIn: return Op::kNotIn;
    default: return Op::kIn;
  }
}

std::string shown(const Value& v) {
  constexpr size_t kMaxShown = 60;
  std::string out;
  // Inside a list, strings are quoted.
  const bool whole = append_text(v.as<std::string>() ? Value(List{v}) : v, out, kMaxShown);
  if (!whole) return out.substr(0, kMaxShown) + "...";
  return v.as<std::string>() ? out.substr(1, out.size() - 2) : out;
}

}  // namespace

std::string Evaluator::text(const Node& node) const {
  std::string out = source_.text.substr(node.span.begin, node.span.end - node.span.begin);
  for (char& c : out)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return out;
}

std::string Evaluator::explain(const Node& node) {
  const Depth depth(site(node));
  switch (node.kind) {
    case Kind::kCompare: return explain_compare(node);
    case Kind::kAnd:
      for (const Node& arg : node.args)
        if (!truth(arg)) return explain(arg);
      break;
    case Kind::kOr: {
      std::string out;
      for (const Node& arg : node.args) out += (out.empty() ? "" : " and ") + explain(arg);
      return out;
    }
    case Kind::kIf: return explain(node.args[truth(node.args[0]) ? 1 : 2]);
    case Kind::kUnary:
      if (node.ops[0] == Op::kNot)
        return fmt::format("{} ({} is {})", text(node), text(node.args[0]), shown(eval(node.args[0])));
      break;
    case Kind::kCall: {
      std::string values;
      for (size_t i = 1; i < node.args.size(); ++i)
        if (node.args[i].kind != Kind::kLiteral)
          values +=
              fmt::format("{}{} is {}", values.empty() ? "" : ", ", text(node.args[i]), shown(eval(node.args[i])));
      return values.empty() ? text(node) : fmt::format("{} ({})", text(node), values);
    }
    default: break;
  }
  return fmt::format("{} (is {})", text(node), shown(eval(node)));
}

std::string Evaluator::explain_compare(const Node& node) {
  Value left = eval(node.args[0]);
  for (size_t i = 0; i < node.ops.size(); ++i) {
    const Node &a = node.args[i], &b = node.args[i + 1];
    Value right = eval(b);
    if (!compare(node.ops[i], left, right, node))
      return fmt::format("{} {} {} ({} {} {})", text(a), to_string(node.ops[i]), text(b), shown(left),
                         to_string(opposite(node.ops[i])), shown(right));
    left = std::move(right);
  }
  return text(node);
}

}  // namespace roofgen::expr
