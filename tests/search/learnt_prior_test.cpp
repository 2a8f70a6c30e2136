// The order of measurements by a model whose error is learnt.
#include "tuner/strategy/learnt_prior.h"

#include <gtest/gtest.h>

#include <cmath>

namespace roofgen::learnt_prior_test {
namespace {

TEST(LearntPrior, BeginsWithTheModel) {
  LearntPrior prior;
  EXPECT_EQ(prior.add(2, {0}), 0u);
  EXPECT_EQ(prior.add(3, {1}), 1u);
  EXPECT_DOUBLE_EQ(prior.corrected(0), 2);
  EXPECT_DOUBLE_EQ(prior.corrected(1), 3);
  EXPECT_TRUE(std::isinf(prior.error()));
}

TEST(LearntPrior, ACommonFactorChangesNoOrder) {
  LearntPrior prior;
  for (int i = 0; i < 20; ++i) prior.add(1 + i, {static_cast<uint32_t>(i % 4), static_cast<uint32_t>(4 + i % 3)});
  for (size_t i = 0; i < 12; ++i) prior.learn(i, 2.5 * static_cast<double>(1 + i));
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(prior.corrected(i), 2.5 * static_cast<double>(1 + i), 1e-9);
  EXPECT_NEAR(prior.error(), 1, 1e-9);
}

TEST(LearntPrior, LearnsAParameterThatTheModelMisjudges) {
  // With value 1 kernels take three times as long as predicted.
  LearntPrior prior;
  const auto slow = [](size_t i) { return i % 2 == 1; };
  for (size_t i = 0; i < 40; ++i)
    prior.add(10 + static_cast<double>(i / 2), {static_cast<uint32_t>(2 + i / 2), slow(i) ? 1u : 0u});
  for (size_t i = 0; i < 30; ++i) prior.learn(i, (10 + static_cast<double>(i / 2)) * (slow(i) ? 3 : 1));
  // Not seen yet: 32 with value 0, 33 with value 1, the same prediction. The prior points keep the factor below 3.
  EXPECT_GT(prior.corrected(33) / prior.corrected(32), 2.3);
  EXPECT_LT(prior.corrected(33) / prior.corrected(32), 3);
  EXPECT_LT(prior.error(), 1.2);
}

TEST(LearntPrior, TheErrorIsThatOfNineInTen) {
  LearntPrior prior;
  for (int i = 0; i < 20; ++i) prior.add(1, {});
  for (size_t i = 0; i < 9; ++i) prior.learn(i, 1);
  EXPECT_TRUE(std::isinf(prior.error()));
  prior.learn(9, 1);
  for (size_t i = 10; i < 20; ++i) prior.learn(i, i == 10 ? 100 : i == 11 ? 1.0 / 100 : 1);
  EXPECT_NEAR(prior.error(), 1, 1e-9);  // two of twenty are off, in opposite directions
}

}  // namespace
}  // namespace roofgen::learnt_prior_test
