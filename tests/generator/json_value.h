#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "generator/expr/expr.h"

namespace roofgen::test {

/// The same of the JSON type of the reference.
expr::Value to_value(const nlohmann::json& j);
/// A JSON object -> a scope.
expr::Map parse_context(const std::string& json);

}  // namespace roofgen::test
