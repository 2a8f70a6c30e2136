// The operators on values: Python's results, with errors for overflow and inexact division.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "generator/expr/eval.h"

namespace roofgen::expr {

/// Strings and lists made by expressions stay below these sizes.
constexpr size_t kMaxStringBytes = 1 << 20;
constexpr size_t kMaxListLength = 1 << 16;

Value unary(Op op, const Value& a, const Site& site);
Value binary(Op op, const Value& a, const Value& b, const Site& site);
bool equal(const Value& a, const Value& b, const Site& site);
/// Fails when the two cannot be ordered.
std::partial_ordering order(const Value& a, const Value& b, const Site& site);
bool contains(const Value& container, const Value& item, const Site& site);

std::optional<int64_t> as_int(const Value& v);    ///< of an int or a bool
std::optional<double> as_number(const Value& v);  ///< of an int, bool or float

/// A list value; fails when it nests too deeply to be printed or compared by recursion.
Value make_list(List list, const Site& site);
Value make_string(std::string text, const Site& site);
Value make_float(double v, const Site& site);  ///< fails when v is not finite
/// str(v), charged to the budget and limited in size.
std::string make_text(const Value& v, const Site& site);

}  // namespace roofgen::expr
