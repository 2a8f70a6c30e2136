#include "tuner/session/suite/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/shell.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

constexpr size_t kMostProblems = 100'000;

class SuiteReader : JsonReader {
 public:
  using JsonReader::JsonReader;

  Result<std::vector<SuiteProblem>> read() const {
    const Json& root = file_.root();
    ROOFGEN_CHECK(only(root, {"schema", "common", "problems"}));
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != "roofgen.suite.1")
      return bad_at(root, fmt::format("schema \"{}\"; \"roofgen.suite.1\" was expected", schema), "schema");
    FlagValues common;
    if (root.contains("common")) {
      ROOFGEN_TRY(common, flags(root["common"]));
    }
    if (!root.contains("problems") || !root["problems"].is_array() || root["problems"].empty())
      return bad_at(root, "a list \"problems\" of at least one problem was expected", "problems");
    const Json& problems = root["problems"];
    if (problems.size() > kMostProblems)
      return bad_at(root, fmt::format("{} problems; the limit is {}", problems.size(), kMostProblems), "problems");
    std::vector<SuiteProblem> out;
    for (const Json& p : problems) {
      ROOFGEN_TRY(SuiteProblem problem, one(p));
      for (const auto& flag : common)
        if (!p.contains(flag.first.substr(2))) problem.flags.push_back(flag);
      out.push_back(std::move(problem));
    }
    return out;
  }
  Result<SuiteProblem> read_one() const { return one(file_.root()); }

 private:
  Result<SuiteProblem> one(const Json& p) const {
    SuiteProblem problem;
    if (!p.is_object() || !p.contains("op") || !p["op"].is_string())
      return bad_at(p, "a problem such as {\"op\": \"attention\", \"L\": 2048, \"d\": 64} was expected");
    p["op"].get_to(problem.op);
    ROOFGEN_TRY(problem.flags, flags(p));
    problem.at = file_.place(p);
    problem.excerpt = file_.excerpt(problem.at);
    return problem;
  }

  Result<FlagValues> flags(const Json& object) const {
    if (!object.is_object()) return bad_at(object, "an object of flags was expected, such as {\"evals\": 16}");
    FlagValues out;
    for (const auto& [name, value] : object.items()) {
      if (name == "op") continue;
      if (name.empty() || name[0] == '-' ||
          name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
              std::string::npos)
        return bad_at(object, "the name of a flag without its hyphens was expected, such as \"kv-len\"", name);
      std::vector<std::string> values;
      if (value.is_array() && std::ranges::all_of(value, [](const Json& v) { return v.is_number(); })) {
        values.emplace_back();
        for (const Json& v : value) values[0] += (values[0].empty() ? "" : ",") + json_words(v);
      } else if (value.is_array()) {
        for (const Json& v : value) {
          if (!v.is_string()) return bad_at(object, "a list of strings or one of numbers was expected", name);
          values.push_back(v.get<std::string>());
        }
      } else if (value.is_string() || value.is_number()) {
        values.push_back(json_words(value));
      } else if (value.is_object()) {
        return bad_at(object, "a value of a flag was expected: a string, a number, true, false or a list", name);
      } else if (value != true) {
        continue;
      }
      out.emplace_back("--" + name, std::move(values));
    }
    return out;
  }
};

}  // namespace

Result<std::vector<SuiteProblem>> read_suite(std::string text, std::string file) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), std::move(file)));
  return SuiteReader(json).read();
}

Result<SuiteProblem> read_problem(std::string text, std::string file) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), std::move(file)));
  return SuiteReader(json).read_one();
}

Result<std::vector<SuiteProblem>> read_captured(const std::string& text, const std::string& file) {
  std::vector<std::pair<uint64_t, SuiteProblem>> counted;
  std::map<std::string, size_t> known;
  int line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (one.empty()) continue;
    auto problem = read_problem(one, file);
    if (!problem) {
      Error error = std::move(problem).error();
      error.where.line = line;
      error.notes.clear();  // they would number the line as the first
      return error;
    }
    problem->at.line = line;
    problem->excerpt.clear();
    uint64_t count = 1;
    std::erase_if(problem->flags, [&](const auto& flag) {
      if (flag.first != "--count") return false;
      const std::string digits = flag.second.empty() ? "" : flag.second.front();
      uint32_t number = 0;  // so that no sum of a file's counts overflows
      if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc()) count = number;
      return true;
    });
    const auto [at, fresh] = known.emplace(problem->op + " " + shell_words(problem->flags), counted.size());
    if (fresh)
      counted.emplace_back(count, std::move(*problem));
    else
      counted[at->second].first += count;
  }
  if (counted.empty()) return Error{Exit::kFailed, "has no launches", {file}};
  std::ranges::stable_sort(counted, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SuiteProblem> out;
  for (auto& [count, problem] : counted) out.push_back(std::move(problem));
  return out;
}

Error at(const SuiteProblem& problem, Error error) {
  error.where = problem.at;
  error.notes.insert(error.notes.end(), problem.excerpt.begin(), problem.excerpt.end());
  return error;
}

std::string shell_words(const FlagValues& flags) {
  std::string out;
  for (const auto& [name, values] : flags) {
    if (values.empty()) out += " " + name;
    for (const std::string& value : values) out += " " + name + " " + shell_word(value);
  }
  return out.empty() ? out : out.substr(1);
}

Result<Shard> parse_shard(const std::string& text) {
  Shard out;
  const char* const end = text.data() + text.size();
  const auto [slash, bad_index] = std::from_chars(text.data(), end, out.index);
  if (bad_index == std::errc() && slash != end && *slash == '/') {
    const auto [rest, bad_count] = std::from_chars(slash + 1, end, out.count);
    if (bad_count == std::errc() && rest == end && out.index >= 1 && out.index <= out.count) return out;
  }
  return Error{Exit::kUsage, fmt::format("--shard {}: I/N with I from 1 to N was expected, as in 2/8", text)};
}

}  // namespace roofgen
