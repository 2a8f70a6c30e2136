// One call of tune(): the request, the resources it uses and its clock. Every stage of the search reads it.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tuner/tune.h"

namespace roofgen {

/// Where candidates are tried.
enum class Place { kSimulator, kGpu, kBoth };

struct SearchRun {
  const TuneContext& context;  ///< this and the next two outlive the run
  const Problem& problem;
  const TuneOptions& options;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  const std::string started_utc = utc_now();
  const GpuIdentity gpu = context.gpu ? context.gpu->identity() : GpuIdentity{};

  Place place() const {
    if (!context.gpu) return Place::kSimulator;
    return options.check == Check::kAll ? Place::kBoth : Place::kGpu;
  }
  int threads() const {
    return options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  double elapsed_s() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(); }
  /// Ctrl-C.
  bool interrupted() const { return options.stop && options.stop->load(); }
  /// Ctrl-C, or `share` of --time is over.
  bool over(double share = 1) const {
    return interrupted() || (options.time_limit_s > 0 && elapsed_s() > share * options.time_limit_s);
  }
  /// Whether the candidates of a kernel end after some in a row that were no faster, and a variant's where it is far
  /// slower than another. A number that the caller names is tried, and on a GPU a candidate costs little.
  bool settles() const {
    return options.settles || (!context.gpu && options.evals == 0 && options.effort == Effort::kQuick);
  }
  /// With a GPU, the second half of --time is for timing.
  bool trials_over() const { return over(context.gpu ? 0.5 : 1); }
};

}  // namespace roofgen
