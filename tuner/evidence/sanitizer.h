// A second check of correctness: the tuned variant runs under NVIDIA's compute-sanitizer, and its errors are compared
// with the simulator's findings. docs/use/counters.md.
#pragma once

#include <string>
#include <vector>

#include "tuner/evidence/counters.h"

namespace roofgen {

struct SanitizerRow {
  enum class State { kClean, kErrors, kNotRun };
  std::string tool;  ///< "memcheck", "racecheck", "initcheck", "synccheck"
  State state = State::kNotRun;
  uint64_t errors = 0, warnings = 0;
  std::string why;                     ///< of kNotRun
  std::vector<std::string> lines;      ///< the first errors, as printed
  std::vector<std::string> simulator;  ///< kinds of the simulator's findings that this tool also reports
  /// Whether the tool agrees with the simulator: "confirmed" or "contradicted"; "unchecked" when the tool did not run.
  std::string agreement() const;
};

struct SanitizerReport {
  std::string tool, version;  ///< path, and version as it prints it; empty: not found
  std::vector<SanitizerRow> rows;
};

struct SanitizerRequest {
  Replay replay;
  std::vector<Finding> findings;  ///< of the simulator on the same variant
  int gpu = 0;
  std::string sanitizer;   ///< empty: $ROOFGEN_SANITIZER, PATH, the toolkit
  std::string executable;  ///< as in CounterRequest
  double timeout_s = 300;  ///< of each tool: racecheck slows kernels down some hundred times
  const std::atomic<bool>* stop = nullptr;
};

/// Never fails: the row of a tool that could not run has the reason.
SanitizerReport sanitize(const SanitizerRequest& request);

/// One tool's row, from its output and exit status.
SanitizerRow parse_sanitizer(const std::string& tool, const std::string& output, int exit);

}  // namespace roofgen
