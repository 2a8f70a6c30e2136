// The expression language of templates, constraints of search spaces, launch sizes and work formulas: int64, double,
// bool, string, list, map, with Python's syntax. Strict: an undefined name is an error with a suggestion, an inexact
// division of integers such as `7/2` is an error (`//` floors), integer overflow is an error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {
struct Source;
}

namespace roofgen::expr {

class Value;
using List = std::vector<Value>;
using Map = std::map<std::string, Value>;

/// An immutable value; copying is cheap (lists and maps are shared).
class Value {
 public:
  Value() = default;  ///< none
  Value(bool v) : data_(v) {}
  Value(int v) : data_(int64_t{v}) {}
  Value(int64_t v) : data_(v) {}
  Value(double v) : data_(v) {}
  Value(const char* v) : data_(std::string(v)) {}
  Value(std::string v) : data_(std::move(v)) {}
  Value(List v) : data_(std::make_shared<const List>(std::move(v))) {}
  Value(Map v) : data_(std::make_shared<const Map>(std::move(v))) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const List* list() const {
    auto p = as<std::shared_ptr<const List>>();
    return p ? p->get() : nullptr;
  }
  const Map* map() const {
    auto p = as<std::shared_ptr<const Map>>();
    return p ? p->get() : nullptr;
  }
  bool is_none() const { return data_.index() == 0; }
  bool truthy() const;
  const char* type_name() const;  ///< "int", "float", "bool", "string", "list", "map", "none"
  std::string str() const;        ///< as Python's str() prints it

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, std::shared_ptr<const List>,
               std::shared_ptr<const Map>>
      data_;
};

class Points;
struct Tree;  // the syntax tree, private to this folder and generator/jinja

/// A parsed expression. Copyable, immutable, safe to evaluate from many threads.
class Expr {
 public:
  /// `where`: the position of text[0] in its file, for error messages.
  static Result<Expr> parse(std::string_view text, Where where = {"<expression>", 1, 1});
  /// The value of the first pair whose condition holds, or else `otherwise`: `a if c else b if d else e`.
  static Result<Expr> cases(const std::vector<std::pair<Expr, Expr>>& cases, const Expr& otherwise);
  /// With an expression in the place of each name that `meanings` has.
  Result<Expr> with(const std::map<std::string, Expr>& meanings) const;
  Result<Value> eval(const Map& scope) const;
  Result<int64_t> eval_int(const Map& scope) const;
  Result<double> eval_number(const Map& scope) const;
  /// Evaluates a condition. When it is false, `*why` (if given) gets the failing comparison with
  /// its values, e.g. `smem_bytes <= device.smem_per_block (262144 > 232448)`.
  Result<bool> check(const Map& scope, std::string* why = nullptr) const;
  std::vector<std::string> names() const;  ///< free names, sorted, unique
  const std::string& text() const;

 private:
  friend class Points;
  static Result<Expr> parse(Source source);
  std::shared_ptr<const Tree> tree_;
};

}  // namespace roofgen::expr
