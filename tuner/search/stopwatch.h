// The measured half of a search: verified candidates of a stage are timed against each other on the GPU,
// then the winners of whole variants. Everything here has the origin "measured".
#pragma once

#include <string>
#include <vector>

#include "tuner/search/plan.h"
#include "tuner/tune.h"

namespace roofgen {

/// A variant with the kernel that won each of its stages.
struct TunedVariant {
  std::string variant;
  std::vector<const Task*> kernels;
};

/// How whole variants stand: a measurement for each chain (none: it faulted or was not reached), and the
/// time of each over that of the first, in pairs of the same round.
struct ChainStandings {
  std::vector<std::optional<Measurement>> measurements;
  std::vector<Pairing> pairs;  ///< against the fastest, by index of the chain
};

class Stopwatch {
 public:
  /// All references must outlive it. Notes and what became of candidates go into `report`, `report.gpu`.
  Stopwatch(const TuneContext& context, const Problem& problem, const TuneOptions& options, const SearchPlan& plan,
            TuneReport& report, std::function<void(Rejected)> reject, std::function<double()> seconds_left = nullptr);

  /// Times the verified candidates of a stage behind `before`, the winners of the stages ahead of it. Sets
  /// their measurements, `stage.ranking` and `stage.finalists`. An Error when nothing could be timed.
  Result<void> rank(StagePlan& stage, const std::vector<const Task*>& before);
  Result<ChainStandings> race(const std::vector<TunedVariant>& chains);
  bool lost() const { return lost_; }

 private:
  Contender::Kernel kernel_of(const Task& task) const;
  std::vector<BenchBuffer> buffers(const std::vector<Contender>& contenders,
                                   const std::vector<Contender::Kernel>& prepare) const;
  /// `hot`: also hot times, where the protocol has them beside the cold ones.
  Result<Standings> run(const Workload& workload, const std::vector<Contender>& contenders, const char* phase,
                        bool hot);

  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  const SearchPlan& plan_;
  TuneReport& report_;
  std::function<void(Rejected)> reject_;
  std::function<double()> seconds_left_;  ///< of `--time`; empty: no limit
  bool lost_ = false;
  bool warm_ = false;  ///< something was timed before
};

/// 2026-01-31T12:00:00Z, now.
std::string utc_now();

}  // namespace roofgen
