// The problems of a file in one run, on one machine or by MPI on many (docs/use/suite.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "tuner/session/request.h"
#include "tuner/session/session.h"
#include "tuner/session/suite/file.h"

namespace roofgen {

struct SuiteRequest {
  std::string file, captured, shard = "1/1";
  std::function<FlagValues()> given;  ///< flags that hold for the problems that do not have them themselves
  bool asked() const { return !file.empty() || !captured.empty(); }
  /// `app`: the flags of tune, all of which are declared. Those that a suite cannot have exclude --suite and
  /// --captured.
  void declare(FlagSet app);
};

struct SuiteAnswer {
  /// Of each problem that was finished: {"op", "flags", "result"}, the last as docs/tune-schema.json has it; or
  /// "error".
  std::vector<Json> results;
  size_t problems = 0;  ///< of this part of the suite
  bool interrupted = false;
};

/// Tunes every problem of the suite. A problem that fails does not stop the others. Nothing: the results are those of
/// rank 0.
Result<std::optional<SuiteAnswer>> tune_suite(const Session& session, const SuiteRequest& request);

}  // namespace roofgen
