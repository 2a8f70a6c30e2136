#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "generator/expr/expr.h"

namespace roofgen::test {

/// JSON -> Value; an integer beyond int64 is a mistake in the test and throws.
expr::Value to_value(const nlohmann::json& j);
/// A JSON object -> the names of a scope.
expr::Map parse_context(const std::string& json);

}  // namespace roofgen::test
