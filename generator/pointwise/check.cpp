// Syntax tree -> typed operations. All checks of a user's formula are made here; errors carry their position.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/suggest.h"
#include "generator/expr/parser.h"
#include "generator/pointwise/body.h"
#include "generator/pointwise/functions.h"

namespace roofgen::pointwise {
namespace {

using expr::Kind;
using expr::Node;
using expr::Op;

constexpr size_t kMaxTextBytes = 1 << 13;
constexpr int kMaxOperations = 2000;
constexpr int kMaxPower = 16;

/// Syntax of calls that are not a Function.
struct Form {
  const char* name;
  const char* usage;
  size_t min_args, max_args;
};
constexpr Form kForms[] = {
    {"clamp", "clamp(x, lo, hi)", 3, 3},
    {"cast", "cast(x, \"bf16\")", 2, 2},
    {"min", "min(a, b)", 1, 64},
    {"max", "max(a, b)", 1, 64},
    {"sum", "sum(x)", 1, 1},
    {"mean", "mean(x)", 1, 1},
    {"amax", "amax(x)", 1, 1},
};

std::vector<std::string> callable_names() {
  std::vector<std::string> out;
  for (const Form& f : kForms) out.emplace_back(f.name);
  for (const Function& f : functions())
    if (f.name != std::string_view(kReciprocal)) out.emplace_back(f.name);
  return out;
}

bool is_callable(const std::string& name) {
  const std::vector<std::string> names = callable_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Type type_of_source(const Vocabulary& v) { return has_integer_source(v) ? Type::kInt : Type::kFloat; }

std::string indexed(const TensorArg& t) { return fmt::format("{}[{}]", t.name, fmt::join(t.indices, ",")); }

class Checker {
 public:
  Checker(Body& body, std::map<std::string, int>& values, const std::vector<std::string>& later, const Source& source)
      : body_(body), values_(values), later_(later), source_(source) {}

  int value(const Node& node) {
    const int out = make(node);
    if (body_.graph.size() > kMaxOperations)
      fail(node.span, fmt::format("a formula of more than {} operations", kMaxOperations));
    return out;
  }

 private:
  [[noreturn]] void fail(Span at, std::string message) const { fail_at(source_, at, std::move(message)); }
  Type type(int i) const { return body_.graph[i].type; }

  int add(Code code, Type type, std::array<int, 3> args = {-1, -1, -1}, int which = 0) {
    bool of_data = code == Code::kSource || code == Code::kTensor;
    for (const int a : args) of_data |= a >= 0 && body_.graph[a].of_data;
    return body_.graph.add({.code = code, .type = type, .args = args, .which = which, .of_data = of_data});
  }
  int constant(double v, Type type) { return body_.graph.add({.code = Code::kConstant, .type = type, .number = v}); }
  const Operation* as_constant(int i) const {
    return body_.graph[i].code == Code::kConstant ? &body_.graph[i] : nullptr;
  }

  int convert(int i, Type to) {
    if (type(i) == to) return i;
    if (auto c = as_constant(i)) return constant(c->number, to);
    return add(Code::kConvert, to, {i, -1, -1});
  }
  int number(const Node& node) {  ///< an int or a float
    const int i = value(node);
    return type(i) == Type::kBool ? convert(i, Type::kInt) : i;
  }
  int floating(const Node& node) { return convert(value(node), Type::kFloat); }
  int truth(const Node& node, const char* what) {
    const int i = value(node);
    if (type(i) != Type::kBool)
      fail(node.span, fmt::format("{} needs a condition; this is a number. Compare it, as in x != 0", what));
    return i;
  }
  Type unify(int& a, int& b) {
    const Type to = std::max(type(a), type(b));
    a = convert(a, to);
    b = convert(b, to);
    return to;
  }

  int make(const Node& node) {
    switch (node.kind) {
      case Kind::kLiteral: return literal(node);
      case Kind::kName: return name(node);
      case Kind::kIndex: return element(node);
      case Kind::kUnary: return unary(node);
      case Kind::kBinary: return binary(node);
      case Kind::kCompare: return comparison(node);
      case Kind::kAnd:
      case Kind::kOr: {
        const bool is_and = node.kind == Kind::kAnd;
        int out = truth(node.args[0], is_and ? "\"and\"" : "\"or\"");
        for (size_t i = 1; i < node.args.size(); ++i)
          out = add(is_and ? Code::kAnd : Code::kOr, Type::kBool,
                    {out, truth(node.args[i], is_and ? "\"and\"" : "\"or\""), -1});
        return out;
      }
      case Kind::kIf: {
        const int test = truth(node.args[0], "\"if\"");
        int yes = value(node.args[1]), no = value(node.args[2]);
        const Type t = unify(yes, no);
        return add(Code::kSelect, t, {test, yes, no});
      }
      case Kind::kCall: return call(node);
      case Kind::kAttr: fail(node.at, "values have no members here");
      case Kind::kList: fail(node.at, "lists do not exist in formulas");
      case Kind::kFilter: fail(node.at, fmt::format("filters do not exist in formulas; write {}(x)", node.name));
      case Kind::kVariable: break;  // of bound expressions only
    }
    return -1;
  }

  int literal(const Node& node) {
    if (auto b = node.value.as<bool>()) return constant(*b, Type::kBool);
    if (auto i = node.value.as<int64_t>()) {
      if (*i > std::numeric_limits<int32_t>::max())
        fail(node.span, fmt::format("whole numbers have 32 bits; write {}.0", *i));
      return constant(static_cast<double>(*i), Type::kInt);
    }
    if (auto d = node.value.as<double>()) {
      if (std::abs(*d) > std::numeric_limits<float>::max()) fail(node.span, "this number does not fit fp32");
      return constant(*d, Type::kFloat);
    }
    if (node.value.is_none()) fail(node.span, "formulas have no value none");
    fail(node.span, "a text is only the second argument of cast");
  }

  const TensorArg* tensor(const std::string& name, int* which = nullptr) const {
    const auto& all = body_.vocabulary.tensors;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].name == name) {
        if (which) *which = static_cast<int>(i);
        return &all[i];
      }
    return nullptr;
  }

