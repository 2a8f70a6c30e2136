// Reads arbitrary bytes as a roofline table and checks it: no crash, and a printable report.
#include <cstdlib>

#include "roofline/lint/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const roofgen::LintKnowledge knowledge = *roofgen::LintKnowledge::load(roofgen::DataFiles());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto report = roofgen::lint_file(text, "t.csv", knowledge, {"h100-sxm"});
  if (!report) return report.error().message.empty() ? std::abort(), 1 : 0;
  if (roofgen::lint_text(*report).empty() || roofgen::lint_json(*report).empty()) std::abort();
  return 0;
}
