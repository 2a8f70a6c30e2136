#include "tests/kernels/attention_case.h"

#include <fstream>

namespace roofgen::test {
namespace {

InputPattern pattern_of(const std::string& name) {
  for (const InputPattern pattern : {InputPattern::kZeroQuery, InputPattern::kOneHot, InputPattern::kGrowing,
                                     InputPattern::kSpecial, InputPattern::kIntegers})
    if (to_string(pattern) == name) return pattern;
  ADD_FAILURE() << "no input pattern " << name;
  return InputPattern::kNormal;
}

/// Takes the flag --pattern off the end.
AttentionCase case_of(const std::string& line) {
  const std::string flag = " --pattern ";
  AttentionCase out;
  out.name = line.substr(0, line.find(": "));
  out.given = line.substr(out.name.size() + 2);
  if (const size_t at = out.given.find(flag); at != std::string::npos) {
    out.pattern = pattern_of(out.given.substr(at + flag.size()));
    out.given.resize(at);
  }
  return out;
}

}  // namespace

std::vector<AttentionCase> attention_cases(const std::string& section) {
  std::ifstream in(ROOFGEN_SOURCE_DIR "/tests/kernels/attention_cases.txt");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== "))
      inside = line.substr(3) == section;
    else if (!inside || line.empty() || line[0] == '#')
      continue;
    else if (line[0] == ' ' && !lines.empty())
      lines.back() += line.substr(line.find_first_not_of(' ') - 1);
    else
      lines.push_back(line);
  }
  EXPECT_FALSE(lines.empty()) << "no section " << section;
  std::vector<AttentionCase> out;
  for (const std::string& line : lines) out.push_back(case_of(line));
  return out;
}

}  // namespace roofgen::test
