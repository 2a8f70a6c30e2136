#include "tuner/replay/replay.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/pool.h"

namespace roofgen {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// One search: the best time after each number of evaluations, 0 where none is known.
struct Curve {
  std::vector<double> best;
  double seconds = 0;
  size_t evaluations = 0;
};

Curve search(const RecordedSpace& space, const ReplayOptions& options, uint64_t seed) {
  Curve out;
  const double start = processor_seconds();
  std::unique_ptr<Strategy> strategy = options.strategy->make(space.space, seed);
  double best = 0;
  size_t done = 0;
  for (const size_t evals : options.evals) {
    if (options.rounds) {
      strategy = options.strategy->make(space.space, seed);
      best = 0;
      done = 0;
    }
    while (done < evals) {
      const std::vector<size_t> asked = strategy->ask(options.rounds ? evals - done : 1);
      if (asked.empty()) break;
      for (const size_t point : asked) {
        const TrialResult& result = space.results[point];
        if (!result.failed && (best == 0 || result.seconds < best)) best = result.seconds;
        strategy->tell(point, result);
      }
      done += asked.size();
      out.evaluations += asked.size();
    }
    out.best.push_back(best);
  }
  out.seconds = processor_seconds() - start;
  return out;
}

/// The mean of f(best time) of `evals` of n points drawn without replacement: of `times`, ascending, the i-th is the
/// best of them with probability C(n - i - 1, evals - 1) / C(n, evals). Where all drawn points failed, f counts as
/// `otherwise`.
template <class F>
double mean_of_random(const std::vector<double>& times, double n, size_t evals, const F& f, double otherwise) {
  const double m = std::min(static_cast<double>(evals), n);
  double none_before = 1, sum = 0;  // probability that none of the faster points was drawn
  for (size_t i = 0; i < times.size() && none_before > 0; ++i) {
    const double left = n - static_cast<double>(i);
    const double drawn = std::min(1.0, m / left);
    sum += none_before * drawn * f(times[i]);
    none_before *= 1 - drawn;
  }
  return sum + none_before * otherwise;
}

Band band(std::vector<double>& values) {
  std::ranges::sort(values);
  const auto at = [&](size_t tenths) { return values[(tenths * values.size() + 9) / 10 - 1]; };
  return {at(1), at(9)};
}

}  // namespace

SearchReplay replay_search(const RecordedSpace& space, const ReplayOptions& options) {
  std::vector<Curve> curves(options.seeds);
  // No search fails.
  (void)for_each_index(options.jobs, options.seeds, [&](size_t i) -> Result<void> {
    curves[i] = search(space, options, i + 1);
    return {};
  });
  SearchReplay out;
  std::vector<double> times;
  for (const TrialResult& result : space.results)
    if (!result.failed) times.push_back(result.seconds);
  std::ranges::sort(times);
  // Before a search has found anything its time counts as the slowest one recorded.
  const double slowest = times.back(), number = static_cast<double>(space.results.size());
  const double seeds = static_cast<double>(options.seeds);
  for (size_t k = 0; k < options.evals.size(); ++k) {
    ReplayPoint point;
    point.evals = options.evals[k];
    double squares = 0, time = 0;
    std::vector<double> fractions, found;
    for (const Curve& curve : curves) {
      const double fraction = fractions.emplace_back(curve.best[k] > 0 ? space.best / curve.best[k] : 0);
      point.fraction += fraction / seeds;
      squares += fraction * fraction / seeds;
      time += found.emplace_back(curve.best[k] > 0 ? curve.best[k] : slowest) / seeds;
    }
    point.standard_error = std::sqrt(std::max(0.0, squares - point.fraction * point.fraction) / seeds);
    point.random = mean_of_random(
        times, number, point.evals, [&](double t) { return space.best / t; }, 0);
    const double baseline = mean_of_random(
        times, number, point.evals, [](double t) { return t; }, slowest);
    const auto score = [&](double t) { return baseline > space.best ? (baseline - t) / (baseline - space.best) : 1; };
    point.score = score(time);
    point.fractions = band(fractions);
    const Band middle = band(found);
    point.scores = {score(middle.high), score(middle.low)};
    out.points.push_back(point);
  }
  double total = 0, evaluations = 0;
  for (const Curve& curve : curves) {
    total += curve.seconds;
    evaluations += static_cast<double>(curve.evaluations);
  }
  out.seconds_per_evaluation = evaluations > 0 ? total / evaluations : 0;
  return out;
}

std::vector<SearchCurve> mean_of_spaces(const std::vector<SearchCurve>& curves, size_t strategies) {
  std::vector<SearchCurve> out(curves.begin(), curves.begin() + static_cast<ptrdiff_t>(strategies));
  const size_t spaces = curves.size() / strategies;
  for (size_t s = 0; s < strategies; ++s) {
    out[s].space = "mean";
    for (size_t k = 0; k < out[s].points.size(); ++k) {
      const auto mean = [&](const auto& member) {
        double sum = 0;
        for (size_t i = s; i < curves.size(); i += strategies) sum += member(curves[i].points[k]);
        return sum / static_cast<double>(spaces);
      };
      out[s].points[k] = {
          curves[s].points[k].evals,
          mean([](const ReplayPoint& p) { return p.fraction; }),
          std::sqrt(mean([](const ReplayPoint& p) { return p.standard_error * p.standard_error; }) /
                    static_cast<double>(spaces)),
          {mean([](const ReplayPoint& p) { return p.fractions.low; }),
           mean([](const ReplayPoint& p) { return p.fractions.high; })},
          mean([](const ReplayPoint& p) { return p.random; }),
          mean([](const ReplayPoint& p) { return p.score; }),
          {mean([](const ReplayPoint& p) { return p.scores.low; }),
           mean([](const ReplayPoint& p) { return p.scores.high; })},
      };
    }
  }
  return out;
}

}  // namespace roofgen
