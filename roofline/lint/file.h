// Reads a user's roofline table, turns its rows into claims and checks them.
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

/// The catalogue and formulas that rows are checked against. Load it once.
struct LintKnowledge {
  std::vector<Device> devices;
  std::map<std::string, WorkFormula> formulas;
  std::vector<std::string> dims, flags;  ///< of all formulas
  static Result<LintKnowledge> load(const DataFiles& files);
};

/// A valid row. Its claim points into `work` and into the LintKnowledge.
struct LintRow {
  Claim claim;
  std::map<std::string, Where> cells;  ///< position of each field; "" is the row's name
  std::shared_ptr<const OpWork> work;
};

struct LintFinding {
  std::string rule, text, name;
  Where where;
  size_t row = 0;  ///< index into LintReport::rows
};

struct LintReport {
  std::string file;
  std::vector<LintRow> rows;
  std::vector<LintFinding> findings;  ///< ordered by position in the file
  std::vector<Error> errors;          ///< unreadable rows, ordered by position
  std::vector<Error> ignored;         ///< unknown columns with a similar known name
};

struct LintOptions {
  std::string device;  ///< for rows without a device; empty: none
};

/// Reads and checks a table (CSV or Markdown). Exit::kUsage when the text as a whole cannot be checked: a bad header,
/// an exceeded limit, an unknown device in the options. `knowledge` must outlive the report.
Result<LintReport> lint_file(std::string_view text, const std::string& file, const LintKnowledge& knowledge,
                             const LintOptions& options = {});

inline constexpr const char* kLintSchema = "roofgen.lint.1";
/// `FILE:LINE:COL: R08 kv_b: text` for each finding, then one line per rule.
std::string lint_text(const LintReport& report);
std::string lint_json(const LintReport& report);

}  // namespace roofgen
