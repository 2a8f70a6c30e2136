// The functions and filters of the language: one table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/eval.h"

namespace roofgen::expr {

struct Builtin {
  const char* name;
  bool function, filter;   ///< allowed as name(x), as x|name
  int min_args, max_args;  ///< max_args -1: any number
  Value (*apply)(const std::vector<Value>& args, const Site& site);
};

const Builtin* find_function(std::string_view name);
const Builtin* find_filter(std::string_view name);
std::vector<std::string> function_names();
std::vector<std::string> filter_names();

}  // namespace roofgen::expr
