// Expressions that are evaluated at many points: names are numbers, what is constant has been evaluated, and an
// expression is evaluated once for each combination of the variables that it reads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "generator/expr/expr.h"

namespace roofgen::expr {

struct Variable {
  std::string name;
  std::vector<Value> values;
};

/// The points of a product of variables, and scopes over them. One point is the current one. For one thread.
class Points {
 public:
  explicit Points(std::vector<Variable> variables);

  /// Constants, which must outlive this, the variables, and derived names, each of which may read those before it.
  size_t add_scope(const Map& constants, const std::vector<std::pair<std::string, Expr>>& derived);
  /// Of the derived names of a scope, in their order.
  const std::vector<size_t>& forms_of(size_t scope) const { return scopes_[scope].forms; }

  /// What an expression may read beside the names of its scope.
  struct Extra {
    const Value* entry = nullptr;  ///< `entry`; outlives this
    std::optional<size_t> tuned;   ///< `tuned`: the names of this scope
    bool operator==(const Extra&) const = default;
  };
  /// The number of an expression in a scope: the same for the same expression.
  size_t form(size_t scope, const Expr& e) { return form(scope, e, Extra()); }
  size_t form(size_t scope, const Expr& e, const Extra& extra);
  /// The variables that the value depends on, ascending.
  const std::vector<size_t>& variables(size_t form) const { return forms_[form].variables; }

  void move(size_t variable, size_t value) { row_[variable] = value; }
  /// Nothing: the evaluation fails, or that of a derived name that it reads. Valid until the next call.
  const Value* eval(size_t form);
  /// The value of a name; nothing: it has none.
  const Value* find(size_t scope, const std::string& name);
  /// All names at the current point; derived names without a value are absent. `before`: only derived names before it.
  Map names(size_t scope, const Extra& extra, std::optional<size_t> before = {}) const;
  /// Of these names, what an evaluation of `e` that succeeds may read.
  Map names_in(const Expr& e, size_t scope, const Extra& extra);

  uint64_t steps() const { return steps_; }  ///< of all evaluations

 private:
  struct Known {
    uint64_t at = UINT64_MAX;
    std::optional<Value> value;
  };
  struct Form {
    std::shared_ptr<const Tree> bound;
    Expr source;                    ///< also keeps its tree, by which it is found
    std::vector<size_t> reads;      ///< derived names: forms
    std::vector<size_t> variables;  ///< also of these names
    std::vector<uint64_t> strides;  ///< of the variables; empty: they have too many combinations to number
    std::vector<Known> known;       ///< by the number of the combination modulo the size
    size_t place = 0;               ///< of a derived name: in values_
  };
  struct Scope {
    const Map* constants;
    Map known;                             ///< with the derived names that do not vary
    std::map<std::string, size_t> places;  ///< of the names that vary, in values_
    std::vector<std::string> names;        ///< derived
    std::vector<size_t> forms;             ///< of the derived names
  };
  struct Key {
    size_t scope;
    const Tree* tree;
    Extra extra;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const;
  };

  size_t add_form(const Scope& scope, const Expr& e, const Extra& extra);

  std::vector<Variable> variables_;
  std::vector<Scope> scopes_;
  std::vector<Form> forms_;
  std::unordered_map<Key, size_t, Hash> numbers_;
  std::vector<size_t> row_;      ///< the current point
  std::vector<Value> values_;    ///< of the variables, then of the derived names: what an evaluation reads
  std::vector<size_t> form_at_;  ///< the form of each derived name in values_
  uint64_t steps_ = 0, unnumbered_ = 0;
};

/// The names by which the expressions of one point are evaluated: a map, or the current point of a scope. Errors are
/// those of Expr.
class Names {
 public:
  Names(const Map& map) : map_(&map) {}
  Names(Points& points, size_t scope) : points_(&points), scope_(scope) {}
  /// With the name `entry`. The item must outlive all use.
  Names with_entry(const Value& item) const;
  /// With the names of `tuned` below `tuned`: both are maps, or scopes of the same points.
  Names with_tuned(const Names& tuned) const;

  std::optional<Value> find(const std::string& name) const;
  Result<Value> eval(const Expr& e) const;
  Result<int64_t> eval_int(const Expr& e) const;
  Result<double> eval_number(const Expr& e) const;
  Result<bool> check(const Expr& e, std::string* why = nullptr) const;

 private:
  const Value* value(const Expr& e) const;
  template <class F>
  auto explained(F evaluate) const;

  const Map* map_ = nullptr;
  std::shared_ptr<const Map> own_;  ///< what map_ points to, where a name was added
  Points* points_ = nullptr;
  size_t scope_ = 0;
  Points::Extra extra_;
};

}  // namespace roofgen::expr
