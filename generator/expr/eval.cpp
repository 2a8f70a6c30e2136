#include "generator/expr/eval.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "generator/expr/builtins.h"
#include "generator/expr/operators.h"

namespace roofgen::expr {
namespace {

std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> out;
  for (const auto& [key, value] : map) out.push_back(key);
  return out;
}

void check_arity(const Builtin& b, size_t given, bool filter, const Site& site) {
  const int skip = filter ? 1 : 0;  // the piped value is not among the arguments in parentheses
  const int count = static_cast<int>(given) - skip, least = b.min_args - skip, most = b.max_args - skip;
  if (count >= least && (b.max_args < 0 || count <= most)) return;
  const std::string range = b.max_args < 0  ? fmt::format("at least {}", least)
                            : least == most ? std::to_string(least)
                                            : fmt::format("{} to {}", least, most);
  site.fail(fmt::format("{} takes {} argument{}, not {}", b.name, range,
                        range == "1" || range == "at least 1" ? "" : "s", count));
}

}  // namespace

std::vector<std::string> MapScope::names() const { return keys(map_); }

Value Evaluator::eval(const Node& node) {
  switch (node.kind) {
    case Kind::kLiteral: return node.value;
    case Kind::kName:
    case Kind::kVariable:
    case Kind::kAttr:
    case Kind::kIndex: {
      Value scratch;
      return read(node, scratch);
    }
    default: break;
  }
  const Site here = site(node);
  here.charge(1);
  const Depth depth(here);
  switch (node.kind) {
    case Kind::kList: return list(node);
    case Kind::kUnary: {
      if (node.ops[0] == Op::kNot) return !truth(node.args[0]);
      Value scratch;
      return unary(node.ops[0], read(node.args[0], scratch), here);
    }
    case Kind::kBinary: {
      Value left, right;
      const Value& a = read(node.args[0], left);
      return binary(node.ops[0], a, read(node.args[1], right), here);
    }
    case Kind::kCompare: return truth(node);
    case Kind::kAnd:
    case Kind::kOr:
      // The value of the deciding operand, as in Python.
      for (size_t i = 0; i + 1 < node.args.size(); ++i)
        if (Value v = eval(node.args[i]); v.truthy() == (node.kind == Kind::kOr)) return v;
      return eval(node.args.back());
    case Kind::kIf: return eval(node.args[truth(node.args[0]) ? 1 : 2]);
    case Kind::kCall: return call(node);
    case Kind::kFilter: return filter(node);
    default: return node.value;
  }
}

const Value& Evaluator::read(const Node& node, Value& scratch) {
  switch (node.kind) {
    case Kind::kLiteral: return node.value;
    case Kind::kName:
      site(node).charge(1);
      if (const Value* v = scope_.find(node.name)) return *v;
      if (scope_.is_macro(node.name))
        site(node).fail(fmt::format("\"{}\" is a macro or an imported template, not a value", node.name));
      site(node).fail(fmt::format("undefined name \"{}\"{}", node.name, did_you_mean(node.name, scope_.names())));
    case Kind::kVariable: site(node).charge(1); return *scope_.variable(node.variable);
    case Kind::kAttr:
    case Kind::kIndex: {
      const Site here = site(node);
      here.charge(1);
      const Depth depth(here);
      if (const Value* v = element(node, scratch)) return *v;
      Value again;
      const Map* map = read(node.args[0], again).map();
      Value key_scratch;
      const std::string key = node.kind == Kind::kAttr ? node.name : read(node.args[1], key_scratch).str();
      here.fail(fmt::format("no key \"{}\"{}", key, map ? did_you_mean(key, keys(*map)) : ""));
    }
    default: scratch = eval(node); return scratch;
  }
}

/// The element of a kAttr or kIndex; nullptr if the map lacks the key. Other misuse fails.
const Value* Evaluator::element(const Node& node, Value& scratch) {
  if (node.kind == Kind::kAttr && node.args[0].kind == Kind::kName && !scope_.find(node.args[0].name))
    if (const Value* v = scope_.member(node, site(node))) return v;
  const Value& base = read(node.args[0], scratch);
  if (node.kind == Kind::kAttr) {
    if (!base.map())
      site(node).fail(fmt::format("{} has no \"{}\"; only maps have members", base.type_name(), node.name));
    auto it = base.map()->find(node.name);
    return it == base.map()->end() ? nullptr : &it->second;
  }
  Value key_scratch;
  return find_element(base, read(node.args[1], key_scratch), node);
}

