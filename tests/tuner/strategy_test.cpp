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

}  // namespace

TEST(Strategy, PriorAsksForTheBestAndNeverForTheDefault) {
  EXPECT_EQ(ask("prior", kFive, 2), (std::vector<size_t>{2, 4}));
  EXPECT_EQ(ask("prior", kFive, 9), (std::vector<size_t>{2, 4, 1, 3}));
}

TEST(Strategy, AnAskGoesOnWhereTheLastOneEnded) {
  const auto strategy = (*find_strategy("prior"))->make(kFive, 0);
  strategy->tell(0, {});
  EXPECT_EQ(strategy->ask(1), (std::vector<size_t>{2}));
  strategy->tell(2, {.failed = "spill"});
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
