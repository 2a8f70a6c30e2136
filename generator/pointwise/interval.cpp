#include "generator/pointwise/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/diagnostics.h"
#include "generator/expr/ast.h"
#include "generator/expr/parser.h"

namespace roofgen::pointwise {
namespace {

using expr::Kind;
using expr::Node;
using expr::Op;

/// The value of a whole-number literal.
std::optional<int64_t> whole_literal(const Node& n) {
  if (n.kind != Kind::kLiteral) return std::nullopt;
  const int64_t* i = n.value.as<int64_t>();
  return i ? std::optional(*i) : std::nullopt;
}

bool is_comparison(Op op) {
  return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe || op == Op::kGt || op == Op::kGe;
}

/// One walk over the tree serves the host and the kernels: a Domain says what numbers and conditions are. Numbers
/// know whether they are whole, because only those are divided.
template <class Domain>
class Walk {
 public:
  using Number = typename Domain::Number;
  using Condition = typename Domain::Condition;
  explicit Walk(Domain& domain) : domain_(domain) {}

  Number number(const Node& n) {
    Number out = number_of(n);
    domain_.seen(n, out);
    return out;
  }

  Condition condition(const Node& n) {
    switch (n.kind) {
      case Kind::kLiteral:
        if (const bool* b = n.value.as<bool>()) return domain_.constant(*b);
        return domain_.perhaps();
      case Kind::kAnd:
      case Kind::kOr: {
        Condition out = condition(n.args[0]);
        for (size_t i = 1; i < n.args.size(); ++i)
          out = n.kind == Kind::kAnd ? domain_.both(out, condition(n.args[i]))
                                     : domain_.either(out, condition(n.args[i]));
        return out;
      }
      case Kind::kUnary: return n.ops[0] == Op::kNot ? domain_.negation(condition(n.args[0])) : domain_.perhaps();
      case Kind::kIf: {
        const Condition c = condition(n.args[0]);
        return domain_.either(domain_.both(c, condition(n.args[1])),
                              domain_.both(domain_.negation(c), condition(n.args[2])));
      }
      case Kind::kCompare: {
        Condition out = comparison(n, 0);
        for (size_t i = 1; i < n.ops.size(); ++i) out = domain_.both(out, comparison(n, i));
        return out;
      }
      default: return domain_.perhaps();
    }
  }

 private:
  Condition comparison(const Node& n, size_t i) {
    if (!is_comparison(n.ops[i])) return domain_.perhaps();
    const Number a = number(n.args[i]), b = number(n.args[i + 1]);
    switch (n.ops[i]) {
      case Op::kLt: return domain_.less(a, b);
      case Op::kGt: return domain_.less(b, a);
      case Op::kLe: return domain_.less_equal(a, b);
      case Op::kGe: return domain_.less_equal(b, a);
      case Op::kEq: return domain_.equal(a, b);
      default: return domain_.negation(domain_.equal(a, b));
    }
  }

  Number number_of(const Node& n) {
    switch (n.kind) {
      case Kind::kLiteral:
        if (const auto i = whole_literal(n)) return domain_.whole(*i);
        if (const double* x = n.value.as<double>()) return domain_.real(*x);
        return domain_.unknown();
      case Kind::kName: return domain_.name(n.name, true);
      case Kind::kIndex:  // a tensor: its value where it has only one
        return n.args[0].kind == Kind::kName ? domain_.name(n.args[0].name, false) : domain_.unknown();
      case Kind::kUnary: {
        const Number a = number(n.args[0]);
        return n.ops[0] == Op::kNeg ? domain_.minus(a) : n.ops[0] == Op::kPos ? a : domain_.unknown();
      }
      case Kind::kIf: {
        const Condition c = condition(n.args[0]);
        const Number a = number(n.args[1]), b = number(n.args[2]);
        return domain_.choice(c, a, b);
      }
      case Kind::kBinary: return binary(n);
      case Kind::kCall: return call(n);
      default: return domain_.unknown();
    }
  }

  Number binary(const Node& n) {
    const Number a = number(n.args[0]), b = number(n.args[1]);
    const auto divisor = whole_literal(n.args[1]);
    switch (n.ops[0]) {
      case Op::kAdd: return domain_.add(a, b);
      case Op::kSub: return domain_.subtract(a, b);
      case Op::kMul: return domain_.multiply(a, b);
      case Op::kFloorDiv:
      case Op::kMod:
        if (!divisor || *divisor <= 0 || *divisor > std::numeric_limits<int32_t>::max() || !domain_.is_whole(a))
          return domain_.unknown();
        return n.ops[0] == Op::kMod ? domain_.modulo(a, *divisor) : domain_.floor_divide(a, *divisor);
      default: return domain_.unknown();
    }
  }

