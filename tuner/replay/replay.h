// Replays searches on recorded spaces: no compiler and no GPU takes part.
#pragma once

#include <string>
#include <vector>

#include "tuner/replay/recorded.h"

namespace roofgen {

struct ReplayOptions {
  const StrategyKind* strategy = nullptr;
  std::vector<size_t> evals;  ///< numbers of evaluations at which the best time is looked at, ascending
  size_t seeds = 100;         ///< searches, with the seeds 1, 2, ...
  /// Each number of evaluations is a search of its own, asked for all points that are left to it, as by `tune`.
  bool rounds = false;
  int jobs = 1;  ///< searches that run at a time; the result is the same
};

/// 10th and 90th percentile of the seeds: nearest rank.
struct Band {
  double low = 0, high = 0;
};

/// After a number of evaluations. A failed point takes one. A search that has found nothing yet counts as a fraction
/// of 0.
struct ReplayPoint {
  size_t evals = 0;
  double fraction = 0;        ///< of the optimum, best time recorded / best time found: mean over the seeds
  double standard_error = 0;  ///< of that mean
  Band fractions;             ///< of the seeds
  double random = 0;          ///< the mean of random sampling without replacement, exact
  /// P_t of Willemsen et al. 2025 ("A methodology for comparing optimization algorithms for auto-tuning"): 0 as random
  /// sampling, 1 at the optimum, by mean times.
  double score = 0;
  Band scores;  ///< of the seeds
};

struct SearchReplay {
  std::vector<ReplayPoint> points;
  double seconds_per_evaluation = 0;  ///< processor time of the strategy
};

SearchReplay replay_search(const RecordedSpace& space, const ReplayOptions& options);

/// One strategy on one space, or its mean over spaces.
struct SearchCurve {
  std::string space, strategy;
  std::vector<ReplayPoint> points;
};
/// Of each of the first `strategies` curves the mean with those of the same strategy on the other spaces; bands have
/// the means of their ends. `curves`: space by space, each with the same strategies and numbers of evaluations.
std::vector<SearchCurve> mean_of_spaces(const std::vector<SearchCurve>& curves, size_t strategies);

}  // namespace roofgen
