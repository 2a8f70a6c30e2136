// What a search is going to do, settled before the first candidate runs: the variants, the legal points
// of each stage with their predicted times, and the order in which they are tried.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tuner/report.h"
#include "tuner/search/task.h"
#include "tuner/tune.h"
#include "tuner/work.h"

namespace roofgen {

struct SearchPlan {
  expr::Map scope;  ///< of the problem
  std::vector<Variant> variants;
  std::deque<StagePlan> stages;        ///< of the variants that can run
  std::optional<WorkFormula> formula;  ///< where there is a work/<op>.json
  RequiredWork required;
  double reduced_flops = 0;            ///< required MMA FLOPs of the reduced problem
  std::vector<VariantReport> reports;  ///< one a variant; those that cannot run say why
  std::vector<Rejected> rejections;    ///< illegal points
  uint64_t considered = 0;             ///< points of all spaces
};

/// Exit::kUsage for an unknown variant, strategy or parameter; Exit::kUnavailable when no point of any
/// variant is legal, with the reasons.
Result<SearchPlan> plan_search(const TuneContext& context, const Problem& problem, const TuneOptions& options);

}  // namespace roofgen