  Number call(const Node& n) {
    const std::string name = n.args[0].kind == Kind::kName ? n.args[0].name : "";
    std::vector<Number> args;
    for (size_t i = 1; i < n.args.size(); ++i) args.push_back(number(n.args[i]));
    if (name == "abs" && args.size() == 1) return domain_.magnitude(args[0]);
    if ((name != "min" && name != "max") || args.size() < 2) return domain_.unknown();
    Number out = args[0];
    for (size_t i = 1; i < args.size(); ++i)
      out = name == "min" ? domain_.lesser(out, args[i]) : domain_.greater(out, args[i]);
    return out;
  }

  Domain& domain_;
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// As in bounds.cuh: NaN in either argument is passed on.
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Ranges of doubles, in which whole numbers up to 2^53 are exact.
struct Ranges {
  struct Number {
    double low, high;
    bool is_whole;
  };
  struct Condition {
    bool some, all;
  };
  const RangeOf& range_of;
  /// What does not fit 32 bits, found on the way.
  const Node* too_large = nullptr;
  Number at_too_large = {};

  void seen(const Node& n, const Number& x) {
    constexpr double kLimit = 2147483647;
    if (too_large || !x.is_whole || (x.low >= -kLimit && x.high <= kLimit)) return;
    too_large = &n;
    at_too_large = x;
  }

  static Condition constant(bool b) { return {b, b}; }
  static Condition perhaps() { return {true, false}; }
  static Condition both(Condition a, Condition b) { return {a.some && b.some, a.all && b.all}; }
  static Condition either(Condition a, Condition b) { return {a.some || b.some, a.all || b.all}; }
  static Condition negation(Condition a) { return {!a.all, !a.some}; }
  static Condition less(const Number& a, const Number& b) { return {!(a.low >= b.high), a.high < b.low}; }
  static Condition less_equal(const Number& a, const Number& b) { return {!(a.low > b.high), a.high <= b.low}; }
  static Condition equal(const Number& a, const Number& b) {
    return {!(a.low > b.high || a.high < b.low), a.low == a.high && b.low == b.high && a.low == b.low};
  }

  static Number whole(int64_t i) { return {static_cast<double>(i), static_cast<double>(i), true}; }
  static Number real(double x) { return {x, x, false}; }
  static Number unknown() { return {kNan, kNan, false}; }
  static bool is_whole(const Number& a) { return a.is_whole; }
  Number name(const std::string& name, bool index) const {
    const auto range = range_of(name);
    return range ? Number{range->low, range->high, index} : unknown();
  }
  static Number minus(const Number& a) { return {-a.high, -a.low, a.is_whole}; }
  static Number add(const Number& a, const Number& b) {
    return {a.low + b.low, a.high + b.high, a.is_whole && b.is_whole};
  }
  static Number subtract(const Number& a, const Number& b) {
    return {a.low - b.high, a.high - b.low, a.is_whole && b.is_whole};
  }
  static Number multiply(const Number& a, const Number& b) {
    const double w = a.low * b.low, x = a.low * b.high, y = a.high * b.low, z = a.high * b.high;
    return {smaller(smaller(w, x), smaller(y, z)), larger(larger(w, x), larger(y, z)), a.is_whole && b.is_whole};
  }
  static Number lesser(const Number& a, const Number& b) {
    return {smaller(a.low, b.low), smaller(a.high, b.high), a.is_whole && b.is_whole};
  }
  static Number greater(const Number& a, const Number& b) {
    return {larger(a.low, b.low), larger(a.high, b.high), a.is_whole && b.is_whole};
  }
  static Number magnitude(const Number& a) {
    if (a.low <= 0 && a.high >= 0) return {0, larger(-a.low, a.high), a.is_whole};
    return {larger(a.low, -a.high), larger(-a.low, a.high), a.is_whole};
  }
  static Number floor_divide(const Number& a, int64_t n) {
    const double d = static_cast<double>(n);
    return {std::floor(a.low / d), std::floor(a.high / d), true};
  }
  static Number modulo(const Number& a, int64_t n) {
    const double d = static_cast<double>(n), first = std::floor(a.low / d) * d;
    if (std::floor(a.high / d) * d != first) return {0, d - 1, true};
    return {a.low - first, a.high - first, true};
  }
  static Number choice(Condition c, const Number& a, const Number& b) {
    const bool whole = a.is_whole && b.is_whole;
    if (c.all) return {a.low, a.high, whole};
    if (!c.some) return {b.low, b.high, whole};
    return {smaller(a.low, b.low), larger(a.high, b.high), whole};
  }
};

/// Calls of the functions of bounds.cuh.
struct BoundsCode {
  struct Number {
    std::string text;
    bool is_whole;
  };
  using Condition = std::string;
  const BoundsOf& bounds_of;

