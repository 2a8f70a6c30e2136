#include "tests/generator/json_value.h"

#include "base/json.h"
#include "generator/space/json_reader.h"

namespace roofgen::test {

expr::Value to_value(const nlohmann::json& j) { return roofgen::to_value(parse_json(j.dump())); }

expr::Map parse_context(const std::string& json) { return *roofgen::to_value(parse_json(json)).map(); }

}  // namespace roofgen::test