const Value* Evaluator::find_element(const Value& base, const Value& key, const Node& node) const {
  if (const Map* map = base.map()) {
    const auto* name = key.as<std::string>();
    if (!name) site(node).fail(fmt::format("a map is indexed by a string, not {}", key.type_name()));
    auto it = map->find(*name);
    return it == map->end() ? nullptr : &it->second;
  }
  const List* list = base.list();
  if (!list) site(node).fail(fmt::format("{} cannot be indexed", base.type_name()));
  const auto index = as_int(key);
  if (!index) site(node).fail(fmt::format("a list is indexed by an int, not {}", key.type_name()));
  const auto size = static_cast<int64_t>(list->size());
  if (*index < -size || *index >= size) site(node).fail(fmt::format("index {} is outside a list of {}", *index, size));
  return &(*list)[static_cast<size_t>(*index < 0 ? *index + size : *index)];
}

Value Evaluator::list(const Node& node) {
  List out;
  out.reserve(node.args.size());
  for (const Node& arg : node.args) out.push_back(eval(arg));
  return make_list(std::move(out), site(node));
}

Value Evaluator::call(const Node& node) {
  const Site here = site(node);
  if (auto v = scope_.call(node, *this, here)) return std::move(*v);
  if (!node.builtin) {
    std::vector<std::string> known = scope_.names();
    for (std::string& name : function_names()) known.push_back(std::move(name));
    here.fail(fmt::format("unknown function \"{}\"{}", node.name, did_you_mean(node.name, known)));
  }
  if (!node.keywords.empty()) here.fail("functions take no keyword arguments");
  check_arity(*node.builtin, node.args.size() - 1, false, here);
  std::vector<Value> args;
  args.reserve(node.args.size() - 1);
  for (size_t i = 1; i < node.args.size(); ++i) args.push_back(eval(node.args[i]));
  return node.builtin->apply(args, here);
}

Value Evaluator::filter(const Node& node) {
  const Site here = site(node);
  check_arity(*node.builtin, node.args.size(), true, here);
  if (node.name == "default") return fallback(node);
  std::vector<Value> args;
  args.reserve(node.args.size());
  for (const Node& arg : node.args) args.push_back(eval(arg));
  return node.builtin->apply(args, here);
}

/// x|default(y): y where x is an undefined name or a missing key.
Value Evaluator::fallback(const Node& node) {
  const Node& wanted = node.args[0];
  Value other = eval(node.args[1]);
  if (wanted.kind == Kind::kName) {
    const Value* v = scope_.find(wanted.name);
    if (v) return *v;
    if (scope_.is_macro(wanted.name) || find_function(wanted.name)) return eval(wanted);  // its error
    return other;
  }
  if (wanted.kind == Kind::kAttr || wanted.kind == Kind::kIndex) {
    Value scratch;
    const Value* v = element(wanted, scratch);
    return v ? *v : other;
  }
  return eval(wanted);
}

bool Evaluator::truth(const Node& node) {
  switch (node.kind) {
    case Kind::kCompare: {
      const Site here = site(node);
      here.charge(1);
      const Depth depth(here);
      Value scratch[2];
      const Value* left = &read(node.args[0], scratch[0]);
      for (size_t i = 0; i < node.ops.size(); ++i) {
        const Value& right = read(node.args[i + 1], scratch[(i + 1) % 2]);
        if (!compare(node.ops[i], *left, right, node)) return false;
        left = &right;
      }
      return true;
    }
    case Kind::kAnd:
    case Kind::kOr: {
      const Depth depth(site(node));
      for (const Node& arg : node.args)
        if (truth(arg) == (node.kind == Kind::kOr)) return node.kind == Kind::kOr;
      return node.kind == Kind::kAnd;
    }
    default: {
      Value scratch;
      return read(node, scratch).truthy();
    }
  }
}

bool Evaluator::compare(Op op, const Value& a, const Value& b, const Node& node) {
  const Site here = site(node);
  switch (op) {
    case Op::kEq: return equal(a, b, here);
    case Op::kNe: return !equal(a, b, here);
    case Op::kLt: return order(a, b, here) < 0;
    case Op::kLe: return order(a, b, here) <= 0;
    case Op::kGt: return order(a, b, here) > 0;
    case Op::kGe: return order(a, b, here) >= 0;
    case Op::kIn: return contains(b, a, here);
    default: return !contains(b, a, here);
  }
}

}  // namespace roofgen::expr
