#include "check/skeleton.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <tuple>

#include "base/json.h"
#include "base/shell.h"
#include "check/declarations.h"
#include "check/kernel.h"
#include "generator/expr/expr.h"

namespace roofgen::check {
namespace {

constexpr size_t kMaxSource = size_t{1} << 20, kMaxConstants = 1000;
constexpr uint64_t kElements = 4096, kInteger = 64;  ///< placeholders; kInteger^2 elements fit a buffer

/// The text with blanks for comments and the contents of literals.
std::string without_comments(std::string text) {
  const auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, text.size()); ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "//") == 0 || text.compare(at, 2, "/*") == 0) {
      const bool line = text[at + 1] == '/';
      const size_t end = std::min(text.find(line ? "\n" : "*/", at + 2), text.size());
      blank(at, end + (line ? 0 : 2));
      at = end;
    } else if (text[at] == '"') {
      size_t end = at + 1;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      blank(at + 1, end);
      at = end;
    }
  }
  return text;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

/// The parts between commas outside brackets.
std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '(' || c == '[' || c == '{' || c == '<' ? 1 : c == ')' || c == ']' || c == '}' || c == '>' ? -1 : 0;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

/// The position after the bracket that closes the one at `open`; npos: there is none.
size_t behind(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '{' ? 1 : text[i] == ')' || text[i] == '}' ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return text.npos;
}

/// Integers and dim3s that the source gives names once, as macros or variables.
class Constants {
 public:
  explicit Constants(const std::string& text) {
    static const std::regex form(
        R"((?:#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]{1,200}))|(?:\b(?:int|unsigned|size_t|auto|uint32_t|long)\s+(\w+)\s*(?:=\s*|\()([^;,=]{1,200})[;,])|(?:\bdim3\s+(\w+)\s*(?:=\s*dim3\s*|=\s*)?([({][^;]{0,200}[)}])\s*;))",
        std::regex::optimize);
    size_t found = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end && found < kMaxConstants; ++at) {
      ++found;
      for (const int i : {1, 3, 5})
        if ((*at)[i].matched) add((*at)[i], trimmed((*at)[i + 1].str()), i == 5);
    }
  }

  /// "16,16" of a size, "" if it is not constant.
  std::string size(std::string text) const {
    text = trimmed(text);
    if (const auto known = sizes_.find(text); known != sizes_.end()) return known->second;
    if (text.starts_with("dim3")) text = trimmed(std::string_view(text).substr(4));
    const bool list = !text.empty() && (text[0] == '(' || text[0] == '{') && behind(text, 0) == text.size();
    std::string out;
    for (const std::string& part : list ? parts(text.substr(1, text.size() - 2)) : std::vector{text}) {
      const auto value = integer(part);
      if (!value || *value < 0) return "";
      out += fmt::format("{}{}", out.empty() ? "" : ",", *value);
    }
    return out;
  }

 private:
  std::optional<int64_t> integer(std::string text) const {
    if (text.empty() || text.size() > 400) return std::nullopt;
    static const std::regex type_size(R"(\bsizeof\s*\(\s*(\w+)\s*\))"), cast(R"(\(\s*(?:int|unsigned|size_t)\s*\))"),
        suffix(R"((\d)[uUlL]+\b)"), divide(R"(/+)");
    for (std::smatch m; std::regex_search(text, m, type_size);) {
      static const std::map<std::string, int> bytes{{"float", 4}, {"int", 4},   {"double", 8},   {"char", 1},
                                                    {"half", 2},  {"short", 2}, {"unsigned", 4}, {"float4", 16}};
      const auto known = bytes.find(m[1]);
      if (known == bytes.end()) return std::nullopt;
      text = m.prefix().str() + std::to_string(known->second) + m.suffix().str();
    }
    text = std::regex_replace(std::regex_replace(std::regex_replace(text, cast, ""), suffix, "$1"), divide, "//");
    const auto parsed = expr::Expr::parse(text);
    if (!parsed) return std::nullopt;
    const auto value = parsed->eval_int(integers_);
    return value ? std::optional(*value) : std::nullopt;
  }

  void add(const std::string& name, const std::string& text, bool is_size) {
    // A name with two values is no constant.
    if (is_size) {
      const std::string value = size(text);
      if (const auto [at, fresh] = sizes_.try_emplace(name, value); !fresh && at->second != value) at->second.clear();
      return;
    }
    std::string value = text;
    if (value.ends_with(')') &&
        std::count(value.begin(), value.end(), '(') < std::count(value.begin(), value.end(), ')'))
      value.pop_back();  // int n(5)
    const auto number = integer(value);
    if (const auto [at, fresh] = values_.try_emplace(name, number); !fresh && at->second != number) {
      at->second.reset();
      integers_.erase(name);
    } else if (fresh && number) {
      integers_[name] = expr::Value(*number);
    }
  }

  expr::Map integers_;
  std::map<std::string, std::optional<int64_t>> values_;
  std::map<std::string, std::string> sizes_;
};