  Type type_of(const TensorArg& t) const { return has_integers(t.dtype) ? Type::kInt : Type::kFloat; }

  /// A value without indices; -1 if there is none of this name.
  int plain_value(const std::string& name) {
    const Vocabulary& v = body_.vocabulary;
    if (auto at = values_.find(name); at != values_.end()) return at->second;
    if (name == v.source) return add(Code::kSource, type_of_source(v));
    for (size_t i = 0; i < v.indices.size(); ++i)
      if (name == v.indices[i]) return add(Code::kIndex, Type::kInt, {-1, -1, -1}, static_cast<int>(i));
    for (size_t i = 0; i < body_.scalar_names.size(); ++i)
      if (name == body_.scalar_names[i]) return add(Code::kScalar, Type::kFloat, {-1, -1, -1}, static_cast<int>(i));
    return -1;
  }

  std::vector<std::string> value_names() const {
    std::vector<std::string> out{body_.vocabulary.source};
    for (const auto& [name, value] : values_) out.push_back(name);
    for (const TensorArg& t : body_.vocabulary.tensors) out.push_back(t.name);
    out.insert(out.end(), body_.scalar_names.begin(), body_.scalar_names.end());
    out.insert(out.end(), body_.vocabulary.indices.begin(), body_.vocabulary.indices.end());
    return out;
  }

  [[noreturn]] void undefined(const Node& node) const {
    if (is_callable(node.name)) fail(node.at, fmt::format("\"{0}\" is a function; write {0}(x)", node.name));
    if (std::find(later_.begin(), later_.end(), node.name) != later_.end())
      fail(node.at, fmt::format("\"{}\" is only defined further on", node.name));
    fail(node.at, fmt::format("undefined name \"{}\"{}", node.name, did_you_mean(node.name, value_names())));
  }

  int name(const Node& node) {
    if (const int i = plain_value(node.name); i >= 0) return i;
    int which = 0;
    const TensorArg* t = tensor(node.name, &which);
    if (!t) undefined(node);
    if (!t->indices.empty()) fail(node.at, fmt::format("\"{}\" is a tensor; write {}", t->name, indexed(*t)));
    return add(Code::kTensor, type_of(*t), {-1, -1, -1}, which);
  }

