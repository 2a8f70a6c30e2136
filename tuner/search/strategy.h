// Search strategies: which points of a stage's space are tried, and in which order. A strategy is asked for points and
// told each result. The names are one table, strategies(), from which the flag's check, its help and its default come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofgen/result.h"

namespace roofgen {

/// The legal points of one stage, with all that is known of them before any is tried.
struct SearchSpace {
  std::vector<Param> params;      ///< every parameter with all its values; constraints rule out some combinations
  std::vector<Legal> points;      ///< schedule: one value per parameter, in the order of `params`
  std::vector<double> predicted;  ///< time of each point by the closed-form prior, in seconds
  size_t preset = 0;              ///< the default schedule. The search itself tries it first.
};

/// The result of one tried point.
struct TrialResult {
  std::string failed;              ///< stage of the rejection ("spill", "verify", ...); empty: verified
  double seconds = 0;              ///< of a verified point; 0: unknown
  Origin origin = Origin::kModel;  ///< of `seconds`: estimated from counts, or one launch on the GPU
};

/// Searches one stage's space, which must outlive it. The calls come from one thread; the results of one round of
/// points are told in the order of the points, before the next ask(). So the same results give the same search.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Up to `n` indices into the space's points; empty ends the search. Never one that was told or asked before: the
  /// first tell() is that of the default schedule.
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
std::string strategy_names();  ///< "prior, exhaustive or random"
Result<const StrategyKind*> find_strategy(const std::string& name);

}  // namespace roofgen
