// The subset of JSON Schema used by docs/*.json: type, enum, properties, required, items, additionalProperties. Any
// other keyword in a schema is reported, so that no rule is silently ignored.
#pragma once

#include <string>

#include "base/json.h"

namespace roofgen::test {

/// Fails the test with one line per violation of docs/<name>-schema.json, with its JSON pointer.
void expect_schema(const std::string& name, const Json& value);

}  // namespace roofgen::test
