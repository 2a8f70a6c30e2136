#include "tests/cli/killed.h"

namespace roofgen::test::killed_slow_test {

TEST(SlowKilled, TwoHundredTimes) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  expect_to_survive("tune rmsnorm --rows 64 --cols 256 --executor sim --evals 6 --json", 200, 7, Kernels::kOwn);
}

}  // namespace roofgen::test::killed_slow_test
