// The smallest set of kernels that serves all shapes, against brute force.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tuner/dispatch/dispatch.h"

namespace roofgen::test::condense_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Best {
  size_t kernels = 0;
  double total = kNever;
};

double least_of(const TimeMatrix& seconds, uint64_t set, size_t shape) {
  double least = kNever;
  for (size_t k = 0; k < seconds.size(); ++k)
    if (set >> k & 1) least = std::min(least, seconds[k][shape].value_or(kNever));
  return least;
}

/// Every subset of the kernels.
Best brute_force(const TimeMatrix& seconds, double within) {
  Best out;
  const uint64_t all = (uint64_t{1} << seconds.size()) - 1;
  for (uint64_t set = 1; set <= all; ++set) {
    double total = 0;
    bool covers = true;
    for (size_t s = 0; s < seconds[0].size() && covers; ++s) {
      const double least = least_of(seconds, set, s);
      covers = least <= (1 + within) * least_of(seconds, all, s);
      total += least;
    }
    const auto size = static_cast<size_t>(std::popcount(set));
    if (covers && (out.kernels == 0 || size < out.kernels || (size == out.kernels && total < out.total)))
      out = {size, total};
  }
  return out;
}

/// `spread`: of the times of one shape. Few distinct values, so that ties occur.
TimeMatrix random_times(std::mt19937& random, size_t kernels, size_t shapes, int spread) {
  TimeMatrix out(kernels, std::vector<std::optional<double>>(shapes));
  for (auto& row : out)
    for (auto& time : row)
      if (random() % 5 != 0) time = 100 + static_cast<double>(random() % static_cast<unsigned>(spread));
  for (size_t s = 0; s < shapes; ++s)
    if (auto& time = out[random() % kernels][s]; !time) time = 100;
  return out;
}

double total_of(const TimeMatrix& seconds, const Cover& cover) {
  double sum = 0;
  for (size_t s = 0; s < cover.chosen.size(); ++s) sum += *seconds[cover.chosen[s]][s];
  return sum;
}

}  // namespace

TEST(Condense, IsAsSmallAndAsFastAsTheBestSubset) {
  std::mt19937 random(1);
  size_t several = 0;
  for (int i = 0; i < 2000; ++i) {
    const TimeMatrix seconds =
        random_times(random, 1 + random() % 9, 1 + random() % 8, 1 + static_cast<int>(random() % 12));
    const double within = 0.01 * static_cast<double>(random() % 6);
    const Cover cover = condense(seconds, within);
    const Best best = brute_force(seconds, within);
    ASSERT_TRUE(cover.exact);
    ASSERT_EQ(cover.kernels.size(), best.kernels) << "case " << i;
    ASSERT_NEAR(total_of(seconds, cover), best.total, 1e-9) << "case " << i;
    for (size_t s = 0; s < seconds[0].size(); ++s) {
      ASSERT_TRUE(std::ranges::count(cover.kernels, cover.chosen[s]));
      ASSERT_LE(*seconds[cover.chosen[s]][s], (1 + within) * least_of(seconds, ~uint64_t{0}, s));
    }
    several += best.kernels > 2;
  }
  EXPECT_GT(several, 200u) << "the cases must be hard enough";
}

// Greedy takes the wide kernel first and then needs two more.
TEST(Condense, TwoKernelsBeatTheGreedyThree) {
  const std::optional<double> near = 1.0, no;
  const TimeMatrix seconds = {
      {no, near, near, near, near, no}, {near, near, near, no, no, no}, {no, no, no, near, near, near}};
  EXPECT_EQ(condense(seconds, 0.02).kernels, (std::vector<size_t>{1, 2}));
}

TEST(Condense, OfEquallySmallSetsTheFasterIsChosen) {
  const TimeMatrix seconds = {{1.01, 2.0}, {1.0, 2.02}, {1.0, 2.001}};
  EXPECT_EQ(condense(seconds, 0.02).kernels, std::vector<size_t>{2});
  EXPECT_EQ(condense(seconds, 0).kernels, (std::vector<size_t>{0, 2}));
}

TEST(Condense, ManyKernelsAndShapesEndWithACoverThatIsNotCalledExact) {
  std::mt19937 random(2);
  const TimeMatrix seconds = random_times(random, 150, kMostShapes, 40);
  const Cover cover = condense(seconds, 0.02);
  EXPECT_FALSE(cover.exact);
  for (size_t s = 0; s < kMostShapes; ++s) {
    double least = kNever;
    for (const auto& row : seconds) least = std::min(least, row[s].value_or(kNever));
    EXPECT_LE(*seconds[cover.chosen[s]][s], 1.02 * least);
  }
}

}  // namespace roofgen::test::condense_test
