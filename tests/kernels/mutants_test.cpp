// Every mutant of templates/*/*.mutants must be caught: by a finding of the simulator, or by the comparison with a wide
// margin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/kernels/expect_caught.h"
#include "tests/kernels/mutant_run.h"

namespace roofgen::test::mutants_test {
namespace {

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  const auto made = run_of(m);
  ASSERT_TRUE(made) << to_string(made.error());
  expect_caught(run(made->request), m.fate, m.margin);
}

INSTANTIATE_TEST_SUITE_P(Templates, Mutants, testing::ValuesIn(mutants_below("templates")),
                         [](const auto& test) { return test.param.name; });

/// Otherwise a mutant could be caught for another reason than its bug.
class WithoutBugs : public testing::TestWithParam<Mutant> {};

TEST_P(WithoutBugs, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto made = run_of(GetParam());
  ASSERT_TRUE(made) << to_string(made.error());
  made->request.edits.clear();
  const auto runs = run(made->request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

INSTANTIATE_TEST_SUITE_P(Templates, WithoutBugs, testing::ValuesIn(different_runs()),
                         [](const auto& test) { return test.param.name; });

TEST(MutantFiles, AreWellFormed) { expect_mutants_well_formed("templates"); }

TEST(MutantFiles, AWrongLineIsAnError) {
  const auto error_of = [](const std::string& text) {
    const std::filesystem::path file = testing::TempDir() + "/wrong.mutants";
    std::ofstream(file) << text;
    const auto read = read_mutants(file);
    std::filesystem::remove(file);
    return read ? "" : to_string(read.error());
  };
  EXPECT_EQ(error_of("finding: bug\n  in a\n  - b\n  + c\n"), "");
  EXPECT_THAT(error_of("comparision: bug\n"), testing::HasSubstr("wrong.mutants:1:1: error: run, margin, or finding"));
  EXPECT_THAT(error_of("either: bug\n  - a\n"), testing::HasSubstr(":2:1: error: with, because or in was expected"));
  EXPECT_THAT(error_of("either: bug\n\neither: other\n  in a\n  - a\n"),
              testing::HasSubstr(":1:1: error: a bug has edits"));
}

}  // namespace
}  // namespace roofgen::test::mutants_test