  static void seen(const Node&, const Number&) {}
  static Condition constant(bool b) { return b ? "Truth{true, true}" : "Truth{false, false}"; }
  static Condition perhaps() { return "perhaps()"; }
  static Condition both(const Condition& a, const Condition& b) { return fmt::format("both({}, {})", a, b); }
  static Condition either(const Condition& a, const Condition& b) { return fmt::format("either({}, {})", a, b); }
  static Condition negation(const Condition& a) { return fmt::format("negate({})", a); }
  static Condition less(const Number& a, const Number& b) { return fmt::format("less({}, {})", a.text, b.text); }
  static Condition less_equal(const Number& a, const Number& b) {
    return fmt::format("less_equal({}, {})", a.text, b.text);
  }
  static Condition equal(const Number& a, const Number& b) { return fmt::format("equal({}, {})", a.text, b.text); }

  static Number whole(int64_t i) { return {fmt::format("at({})", i), true}; }
  static Number real(double x) { return {fmt::format("at(float({:.17g}))", x), false}; }
  static Number unknown() { return {"unknown()", false}; }
  static bool is_whole(const Number& a) { return a.is_whole; }
  Number name(const std::string& name, bool index) const {
    const auto text = bounds_of(name);
    return text ? Number{*text, index} : unknown();
  }
  static Number minus(const Number& a) { return {fmt::format("negate({})", a.text), a.is_whole}; }
  static Number add(const Number& a, const Number& b) { return two("add", a, b); }
  static Number subtract(const Number& a, const Number& b) { return two("subtract", a, b); }
  static Number multiply(const Number& a, const Number& b) { return two("multiply", a, b); }
  static Number lesser(const Number& a, const Number& b) { return two("lesser", a, b); }
  static Number greater(const Number& a, const Number& b) { return two("greater", a, b); }
  static Number magnitude(const Number& a) { return {fmt::format("magnitude({})", a.text), a.is_whole}; }
  static Number floor_divide(const Number& a, int64_t n) {
    return {fmt::format("floor_divide({}, {})", a.text, n), true};
  }
  static Number modulo(const Number& a, int64_t n) { return {fmt::format("modulo({}, {})", a.text, n), true}; }
  static Number choice(const Condition& c, const Number& a, const Number& b) {
    return {fmt::format("choose({}, {}, {})", c, a.text, b.text), a.is_whole && b.is_whole};
  }

 private:
  static Number two(const char* function, const Number& a, const Number& b) {
    return {fmt::format("{}({}, {})", function, a.text, b.text), a.is_whole && b.is_whole};
  }
};

const Node* find_name(const Node& n, const std::string& name) {
  if (n.kind == Kind::kName && n.name == name) return &n;
  for (size_t i = n.kind == Kind::kCall ? 1 : 0; i < n.args.size(); ++i)
    if (const Node* found = find_name(n.args[i], name)) return found;
  return nullptr;
}

Error usage_at(const expr::Tree& tree, const Node& n, std::string message) {
  Error error = expr::located_error(tree.source, n.span, std::move(message));
  error.exit = Exit::kUsage;
  return error;
}

}  // namespace

Condition Condition::parse(std::string_view text, std::string_view argument) {
  Condition out;
  auto tree = std::make_shared<expr::Tree>();
  tree->source = {std::string(text), Where{std::string(argument), 1, 1}};
  try {
    const expr::Tokens tokens = expr::tokenize(tree->source, 0, expr::Until::kEndOfText);
    expr::Parser parser(tree->source, tokens.list, expr::Dialect::kFormula);
    tree->root = parser.expression();
    parser.expect_end();
  } catch (expr::Failure&) {
    return out;
  }
  out.tree_ = std::move(tree);
  return out;
}

Truth Condition::judge(const RangeOf& range_of) const {
  if (!tree_) return Truth::kUnknown;
  Ranges ranges{range_of};
  const auto [some, all] = Walk<Ranges>(ranges).condition(tree_->root);
  return !some ? Truth::kNever : all ? Truth::kAlways : Truth::kUnknown;
}

std::string Condition::cuda(const BoundsOf& bounds_of) const {
  if (!tree_) return "perhaps()";
  BoundsCode code{bounds_of};
  return Walk<BoundsCode>(code).condition(tree_->root);
}

Result<void> Condition::check_int32(const RangeOf& range_of) const {
  if (!tree_) return {};
  Ranges ranges{range_of};
  Walk<Ranges> walk(ranges);
  walk.condition(tree_->root);
  if (!ranges.too_large) walk.number(tree_->root);  // an expression that is a number
  if (!ranges.too_large) return {};
  const double value = ranges.at_too_large.high > 2147483647 ? ranges.at_too_large.high : ranges.at_too_large.low;
  return usage_at(*tree_, *ranges.too_large,
                  fmt::format("this can become {:.0f}, past the 32 bits that kernels compute indices with", value));
}

bool Condition::reads(const std::string& name) const { return tree_ && find_name(tree_->root, name); }

Result<void> Condition::refuse_name(const std::string& name, const std::string& why) const {
  const Node* found = tree_ ? find_name(tree_->root, name) : nullptr;
  if (!found) return {};
  return usage_at(*tree_, *found, why);
}

}  // namespace roofgen::pointwise
