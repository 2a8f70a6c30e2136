// roofgen lint FILE: a user's roofline table checked against the rules.
#include <fmt/format.h>

#include "base/csv.h"
#include "cli/cli.h"
#include "roofline/lint/file.h"

namespace roofgen::cli {
namespace {

struct LintFlags {
  std::string file, device;
  bool json = false, keep_going = false;
};

Result<Exit> run(const Terminal& terminal, const LintFlags& flags) {
  ROOFGEN_TRY(const LintKnowledge knowledge, LintKnowledge::load(DataFiles(terminal.data_dirs)));
  ROOFGEN_TRY(const std::string text, read_input(flags.file, TableLimits{}.bytes));
  ROOFGEN_TRY(const LintReport report, lint_file(text, flags.file, knowledge, {flags.device}));
  for (const Error& e : report.ignored)
    fmt::print(stderr, "{}:{}:{}: note: {}\n", e.where.file, e.where.line, e.where.col, e.message);
  if (!report.errors.empty() && !flags.keep_going) {
    Error first = report.errors.front();
    if (report.errors.size() > 1)
      first.notes.push_back(
          fmt::format("  and {} more; --keep-going shows all, and checks the other rows", report.errors.size() - 1));
    return first;
  }
  for (const Error& e : report.errors) fmt::print(stderr, "roofgen: {}\n", to_string(e));
  fmt::print("{}", flags.json ? lint_json(report) : lint_text(report));
  return !report.errors.empty() ? Exit::kUsage : report.findings.empty() ? Exit::kOk : Exit::kFailed;
}

}  // namespace

Run declare_lint(FlagSet app) {
  auto flags = std::make_shared<LintFlags>();
  app.add("file", flags->file, "CSV (comma, semicolon or tab) or a Markdown document with tables; - for standard input")
      .required();
  app.add("--device", flags->device, "device of rows that name none");
  app.add_switch("--json", flags->json, "as JSON (docs/use/lint.md)");
  app.add_switch("--keep-going", flags->keep_going, "report every row that cannot be read, and check the others");
  app.footer(
      "Example: roofgen lint kernels.csv --device h100-sxm\nExit code: 0 nothing found, 1 findings, 2 the "
      "table could not be read. docs/use/lint.md has the rules and the columns.");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli
