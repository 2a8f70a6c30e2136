// Planted designs (tests/cli/planted/*.mutants): `tune` must reject every candidate of a wrong one on its default
// checks, and verify the right ones. Edits are of files below the source folder, at each place that has the code.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "tests/cli/program.h"
#include "tests/support/code.h"
#include "tests/support/mutants.h"
#include "tests/support/patterns.h"

namespace roofgen::test::planted_test {
namespace {

/// The files that the mutant changes, with its edits.
std::map<std::string, std::string> edited_files(const Mutant& m) {
  std::map<std::string, std::string> out;
  for (const Edit& edit : m.edits) {
    std::string& text = out[edit.file];
    if (std::ifstream in(std::string(ROOFGEN_SOURCE_DIR "/") + edit.file); text.empty())
      text.assign(std::istreambuf_iterator<char>(in), {});
    const auto places = find_code(text, edit.from);
    EXPECT_FALSE(places.empty()) << m.name << ": " << edit.file << " does not contain " << edit.from;
    for (auto at = places.rbegin(); at != places.rend(); ++at) text.replace(at->first, at->second - at->first, edit.to);
  }
  return out;
}

class Planted : public testing::TestWithParam<Mutant> {};

TEST_P(Planted, DesignsAreToldApart) {
  const Mutant& m = GetParam();
  const Home home;
  for (const auto& [file, text] : edited_files(m)) home.write("edited/" + file, text);
  if (HasFailure()) return;
  const std::string edited = m.edits.empty() ? "" : " --data-dir edited";
  const Outcome o = home.run("tune " + m.run + " --evals 1 --executor sim" + edited, kClosedForm);
  if (m.fate == Fate::kVerified) {
    EXPECT_EQ(o.exit, 0) << o.out << o.err;
    EXPECT_EQ(substituted(o.err, "roofgen: (preparing|[^:\n]+: \\d+ of \\d+[^\n]*)\n", ""), "") << "more than progress";
  } else {
    EXPECT_EQ(o.exit, 1) << m.because << "\n" << o.out << o.err;
    EXPECT_NE(o.err.find("nothing was verified: verify: "), std::string::npos) << o.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Planted, testing::ValuesIn(mutants_below("tests/cli/planted")),
                         [](const auto& test) { return test.param.name; });

TEST(PlantedFiles, AreWellFormed) { expect_mutants_well_formed("tests/cli/planted"); }
TEST(PlantedFiles, ChangeCodeThatIsThere) {
  for (const Mutant& m : mutants_below("tests/cli/planted")) edited_files(m);
}

}  // namespace
}  // namespace roofgen::test::planted_test
