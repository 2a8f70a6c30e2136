// A user's roofline table: read, understood as claims, checked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/generate.h"
#include "roofline/lint/lint.h"
#include "roofline/work.h"

namespace roofgen {

/// What the rows of a table are held against. Load it once.
struct LintKnowledge {
  std::vector<Device> devices;
  std::map<std::string, WorkFormula> formulas;
  std::vector<std::string> dims, flags;  ///< of all formulas
  static Result<LintKnowledge> load(const DataFiles& files);
};

/// One valid row. Its claim points into `work` and into the knowledge.
struct LintRow {
  Claim claim;
  std::map<std::string, Where> cells;  ///< by field; "" is the row's name
  std::shared_ptr<const OpWork> work;
};

struct LintFinding {
  std::string rule, text, name;
  Where where;
  size_t row = 0;  ///< of LintReport::rows
};

struct LintReport {
  std::string file;
  std::vector<LintRow> rows;
  std::vector<LintFinding> findings;  ///< by place in the file
  std::vector<Error> errors;          ///< rows that could not be read, by place
  std::vector<Error> ignored;         ///< columns that are none of ours but nearly so
};

struct LintOptions {
  std::string device;  ///< of rows that name none; empty: none
};

/// Reads and checks a table (CSV or Markdown). Exit::kUsage for what makes the whole text no table of ours: a
/// fault of the header, a limit passed, an unknown device in the options. `knowledge` must outlive the
/// report.
Result<LintReport> lint_file(std::string_view text, const std::string& file, const LintKnowledge& knowledge,
                             const LintOptions& options = {});

inline constexpr const char* kLintSchema = "roofgen.lint.1";
/// `FILE:LINE:COL: R08 kv_b: text` for each finding, then one line per rule.
std::string lint_text(const LintReport& report);
std::string lint_json(const LintReport& report);

}  // namespace roofgen
