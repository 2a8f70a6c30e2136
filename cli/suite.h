// roofgen tune --suite: the problems of a file in one run, on one machine or by MPI on many.
#pragma once

#include "cli/problem_flags.h"
#include "tuner/suite/suite.h"

namespace roofgen::cli {

struct SuiteFlags {
  std::string file, captured, shard = "1/1";
  bool given() const { return !file.empty() || !captured.empty(); }
  /// `app`: the flags of tune, all of which are declared. Those that a suite cannot have exclude --suite and
  /// --captured.
  void declare(FlagSet app);
};

/// Tunes every problem of the suite. Flags on the command line hold for the problems that do not have them themselves.
/// A problem that fails does not stop the others. Exit::kFailed if one failed, Exit::kBelowScore if one is below
/// `min_score`.
Result<Exit> tune_suite(const Session& session, const SuiteFlags& flags, const FlagValues& given, double min_score,
                        bool json);

}  // namespace roofgen::cli
