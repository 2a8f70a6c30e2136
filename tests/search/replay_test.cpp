#include "tuner/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/search/spaces.h"
#include "tuner/replay/page.h"

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

// The band of 10 searches goes from the second slowest to the second fastest; seeds are the searches 1, 2, ...
TEST(Replay, TheBandIsThatOfTheSeeds) {
  const RecordedSpace space = tile_space();
  const ReplayPoint p = replayed(space, "local", {30}, 10).points[0];
  std::vector<double> fractions;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto strategy = (*find_strategy("local"))->make(space.space, seed);
    double best = HUGE_VAL;
    for (int i = 0; i < 30; ++i) {
      const size_t point = strategy->ask(1).at(0);
      if (!space.results[point].failed) best = std::min(best, space.results[point].seconds);
      strategy->tell(point, space.results[point]);
    }
    fractions.push_back(space.best / best);
  }
  std::ranges::sort(fractions);
  EXPECT_EQ(p.fractions.low, fractions[0]);
  EXPECT_EQ(p.fractions.high, fractions[8]);
  EXPECT_LT(p.scores.low, p.score);
  EXPECT_GT(p.scores.high, p.score);
  const ReplayPoint one = replayed(space, "local", {30}, 1).points[0];
  EXPECT_EQ(one.fractions.low, one.fraction);
  EXPECT_EQ(one.scores.high, one.score);
}

TEST(Replay, ACurveBeginsAtOneAndEndsAtTheLast) {
  EXPECT_EQ(curve_evals(1), (std::vector<size_t>{1}));
  EXPECT_EQ(curve_evals(4), (std::vector<size_t>{1, 2, 3, 4}));
  const std::vector<size_t> many = curve_evals(100'000);
  EXPECT_TRUE(std::ranges::is_sorted(many, std::less_equal<>()));
  EXPECT_EQ(many.back(), 100'000u);
  EXPECT_LT(many.size(), 400u);
}

TEST(Replay, TheMeanOfSpacesIsThatOfEachStrategy) {
  const auto curve = [](const char* space, const char* strategy, double x) {
    return SearchCurve{space, strategy, {{5, x, 0.3, {x - 0.1, x + 0.1}, 0.2, x / 2, {0, x}}}};
  };
  const std::vector<SearchCurve> means =
      mean_of_spaces({curve("A", "a", 0.4), curve("A", "b", 0.8), curve("B", "a", 0.6), curve("B", "b", 0.6)}, 2);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[1].strategy, "b");
  const ReplayPoint& p = means[1].points.at(0);
  EXPECT_EQ(p.evals, 5u);
  EXPECT_DOUBLE_EQ(p.fraction, 0.7);
  EXPECT_DOUBLE_EQ(p.standard_error, 0.3 / std::sqrt(2));
  EXPECT_DOUBLE_EQ(p.fractions.low, 0.6);
  EXPECT_DOUBLE_EQ(p.fractions.high, 0.8);
  EXPECT_DOUBLE_EQ(p.random, 0.2);
  EXPECT_DOUBLE_EQ(p.score, 0.35);
  EXPECT_DOUBLE_EQ(p.scores.high, 0.7);
}

TEST(Replay, ThePageHasAFigureOfEachSpaceAndOneOfTheirMean) {
  const RecordedSpace space = tile_space();
  const std::vector<size_t> evals = curve_evals(20);
  std::vector<SearchCurve> curves;
  for (const char* name : {"A", "B"})
    for (const char* strategy : {"random", "local"})
      curves.push_back({name, strategy, replayed(space, strategy, evals, 4).points});
  const plot::Page page = replay_page(curves, 2, {10, 20}, 4);
  ASSERT_EQ(page.blocks.size(), 1u + 3 * 2);
  const auto& table = std::get<plot::TableBlock>(page.blocks[0]);
  EXPECT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.head, (std::vector<std::string>{"space", "strategy", "10", "20"}));
  const auto& fractions = std::get<plot::Lines>(page.blocks[5]);
  ASSERT_EQ(fractions.series.size(), 3u);  // the last one is random sampling, exact
  EXPECT_TRUE(fractions.series[2].band.empty());
  for (size_t k = 0; k < evals.size(); ++k) {
    const ReplayPoint& p = curves[3].points[k];
    EXPECT_EQ(fractions.series[1].points[k], std::pair(static_cast<double>(evals[k]), p.fraction));
    EXPECT_EQ(fractions.series[1].band[k], std::pair(p.fractions.low, p.fractions.high));
    EXPECT_EQ(std::get<plot::Lines>(page.blocks[6]).series[1].points[k].second, p.score);
  }
  EXPECT_EQ(replay_page({curves[0], curves[1]}, 2, {20}, 4).blocks.size(), 3u);
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
