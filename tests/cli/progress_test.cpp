#include "cli/progress.h"

#include <gtest/gtest.h>

namespace roofgen::progress_test {
namespace {

using cli::Phase;
using cli::progress_bar;
using cli::progress_text;

TEST(Progress, TellsTheTimeLeftByTheRateOfItsPhase) {
  EXPECT_EQ(progress_text({"verifying", 20, 80, 10, 0}), "verifying: 20 of 80, 30 s left");
  // What a store held when the phase began took no time.
  EXPECT_EQ(progress_text({"verifying", 50, 80, 10, 40}), "verifying: 50 of 80, 30 s left");
}

TEST(Progress, TellsNoTimeLeftWithoutARate) {
  EXPECT_EQ(progress_text({"verifying", 40, 80, 10, 40}), "verifying: 40 of 80");
  EXPECT_EQ(progress_text({"verifying", 1, 80, 0.2, 0}), "verifying: 1 of 80");
  EXPECT_EQ(progress_text({"verifying", 80, 80, 10, 0}), "verifying: 80 of 80");
}

TEST(Progress, FitsTheTerminal) {
  const Phase phase{"part 2 of 5: compiling and verifying", 20, 80, 10, 0};
  EXPECT_EQ(progress_bar({"verifying", 20, 80, 10, 0}, 60),
            "[######....................] verifying: 20 of 80, 30 s left");
  for (const size_t columns : {20, 40, 60, 80, 200}) EXPECT_LT(progress_bar(phase, columns).size(), columns) << columns;
}

}  // namespace
}  // namespace roofgen::progress_test
