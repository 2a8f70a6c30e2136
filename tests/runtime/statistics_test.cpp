#include "runtime/measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace roofgen::statistics_test {
namespace {

std::vector<double> upto(int n) {
  std::vector<double> out;
  for (int i = 1; i <= n; ++i) out.push_back(i);
  return out;
}

TEST(Statistics, Quantiles) {
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_EQ(quantile(upto(1), 0.9), 1);
  EXPECT_EQ(quantile(upto(4), 0.5), 2.5);
  EXPECT_EQ(quantile(upto(5), 0.25), 2);
  EXPECT_EQ(quantile(upto(5), 1), 5);
}

// The ranks of a sign test at 5 %, from tables of binomial intervals.
TEST(Statistics, MedianIntervalRanks) {
  const std::vector<std::tuple<int, double, double>> kKnown = {{5, 1, 5},  {6, 1, 6},   {8, 1, 8},    {9, 2, 8},
                                                               {10, 2, 9}, {20, 6, 15}, {50, 18, 33}, {100, 40, 61}};
  for (auto [n, low, high] : kKnown) {
    Interval interval = median_interval(upto(n));
    EXPECT_EQ(interval.low, low) << n;
    EXPECT_EQ(interval.high, high) << n;
  }
  EXPECT_LT(median_interval(upto(20000)).high - median_interval(upto(20000)).low, 300);
}

TEST(Statistics, MedianIntervalCoversTheMedian) {
  std::mt19937_64 random(7);
  for (int n : {6, 10, 17, 40, 100}) {
    int held = 0;
    constexpr int kTrials = 4000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> samples;
      // Exponentially distributed, from raw bits: as skewed as times with late outliers. The median is ln 2.
      for (int i = 0; i < n; ++i)
        samples.push_back(-std::log((static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0));
      std::sort(samples.begin(), samples.end());
      Interval interval = median_interval(samples);
      held += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high;
    }
    double share = static_cast<double>(held) / kTrials;
    EXPECT_GE(share, 0.95 - 0.01) << n;  // three standard deviations of 4000 trials
    EXPECT_LE(share, 0.99) << n;         // and not needlessly wide
  }
}

TEST(Statistics, SummaryKeepsTheOrderOfSamples) {
  Timing t = summarize({5, 1, 4, 2, 3, 100});
  EXPECT_EQ(t.times_ns, (std::vector<double>{5, 1, 4, 2, 3, 100}));
  EXPECT_EQ(t.samples, 6u);
  EXPECT_EQ(t.median_ns, 3.5);
  EXPECT_EQ(t.min_ns, 1);
  EXPECT_EQ(t.q1_ns, 2.25);
  EXPECT_EQ(t.q3_ns, 4.75);
  EXPECT_EQ(t.low_ns, 1);
  EXPECT_EQ(t.high_ns, 100);
}

TEST(Statistics, RatiosPairSamples) {
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    b.push_back(100.0 * (1 + i));  // a drift by a factor of forty, which does not affect pairs
    a.push_back(1.01 * b.back());
  }
  Ratio ratio = paired_ratio(a, b);
  EXPECT_NEAR(ratio.median, 1.01, 1e-9);
  EXPECT_GT(ratio.interval.low, 1.0);
  a[3] = 0;  // no sample: the pair is ignored
  EXPECT_NEAR(paired_ratio(a, b).interval.low, 1.01, 1e-9);
  EXPECT_EQ(paired_ratio({}, {}).interval.low, 0);
}

}  // namespace
}  // namespace roofgen::statistics_test
