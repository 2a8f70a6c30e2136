// Search strategies: which points of a space are tried, and in which order. A strategy is asked for points and told
// each result. The names are one table, strategies(), from which the flags' checks, their help and their default come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "tuner/strategy/point_space.h"

namespace roofgen {

/// A space, with all that is known of its points before any is tried.
struct SearchSpace {
  PointSpace points{{}, {}};
  std::vector<double> predicted;  ///< time of each point by a model, in seconds; empty: no model
  std::optional<size_t> preset;   ///< the default schedule. The search itself tries it first.
};

/// The result of one tried point.
struct TrialResult {
  bool failed = false;  ///< it does not compile, spills, is wrong, ...
  double seconds = 0;   ///< otherwise; 0: unknown
};

/// Searches one space, which must outlive it. The calls come from one thread; the results of one round of points are
/// told in the order of the points, before the next ask(). So the same results give the same search.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Up to `n` points; empty ends the search. Never one that was told or asked before: the first tell() is that of the
  /// default schedule, if there is one, and others may follow that the strategy did not ask for (warm starts).
  virtual std::vector<size_t> ask(size_t n) = 0;
  virtual void tell(size_t point, const TrialResult& result) = 0;
};

struct StrategyKind {
  const char* name;
  const char* description;
  bool exhaustive;  ///< tries every legal point, whatever the number of evaluations
  std::unique_ptr<Strategy> (*make)(const SearchSpace& space, uint64_t seed);
};

/// The default first.
const std::vector<StrategyKind>& strategies();
std::string strategy_names();  ///< "portfolio, prior, ... or random"
Result<const StrategyKind*> find_strategy(const std::string& name);

}  // namespace roofgen