  int element(const Node& node) {
    const Node& base = node.args[0];
    if (base.kind != Kind::kName) fail(node.at, "only tensors have elements");
    int which = 0;
    const TensorArg* t = tensor(base.name, &which);
    if (!t) {
      if (plain_value(base.name) >= 0)
        fail(node.at, fmt::format("\"{0}\" is one value and takes no index; write {0}", base.name));
      undefined(base);
    }
    if (t->indices.empty()) fail(node.at, fmt::format("\"{0}\" is one value and takes no index; write {0}", t->name));
    const std::string expected = fmt::format("{} is indexed [{}]", t->name, fmt::join(t->indices, ","));
    const auto& known = body_.vocabulary.indices;
    bool same = node.args.size() == t->indices.size() + 1;
    std::string given;
    for (size_t i = 1; i < node.args.size(); ++i) {
      const Node& index = node.args[i];
      if (index.kind != Kind::kName)
        fail(index.span, fmt::format("{}; an index is one of {} as it stands", expected, fmt::join(known, ", ")));
      if (std::find(known.begin(), known.end(), index.name) == known.end())
        fail(index.span, fmt::format("{}; unknown index {}; valid: {}", expected, index.name, fmt::join(known, ", ")));
      same = same && index.name == t->indices[i - 1];
      given += (i > 1 ? "," : "") + index.name;
    }
    if (!same) fail({node.args[1].span.begin, node.args.back().span.end}, fmt::format("{}, not [{}]", expected, given));
    return add(Code::kTensor, type_of(*t), {-1, -1, -1}, which);
  }

  int unary(const Node& node) {
    if (node.ops[0] == Op::kNot) return add(Code::kNot, Type::kBool, {truth(node.args[0], "\"not\""), -1, -1});
    const int i = number(node.args[0]);
    return node.ops[0] == Op::kPos ? i : negative(i);
  }
  int negative(int i) {
    if (auto c = as_constant(i)) return constant(-c->number, c->type);
    return add(Code::kNeg, type(i), {i, -1, -1});
  }

  /// The value of an operation on two integer constants; an overflow of 32 bits is an error.
  int folded(const Node& node, Code code, double a, double b) {
    const double v = code == Code::kAdd        ? a + b
                     : code == Code::kSub      ? a - b
                     : code == Code::kMul      ? a * b
                     : code == Code::kFloorDiv ? std::floor(a / b)
                                               : a - std::floor(a / b) * b;
    if (std::abs(v) > std::numeric_limits<int32_t>::max())
      fail(node.at, fmt::format("{:.0f} does not fit the 32 bits of whole numbers", v));
    return constant(v, Type::kInt);
  }

  int binary(const Node& node) {
    if (node.ops[0] == Op::kPow) return power(node);
    int a = number(node.args[0]), b = number(node.args[1]);
    const Type t = unify(a, b);
    Code code = Code::kAdd;
    switch (node.ops[0]) {
      case Op::kAdd: code = Code::kAdd; break;
      case Op::kSub: code = Code::kSub; break;
      case Op::kMul: code = Code::kMul; break;
      case Op::kDiv:
        if (t == Type::kInt && !body_.graph[a].of_data && !body_.graph[b].of_data)
          fail(node.at, "integer division: // rounds down, 1.0 * a / b is a float");
        return quotient(node, convert(a, Type::kFloat), convert(b, Type::kFloat));
      default: {
        const char* symbol = to_string(node.ops[0]);
        if (t != Type::kInt) fail(node.at, fmt::format("\"{}\" is for whole numbers; these are floats", symbol));
        const Operation* c = as_constant(b);
        if (!c || c->number == 0)
          fail(node.args[1].span,
               fmt::format("the divisor of \"{}\" must be a constant{}", symbol, c ? " that is not 0" : ""));
        if (c->number == -1) return node.ops[0] == Op::kMod ? constant(0, Type::kInt) : negative(a);
        code = node.ops[0] == Op::kMod ? Code::kMod : Code::kFloorDiv;
      }
    }
    if (t == Type::kInt && as_constant(a) && as_constant(b))
      return folded(node, code, as_constant(a)->number, as_constant(b)->number);
    return add(code, t, {a, b, -1});
  }

  int quotient(const Node& node, int a, int b) {
    const Operation* divisor = as_constant(b);
    if (divisor && divisor->number == 0) fail(node.args[1].span, "division by zero");
    if (divisor && std::abs(1 / divisor->number) > std::numeric_limits<float>::max())
      fail(node.args[1].span, "one over this number does not fit fp32");
    const int inverse = divisor ? constant(1 / divisor->number, Type::kFloat)
                                : add(Code::kCall, Type::kFloat, {b, -1, -1}, find_function(kReciprocal));
    if (auto one = as_constant(a); one && one->number == 1) return inverse;
    return add(Code::kMul, Type::kFloat, {a, inverse, -1});
  }

  int power(const Node& node) {
    const int base = number(node.args[0]), exponent = value(node.args[1]);
    const Operation* c = as_constant(exponent);
    if (!c || c->type != Type::kInt || c->number < 0 || c->number > kMaxPower)
      fail(node.args[1].span,
           fmt::format("the exponent must be a whole constant from 0 to {}; there are exp, log, sqrt and rsqrt",
                       kMaxPower));
    if (c->number == 0) return constant(1, type(base));
    int out = base;
    for (int i = 1; i < c->number; ++i) out = add(Code::kMul, type(base), {out, base, -1});
    return out;
  }

