#include "tuner/recording/t1.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/suggest.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

constexpr size_t kMostExamples = 3;

using Params = std::vector<Combinations::Param>;

std::vector<std::string> names_of(const Params& params) {
  std::vector<std::string> out;
  for (const Combinations::Param& p : params) out.push_back(p.name);
  return out;
}

/// Python's division gives a float, also of ints: `a / b` becomes `a *1.0/ b`, which binds alike.
std::string with_float_division(const std::string& python) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < python.size(); ++i) {
    const char c = python[i];
    if (quote != 0) {
      out += c;
      if (c == '\\' && i + 1 < python.size())
        out += python[++i];
      else if (c == quote)
        quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '/' && python.substr(i, 2) == "//")
      out += "//", ++i;
    else if (c == '/')
      out += "*1.0/";
    else
      out += c;
  }
  return out;
}

/// `[ELEMENT for NAME in LIST if CONDITION]`: where its words and its end are in a text. npos: it has no such word.
struct Comprehension {
  size_t begin, for_word = std::string::npos, in_word = std::string::npos, if_word = std::string::npos,
                end = std::string::npos;
};

/// The bracket at `begin`; only words that are in no inner bracket and no string count.
Comprehension bracket(const std::string& text, size_t begin) {
  Comprehension out{begin};
  const auto in_name = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  const auto is_word = [&](size_t i, std::string_view word) {
    return !in_name(i - 1) && text.compare(i, word.size(), word) == 0 && !in_name(i + word.size());
  };
  int depth = 0;
  char quote = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if ((c == ']' || c == ')') && --depth == 0) {
      out.end = i;
      return out;
    } else if (depth == 1 && out.for_word == std::string::npos) {
      if (is_word(i, "for")) out.for_word = i;
    } else if (depth == 1 && out.in_word == std::string::npos) {
      if (is_word(i, "in")) out.in_word = i;
    } else if (depth == 1 && out.if_word == std::string::npos && is_word(i, "if")) {
      out.if_word = i;
    }
  }
  return out;
}

/// The value of an expression with list comprehensions, each of one `for` and at most one `if`, and none in another.
class ListReader {
 public:
  ListReader(const std::string& text, Where at) : text_(text), at_(std::move(at)) {}

  Result<expr::Value> read() {
    std::string plain = text_;  // with a name of the same length instead of each comprehension
    expr::Map lists;
    for (size_t i = text_.find('['); i != std::string::npos; i = text_.find('[', i + 1)) {
      const Comprehension c = bracket(text_, i);
      if (c.end == std::string::npos || c.in_word == std::string::npos) continue;
      const size_t length = c.end + 1 - i;
      const std::string name = fmt::format("{:_<{}}", fmt::format("_{}", lists.size()), length);
      ROOFGEN_TRY(lists[name], values(c));
      plain.replace(i, length, name);
      i = c.end;
    }
    ROOFGEN_TRY(const expr::Expr whole, expr::Expr::parse(plain, at_));
    return whole.eval(lists);
  }

 private:
  Result<expr::Value> values(const Comprehension& c) const {
    const auto [element_at, element] = part(c.begin + 1, c.for_word);
    const auto [name_at, name] = part(c.for_word + 3, c.in_word);
    const auto [list_at, list] = part(c.in_word + 2, std::min(c.if_word, c.end));
    ROOFGEN_TRY(const expr::Expr each, expr::Expr::parse(element, element_at));
    ROOFGEN_TRY(const expr::Expr variable, expr::Expr::parse(name, name_at));
    if (variable.names() != std::vector<std::string>{name})
      return Error{Exit::kUsage, fmt::format("expected a name between \"for\" and \"in\", found \"{}\"", name),
                   name_at};
    ROOFGEN_TRY(const expr::Expr items, expr::Expr::parse(list, list_at));
    ROOFGEN_TRY(const expr::Value all, items.eval({}));
    if (!all.list()) return Error{Exit::kUsage, fmt::format("expected a list, found {}", all.type_name()), list_at};
    std::optional<expr::Expr> filter;
    if (c.if_word != std::string::npos) {
      const auto [filter_at, condition] = part(c.if_word + 2, c.end);
      ROOFGEN_TRY(filter, expr::Expr::parse(condition, filter_at));
    }
    expr::List out;
    for (const expr::Value& item : *all.list()) {
      const expr::Map scope = {{name, item}};
      if (filter) {
        ROOFGEN_TRY(const bool wanted, filter->check(scope));
        if (!wanted) continue;
      }
      ROOFGEN_TRY(out.emplace_back(), each.eval(scope));
    }
    return expr::Value(std::move(out));
  }