struct Parameter {
  std::string name, type;  ///< type: as in a demangled name, where the source tells
};

/// The parameters of a kernel of the source; empty if it is not found.
std::vector<Parameter> parameters_in(const std::string& text, const std::string& kernel) {
  for (const Declaration& d : find_declarations(text).all) {
    if (!d.is_kernel || d.name != kernel) continue;
    const std::string head = text.substr(d.begin, d.end - d.begin);
    if (!head.ends_with('}')) continue;  // a declaration without names
    const std::regex open_of("\\b" + kernel + R"(\s*\()");
    std::smatch m;
    if (!std::regex_search(head, m, open_of)) continue;
    const size_t open = static_cast<size_t>(m.position(0) + m.length(0)) - 1, end = behind(head, open);
    if (end == head.npos) continue;
    std::vector<Parameter> out;
    for (std::string part : parts(std::string_view(head).substr(open + 1, end - open - 2))) {
      part = part.substr(0, part.find('='));
      const bool array = part.find('[') != part.npos;
      part = trimmed(part.substr(0, part.find('[')));
      Parameter p;
      bool constant = false, pointer = array;
      static const std::regex word(R"(\*|[\w:]+)");
      std::vector<std::string> words;
      for (std::sregex_iterator at(part.begin(), part.end(), word), none; at != none; ++at) words.push_back(at->str());
      if (words.empty()) continue;
      if (words.back() != "*") p.name = words.back(), words.pop_back();
      for (const std::string& w : words) {
        constant |= w == "const" && !pointer;
        pointer |= w == "*";
        static const std::set<std::string> skipped{"const",    "volatile", "__restrict__",     "__restrict",
                                                   "restrict", "*",        "__grid_constant__"};
        if (!skipped.count(w)) p.type += (p.type.empty() ? "" : " ") + w;
      }
      p.type += std::string(constant && pointer ? " const" : "") + (pointer ? "*" : "");
      out.push_back(std::move(p));
    }
    return out;
  }
  return {};
}

struct Type {
  std::string element;
  int lanes = 1;
};
/// Of a C++ type; no element if it is none of CUDA's numbers and vectors.
Type type_of(const std::string& type) {
  static const std::map<std::string, const char*> numbers{
      {"float", "f32"},         {"double", "f64"},         {"__half", "f16"},
      {"half", "f16"},          {"__nv_bfloat16", "bf16"}, {"bool", "u8"},
      {"char", "i8"},           {"signed char", "i8"},     {"unsigned char", "u8"},
      {"uchar", "u8"},          {"int8_t", "i8"},          {"uint8_t", "u8"},
      {"short", "i16"},         {"unsigned short", "u16"}, {"ushort", "u16"},
      {"int16_t", "i16"},       {"uint16_t", "u16"},       {"int", "i32"},
      {"unsigned int", "u32"},  {"unsigned", "u32"},       {"uint", "u32"},
      {"int32_t", "i32"},       {"uint32_t", "u32"},       {"long", "i64"},
      {"unsigned long", "u64"}, {"long long", "i64"},      {"unsigned long long", "u64"},
      {"int64_t", "i64"},       {"uint64_t", "u64"},       {"size_t", "u64"},
      {"ulong", "u64"},         {"longlong", "i64"},       {"ulonglong", "u64"},
      {"nv_bfloat16", "bf16"}};
  if (const auto known = numbers.find(type); known != numbers.end()) return {known->second, 1};
  if (type == "dim3") return {"u32", 3};
  if (type.size() > 1 && type.back() >= '2' && type.back() <= '4')
    if (const auto known = numbers.find(type.substr(0, type.size() - 1)); known != numbers.end())
      return {known->second, type.back() - '0'};
  return {};
}

