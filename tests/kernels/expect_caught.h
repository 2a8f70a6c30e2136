// Expectations for tests of mutants.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/run_kernel.h"
#include "tests/support/mutants.h"

namespace roofgen::test {

/// Expects a finding of the simulator or an error above `least` tolerances for a mutant's run.
inline void expect_caught(const Result<std::vector<StageRun>>& runs, Fate by, double least) {
  ASSERT_TRUE(runs) << to_string(runs.error());
  bool found = false;
  double worst = 0;
  for (const StageRun& r : *runs) {
    found |= !r.findings.empty();
    worst = std::max(worst, r.comparison.worst);
  }
  const std::string wrong = what_is_wrong(*runs);
  EXPECT_NE(wrong, "");
  if (by == Fate::kFinding) {
    EXPECT_TRUE(found) << wrong;
  } else if (by == Fate::kComparison || !found) {
    EXPECT_GT(worst, least) << wrong;
  }
  testing::Test::RecordProperty("caught by", wrong);
}

}  // namespace roofgen::test