  int comparison(const Node& node) {
    int out = -1;
    for (size_t i = 0; i < node.ops.size(); ++i) {
      if (node.ops[i] == Op::kIn || node.ops[i] == Op::kNotIn)
        fail(node.span, "there are no lists in formulas; compare with == and join with \"or\"");
      int a = value(node.args[i]), b = value(node.args[i + 1]);
      const Type t = std::max(unify(a, b), Type::kInt);  // booleans compare as 0 and 1
      a = convert(a, t), b = convert(b, t);
      const bool swap = node.ops[i] == Op::kGt || node.ops[i] == Op::kGe;
      const Code code = node.ops[i] == Op::kEq                             ? Code::kEqual
                        : node.ops[i] == Op::kNe                           ? Code::kNotEqual
                        : node.ops[i] == Op::kLt || node.ops[i] == Op::kGt ? Code::kLess
                                                                           : Code::kLessEqual;
      const int one = add(code, Type::kBool, {swap ? b : a, swap ? a : b, -1});
      out = out < 0 ? one : add(Code::kAnd, Type::kBool, {out, one, -1});
    }
    return out;
  }

  int call(const Node& node) {
    const size_t given = node.args.size() - 1;
    const auto* form =
        std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return node.name == f.name; });
    if (form != std::end(kForms)) {
      if (given < form->min_args || given > form->max_args) wrong_count(node, form->usage, given);
      return form_call(node, *form);
    }
    const int function = node.name == kReciprocal ? -1 : find_function(node.name);
    if (function < 0) {
      if (const TensorArg* t = tensor(node.name))
        fail(node.at, fmt::format("\"{}\" is a tensor; write {}", t->name, indexed(*t)));
      if (plain_value(node.name) >= 0) fail(node.at, fmt::format("\"{}\" is a value, not a function", node.name));
      fail(node.at, fmt::format("unknown function \"{}\"{}", node.name, did_you_mean(node.name, callable_names())));
    }
    if (given != 1) wrong_count(node, fmt::format("{}(x)", node.name), given);
    const int x = value(node.args[1]);
    if (node.name == "abs" && type(x) != Type::kFloat) {
      const int i = convert(x, Type::kInt);
      return add(Code::kMax, Type::kInt, {i, add(Code::kNeg, Type::kInt, {i, -1, -1}), -1});
    }
    if (node.name == "relu" && type(x) == Type::kInt)
      return add(Code::kMax, Type::kInt, {x, constant(0, Type::kInt), -1});
    return add(Code::kCall, Type::kFloat, {convert(x, Type::kFloat), -1, -1}, function);
  }

  [[noreturn]] void wrong_count(const Node& node, std::string_view usage, size_t given) const {
    fail(node.at, fmt::format("{} is written {}; {} argument{} given here", node.name, usage, given,
                              given == 1 ? " is" : "s are"));
  }

  int form_call(const Node& node, const Form& form) {
    const std::string_view name = form.name;
    if (name == "cast") {
      const auto* text = node.args[2].value.as<std::string>();
      const std::optional<DType> dtype =
          node.args[2].kind == Kind::kLiteral && text ? parse_dtype(*text) : std::nullopt;
      static const std::vector<std::string> kFormats = {"bf16", "fp16", "fp8", "int8"};
      if (!dtype || std::find(kFormats.begin(), kFormats.end(), *text) == kFormats.end())
        fail(node.args[2].span, fmt::format("cast rounds to one of \"{}\"", fmt::join(kFormats, "\", \"")));
      return add(Code::kCast, Type::kFloat, {floating(node.args[1]), -1, -1}, static_cast<int>(*dtype));
    }
    if (name == "clamp") {
      int x = number(node.args[1]), low = number(node.args[2]), high = number(node.args[3]);
      const Type t = std::max({type(x), type(low), type(high)});
      x = add(Code::kMax, t, {convert(x, t), convert(low, t), -1});
      return add(Code::kMin, t, {x, convert(high, t), -1});
    }
    const bool is_min = name == "min";
    if ((is_min || name == "max") && node.args.size() > 2) {
      int out = number(node.args[1]);
      for (size_t i = 2; i < node.args.size(); ++i) {
        int next = number(node.args[i]);
        const Type t = unify(out, next);
        out = add(is_min ? Code::kMin : Code::kMax, t, {out, next, -1});
      }
      return out;
    }
    return reduction(node, name);
  }

  int reduction(const Node& node, std::string_view name) {
    if (!body_.vocabulary.no_reductions.empty())
      fail(node.at, fmt::format("{} of one argument goes over the row; {}", name, body_.vocabulary.no_reductions));
    int term = floating(node.args[1]);
    if (name == "amax") term = add(Code::kCall, Type::kFloat, {term, -1, -1}, find_function("abs"));
    const Reduce kind = name == "min" ? Reduce::kMin : name == "sum" || name == "mean" ? Reduce::kSum : Reduce::kMax;
    const int total = add(Code::kReduce, Type::kFloat, {term, -1, -1}, static_cast<int>(kind));
    return name == "mean" ? add(Code::kMul, Type::kFloat, {total, add(Code::kInverseCols, Type::kFloat), -1}) : total;
  }

  Body& body_;
  std::map<std::string, int>& values_;
  const std::vector<std::string>& later_;
  const Source& source_;
};

