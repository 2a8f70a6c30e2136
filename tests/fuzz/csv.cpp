// Reads arbitrary bytes as a roofline table and checks it: no crash, and a printable report.
#include <cstdlib>

#include "roofline/lint/file.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_csv {
FUZZ_TARGET(csv) {
  static const LintKnowledge knowledge = *LintKnowledge::load(DataFiles());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto report = lint_file(text, "t.csv", knowledge, {"h100-sxm"});
  if (!report) return report.error().message.empty() ? std::abort(), 1 : 0;
  if (lint_text(*report).empty() || lint_json(*report).empty()) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_csv
