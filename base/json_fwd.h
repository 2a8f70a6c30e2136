// The name of JSON values, for headers: json.h takes seconds to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace roofgen {

using Json = nlohmann::ordered_json;

}  // namespace roofgen
