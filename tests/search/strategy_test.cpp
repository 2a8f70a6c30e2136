#include "tuner/strategy/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/search/spaces.h"
#include "tuner/replay/replay.h"

namespace roofgen::strategy_test {

namespace {

SearchSpace five() {
  SearchSpace out;
  out.points = PointSpace({number_axis("n", {1, 2, 3, 4, 5})}, {0, 1, 2, 3, 4});
  out.predicted = {5, 3, 1, 4, 2};
  out.preset = 0;
  return out;
}

std::unique_ptr<Strategy> make(const char* name, const SearchSpace& space, uint64_t seed = 0) {
  return (*find_strategy(name))->make(space, seed);
}

/// Points with parameters a and b; the prior knows the effect of a only.
SearchSpace two_parameters() {
  SearchSpace out;
  const std::vector<double> ten = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<uint16_t> rows;
  for (uint16_t a = 0; a < 10; ++a)
    for (uint16_t b = 0; b < 10; ++b) {
      rows.insert(rows.end(), {a, b});
      out.predicted.push_back(1 + 0.05 * a);
    }
  out.points = PointSpace({number_axis("a", ten), number_axis("b", ten)}, std::move(rows));
  out.preset = 0;
  return out;
}

/// All points of `prior` in the order asked for, where b = 7 takes half the time; `rounds`: their sizes.
std::vector<size_t> search(const SearchSpace& space, size_t n, std::vector<size_t>* rounds = nullptr) {
  const auto strategy = make("prior", space);
  const auto tell = [&](size_t i) { strategy->tell(i, {.seconds = space.predicted[i] * (i % 10 == 7 ? 0.5 : 1)}); };
  tell(*space.preset);
  std::vector<size_t> out;
  while (out.size() < n) {
    const std::vector<size_t> round = strategy->ask(n - out.size());
    if (round.empty()) break;
    if (rounds) rounds->push_back(round.size());
    for (const size_t i : round) tell(i);
    out.insert(out.end(), round.begin(), round.end());
  }
  return out;
}

/// The points that a search asks for, `each` at a time, until it ends or has asked for `most`.
std::vector<size_t> asked(Strategy& strategy, const RecordedSpace& space, size_t each, size_t most) {
  std::vector<size_t> out;
  while (out.size() < most) {
    const std::vector<size_t> points = strategy.ask(each);
    if (points.empty()) break;
    for (const size_t point : points) strategy.tell(point, space.results[point]);
    out.insert(out.end(), points.begin(), points.end());
  }
  return out;
}

class EachStrategy : public testing::TestWithParam<StrategyKind> {};

}  // namespace

TEST(Strategy, PriorLearnsAParameterThatItMisjudges) {
  const SearchSpace space = two_parameters();
  std::vector<size_t> rounds;
  const std::vector<size_t> tried = search(space, 30, &rounds);
  EXPECT_EQ(tried, search(space, 30));
  EXPECT_EQ(std::set<size_t>(tried.begin(), tried.end()).size(), 30u);
  EXPECT_EQ(std::count(tried.begin(), tried.end(), *space.preset), 0);
  // The first sample has values of both parameters; after it, b = 7 comes first.
  EXPECT_EQ(rounds.front(), 8u);
  std::set<size_t> of_a, of_b;
  for (size_t k = 0; k < rounds.front(); ++k) of_a.insert(tried[k] / 10), of_b.insert(tried[k] % 10);
  EXPECT_GE(of_a.size(), 7u);
  EXPECT_GE(of_b.size(), 7u);
  EXPECT_EQ(std::count(tried.begin(), tried.end(), 7u), 1) << "the fastest point";
  EXPECT_GE(std::count_if(tried.begin(), tried.end(), [](size_t i) { return i % 10 == 7; }), 8);
}

TEST(Strategy, PriorLeavesHopelessPointsOutOfItsSample) {
  SearchSpace space = two_parameters();
  for (size_t i = 0; i < space.points.size(); ++i)
    if (i % 10 == 9) space.predicted[i] = 2;
  for (const size_t i : search(space, 8)) EXPECT_NE(i % 10, 9u);
}

TEST(Strategy, AFewEvaluationsFollowThePrior) {
  SearchSpace space = two_parameters();
  space.predicted[42] = 0.5;
  space.predicted[57] = 0.6;
  EXPECT_EQ(make("prior", space)->ask(2), (std::vector<size_t>{42, 57}));
}

TEST(Strategy, ExhaustiveAsksForTheBestFirst) {
  const SearchSpace space = five();
  EXPECT_EQ(make("exhaustive", space)->ask(2), (std::vector<size_t>{2, 4}));
  const auto strategy = make("exhaustive", space);
  EXPECT_EQ(strategy->ask(1), (std::vector<size_t>{2}));
  EXPECT_EQ(strategy->ask(2), (std::vector<size_t>{4, 1}));
  EXPECT_EQ(strategy->ask(2), (std::vector<size_t>{3}));
  EXPECT_TRUE(strategy->ask(2).empty());
}

TEST(Strategy, OnlyExhaustiveIgnoresTheBudget) {
  for (const StrategyKind& s : strategies()) EXPECT_EQ(s.exhaustive, std::string(s.name) == "exhaustive");
}

TEST(Strategy, UnknownNameSuggests) {
  const auto s = find_strategy("exhastive");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("exhaustive"), std::string::npos);
}