Error usage(std::string message, std::string file) {
  return {Exit::kUsage, std::move(message), {std::move(file), 0, 0}};
}

/// Every name has one meaning.
Result<void> check_names(const Vocabulary& v, const std::vector<Definition>& definitions) {
  std::map<std::string, const char*> seen{{v.source, "the source"}};
  const auto take = [&](const std::string& name, const char* what, const std::string& argument) -> Result<void> {
    if (expr::is_keyword(name) || is_callable(name))
      return usage(fmt::format("\"{}\" is a {}; give the {} another name", name,
                               is_callable(name) ? "function" : "word of the language", what),
                   argument);
    const auto [at, is_new] = seen.try_emplace(name, what);
    if (!is_new) return usage(fmt::format("\"{}\" is {} already", name, at->second), argument);
    return {};
  };
  for (const std::string& i : v.indices) ROOFGEN_CHECK(take(i, "an index", ""));
  for (const auto& [name, value] : v.scalars) ROOFGEN_CHECK(take(name, "a scalar", ""));
  for (const TensorArg& t : v.tensors) ROOFGEN_CHECK(take(t.name, "a tensor", "--arg"));
  for (const Definition& d : definitions) ROOFGEN_CHECK(take(d.name, "a definition", d.argument));
  for (const TensorArg& t : v.tensors)
    for (const std::string& i : t.indices)
      if (std::find(v.indices.begin(), v.indices.end(), i) == v.indices.end())
        return usage(fmt::format("{}: unknown index {}; valid: {}", to_string(t), i, fmt::join(v.indices, ", ")),
                     "--arg");
  return {};
}

}  // namespace

Result<void> check(const std::vector<Definition>& definitions, Body& body) {
  for (const auto& [name, value] : body.vocabulary.scalars) body.scalar_names.push_back(name);
  ROOFGEN_CHECK(check_names(body.vocabulary, definitions));
  std::vector<std::string> later;
  for (const Definition& d : definitions) later.push_back(d.name);
  std::map<std::string, int> values;
  for (const Definition& d : definitions) {
    if (d.text.size() > kMaxTextBytes)
      return usage(fmt::format("a formula of {} bytes; the limit is {}", d.text.size(), kMaxTextBytes), d.argument);
    const Source source{d.text, Where{d.argument, 1, 1}};
    try {
      const expr::Tokens tokens = expr::tokenize(source, 0, expr::Until::kEndOfText);
      expr::Parser parser(source, tokens.list, expr::Dialect::kFormula);
      const Node root = parser.expression();
      parser.expect_end();
      values[d.name] = Checker(body, values, later, source).value(root);
    } catch (Failure& failure) {
      failure.error.exit = Exit::kUsage;
      return std::move(failure.error);
    }
  }
  const int x = body.graph.add({.code = Code::kSource, .type = type_of_source(body.vocabulary), .of_data = true});
  for (const Output& output : body.outputs) {
    const auto at = values.find(output.value);
    if (at == values.end() && output.value != body.vocabulary.source)
      return usage(fmt::format("the output {} is to be {}, which is not defined", output.buffer, output.value), "");
    int value = at == values.end() ? x : at->second;
    const bool integer = body[value].type == Type::kInt && !output.is_float &&
                         (output.dtype == DType::kInt32 || output.dtype == DType::kInt8);
    if (body[value].type != Type::kFloat && !integer)
      value = body.graph.add(
          {.code = Code::kConvert, .type = Type::kFloat, .args = {value, -1, -1}, .of_data = body[value].of_data});
    body.planned.push_back({.value = value, .tensors = {}});
  }
  return {};
}

}  // namespace roofgen::pointwise
