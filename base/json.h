// JSON values, parsed and printed in one file: each file that instantiates the parser or the printer of nlohmann/json
// takes seconds more to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace roofgen {

using Json = nlohmann::ordered_json;

/// A discarded value where `text` is not valid JSON. For text that roofgen has written; JsonFile reads files of users.
Json parse_json(std::string_view text);
/// In one line. Bytes that are not UTF-8, as in names of files, are replaced, here and below.
std::string json_line(const Json& value);
/// Indented, with a newline at the end.
std::string json_document(const Json& value, int indent = 2);
/// A string without quotes, any other value in one line.
std::string json_words(const Json& value);

}  // namespace roofgen
