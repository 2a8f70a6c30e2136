#include "generator/json_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/suggest.h"

namespace roofgen {

expr::Value to_value(const Json& j) {
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number_float()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array()) {
    expr::List out;
    for (const Json& item : j) out.push_back(to_value(item));
    return out;
  }
  if (j.is_null()) return {};
  expr::Map out;
  for (const auto& [key, value] : j.items()) out[key] = to_value(value);
  return out;
}

Error JsonReader::bad(std::string message, const std::string& near) const {
  return Error{Exit::kFailed, std::move(message), near.empty() ? Where{file_.file()} : file_.find(near)};
}

Error JsonReader::bad_at(const Json& value, std::string message, const std::string& member) const {
  Where at = file_.place(value, member);
  // Copied values are not in the file's tree: search for the member's text.
  if (at.line == 0 && !member.empty()) at = file_.find(member);
  return Error{Exit::kFailed, std::move(message), std::move(at)};
}

Result<void> JsonReader::only(const Json& object, std::initializer_list<const char*> known,
                              std::initializer_list<const char*> more) const {
  if (!object.is_object()) return bad_at(object, "an object was expected");
  std::vector<std::string> names(known.begin(), known.end());
  names.insert(names.end(), more.begin(), more.end());
  for (const auto& [key, value] : object.items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      return bad_at(object, fmt::format("unknown key \"{}\"{}", key, did_you_mean(key, names)), key);
  return {};
}

Result<std::string> JsonReader::string(const Json& object, const char* key) const {
  if (!object.is_object() || !object.contains(key)) return bad_at(object, fmt::format("\"{}\" is missing", key));
  if (!object[key].is_string()) return bad_at(object, fmt::format("\"{}\" must be a string", key), key);
  return object[key].get<std::string>();
}

Result<std::string> JsonReader::string_or(const Json& object, const char* key, std::string otherwise) const {
  if (object.is_object() && !object.contains(key)) return otherwise;
  return string(object, key);
}

Result<const Json*> JsonReader::member(const Json& object, const char* key, bool (Json::*is)() const noexcept,
                                       const char* expected) const {
  if (!object.is_object() || !object.contains(key)) return bad_at(object, fmt::format("\"{}\" is missing", key));
  if (!(object[key].*is)()) return bad_at(object, fmt::format("\"{}\": {} was expected", key, expected), key);
  return &object[key];
}

Result<bool> JsonReader::boolean(const Json& object, const char* key) const {
  ROOFGEN_TRY(const Json* value, member(object, key, &Json::is_boolean, "true or false"));
  return value->get<bool>();
}

Result<double> JsonReader::number(const Json& object, const char* key, double least, double most) const {
  ROOFGEN_TRY(const Json* value, member(object, key, &Json::is_number, "a number"));
  const double out = value->get<double>();
  if (!(out >= least && out <= most))
    return bad_at(object, fmt::format("\"{}\": a number from {:g} to {:g} was expected", key, least, most), key);
  return out;
}

Result<int64_t> JsonReader::integer(const Json& object, const char* key, int64_t most) const {
  ROOFGEN_TRY(const Json* value, member(object, key, &Json::is_number_integer, "an integer"));
  ROOFGEN_CHECK(number(object, key, 0, static_cast<double>(most)));
  return value->get<int64_t>();
}

Result<const Json*> JsonReader::items(const Json& object, const char* key, size_t most) const {
  ROOFGEN_TRY(const Json* out, member(object, key, &Json::is_array, "a list"));
  if (out->empty() || out->size() > most)
    return bad_at(object, fmt::format("\"{}\" has {} items; 1 to {} were expected", key, out->size(), most), key);
  return out;
}

Result<Json> JsonReader::list(const Json& object, const char* key) const {
  if (!object.is_object()) return bad_at(object, "an object was expected");
  if (!object.contains(key)) return Json::array();
  if (!object[key].is_array()) return bad_at(object, fmt::format("\"{}\" must be a list", key), key);
  return object[key];
}

Result<std::vector<std::string>> JsonReader::strings(const Json& object, const char* key) const {
  ROOFGEN_TRY(const Json items, list(object, key));
  std::vector<std::string> out;
  for (const Json& item : items) {
    if (!item.is_string()) return bad_at(object, fmt::format("\"{}\" is a list of strings", key), key);
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<expr::Expr> JsonReader::parse(const std::string& text) const {
  return expr::Expr::parse(text, file_.find(text));
}

Result<expr::Expr> JsonReader::expression(const Json& object, const char* key) const {
  if (object.is_object() && object.contains(key) && !object[key].is_string())
    return expr::Expr::parse(json_line(object[key]), file_.find(key));
  ROOFGEN_TRY(std::string text, string(object, key));
  return parse(text);
}

Result<std::vector<expr::Expr>> JsonReader::expressions(const Json& object, const char* key) const {
  std::vector<expr::Expr> out;
  if (!object.contains(key)) return out;
  if (!object[key].is_array()) return bad_at(object, fmt::format("\"{}\" must be a list of expressions", key), key);
  for (const Json& item : object[key]) {
    Where at = file_.place(item);
    if (item.is_string()) ++at.col;  // after the quote
    if (!item.is_string() && !item.is_number_integer() && !item.is_boolean())
      return bad_at(item, fmt::format("\"{}\" must be a list of expressions", key));
    ROOFGEN_TRY(expr::Expr e, expr::Expr::parse(item.is_string() ? item.get<std::string>() : json_line(item), at));
    out.push_back(std::move(e));
  }
  return out;
}

Result<std::vector<std::pair<std::string, expr::Expr>>> JsonReader::pairs(const Json& items, const char* what) const {
  std::vector<std::pair<std::string, expr::Expr>> out;
  for (const Json& p : items) {
    if (!p.is_array() || p.size() != 2 || !p[0].is_string() || !p[1].is_string())
      return bad(fmt::format("\"{}\" holds pairs [\"name\", \"expression\"]", what), what);
    ROOFGEN_TRY(expr::Expr e, parse(p[1].get<std::string>()));
    out.emplace_back(p[0].get<std::string>(), std::move(e));
  }
  return out;
}

}  // namespace roofgen
