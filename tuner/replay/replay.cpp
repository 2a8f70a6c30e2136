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

/// The mean of f(best time) of `evals` points drawn without replacement: the i-th fastest one is the best of them with
/// probability C(n - i - 1, evals - 1) / C(n, evals). Where all drawn points failed, f counts as `otherwise`.
template <class F>
double mean_of_random(const RecordedSpace& space, size_t evals, const F& f, double otherwise) {
  std::vector<double> times;
  for (const TrialResult& result : space.results)
    if (!result.failed) times.push_back(result.seconds);
  std::ranges::sort(times);
  const double n = static_cast<double>(space.results.size()), m = std::min(static_cast<double>(evals), n);
  double none_before = 1, sum = 0;  // probability that none of the faster points was drawn
  for (size_t i = 0; i < times.size() && none_before > 0; ++i) {
    const double left = n - static_cast<double>(i);
    const double drawn = std::min(1.0, m / left);
    sum += none_before * drawn * f(times[i]);
    none_before *= 1 - drawn;
  }
  return sum + none_before * otherwise;
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
  // Before a search has found anything its time counts as the slowest one recorded.
  double slowest = space.best;
  for (const TrialResult& result : space.results) slowest = std::max(slowest, result.seconds);
  const double seeds = static_cast<double>(options.seeds);
  for (size_t k = 0; k < options.evals.size(); ++k) {
    ReplayPoint point;
    point.evals = options.evals[k];
    double squares = 0, time = 0;
    for (const Curve& curve : curves) {
      const double fraction = curve.best[k] > 0 ? space.best / curve.best[k] : 0;
      point.fraction += fraction / seeds;
      squares += fraction * fraction / seeds;
      time += (curve.best[k] > 0 ? curve.best[k] : slowest) / seeds;
    }
    point.standard_error = std::sqrt(std::max(0.0, squares - point.fraction * point.fraction) / seeds);
    point.random = mean_of_random(
        space, point.evals, [&](double t) { return space.best / t; }, 0);
    const double baseline = mean_of_random(
        space, point.evals, [](double t) { return t; }, slowest);
    point.score = baseline > space.best ? (baseline - time) / (baseline - space.best) : 1;
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

}  // namespace roofgen
