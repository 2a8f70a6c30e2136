#include "tests/generator/json_value.h"

namespace roofgen::test {

expr::Value to_value(const nlohmann::json& j) {
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number_float()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array()) {
    expr::List out;
    for (const auto& item : j) out.push_back(to_value(item));
    return out;
  }
  if (j.is_object()) {
    expr::Map out;
    for (const auto& [key, value] : j.items()) out[key] = to_value(value);
    return out;
  }
  return {};
}

expr::Map parse_context(const std::string& json) { return *to_value(nlohmann::json::parse(json)).map(); }

}  // namespace roofgen::test