TEST_P(EachStrategy, TriesEveryPointOnceIfNothingStopsIt) {
  const RecordedSpace space = tile_space();
  for (const size_t each : {1, 7}) {
    const auto strategy = GetParam().make(space.space, 3);
    std::vector<size_t> points = asked(*strategy, space, each, SIZE_MAX);
    std::ranges::sort(points);
    ASSERT_EQ(points.size(), space.space.points.size());
    for (size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i], i);
  }
}

TEST_P(EachStrategy, IsReproducible) {
  const RecordedSpace space = tile_space();
  const auto run = [&](uint64_t seed) { return asked(*GetParam().make(space.space, seed), space, 3, 60); };
  EXPECT_EQ(run(1), run(1));
  const std::string name = GetParam().name;
  if (name != "prior" && name != "exhaustive") {
    EXPECT_NE(run(1), run(2));
  }
}

TEST_P(EachStrategy, NeverAsksForTheDefaultThatItWasTold) {
  RecordedSpace space = tile_space();
  space.space.preset = 17;
  const auto strategy = GetParam().make(space.space, 5);
  strategy->tell(17, space.results[17]);
  const std::vector<size_t> points = asked(*strategy, space, 4, SIZE_MAX);
  EXPECT_EQ(points.size(), space.space.points.size() - 1);
  EXPECT_EQ(std::ranges::count(points, size_t{17}), 0);
}

TEST_P(EachStrategy, EndsWhereEveryPointFails) {
  RecordedSpace space = tile_space();
  for (TrialResult& result : space.results) result = {true, 0};
  EXPECT_EQ(asked(*GetParam().make(space.space, 1), space, 5, SIZE_MAX).size(), space.space.points.size());
}

INSTANTIATE_TEST_SUITE_P(Kind, EachStrategy, testing::ValuesIn(strategies()),
                         [](const auto& test) { return std::string(test.param.name); });

// A smooth space is where the strategies that learn from results are better than those that do not.
TEST(Strategy, LearningFromResultsBeatsRandomSampling) {
  const RecordedSpace space = tile_space();
  for (const char* name : {"local", "annealing", "genetic", "differential", "surrogate", "portfolio"}) {
    const SearchReplay r = replay_search(space, {.strategy = *find_strategy(name), .evals = {150}, .seeds = 20});
    EXPECT_GT(r.points[0].fraction, r.points[0].random + 4 * r.points[0].standard_error) << name;
  }
}

TEST(Strategy, TheSurrogateTrustsAPriorThatIsRightAndNoOther) {
  RecordedSpace space = tile_space();
  const auto fraction = [&] {
    return replay_search(space, {.strategy = *find_strategy("surrogate"), .evals = {15}, .seeds = 20})
        .points[0]
        .fraction;
  };
  const double without = fraction();
  for (const TrialResult& result : space.results) space.space.predicted.push_back(result.failed ? 1 : result.seconds);
  EXPECT_GT(fraction(), 0.999);
  for (double& seconds : space.space.predicted) seconds = 1e-3 / seconds;
  EXPECT_GT(fraction(), without - 0.15);
}

// A search may try points of its own first (warm starts).
TEST(Strategy, NoneAsksForWhatItWasTold) {
  const SearchSpace space = two_parameters();
  for (const StrategyKind& kind : strategies()) {
    const auto strategy = kind.make(space, 1);
    std::set<size_t> tried = {0, 17, 42, 99};
    for (const size_t point : tried) strategy->tell(point, {.seconds = space.predicted[point]});
    for (;;) {
      const std::vector<size_t> round = strategy->ask(5);
      if (round.empty()) break;
      for (const size_t point : round) EXPECT_TRUE(tried.insert(point).second) << kind.name << " " << point;
      for (const size_t point : round) strategy->tell(point, {.seconds = space.predicted[point]});
    }
    EXPECT_EQ(tried.size(), space.points.size()) << kind.name;
  }
}

}  // namespace roofgen::strategy_test