Json argument_of(const std::string& type, const std::string& name, uint64_t bytes) {
  Json j = Json::object();
  if (!name.empty()) j["name"] = name;
  if (type == kTensorMapType || type == "CUtensorMap") {
    j["type"] = "bf16";
    j["size"] = kElements;
    j["fill"] = "random";
    j["map"] = {{"dims", {kInteger, kElements / kInteger}}, {"box", {kInteger, kElements / kInteger}}, {"swizzle", 0}};
    return j;
  }
  if (type == "cudaTextureObject_t" || type == "cudaSurfaceObject_t") {
    j["type"] = "f32";
    j["size"] = kElements;
    j["fill"] = "random";
    j[type[4] == 'T' ? "texture" : "surface"] = {{"dims", {kInteger, kElements / kInteger}}};
    return j;
  }
  if (const size_t array = type.find(" (*)"); array != type.npos)  // T x[][32] is a pointer to arrays of T
    return argument_of(type.substr(0, array) + "*", name, bytes);
  if (type.ends_with('*') || (type.empty() && bytes == 8)) {
    std::string of = type.empty() ? "float" : type.substr(0, type.size() - 1);
    bool constant = false;
    for (const char* qualifier : {" const", " volatile"})
      if (of.ends_with(qualifier)) {
        constant |= qualifier[1] == 'c';
        of.resize(of.size() - std::string_view(qualifier).size());
      }
    const Type element = type_of(of);
    j["type"] = element.element.empty() ? of.ends_with('*') ? "u64" : "u8" : element.element;
    j["size"] = kElements * static_cast<uint64_t>(element.lanes);
    if (constant && (element.element[0] == 'f' || element.element[0] == 'b')) {
      j["fill"] = "random";
    } else if (constant) {
      j["fill"] = "random";
      j["range"] = {0, kInteger - 1};
    }
    return j;
  }
  const Type number = type.empty() && bytes == 4 ? Type{"i32", 1} : type_of(type);
  if (number.element.empty()) {
    j["type"] = "bytes";
    std::string zeros;
    for (uint64_t i = 0; i < bytes; ++i) zeros += i ? " 00" : "00";
    j["value"] = zeros;
    return j;
  }
  const bool floating = number.element[0] == 'f' || number.element[0] == 'b';
  const Json value = floating ? Json(1.0) : Json(bytes_of(*parse_element(number.element)) == 1 ? 1 : kInteger);
  j["type"] = number.element + (number.lanes > 1 ? fmt::format("x{}", number.lanes) : "");
  j["value"] = number.lanes > 1 ? Json(std::vector<Json>(static_cast<size_t>(number.lanes), value)) : value;
  return j;
}

}  // namespace

