// Tunes a family of problems that differ in sizes, and condenses the results into a dispatch table
// (docs/use/dispatch.md).
#pragma once

#include <vector>

#include "tuner/dispatch/dispatch.h"
#include "tuner/tune.h"

namespace roofgen {

struct FamilyResult {
  DispatchTable table;
  /// As table.kernels: the kernels of each in launch order, with the launch of the shape they were compiled for.
  std::vector<std::vector<TunedKernel>> kernels;
  uint64_t compiled_now = 0, evaluated_now = 0;  ///< of the searches
};

/// The order in which the problems are tuned: the median size first, then always the problem that is nearest to one
/// before it.
std::vector<size_t> tuning_order(const std::vector<Problem>& problems);

/// Tunes each problem, starting from the results of those before it by way of the store, with which the searches after
/// the first one settle; then verifies and times the best kernels of each at all others, and chooses. `within`: as of
/// condense(). Every chosen kernel is verified at each of its shapes as the winner of a search is. An Error where a
/// problem has no verified kernel, Exit::kInterrupted after Ctrl-C.
Result<FamilyResult> tune_family(const TuneContext& context, const std::vector<Problem>& problems,
                                 const TuneOptions& options, double within);

}  // namespace roofgen
