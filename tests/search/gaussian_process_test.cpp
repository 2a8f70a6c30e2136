#include "tuner/strategy/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/search/spaces.h"
#include "tuner/strategy/random.h"

namespace roofgen::gaussian_process_test {

namespace {

struct Sample {
  RecordedSpace space = tile_space();
  std::vector<size_t> points;
  std::vector<double> values;
  explicit Sample(size_t n, uint64_t seed = 1) {
    Random random(seed);
    while (points.size() < n) {
      const size_t point = random.below(space.results.size());
      if (space.results[point].failed || std::ranges::count(points, point)) continue;
      points.push_back(point);
      values.push_back(std::log(space.results[point].seconds));
    }
  }
};

}  // namespace

TEST(GaussianProcess, PassesThroughItsObservations) {
  Sample sample(30);
  GaussianProcess process(sample.space.space.points);
  for (const size_t point : sample.points) process.add(point);
  process.set_candidates(sample.points);
  const GaussianProcess::Prediction prediction = process.predict(sample.values);
  for (size_t i = 0; i < sample.points.size(); ++i) {
    EXPECT_NEAR(prediction.mean[i], sample.values[i], 0.1);
    EXPECT_LT(prediction.deviation[i], 0.1);
  }
}

TEST(GaussianProcess, AFitPredictsOtherPointsBetterThanTheirMean) {
  Sample sample(60), others(60, 2);
  GaussianProcess process(sample.space.space.points);
  for (const size_t point : sample.points) process.add(point);
  process.set_candidates(others.points);
  EXPECT_EQ(process.fit(sample.points, {sample.values}), 0u);
  const GaussianProcess::Prediction prediction = process.predict(sample.values);
  double mean = 0, error = 0, spread = 0;
  for (const double value : others.values) mean += value / 60;
  for (size_t i = 0; i < 60; ++i) {
    error += std::pow(prediction.mean[i] - others.values[i], 2);
    spread += std::pow(mean - others.values[i], 2);
  }
  EXPECT_LT(error, spread / 10);
}

// The factors are extended one observation at a time, cut back and rebuilt: all ways lead to the same prediction.
TEST(GaussianProcess, TheOrderOfCallsDoesNotShow) {
  Sample sample(25), others(40, 3);
  GaussianProcess a(sample.space.space.points), b(sample.space.space.points);
  for (const size_t point : sample.points) a.add(point);
  a.set_candidates(others.points);
  b.set_candidates({others.points.begin() + 20, others.points.end()});
  for (const size_t point : sample.points) b.add(point);
  for (const size_t point : {others.points[5], others.points[6]}) b.add(point);
  b.keep(sample.points.size());
  // More than fit into the registers at once, beyond the last slot.
  b.replace_candidates(14, {others.points.begin(), others.points.begin() + 12});
  const GaussianProcess::Prediction left = a.predict(sample.values), right = b.predict(sample.values);
  const auto expect_equal = [&](size_t of_a, size_t of_b) {
    EXPECT_EQ(b.candidates()[of_b], others.points[of_a]);
    EXPECT_NEAR(left.mean[of_a], right.mean[of_b], 1e-4);
    EXPECT_NEAR(left.deviation[of_a], right.deviation[of_b], 1e-4);
  };
  for (size_t i = 0; i < 12; ++i) expect_equal(i, (14 + i) % 20);
  for (size_t i = 6; i < 14; ++i) expect_equal(20 + i, i);
}

TEST(GaussianProcess, TakesTheLikelierOfTwoAlternatives) {
  Sample sample(40);
  std::vector<double> noise;
  Random random(9);
  for (size_t i = 0; i < 40; ++i) noise.push_back(random.unit());
  GaussianProcess process(sample.space.space.points);
  double mean = 0, spread = 0, wanted = 0, noise_mean = 0;
  for (size_t i = 0; i < 40; ++i) mean += sample.values[i] / 40, noise_mean += noise[i] / 40;
  for (size_t i = 0; i < 40; ++i) {
    spread += std::pow(noise[i] - noise_mean, 2);
    wanted += std::pow(sample.values[i] - mean, 2);
  }
  for (double& value : noise) value *= std::sqrt(wanted / spread);  // of equal variance
  EXPECT_EQ(process.fit(sample.points, {noise, sample.values}), 1u);
}

}  // namespace roofgen::gaussian_process_test
