// The subset of JSON Schema used by docs/*.json: type, enum, properties, required, items, additionalProperties. Any
// other keyword in a schema is reported, so that no rule is silently ignored.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace roofgen::test {

/// One line per violation of the schema in the file, with its JSON pointer.
std::vector<std::string> schema_errors(const std::string& file, const Json& value);

}  // namespace roofgen::test
