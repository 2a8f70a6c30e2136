// The cross evaluation: kernels that were tuned for one problem are verified and timed at another one. The same
// binaries run in other launches.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tuner/dispatch/serving.h"
#include "tuner/search/timing.h"

namespace roofgen {

/// Compiled kernels of a variant, in launch order.
struct Implementation {
  struct Kernel {
    const Stage* stage = nullptr;
    Legal legal;
    Program program;
    Binary binary;
  };
  const ProblemVariants* tuned_for = nullptr;
  std::string variant;
  std::vector<Kernel> kernels;
};

/// One problem, at which implementations are tried. The arguments must outlive it.
class CrossRun {
 public:
  static Result<std::unique_ptr<CrossRun>> make(const TuneContext& context, const Problem& problem,
                                                const TuneOptions& options);

  struct Outcome {
    std::optional<double> seconds;
    std::string why_not;  ///< if there is no time: not legal here, not verified, ...
  };
  /// Verifies all of them in the simulator and times them by time_model().
  Result<std::vector<Outcome>> time(const std::vector<const Implementation*>& all);
  /// The checks of a winner: its kernels in a row, and on the whole grid. Why it failed; empty: it passed.
  Result<std::string> verify(const Implementation& one);

  TimeModel time_model() const;

 private:
  struct Chain {
    const Implementation* of = nullptr;
    const Variant* variant = nullptr;
    std::deque<Task> tasks = {};
    std::string why_not = {};
  };
  CrossRun(const TuneContext& context, const Problem& problem, const TuneOptions& options)
      : run_{context, problem, options} {}
  Result<Chain> chain_of(const Implementation& implementation) const;
  Result<std::string> add_task(Chain& chain, size_t i) const;
  Result<void> evaluate(std::vector<Chain>& chains);
  Result<bool> ensure_fed(const Chain& chain, size_t stage);
  void time_by_model(const std::vector<Chain>& chains, std::vector<Outcome>& out) const;

  const SearchRun run_;
  SearchPlan plan_;
  expr::Map reduced_scope_;
  std::optional<Runner> runner_;
};

}  // namespace roofgen
