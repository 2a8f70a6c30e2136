#include "tuner/replay/replay.h"

#include <gtest/gtest.h>

#include "tests/search/spaces.h"

namespace roofgen::replay_test {

namespace {

SearchReplay replayed(const RecordedSpace& space, const char* name, std::vector<size_t> evals, size_t seeds,
                      int jobs = 1) {
  return replay_search(space,
                       {.strategy = *find_strategy(name), .evals = std::move(evals), .seeds = seeds, .jobs = jobs});
}

}  // namespace

// The exact mean, held against the mean of searches: 2000 of them are off by 4 standard errors at most.
TEST(Replay, TheMeanOfRandomSamplingIsThatOfRandomSearches) {
  const RecordedSpace space = tile_space();
  for (const ReplayPoint& p : replayed(space, "random", {1, 5, 20, 100}, 2000).points) {
    EXPECT_NEAR(p.fraction, p.random, 4 * p.standard_error + 1e-9) << p.evals;
    EXPECT_NEAR(p.score, 0, 0.1) << p.evals;
  }
}

TEST(Replay, AllPointsGiveTheOptimum) {
  const RecordedSpace space = tile_space();
  const SearchReplay r = replayed(space, "random", {space.results.size(), 100000}, 3);
  for (const ReplayPoint& p : r.points) {
    EXPECT_DOUBLE_EQ(p.fraction, 1);
    EXPECT_DOUBLE_EQ(p.random, 1);
    EXPECT_DOUBLE_EQ(p.standard_error, 0);
  }
}

TEST(Replay, AFailedPointTakesAnEvaluation) {
  RecordedSpace space = tile_space();
  for (size_t i = 0; i + 1 < space.results.size(); ++i) space.results[i] = {true, 0};
  space.results.back() = {false, space.best};
  const double n = static_cast<double>(space.results.size());
  EXPECT_NEAR(replayed(space, "random", {100}, 1).points[0].random, 100 / n, 1e-12);
}

TEST(Replay, TheNumberOfJobsDoesNotShow) {
  const RecordedSpace space = tile_space();
  const SearchReplay one = replayed(space, "portfolio", {10, 30}, 8, 1),
                     four = replayed(space, "portfolio", {10, 30}, 8, 4);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(one.points[i].fraction, four.points[i].fraction);
}

// In rounds a search knows how many points it may try: `prior` samples a third of them first.
TEST(Replay, RoundsAskForAllThatIsLeft) {
  RecordedSpace space = tile_space();
  for (const TrialResult& result : space.results) space.space.predicted.push_back(result.failed ? 1 : result.seconds);
  ReplayOptions options{.strategy = *find_strategy("prior"), .evals = {12, 24}, .seeds = 1};
  options.rounds = true;
  const SearchReplay both = replay_search(space, options);
  options.evals = {24};
  EXPECT_EQ(replay_search(space, options).points[0].fraction, both.points[1].fraction);
  EXPECT_EQ(both.points[1].fraction, 1);
}

}  // namespace roofgen::replay_test
