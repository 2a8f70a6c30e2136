// Reads a JSON data file member by member; errors name the member and its position. Base class of the readers of search
// spaces, work formulas and models.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "generator/expr/expr.h"

namespace roofgen {

/// Data for templates: an object is a map; null is no value.
expr::Value to_value(const Json& json);

class JsonReader {
 public:
  explicit JsonReader(const JsonFile& file) : file_(file) {}

 protected:
  Error bad(std::string message, const std::string& near = "") const;
  /// An error at a member of `value`, or at `value` itself.
  Error bad_at(const Json& value, std::string message, const std::string& member = "") const;
  /// `object` is an object and has no members beside `known` and `more`.
  Result<void> only(const Json& object, std::initializer_list<const char*> known,
                    std::initializer_list<const char*> more = {}) const;
  Result<std::string> string(const Json& object, const char* key) const;
  Result<std::string> string_or(const Json& object, const char* key, std::string otherwise) const;
  /// The member, which `is` accepts: "an object" or the like was expected.
  Result<const Json*> member(const Json& object, const char* key, bool (Json::*is)() const noexcept,
                             const char* expected) const;
  Result<bool> boolean(const Json& object, const char* key) const;
  Result<double> number(const Json& object, const char* key, double least, double most) const;
  /// From 0 to `most`.
  Result<int64_t> integer(const Json& object, const char* key, int64_t most) const;
  /// A list of 1 to `most` items.
  Result<const Json*> items(const Json& object, const char* key, size_t most) const;
  /// The member as an array; an empty one when it is absent.
  Result<Json> list(const Json& object, const char* key) const;
  Result<std::vector<std::string>> strings(const Json& object, const char* key) const;
  Result<expr::Expr> parse(const std::string& text) const;
  /// An expression: a string, a number or boolean that stands for itself, or cases [[condition, value], ..., value].
  /// Expressions of `let_` replace their names.
  Result<expr::Expr> expression(const Json& value) const;
  Result<expr::Expr> expression(const Json& object, const char* key) const;
  /// The member as a list of expressions, an empty one when it is absent.
  Result<std::vector<expr::Expr>> expressions(const Json& object, const char* key) const;
  Result<std::pair<std::string, expr::Expr>> pair(const Json& item, const char* what) const;
  /// A list of ["name", "expression"].
  Result<std::vector<std::pair<std::string, expr::Expr>>> pairs(const Json& list, const char* what) const;

  const JsonFile& file_;
  std::map<std::string, expr::Expr> let_;  ///< names for parts of expressions

 private:
  Result<expr::Expr> cases(const Json& list) const;
};

}  // namespace roofgen
