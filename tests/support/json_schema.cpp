#include "tests/support/json_schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace roofgen::test {
namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

/// Appends one line per violation with its JSON pointer.
void validate(const Json& root, const Json& schema, const Json& value, const std::string& at,
              std::vector<std::string>& errors) {
  static const std::set<std::string> kKnown = {
      "type",    "enum",  "properties",  "required", "items", "additionalProperties",
      "$schema", "title", "description", "$defs"};
  if (schema.contains("$ref") && schema.size() == 1)
    return validate(root, root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), value, at, errors);
  for (const auto& [key, unused] : schema.items())
    if (!kKnown.count(key)) errors.push_back(at + ": schema keyword " + key + " is not checked");
  if (schema.contains("enum")) {
    bool found = false;
    for (const Json& allowed : schema["enum"]) found |= allowed == value;
    if (!found) errors.push_back(at + ": " + json_line(value) + " is not one of " + json_line(schema["enum"]));
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    bool matches = false;
    for (const Json& t : types) matches |= has_type(value, t.get<std::string>());
    if (!matches) errors.push_back(at + ": " + json_line(value).substr(0, 40) + " is not of type " + json_line(types));
  }
  if (value.is_object()) {
    for (const Json& name : schema.value("required", Json::array()))
      if (!value.contains(name.get<std::string>()))
        errors.push_back(at + ": " + name.get<std::string>() + " is missing");
    for (const auto& [key, member] : value.items()) {
      const std::string place = at + "/" + key;
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        validate(root, schema["properties"][key], member, place, errors);
      } else if (schema.contains("additionalProperties")) {
        const Json& more = schema["additionalProperties"];
        if (more.is_boolean()) {
          if (!more.get<bool>()) errors.push_back(place + ": not in the schema");
        } else {
          validate(root, more, member, place, errors);
        }
      }
    }
  }
  if (value.is_array() && schema.contains("items"))
    for (size_t i = 0; i < value.size(); ++i)
      validate(root, schema["items"], value[i], at + "/" + std::to_string(i), errors);
}

}  // namespace

void expect_schema(const std::string& name, const Json& value) {
  std::ifstream in(ROOFGEN_SOURCE_DIR "/docs/" + name + "-schema.json");
  std::vector<std::string> errors;
  const Json schema = parse_json(std::string(std::istreambuf_iterator<char>(in), {}));
  validate(schema, schema, value, "", errors);
  for (const std::string& e : errors) ADD_FAILURE() << e;
}

}  // namespace roofgen::test
