#include "tuner/verify/l2_model.h"

#include <gtest/gtest.h>

namespace roofgen::l2_model_test {

namespace {

std::vector<LineAccess> lines(uint64_t first, uint64_t count) {
  std::vector<LineAccess> out;
  for (uint64_t i = 0; i < count; ++i) out.push_back({first + i, 0xf, false});
  return out;
}

double capacity_lines(double n) { return n * 128 / kL2Usable; }

}  // namespace

TEST(L2Model, WhatFitsIsFetchedOnce) {
  EXPECT_DOUBLE_EQ(wave_miss_ratio({lines(0, 100), lines(0, 100)}, 8, 2, capacity_lines(1000)), 1.0);
}

TEST(L2Model, CtasInStepShareEachLineEvenWhenTheTensorDoesNotFit) {
  EXPECT_DOUBLE_EQ(wave_miss_ratio({lines(0, 1000), lines(0, 1000)}, 4, 4, capacity_lines(16)), 1.0);
}

TEST(L2Model, RereadingMoreThanFitsMissesEveryTime) {
  std::vector<LineAccess> twice = lines(0, 100);
  const std::vector<LineAccess> again = lines(0, 100);
  twice.insert(twice.end(), again.begin(), again.end());
  // One CTA cycles through 100 lines with room for 50: LRU keeps none of them.
  EXPECT_DOUBLE_EQ(wave_miss_ratio({twice}, 1, 1, capacity_lines(50)), 2.0);
  EXPECT_DOUBLE_EQ(wave_miss_ratio({twice}, 1, 1, capacity_lines(100)), 1.0);
}

TEST(L2Model, PrivateLinesOfClonedCtasDoNotCoincide) {
  std::vector<LineAccess> twice = lines(0, 40);
  const std::vector<LineAccess> again = lines(0, 40);
  twice.insert(twice.end(), again.begin(), again.end());
  // Two clones of one private trace need 80 lines; 60 lines are too few for either.
  EXPECT_DOUBLE_EQ(wave_miss_ratio({twice}, 2, 1, capacity_lines(60)), 2.0);
}

TEST(L2Model, SectorsAreCountedNotLines) {
  const std::vector<LineAccess> halves = {{7, 0x1, false}, {7, 0x2, false}, {7, 0x3, false}};
  EXPECT_DOUBLE_EQ(wave_miss_ratio({halves}, 1, 1, capacity_lines(4)), 1.0);
}

}  // namespace roofgen::l2_model_test
