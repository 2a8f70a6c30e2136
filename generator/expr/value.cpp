#include <charconv>
#include <cmath>

#include "generator/expr/expr.h"
#include "generator/expr/value_text.h"

namespace roofgen::expr {
namespace {

/// Python's repr of a float: the shortest digits that read back the same; an exponent below 1e-4 and from
/// 1e16.
std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (text[0] == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const char* first = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(first, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return sign + std::string(text);
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= count) return sign + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.insert(static_cast<size_t>(exponent) + 1, ".");
}

/// Python's repr of a string.
void append_quoted(std::string_view s, std::string& out) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  out += quote;
  for (const char c : s) {
    static constexpr char kHex[] = "0123456789abcdef";
    const auto u = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (u < 0x20 || u == 0x7F)
      (((out += "\\x") += kHex[u >> 4]) += kHex[u & 15]);
    else
      out += c;
  }
  out += quote;
}

bool append(const Value& v, std::string& out, size_t limit, bool quoted) {
  if (out.size() > limit) return false;
  if (auto s = v.as<std::string>()) {
    if (quoted)
      append_quoted(*s, out);
    else
      out += *s;
  } else if (auto b = v.as<bool>()) {
    out += *b ? "True" : "False";
  } else if (auto i = v.as<int64_t>()) {
    out += std::to_string(*i);
  } else if (auto d = v.as<double>()) {
    out += float_text(*d);
  } else if (const List* list = v.list()) {
    out += '[';
    for (size_t k = 0; k < list->size(); ++k) {
      if (k) out += ", ";
      if (!append((*list)[k], out, limit, true)) return false;
    }
    out += ']';
  } else if (const Map* map = v.map()) {
    out += '{';
    for (auto it = map->begin(); it != map->end(); ++it) {
      if (it != map->begin()) out += ", ";
      append_quoted(it->first, out);
      out += ": ";
      if (!append(it->second, out, limit, true)) return false;
    }
    out += '}';
  } else {
    out += "None";
  }
  return out.size() <= limit;
}

}  // namespace

bool append_text(const Value& v, std::string& out, size_t limit) { return append(v, out, limit, false); }

bool Value::truthy() const {
  if (auto b = as<bool>()) return *b;
  if (auto i = as<int64_t>()) return *i != 0;
  if (auto d = as<double>()) return *d != 0;
  if (auto s = as<std::string>()) return !s->empty();
  if (auto l = list()) return !l->empty();
  if (auto m = map()) return !m->empty();
  return false;
}

const char* Value::type_name() const {
  static constexpr const char* kNames[] = {"none", "bool", "int", "float", "string", "list", "map"};
  return kNames[data_.index()];
}

std::string Value::str() const {
  std::string out;
  append_text(*this, out, out.max_size());
  return out;
}

}  // namespace roofgen::expr
