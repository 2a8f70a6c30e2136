#include "cli/progress.h"

#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::progress_test {
namespace {

using cli::Phase;
using cli::progress_bar;
using cli::progress_text;
using cli::seconds_after;

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

TEST(Progress, CountsThePhasesToCome) {
  const cli::PhaseTimes earlier{{"compiling", 10}, {"verifying", 20}, {"timing", 40}};
  EXPECT_EQ(seconds_after(earlier, {{"compiling", 1}}), 60) << "the first phase tells no pace yet";
  EXPECT_EQ(seconds_after(earlier, {{"compiling", 20}, {"verifying", 0}}), 80) << "half as fast as the last time";
  EXPECT_EQ(seconds_after(earlier, {{"compiling", 5}, {"verifying", 10}, {"timing", 0}}), 0);
  EXPECT_EQ(seconds_after(earlier, {{"compiling", 0.1}, {"verifying", 0}}), 40) << "all came from a store";
  EXPECT_EQ(seconds_after({}, {{"compiling", 1}}), 0);
  EXPECT_EQ(progress_text({"verifying", 20, 80, 10, 0, 40}), "verifying: 20 of 80, 70 s left");
  EXPECT_EQ(progress_text({"verifying", 80, 80, 10, 0, 40}), "verifying: 80 of 80, 40 s left");
}

TEST(Progress, NamesThePhaseBeforeItsFirstStep) { EXPECT_EQ(progress_text({"preparing"}), "preparing"); }

TEST(Progress, TheNextRunKnowsThePhasesOfTheLastOne) {
  const test::Home home;
  Session session;
  session.home = home.dir() / "data";
  {
    cli::Progress progress(session, "tune attention");
    progress.show("verifying", 0, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    progress.show("verifying", 2, 2);
  }
  const Json kept = parse_json(home.read("data/phases.json"));
  EXPECT_GE(kept["tune attention"]["verifying"], 2.1);
}

TEST(Progress, FitsTheTerminal) {
  const Phase phase{"part 2 of 5: compiling and verifying", 20, 80, 10, 0};
  EXPECT_EQ(progress_bar({"verifying", 20, 80, 10, 0}, 60),
            "[######....................] verifying: 20 of 80, 30 s left");
  for (const size_t columns : {20, 40, 60, 80, 200}) EXPECT_LT(progress_bar(phase, columns).size(), columns) << columns;
}

}  // namespace
}  // namespace roofgen::progress_test
