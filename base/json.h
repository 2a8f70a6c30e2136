// JSON values, parsed and printed in one file: each file that instantiates the parser or the printer of nlohmann/json
// takes seconds more to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace roofgen {

/// A discarded value where `text` is not valid JSON. For text that roofgen has written; JsonFile reads files of users.
Json parse_json(std::string_view text);
/// In one line. Bytes that are not UTF-8, as in names of files, are replaced, here and below.
std::string json_line(const Json& value);
/// Indented, with a newline at the end.
std::string json_document(const Json& value, int indent = 2);
/// A string without quotes, any other value in one line.
std::string json_words(const Json& value);

}  // namespace roofgen

// ---- Members under their own names ---------------------------------------------------------------
// One list of members serves as keys and as values, in this order.

/// json["a"] = object.a; for each member.
#define ROOFGEN_PUT(json, object, ...) \
  { ROOFGEN_REPEAT(ROOFGEN_EACH(ROOFGEN_PUT_ONE, json, object, __VA_ARGS__)) }
/// The inverse. Throws Json::exception with the name of a member that is missing.
#define ROOFGEN_GET(json, object, ...) \
  { ROOFGEN_REPEAT(ROOFGEN_EACH(ROOFGEN_GET_ONE, json, object, __VA_ARGS__)) }
/// Define to_json and from_json, so that values of the type, also in lists, are JSON values. In the namespace of the
/// type, and in one place: a header where several files need it.
#define ROOFGEN_TO_JSON(Type, ...) \
  inline void to_json(::roofgen::Json& json, const Type& object) { ROOFGEN_PUT(json, object, __VA_ARGS__) }
#define ROOFGEN_FROM_JSON(Type, ...) \
  inline void from_json(const ::roofgen::Json& json, Type& object) { ROOFGEN_GET(json, object, __VA_ARGS__) }
#define ROOFGEN_PUT_ONE(json, object, member) json[#member] = object.member;
#define ROOFGEN_GET_ONE(json, object, member) json.at(#member).get_to(object.member);
#define ROOFGEN_EACH(macro, json, object, member, ...) \
  macro(json, object, member) __VA_OPT__(ROOFGEN_NEXT ROOFGEN_NOTHING()()(macro, json, object, __VA_ARGS__))
#define ROOFGEN_NEXT() ROOFGEN_EACH
#define ROOFGEN_NOTHING()
// The preprocessor expands the next member in each further scan.
#define ROOFGEN_REPEAT(...) ROOFGEN_SCAN_9(ROOFGEN_SCAN_9(ROOFGEN_SCAN_9(__VA_ARGS__)))
#define ROOFGEN_SCAN_9(...) ROOFGEN_SCAN_3(ROOFGEN_SCAN_3(ROOFGEN_SCAN_3(__VA_ARGS__)))
#define ROOFGEN_SCAN_3(...) ROOFGEN_SCAN(ROOFGEN_SCAN(ROOFGEN_SCAN(__VA_ARGS__)))
#define ROOFGEN_SCAN(...) __VA_ARGS__

/// An absent value is null.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(roofgen::Json& json, const std::optional<T>& value) {
    json = value ? roofgen::Json(*value) : roofgen::Json();
  }
  static void from_json(const roofgen::Json& json, std::optional<T>& value) {
    value = json.is_null() ? std::nullopt : std::optional(json.get<T>());
  }
};
