#include "tuner/search/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace roofgen::strategy_test {

namespace {

std::vector<size_t> ask(const char* name, const SearchSpace& space, size_t n, uint64_t seed = 0) {
  return (*find_strategy(name))->make(space, seed)->ask(n);
}

const SearchSpace kFive{{}, {}, {5, 3, 1, 4, 2}, 0};

/// Points with parameters a and b; the prior knows the effect of a only.
SearchSpace two_parameters() {
  SearchSpace space;
  for (int64_t a = 0; a < 10; ++a)
    for (int64_t b = 0; b < 10; ++b) {
      space.points.push_back({{"", "", {{"a", a}, {"b", b}}}, {}});
      space.predicted.push_back(1 + 0.05 * static_cast<double>(a));
    }
  return space;
}

/// All points of a strategy in the order asked for, where b = 7 takes half the time; `rounds`: their sizes.
std::vector<size_t> search(const SearchSpace& space, size_t n, std::vector<size_t>* rounds = nullptr) {
  const auto strategy = (*find_strategy("prior"))->make(space, 0);
  const auto tell = [&](size_t i) { strategy->tell(i, {"", space.predicted[i] * (i % 10 == 7 ? 0.5 : 1)}); };
  tell(space.preset);
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

}  // namespace

TEST(Strategy, PriorLearnsAParameterThatItMisjudges) {
  const SearchSpace space = two_parameters();
  std::vector<size_t> rounds;
  const std::vector<size_t> tried = search(space, 30, &rounds);
  EXPECT_EQ(tried, search(space, 30));
  EXPECT_EQ(std::set<size_t>(tried.begin(), tried.end()).size(), 30u);
  EXPECT_EQ(std::count(tried.begin(), tried.end(), space.preset), 0);
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
  EXPECT_EQ(ask("prior", space, 2), (std::vector<size_t>{42, 57}));
}

TEST(Strategy, ExhaustiveAsksForTheBestFirst) {
  EXPECT_EQ(ask("exhaustive", kFive, 2), (std::vector<size_t>{2, 4}));
  const auto strategy = (*find_strategy("exhaustive"))->make(kFive, 0);
  EXPECT_EQ(strategy->ask(1), (std::vector<size_t>{2}));
  EXPECT_EQ(strategy->ask(2), (std::vector<size_t>{4, 1}));
  EXPECT_EQ(strategy->ask(2), (std::vector<size_t>{3}));
  EXPECT_TRUE(strategy->ask(2).empty());
}

TEST(Strategy, OnlyExhaustiveIgnoresTheBudget) {
  for (const StrategyKind& s : strategies()) EXPECT_EQ(s.exhaustive, std::string(s.name) == "exhaustive");
  EXPECT_EQ(strategy_names(), "prior, exhaustive or random");
}

TEST(Strategy, RandomIsReproducibleAndSeeded) {
  SearchSpace space;
  space.predicted.assign(100, 1.0);
  space.preset = 17;
  const auto a = ask("random", space, 50, 1);
  EXPECT_EQ(a, ask("random", space, 50, 1));
  EXPECT_EQ(std::count(a.begin(), a.end(), 17u), 0);
  EXPECT_EQ(std::set<size_t>(a.begin(), a.end()).size(), 50u);
  EXPECT_NE(a, ask("random", space, 50, 2));
}

TEST(Strategy, UnknownNameSuggests) {
  const auto s = find_strategy("exhastive");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("exhaustive"), std::string::npos);
}

}  // namespace roofgen::strategy_test
