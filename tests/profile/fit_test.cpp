// The search of roofgen calibrate on formulas in place of the model.
#include "profile/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

namespace roofgen::profile::fit_test {
namespace {

FitProblem problem(std::vector<size_t> values, Point start, size_t samples) {
  FitProblem p;
  p.values = std::move(values);
  p.start = std::move(start);
  p.weights.assign(samples, 1.0 / static_cast<double>(samples));
  return p;
}

double at(const Point& p, size_t scalar) { return static_cast<double>(p[scalar]); }

Point run(FitProblem p, LogRatio ratio) {
  Fit fit(std::move(p), std::move(ratio));
  const Result<Point> out = fit.run();
  EXPECT_TRUE(out);
  return out ? *out : Point{};
}

TEST(Fit, FindsTheBestValues) {
  const auto ratio = [](size_t i, const Point& p) -> Result<double> {
    return i == 0 ? at(p, 0) - 3 : 0.1 * (at(p, 1) - 1);
  };
  EXPECT_EQ(run(problem({5, 4}, {0, 3}, 2), ratio), (Point{3, 1}));
}

TEST(Fit, MovesPairsWhereNoSingleMoveHelps) {
  // A narrow valley along the diagonal.
  const auto ratio = [](size_t i, const Point& p) -> Result<double> {
    return i == 0 ? 10 * (at(p, 0) - at(p, 1)) : 0.1 * (at(p, 0) - 4);
  };
  EXPECT_EQ(run(problem({6, 6}, {0, 0}, 2), ratio), (Point{4, 4}));
  EXPECT_EQ(run(problem({6, 6}, {5, 5}, 2), ratio), (Point{4, 4}));
}

TEST(Fit, TiesKeepTheStart) {
  const auto ratio = [](size_t, const Point& p) -> Result<double> { return p[0] < 2 ? 1.0 : 0.5; };
  EXPECT_EQ(run(problem({6, 3}, {4, 1}, 1), ratio), (Point{4, 1}));
}

TEST(Fit, SamplesOfNoWeightAreNotEvaluated) {
  FitProblem p = problem({3}, {0}, 2);
  p.weights = {1, 0};
  const auto ratio = [](size_t i, const Point& point) -> Result<double> {
    if (i == 1) return Error{Exit::kFailed, "evaluated"};
    return at(point, 0) - 2;
  };
  EXPECT_EQ(run(std::move(p), ratio), Point{2});
}

TEST(Fit, ACommonFactorIsTakenAwayWithScale) {
  const auto ratio = [](size_t i, const Point& p) -> Result<double> {
    return std::log(3) + (i == 0 ? at(p, 0) - 2 : 0);
  };
  FitProblem p = problem({5}, {0}, 2);
  p.scale = true;
  Fit fit(p, ratio);
  EXPECT_EQ(*fit.run(), Point{2});
  EXPECT_NEAR(*fit.log_scale({2}), -std::log(3), 1e-12);
  const auto value = fit.objective({2}, std::numeric_limits<double>::infinity());
  EXPECT_NEAR(**value, 0, 1e-12);
}

TEST(Fit, StopsAnEvaluationAboveTheLimit) {
  size_t evaluated = 0;
  const auto ratio = [&](size_t, const Point&) -> Result<double> {
    ++evaluated;
    return 1.0;
  };
  Fit fit(problem({2}, {0}, 10), ratio);
  EXPECT_FALSE(*fit.objective({0}, 0.35));
  EXPECT_EQ(evaluated, 4u);
}

TEST(Fit, AnErrorEndsIt) {
  Fit fit(problem({2}, {0}, 1), [](size_t, const Point&) -> Result<double> { return Error{Exit::kFailed, "no time"}; });
  const auto out = fit.run();
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "no time");
}

}  // namespace
}  // namespace roofgen::profile::fit_test