  /// A part of the text without the spaces around it, and where it begins.
  std::pair<Where, std::string> part(size_t begin, size_t end) const {
    while (begin < end && text_[begin] == ' ') ++begin;
    while (end > begin && text_[end - 1] == ' ') --end;
    Where at = at_;
    if (at.line > 0) at.col += static_cast<int>(begin);
    return {at, text_.substr(begin, end - begin)};
  }

  const std::string& text_;
  const Where at_;
};

class T1Reader : JsonReader {
 public:
  using JsonReader::JsonReader;

  Result<DescribedSpace> read() const {
    const Json& root = file_.root();
    if (!root.is_object() || !root.contains("ConfigurationSpace"))
      return bad_at(root, "expected a T1 file: an object with \"ConfigurationSpace\"");
    const Json& space = root["ConfigurationSpace"];
    if (!space.is_object() || !space.contains("TuningParameters") || !space["TuningParameters"].is_array() ||
        space["TuningParameters"].empty())
      return bad_at(root, "expected a list \"TuningParameters\" of at least one parameter", "ConfigurationSpace");
    DescribedSpace out;
    for (const Json& parameter : space["TuningParameters"]) {
      ROOFGEN_TRY(Combinations::Param param, this->parameter(parameter));
      if (std::ranges::count(out.params, param.name, &Combinations::Param::name) > 0)
        return bad_at(parameter, fmt::format("\"{}\" occurs twice", param.name), "Name");
      out.params.push_back(std::move(param));
    }
    std::vector<expr::Expr> conditions;
    if (space.contains("Conditions") && !space["Conditions"].is_array())
      return bad_at(space, "expected a list as \"Conditions\"", "Conditions");
    if (space.contains("Conditions"))
      for (const Json& c : space["Conditions"]) {
        ROOFGEN_TRY(conditions.emplace_back(), condition(c, out.params));
      }
    const expr::Map no_constants;
    Combinations combinations(out.params);
    combinations.add(no_constants, {}, conditions);
    ROOFGEN_TRY(out.legal, combinations.find());
    return out;
  }

 private:
  Result<Combinations::Param> parameter(const Json& json) const {
    ROOFGEN_TRY(std::string name, string(json, "Name"));
    ROOFGEN_TRY(const std::string type, string(json, "Type"));
    ROOFGEN_TRY(const std::string text, string(json, "Values"));
    const std::vector<std::string> types = {"int", "uint", "float", "bool", "string"};
    if (std::ranges::count(types, type) == 0)
      return bad_at(json, fmt::format("unknown type \"{}\"{}", type, did_you_mean(type, types)), "Type");
    const Result<expr::Value> value = ListReader(text, inside(json, "Values")).read();
    if (!value) {
      Error error = value.error();
      error.notes.clear();  // the line of the file is shown, not a part of the text
      return error;
    }
    const expr::List* list = value->list();
    if (!list || list->empty()) return bad_at(json, "expected a list of values, such as \"[16, 32]\"", "Values");
    Combinations::Param out{std::move(name), {}};
    for (const expr::Value& v : *list) {
      const bool number = v.as<int64_t>() || (type == "float" && v.as<double>());
      const bool fits = type == "string" ? v.as<std::string>() != nullptr
                        : type == "bool" ? v.as<bool>() != nullptr
                                         : number && (type != "uint" || *v.as<int64_t>() >= 0);
      if (!fits) return bad_at(json, fmt::format("expected values of the type {}, found {}", type, v.str()), "Values");
      out.values.push_back(v);
    }
    return out;
  }

  Result<expr::Expr> condition(const Json& json, const Params& params) const {
    ROOFGEN_TRY(const std::string text, string(json, "Expression"));
    const Where at = inside(json, "Expression");
    ROOFGEN_TRY(const expr::Expr as_written, expr::Expr::parse(text, at));
    const std::vector<std::string> known = names_of(params);
    for (const std::string& name : as_written.names())
      if (std::ranges::count(known, name) == 0)
        return bad_at(json, fmt::format("undefined name \"{}\"{}", name, did_you_mean(name, known)), "Expression");
    return expr::Expr::parse(with_float_division(text), at);
  }

  /// Where the text of a string member begins.
  Where inside(const Json& object, const char* member) const {
    Where at = file_.place(object.at(member));
    if (at.line > 0) ++at.col;
    return at;
  }
};

