// One case per artifact of docs/errata.md that a formula can check.
#include <gtest/gtest.h>

#include <set>

#include "tests/roofline/errata/checks.h"

using namespace roofgen::errata;

namespace {

const std::vector<Check>& checks() {
  static const Checks all = [] {
    Checks out;
    bandwidth_article(out);
    gpu_lesson(out);
    kernel_table(out);
    intensity_notebook(out);
    transformer_notes(out);
    return out;
  }();
  return all.list();
}

/// The artifacts with a value.
std::set<int> artifacts() {
  std::set<int> out;
  for (const Check& c : checks()) out.insert(c.artifact);
  return out;
}

class Errata : public testing::TestWithParam<int> {};

}  // namespace

TEST_P(Errata, HasTheRecomputedValue) {
  for (const Check& c : checks()) {
    if (c.artifact != GetParam()) continue;
    EXPECT_EQ(c.got, c.expected) << "artifact " << c.artifact << ": " << c.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Artifact, Errata, testing::ValuesIn(artifacts()),
                         [](const auto& number) { return std::to_string(number.param); });
