#include "generator/expr/c_code.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "generator/expr/builtins.h"
#include "generator/expr/eval.h"
#include "generator/expr/parser.h"

namespace roofgen::expr {
namespace {

/// A part of the expression: a constant, or C code.
struct Term {
  std::optional<Value> value;
  std::string code = {};
  bool compound = false;  ///< needs brackets as an operand
};

const char* c_operator(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSub: return "-";
    case Op::kMul: return "*";
    case Op::kDiv:
    case Op::kFloorDiv: return "/";
    case Op::kMod: return "%";
    case Op::kEq: return "==";
    case Op::kNe: return "!=";
    case Op::kLt: return "<";
    case Op::kLe: return "<=";
    case Op::kGt: return ">";
    case Op::kGe: return ">=";
    default: return nullptr;
  }
}

class Translator {
 public:
  Translator(const Tree& tree, const Map& scope, const CNames& names)
      : tree_(tree), scope_(scope), map_scope_(scope), evaluator_(tree.source, map_scope_, budget_), names_(names) {}

  CCode whole() {
    const Term t = term(tree_.root);
    return {text(t, tree_.root), t.value.has_value()};
  }

 private:
  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    fail_at(tree_.source, node.at, what + " cannot be written in C");
  }

  Term constant(const Node& node) { return {evaluator_.eval(node)}; }

  Term term(const Node& node) {
    switch (node.kind) {
      case Kind::kName: {
        auto name = names_(node.name);
        if (!name) throw Failure{std::move(name).error()};
        return name->empty() ? constant(node) : Term{std::nullopt, *name};
      }
      case Kind::kIf: {
        const Term condition = term(node.args[0]);
        if (condition.value) return term(node.args[condition.value->truthy() ? 1 : 2]);
        return {std::nullopt,
                fmt::format("{} ? {} : {}", operand(condition, node), operand(term(node.args[1]), node),
                            operand(term(node.args[2]), node)),
                true};
      }
      case Kind::kAnd:
      case Kind::kOr: return decide(node);
      case Kind::kFilter: return filter(node);
      case Kind::kLiteral: return constant(node);
      default: break;
    }
    std::vector<Term> args;
    bool varies = false;
    for (size_t i = node.kind == Kind::kCall ? 1 : 0; i < node.args.size(); ++i) {
      args.push_back(term(node.args[i]));
      varies |= !args.back().value;
    }
    if (!varies) return constant(node);
    switch (node.kind) {
      case Kind::kUnary:
        return {std::nullopt,
                (node.ops[0] == Op::kNot   ? "!"
                 : node.ops[0] == Op::kNeg ? "-"
                                           : "") +
                    operand(args[0], node),
                true};
      case Kind::kBinary:
        if (node.ops[0] == Op::kMod && is_one(args[1])) return {Value(0)};
        [[fallthrough]];
      case Kind::kCompare: {
        Term out;
        for (size_t i = 0; i < node.ops.size(); ++i) {
          const char* op = c_operator(node.ops[i]);
          if (!op) fail(node, to_string(node.ops[i]));
          out.code +=
              fmt::format("{}{} {} {}", i ? " && " : "", operand(args[i], node), op, operand(args[i + 1], node));
        }
        out.compound = true;
        return out;
      }
      case Kind::kCall: return call(node, args);
      default: fail(node, "this");
    }
  }

  /// `and` and `or`, without constant operands.
  Term decide(const Node& node) {
    const bool any = node.kind == Kind::kOr;
    std::vector<Term> open;
    for (const Node& arg : node.args) {
      Term t = term(arg);
      if (!t.value)
        open.push_back(std::move(t));
      else if (t.value->truthy() == any)
        return {Value(any)};
    }
    if (open.empty()) return {Value(!any)};
    if (open.size() == 1) return std::move(open[0]);
    Term out;
    for (const Term& t : open) out.code += (out.code.empty() ? "" : any ? " || " : " && ") + operand(t, node);
    out.compound = true;
    return out;
  }

  /// Of the filters, only x|default(y) may have a variable operand.
  Term filter(const Node& node) {
    if (node.name != "default" || node.args[0].kind != Kind::kName) return constant(node);
    auto name = names_(node.args[0].name);
    if (!name) throw Failure{std::move(name).error()};
    return name->empty() && !scope_.count(node.args[0].name) ? term(node.args[1]) : term(node.args[0]);
  }

  Term call(const Node& node, const std::vector<Term>& args) {
    const std::string name = node.builtin ? node.builtin->name : "";
    if (name == "align_up")
      return {std::nullopt,
              fmt::format("roofgen_ceil_div({0}, {1}) * {2}", text(args[0], node), text(args[1], node),
                          operand(args[1], node)),
              true};
    if (name != "min" && name != "max" && name != "ceil_div") fail(node, fmt::format("a call of {}", node.name));
    if (name == "ceil_div" && is_one(args[1])) return args[0];
    std::string code = text(args[0], node);
    for (size_t i = 1; i < args.size(); ++i) code = fmt::format("roofgen_{}({}, {})", name, code, text(args[i], node));
    return {std::nullopt, code};
  }

  static bool is_one(const Term& t) { return t.value && t.value->as<int64_t>() && *t.value->as<int64_t>() == 1; }

  std::string text(const Term& t, const Node& node) const {
    if (!t.value) return t.code;
    if (const auto* b = t.value->as<bool>()) return *b ? "1" : "0";
    if (const auto* i = t.value->as<int64_t>()) return std::to_string(*i);
    if (const auto* d = t.value->as<double>()) {
      const std::string digits = fmt::format("{}", *d);
      return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
    }
    fail(node, fmt::format("a {}", t.value->type_name()));
  }
  std::string operand(const Term& t, const Node& node) const {
    return t.compound ? "(" + text(t, node) + ")" : text(t, node);
  }

  const Tree& tree_;
  const Map& scope_;
  const MapScope map_scope_;
  Budget budget_;
  Evaluator evaluator_;
  const CNames& names_;
};

}  // namespace

Result<CCode> to_c(const Expr& e, const Map& scope, const CNames& names) {
  Tree tree{{e.text(), {"<expression>", 1, 1}}, {}};
  try {
    const Tokens tokens = tokenize(tree.source, 0, Until::kEndOfText);
    tree.root = Parser(tree.source, tokens.list, Dialect::kExpression).expression();
    return Translator(tree, scope, names).whole();
  } catch (Failure& failure) {
    return std::move(failure.error);
  }
}

bool has_word(const std::string& code, const std::string& word) {
  const auto of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1))
    if ((at == 0 || !of_name(code[at - 1])) && (at + word.size() == code.size() || !of_name(code[at + word.size()])))
      return true;
  return false;
}

}  // namespace roofgen::expr
