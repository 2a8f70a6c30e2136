#include "generator/space/json_reader.h"

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

Result<expr::Expr> JsonReader::expression(const Json& value) const {
  if (value.is_array()) return cases(value);
  if (!value.is_string() && !value.is_number() && !value.is_boolean())
    return bad_at(value, "an expression was expected: a string, a number, true, false, or a list of cases");
  const std::string text = json_words(value);
  Where at = file_.place(value);
  if (value.is_string() && at.line > 0) ++at.col;  // after the quote
  // Copied values are not in the file's tree.
  ROOFGEN_TRY(expr::Expr e, expr::Expr::parse(text, at.line > 0 ? at : file_.find(text)));
  return e.with(let_);
}

Result<expr::Expr> JsonReader::cases(const Json& list) const {
  if (list.empty() || list.back().is_array())
    return bad_at(list.empty() ? list : list.back(), "the last item of cases is the value where no condition holds");
  std::vector<std::pair<expr::Expr, expr::Expr>> cases;
  for (const Json& item : list) {
    if (&item == &list.back()) break;
    if (!item.is_array() || item.size() != 2) return bad_at(item, "a case [\"condition\", \"value\"] was expected");
    ROOFGEN_TRY(expr::Expr condition, expression(item[0]));
    ROOFGEN_TRY(expr::Expr value, expression(item[1]));
    cases.emplace_back(std::move(condition), std::move(value));
  }
  ROOFGEN_TRY(const expr::Expr otherwise, expression(list.back()));
  return expr::Expr::cases(cases, otherwise);
}

Result<expr::Expr> JsonReader::expression(const Json& object, const char* key) const {
  if (!object.is_object() || !object.contains(key)) return bad_at(object, fmt::format("\"{}\" is missing", key));
  return expression(object[key]);
}

Result<std::vector<expr::Expr>> JsonReader::expressions(const Json& object, const char* key) const {
  std::vector<expr::Expr> out;
  if (!object.contains(key)) return out;
  if (!object[key].is_array()) return bad_at(object, fmt::format("\"{}\" must be a list of expressions", key), key);
  for (const Json& item : object[key]) {
    ROOFGEN_TRY(out.emplace_back(), expression(item));
  }
  return out;
}

Result<std::pair<std::string, expr::Expr>> JsonReader::pair(const Json& item, const char* what) const {
  if (!item.is_array() || item.size() != 2 || !item[0].is_string())
    return bad(fmt::format("\"{}\" holds pairs [\"name\", \"expression\"]", what), what);
  ROOFGEN_TRY(expr::Expr e, expression(item[1]));
  return std::pair(item[0].get<std::string>(), std::move(e));
}

Result<std::vector<std::pair<std::string, expr::Expr>>> JsonReader::pairs(const Json& items, const char* what) const {
  std::vector<std::pair<std::string, expr::Expr>> out;
  for (const Json& item : items) {
    ROOFGEN_TRY(out.emplace_back(), pair(item, what));
  }
  return out;
}

}  // namespace roofgen
