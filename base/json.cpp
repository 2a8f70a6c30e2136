#include "base/json.h"

namespace roofgen {

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

std::string json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string json_document(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_words(const Json& value) { return value.is_string() ? value.get<std::string>() : json_line(value); }

}  // namespace roofgen
