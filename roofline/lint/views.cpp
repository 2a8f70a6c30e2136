#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "roofline/lint/file.h"

namespace roofgen {
namespace {

std::string count_of(size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

}  // namespace

std::string lint_text(const LintReport& r) {
  std::string out;
  std::map<std::string, size_t> by_rule;
  for (const LintFinding& f : r.findings) {
    out += fmt::format("{}:{}:{}: {} {}: {}\n", r.file, f.where.line, f.where.col, f.rule, f.name, f.text);
    ++by_rule[f.rule];
  }
  if (!r.findings.empty()) out += "\n";
  out += fmt::format("{} in {}\n", count_of(r.findings.size(), "finding"), count_of(r.rows.size(), "row"));
  for (const Rule& rule : rules())
    if (by_rule.count(rule.id)) out += fmt::format("  {} {:>4}  {}\n", rule.id, by_rule[rule.id], rule.title);
  return out;
}

std::string lint_json(const LintReport& r) {
  Json j{{"schema", kLintSchema}, {"file", r.file}, {"rows", r.rows.size()}, {"findings", Json::array()}};
  for (const LintFinding& f : r.findings)
    j["findings"].push_back(
        {{"rule", f.rule}, {"line", f.where.line}, {"column", f.where.col}, {"row", f.name}, {"text", f.text}});
  for (const auto& [list, errors] : {std::pair("errors", &r.errors), {"ignored", &r.ignored}}) {
    j[list] = Json::array();
    for (const Error& e : *errors)
      j[list].push_back({{"line", e.where.line}, {"column", e.where.col}, {"text", e.message}});
  }
  return json_document(j);
}

}  // namespace roofgen
