// Lint results for tables given as text.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "roofline/lint/file.h"

namespace roofgen {

inline const LintKnowledge& lint_knowledge() {
  static const LintKnowledge knowledge = *LintKnowledge::load(DataFiles());
  return knowledge;
}

inline LintReport lint_report(const std::string& table, const std::string& device = "") {
  auto report = lint_file(table, "t.csv", lint_knowledge(), {device});
  EXPECT_TRUE(report) << (report ? "" : to_string(report.error()));
  if (!report) return {};
  for (const Error& e : report->errors) ADD_FAILURE() << to_string(e);
  return *report;
}

/// The violated rules, each once: "R01 R08".
inline std::string lint_rules_of(const std::string& table, const std::string& device = "") {
  std::set<std::string> found;
  for (const LintFinding& f : lint_report(table, device).findings) found.insert(f.rule);
  std::string out;
  for (const std::string& rule : found) out += (out.empty() ? "" : " ") + rule;
  return out;
}

/// The text of the only finding of `rule`; empty when there is none or several.
inline std::string lint_text_of(const std::string& rule, const std::string& table, const std::string& device = "") {
  std::string out;
  int n = 0;
  for (const LintFinding& f : lint_report(table, device).findings)
    if (f.rule == rule) out = f.text, ++n;
  return n == 1 ? out : "";
}

}  // namespace roofgen
