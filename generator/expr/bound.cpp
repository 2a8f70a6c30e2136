#include "generator/expr/bound.h"

#include <algorithm>
#include <set>

#include "base/costs.h"
#include "generator/expr/eval.h"
#include "generator/expr/operators.h"

namespace roofgen::expr {
namespace {

/// Combinations that can be numbered, and values of one expression that are remembered.
constexpr uint64_t kMostNumber = uint64_t{1} << 62, kMostKnown = uint64_t{1} << 12;

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

/// What a name is bound to.
struct Bindings {
  const std::map<std::string, size_t>& places;
  const Map& constants;
};

class Binder {
 public:
  /// `tuned`: what stands for the members of the name `tuned`.
  Binder(const Source& source, const Bindings& own, const Value* entry, const Bindings* tuned)
      : source_(source), own_(own), entry_(entry), tuned_(tuned) {}

  Node bind(const Node& node) const {
    switch (node.kind) {
      case Kind::kLiteral: return node;
      case Kind::kName:
        if (entry_ && node.name == "entry") return literal(node, *entry_);
        return name(node, own_);
      case Kind::kAttr:
        if (tuned_ && node.args[0].kind == Kind::kName && node.args[0].name == "tuned")
          if (Node member = name(node, *tuned_); member.kind != Kind::kAttr) return member;
        break;
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
  /// A node with a name, bound; the node itself where the name is unknown.
  static Node name(const Node& node, const Bindings& names) {
    if (const auto place = names.places.find(node.name); place != names.places.end()) {
      Node out = literal(node, {});
      out.kind = Kind::kVariable;
      out.variable = place->second;
      return out;
    }
    const auto constant = names.constants.find(node.name);
    return constant == names.constants.end() ? node : literal(node, constant->second);
  }

  /// Constants that do not decide an `and` or `or` are left out, as is everything after one that does.
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
  const Bindings own_;
  const Value* const entry_;
  const Bindings* const tuned_;
};

}  // namespace

size_t Points::Hash::operator()(const Key& k) const {
  const size_t parts[] = {k.scope, reinterpret_cast<size_t>(k.tree), reinterpret_cast<size_t>(k.extra.entry),
                          k.extra.tuned.value_or(SIZE_MAX)};
  size_t out = 0;
  for (const size_t part : parts) out = (out ^ part) * 0x9E3779B97F4A7C15;
  return out ^ out >> 32;
}

Points::Points(std::vector<Variable> variables)
    : variables_(std::move(variables)), row_(variables_.size()), values_(variables_.size()) {}

size_t Points::add_scope(const Map& constants, const std::vector<std::pair<std::string, Expr>>& derived) {
  Scope scope{&constants, constants, {}, {}, {}};
  for (size_t i = 0; i < variables_.size(); ++i) scope.places[variables_[i].name] = i;
  for (const auto& [name, e] : derived) {
    const size_t number = add_form(scope, e, {});
    forms_[number].place = values_.size();
    form_at_.push_back(number);
    values_.emplace_back();
    scope.names.push_back(name);
    scope.forms.push_back(number);
    const Value* const constant = forms_[number].variables.empty() ? eval(number) : nullptr;
    if (constant) {
      scope.known[name] = *constant;
      scope.places.erase(name);
    } else {
      scope.places[name] = forms_[number].place;
    }
  }
  scopes_.push_back(std::move(scope));
  return scopes_.size() - 1;
}

size_t Points::form(size_t scope, const Expr& e, const Extra& extra) {
  const auto [at, is_new] = numbers_.try_emplace(Key{scope, e.tree_.get(), extra}, forms_.size());
  return is_new ? add_form(scopes_[scope], e, extra) : at->second;
}

size_t Points::add_form(const Scope& scope, const Expr& e, const Extra& extra) {
  Form& out = forms_.emplace_back();
  out.source = e;
  std::set<size_t> read, variables;
  if (e.tree_) {
    std::optional<Bindings> tuned;
    if (extra.tuned) tuned.emplace(Bindings{scopes_[*extra.tuned].places, scopes_[*extra.tuned].known});
    const Binder binder(e.tree_->source, {scope.places, scope.known}, extra.entry, tuned ? &*tuned : nullptr);
    out.bound = std::make_shared<const Tree>(Tree{e.tree_->source, binder.bind(e.tree_->root)});
    collect_variables(out.bound->root, read);
  }
  for (const size_t place : read) {
    if (place < variables_.size()) {
      variables.insert(place);
      continue;
    }
    const size_t derived = form_at_[place - variables_.size()];
    out.reads.push_back(derived);
    variables.insert(forms_[derived].variables.begin(), forms_[derived].variables.end());
  }
  out.variables.assign(variables.begin(), variables.end());
  uint64_t combinations = 1;
  for (const size_t v : out.variables) {
    out.strides.push_back(combinations);
    const size_t values = std::max<size_t>(variables_[v].values.size(), 1);
    if (combinations > kMostNumber / values) {
      out.strides.clear();
      combinations = 1;
      break;
    }
    combinations *= values;
  }
  out.known.resize(std::min(combinations, kMostKnown));
  return forms_.size() - 1;
}

const Value* Points::eval(size_t number) {
  const Form& form = forms_[number];
  if (!form.bound) return nullptr;
  uint64_t at = 0;
  for (size_t i = 0; i < form.strides.size(); ++i) at += form.strides[i] * row_[form.variables[i]];
  if (form.strides.empty() && !form.variables.empty()) at = kMostNumber + unnumbered_++;
  Known& known = forms_[number].known[at % form.known.size()];
  if (known.at == at) return known.value ? &*known.value : nullptr;
  known = {at, std::nullopt};
  for (const size_t v : form.variables) values_[v] = variables_[v].values[row_[v]];
  for (const size_t read : form.reads) {
    const Value* const value = eval(read);
    if (!value) return nullptr;
    values_[forms_[read].place] = *value;
  }
  spend(Cost::kExpressions, 1);
  Budget budget;
  const uint64_t before = budget.steps;
  try {
    const Places places(values_);
    known.value = Evaluator(form.bound->source, places, budget).eval(form.bound->root);
  } catch (const Failure&) {
  }
  steps_ += before - budget.steps;
  return known.value ? &*known.value : nullptr;
}

const Value* Points::find(size_t scope, const std::string& name) {
  const Scope& of = scopes_[scope];
  const auto place = of.places.find(name);
  if (place == of.places.end()) {
    const auto constant = of.known.find(name);
    return constant == of.known.end() ? nullptr : &constant->second;
  }
  if (place->second < variables_.size()) return &variables_[place->second].values[row_[place->second]];
  return eval(form_at_[place->second - variables_.size()]);
}

Map Points::names(size_t scope, const Extra& extra, std::optional<size_t> before) const {
  const Scope& of = scopes_[scope];
  Map out = *of.constants;
  for (size_t v = 0; v < variables_.size(); ++v) out[variables_[v].name] = variables_[v].values[row_[v]];
  for (size_t i = 0; i < of.forms.size() && of.forms[i] != before; ++i)
    if (auto value = forms_[of.forms[i]].source.eval(out)) out[of.names[i]] = std::move(*value);
  if (extra.entry) out["entry"] = *extra.entry;
  if (extra.tuned) out["tuned"] = names(*extra.tuned, {});
  return out;
}

Map Points::names_in(const Expr& e, size_t scope, const Extra& extra) {
  Map out;
  for (const std::string& name : e.names()) {
    if (name == "entry" && extra.entry)
      out[name] = *extra.entry;
    else if (name == "tuned" && extra.tuned)
      out[name] = names(*extra.tuned, {});
    else if (const Value* value = find(scope, name))
      out[name] = *value;
  }
  return out;
}

Names Names::with_entry(const Value& item) const {
  Names out = *this;
  out.extra_.entry = &item;
  if (map_) {
    Map names = *map_;
    names["entry"] = item;
    out.own_ = std::make_shared<const Map>(std::move(names));
    out.map_ = out.own_.get();
  }
  return out;
}

Names Names::with_tuned(const Names& tuned) const {
  Names out = *this;
  out.extra_.tuned = tuned.scope_;
  if (map_) {
    Map names = *map_;
    names["tuned"] = *tuned.map_;
    out.own_ = std::make_shared<const Map>(std::move(names));
    out.map_ = out.own_.get();
  }
  return out;
}

template <class F>
auto Names::explained(F evaluate) const {
  return map_ ? evaluate(*map_) : evaluate(points_->names(scope_, extra_));
}

const Value* Names::value(const Expr& e) const {
  return points_ ? points_->eval(points_->form(scope_, e, extra_)) : nullptr;
}

std::optional<Value> Names::find(const std::string& name) const {
  if (points_) {
    const Value* const value = points_->find(scope_, name);
    return value ? std::optional(*value) : std::nullopt;
  }
  const auto at = map_->find(name);
  return at == map_->end() ? std::nullopt : std::optional(at->second);
}

Result<Value> Names::eval(const Expr& e) const {
  if (const Value* v = value(e)) return *v;
  return explained([&](const Map& names) { return e.eval(names); });
}

Result<int64_t> Names::eval_int(const Expr& e) const {
  if (const Value* v = value(e))
    if (const auto number = as_int(*v)) return *number;
  return explained([&](const Map& names) { return e.eval_int(names); });
}

Result<double> Names::eval_number(const Expr& e) const {
  if (const Value* v = value(e))
    if (const auto number = as_number(*v)) return *number;
  return explained([&](const Map& names) { return e.eval_number(names); });
}

Result<bool> Names::check(const Expr& e, std::string* why) const {
  const Value* const v = value(e);
  if (v && (v->truthy() || !why)) return v->truthy();
  if (v) return e.check(points_->names_in(e, scope_, extra_), why);  // thousands of points break a rule
  return explained([&](const Map& names) { return e.check(names, why); });
}

}  // namespace roofgen::expr
