#include "tuner/search/strategy.h"

#include <gtest/gtest.h>

#include <set>

using namespace roofgen;

namespace {

std::vector<size_t> select(const char* name, StrategyInput in) { return (*find_strategy(name))->select(in); }

const StrategyInput kFive{{5, 3, 1, 4, 2}, 0, 3, 1};

}  // namespace

TEST(Strategy, PriorTakesTheBestAndTheDefaultFirst) {
  EXPECT_EQ(select("prior", kFive), (std::vector<size_t>{0, 2, 4}));
}

TEST(Strategy, ExhaustiveIgnoresTheBudget) {
  EXPECT_EQ(select("exhaustive", kFive), (std::vector<size_t>{0, 2, 4, 1, 3}));
}

TEST(Strategy, RandomIsReproducibleAndSeeded) {
  StrategyInput in;
  in.predicted.assign(100, 1.0);
  in.preset = 17;
  in.evals = 50;
  in.seed = 1;
  const auto a = select("random", in);
  EXPECT_EQ(a, select("random", in));
  EXPECT_EQ(a.front(), 17u);
  EXPECT_EQ(std::set<size_t>(a.begin(), a.end()).size(), 50u);
  in.seed = 2;
  EXPECT_NE(a, select("random", in));
}

TEST(Strategy, UnknownNameSuggests) {
  const auto s = find_strategy("exhastive");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("exhaustive"), std::string::npos);
}