/// A value as equal for ints and floats, and for the booleans and numbers that stand for them.
std::string key_of(const expr::Value& v) {
  if (const bool* b = v.as<bool>()) return *b ? "1" : "0";
  if (const auto* i = v.as<int64_t>()) return fmt::format("{}", static_cast<double>(*i));
  if (const auto* d = v.as<double>()) return fmt::format("{}", *d);
  return "\"" + v.str();
}
std::string key_of(const Json& v) {
  if (v.is_boolean()) return v.get<bool>() ? "1" : "0";
  if (v.is_number()) return fmt::format("{}", v.get<double>());
  return "\"" + json_words(v);
}

std::string point_text(const Params& params, const std::vector<uint16_t>& row) {
  std::string out;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].values.size() > 1)
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", params[i].name, params[i].values[row[i]].str());
  return out;
}

}  // namespace

Result<DescribedSpace> read_t1(std::string text, const std::string& file) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), file));
  Result<DescribedSpace> read = T1Reader(json).read();
  if (read) return read;
  Error error = std::move(read).error();
  error.exit = Exit::kUsage;
  if (error.where.file.empty()) error.where = {file, 1, 1};
  if (error.notes.empty()) error.notes = json.excerpt(error.where);
  return error;
}

Result<SpaceComparison> compare(const Recording& recording, const DescribedSpace& space) {
  const Params& params = space.params;
  const auto differ = [](const std::string& why) { return Error{Exit::kUsage, why}; };
  const std::vector<std::string> known = names_of(params);
  for (size_t i = 0; i < recording.names.size(); ++i)
    if (std::ranges::count(known, recording.names[i]) == 0 && recording.values[i].size() > 1)
      return differ(fmt::format("the description has no parameter \"{}\" of the recording{}", recording.names[i],
                                did_you_mean(recording.names[i], known)));
  // Of each parameter of the description: its place in the recording, and the index of each recorded value.
  std::vector<std::optional<size_t>> place;
  std::vector<std::vector<std::optional<uint16_t>>> index;
  for (const Combinations::Param& p : params) {
    const auto name = std::ranges::find(recording.names, p.name);
    index.emplace_back();
    if (name == recording.names.end()) {
      if (p.values.size() > 1)
        return differ(fmt::format("the recording has no parameter \"{}\" of the description{}", p.name,
                                  did_you_mean(p.name, recording.names)));
      place.emplace_back();
      continue;
    }
    place.emplace_back(name - recording.names.begin());
    for (const Json& v : recording.values[*place.back()]) {
      const auto same = std::ranges::find_if(p.values, [&](const expr::Value& x) { return key_of(x) == key_of(v); });
      index.back().push_back(same == p.values.end() ? std::nullopt
                                                    : std::optional(static_cast<uint16_t>(same - p.values.begin())));
    }
  }
  SpaceComparison out;
  out.combinations = space.legal.considered;
  out.legal = space.legal.number;
  // Legal rows are in the order of the product, which is that of their indices.
  const auto legal_row = [&](size_t i) {
    const auto begin = space.legal.rows.begin() + static_cast<ptrdiff_t>(i * params.size());
    return std::vector<uint16_t>(begin, begin + static_cast<ptrdiff_t>(params.size()));
  };
  std::vector<bool> recorded(space.legal.number);
  for (const Recording::Point& point : recording.points) {
    std::vector<uint16_t> row;
    for (size_t i = 0; i < params.size(); ++i) {
      const std::optional<uint16_t> value = place[i] ? index[i][point.row[*place[i]]] : 0;
      if (!value) break;
      row.push_back(*value);
    }
    size_t low = 0, high = space.legal.number;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      (legal_row(middle) < row ? low = middle + 1 : high = middle);
    }
    if (row.size() == params.size() && low < space.legal.number && legal_row(low) == row) {
      recorded[low] = true;
      continue;
    }
    if (++out.illegal > kMostExamples) continue;
    std::string text;
    for (size_t i = 0; i < recording.names.size(); ++i)
      if (recording.values[i].size() > 1)
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", recording.names[i],
                            json_words(recording.values[i][point.row[i]]));
    out.illegal_examples.push_back(std::move(text));
  }
  for (size_t i = 0; i < recorded.size(); ++i)
    if (!recorded[i] && ++out.unrecorded <= kMostExamples)
      out.unrecorded_examples.push_back(point_text(params, legal_row(i)));
  return out;
}

}  // namespace roofgen
