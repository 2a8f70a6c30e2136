// Words of the command line for the values of an enumeration.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "roofgen/result.h"

namespace roofgen {

template <class Choice>
Result<Choice> parse_choice(const std::string& name, const char* what, std::initializer_list<Choice> choices) {
  std::vector<std::string> names;
  for (const Choice choice : choices) {
    names.emplace_back(to_string(choice));
    if (name == names.back()) return choice;
  }
  return Error{Exit::kUsage, fmt::format("unknown {} \"{}\"{}", what, name, did_you_mean(name, names))};
}

}  // namespace roofgen
