// The plan of a search: the variants that fit the device, the legal points of each stage with their predicted times,
// and the number of candidates of each stage. Nothing has run yet.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generator/points.h"
#include "roofline/work.h"
#include "tuner/search/run.h"
#include "tuner/strategy/strategy.h"

namespace roofgen {

/// One stage of one variant. The default schedule is tried first, then the strategy's choice; points that spill or fail
/// are replaced by more, until `share` candidates are verified or `most` were tried.
struct StagePlan {
  const Variant* variant = nullptr;
  size_t index = 0;
  LegalPoints points;  ///< as in `space`
  SearchSpace space;   ///< predicted by the closed-form prior
  size_t share = 1, most = 1;
  const Stage& stage() const { return variant->stages[index]; }
};

struct SearchPlan {
  OpWords words;    ///< of the op
  expr::Map scope;  ///< of the problem
  std::vector<Variant> variants;
  std::map<const Variant*, std::vector<Buffer>> temporaries;
  std::vector<StagePlan> stages;  ///< of the variants that fit, in their order
  const StrategyKind* strategy = nullptr;
  std::optional<WorkFormula> formula;  ///< absent without roofline/work/<op>.json
  RequiredWork required;
  double reduced_flops = 0;            ///< required MMA FLOPs of the reduced problem
  Score score;                         ///< the floors
  std::vector<VariantReport> reports;  ///< one per variant, without results; those that do not fit say why
  std::vector<OtherVariant> untried;   ///< that --variant or --set excluded
  std::vector<Rejected> rejections;    ///< illegal points, by rule
  uint64_t considered = 0;             ///< points of all spaces

  /// Indices into `stages`, in the order of the variant's kernels.
  std::vector<size_t> stages_of(const std::string& variant) const;
};

/// Exit::kUsage for an unknown variant, strategy or parameter; Exit::kUnavailable when no point of any variant is
/// legal, with the reasons.
Result<SearchPlan> plan_search(const SearchRun& run);
/// The plan of all variants without stages, for kernels that are known.
Result<SearchPlan> plan_without_spaces(const SearchRun& run);

}  // namespace roofgen
