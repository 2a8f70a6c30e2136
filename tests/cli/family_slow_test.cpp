// A family of attention problems with all variants.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::family_slow_test {

TEST(SlowFamily, AttentionOfFourLengths) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const Outcome o = home.run(
      "tune attention --L 100,128,256,512 --d 64 --batch 1 --heads 8 --evals 12 --executor sim --device h200-sxm "
      "--json");
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json table = parse_json(o.out);
  ASSERT_EQ(table["shapes"].size(), 4u);
  for (const Json& shape : table["shapes"]) {
    EXPECT_GE(shape["ratio"].get<double>(), 1);
    EXPECT_LE(shape["ratio"].get<double>(), 1.02);
  }
}

}  // namespace roofgen::test::family_slow_test
