// How the points of one stage's space are chosen for execution. Every strategy is a row of the
// table in strategy.cpp; the default schedule is always among the chosen, and first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

struct StrategyInput {
  std::vector<double> predicted;  ///< prior time of each legal point, seconds
  size_t preset = 0;              ///< index of the default schedule
  size_t evals = 0;               ///< how many may be executed
  uint64_t seed = 0;
};

struct Strategy {
  const char* name;
  const char* description;
  /// Indices to execute, in order, without repeats; `preset` first.
  std::vector<size_t> (*select)(const StrategyInput&);
};

const std::vector<Strategy>& strategies();
Result<const Strategy*> find_strategy(const std::string& name);

}  // namespace roofgen
