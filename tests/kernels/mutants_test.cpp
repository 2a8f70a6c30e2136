// Every mutant of templates/*/*.mutants must be caught: by a finding of the simulator, or by the comparison with a wide
// margin.
#include "tests/kernels/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace roofgen::test::mutants_test {
namespace {

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ROOFGEN_SOURCE_DIR "/templates"))
    if (entry.path().extension() == ".mutants") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Mutant> all() {
  std::vector<Mutant> out;
  for (const std::filesystem::path& file : files())
    if (auto read = read_mutants(file)) out.insert(out.end(), read->begin(), read->end());
  return out;
}

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  const auto made = run_of(m);
  ASSERT_TRUE(made) << to_string(made.error());
  expect_caught(run(made->request), m.by, m.least);
}

INSTANTIATE_TEST_SUITE_P(Templates, Mutants, testing::ValuesIn(all()),
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

/// A mutant of each run.
std::vector<Mutant> runs() {
  std::vector<Mutant> out;
  std::set<std::string> seen;
  for (Mutant& m : all())
    if (seen.insert(m.run).second) out.push_back(std::move(m));
  return out;
}

INSTANTIATE_TEST_SUITE_P(Templates, WithoutBugs, testing::ValuesIn(runs()),
                         [](const auto& test) { return test.param.name; });

TEST(MutantFiles, AreWellFormed) {
  std::set<std::string> names;
  for (const std::filesystem::path& file : files()) {
    const auto read = read_mutants(file);
    ASSERT_TRUE(read) << to_string(read.error());
    for (const Mutant& m : *read) EXPECT_TRUE(names.insert(m.name).second) << m.name << " twice";
  }
}

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
  EXPECT_THAT(error_of("either: bug\n  - a\n"), testing::HasSubstr(":2:1: error: run, with or in was expected"));
  EXPECT_THAT(error_of("either: bug\n\neither: other\n  in a\n  - a\n"), testing::HasSubstr(":1:1: error: a mutant without"));
}

}  // namespace
}  // namespace roofgen::test::mutants_test