std::vector<SourceLaunch> launches_in(const std::string& source) {
  if (source.size() > kMaxSource) return {};
  const std::string text = without_comments(source);
  const Constants constants(text);
  std::vector<SourceLaunch> out;
  for (size_t at = text.find("<<<"); at != text.npos; at = text.find("<<<", at + 3)) {
    const size_t end = text.find(">>>", at);
    if (end == text.npos || end - at > 1000) continue;
    // Back over template arguments, to the name.
    size_t name_end = text.find_last_not_of(" \t\r\n", at - (at ? 1 : 0)) + 1;
    if (name_end > 0 && text[name_end - 1] == '>') {
      int depth = 0;
      while (name_end > 0) {
        const char c = text[--name_end];
        depth += c == '>' ? 1 : c == '<' ? -1 : 0;
        if (depth == 0) break;
      }
    }
    size_t name = name_end;
    while (name > 0 && (std::isalnum(static_cast<unsigned char>(text[name - 1])) || text[name - 1] == '_')) --name;
    const std::vector<std::string> sizes = parts(std::string_view(text).substr(at + 3, end - at - 3));
    if (name == name_end || sizes.size() < 2 || sizes.size() > 4) continue;
    SourceLaunch launch{text.substr(name, name_end - name),
                        trimmed(text.substr(at + 3, end - at - 3)),
                        static_cast<int>(1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n')),
                        constants.size(sizes[0]),
                        constants.size(sizes[1]),
                        "0"};
    if (sizes.size() > 2) launch.smem = constants.size(sizes[2]);
    out.push_back(std::move(launch));
  }
  return out;
}

Result<Skeleton> make_skeleton(const Request& r) {
  ROOFGEN_TRY(const Chosen chosen, choose_kernel(r));
  const Entry& entry = chosen.entry;
  Skeleton out;
  out.kernel = entry.name;
  const std::string plain = function_of(entry.mangled).substr(0, entry.name.find('<'));
  const std::string unscoped = plain.substr(plain.rfind(':') == plain.npos ? 0 : plain.rfind(':') + 1);
  std::vector<Parameter> named = parameters_in(without_comments(r.text), unscoped.substr(0, unscoped.find('<')));
  if (named.size() != entry.param_bytes.size()) named.assign(entry.param_bytes.size(), {});
  Json all = Json::array();
  for (size_t i = 0; i < named.size(); ++i) {
    // To the compiler the objects of textures and surfaces are integers.
    const bool is_object = named[i].type == "cudaTextureObject_t" || named[i].type == "cudaSurfaceObject_t";
    all.push_back(argument_of(is_object || entry.param_types.empty() ? named[i].type : entry.param_types[i],
                              named[i].name, entry.param_bytes[i]));
    if (all.back()["type"] == "bytes")
      out.notes.push_back(fmt::format(
          "{} is a struct: {} bytes of zeros, or {{\"type\": \"struct\", \"fields\": [...]}}",
          named[i].name.empty() ? fmt::format("parameter {}", i + 1) : named[i].name, entry.param_bytes[i]));
  }
  out.json = "[";
  for (const Json& argument : all) out.json += (out.json.size() > 1 ? ",\n " : "") + json_line(argument);
  out.json += "]\n";

  SourceLaunch launch;
  for (const SourceLaunch& l : launches_in(r.text))
    if (l.kernel == unscoped.substr(0, unscoped.find('<')) && launch.line == 0) launch = l;
  out.flags = fmt::format("--kernel {}", shell_word(r.kernel.empty() ? entry.name : r.kernel));
  std::string unknown;
  for (const auto& [flag, value, otherwise] : {std::tuple{"--grid", launch.grid, "1"},
                                               {"--block", launch.block, "256"},
                                               {"--smem", launch.line ? launch.smem : "0", "0"}}) {
    if (value.empty() && launch.line) unknown += (unknown.empty() ? "" : ", ") + std::string(flag);
    if (std::string_view(flag) != "--smem" || (value != "0" && !value.empty()))
      out.flags += fmt::format(" {} {}", flag, value.empty() ? otherwise : value);
  }
  if (launch.line && !unknown.empty())
    out.notes.push_back(fmt::format("line {} launches <<<{}>>>, which is not constant: placeholders for {}",
                                    launch.line, launch.text, unknown));
  else if (!launch.line)
    out.notes.push_back("the file launches this kernel nowhere: placeholders for --grid, --block");
  return out;
}

}  // namespace roofgen::check
