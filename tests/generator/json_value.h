#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "generator/expr/expr.h"

namespace roofgen::test {

/// JSON -> Value; throws for an integer beyond int64, which is a mistake in the test.
expr::Value to_value(const nlohmann::json& j);
/// A JSON object -> a scope.
expr::Map parse_context(const std::string& json);

}  // namespace roofgen::test
