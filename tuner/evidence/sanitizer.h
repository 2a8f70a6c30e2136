// A second opinion on correctness: the tuned variant under NVIDIA's compute-sanitizer, on the GPU, beside what
// the simulator found. docs/counters.md.
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
  std::vector<std::string> simulator;  ///< kinds of the simulator's findings that this tool looks for too
  /// "confirmed" or "contradicted": what the simulator said of it; "unchecked" when it was not run.
  std::string agreement() const;
};

struct SanitizerReport {
  std::string tool, version;  ///< path and what it calls itself; empty: not found
  std::vector<SanitizerRow> rows;
};

struct SanitizerRequest {
  Replay replay;
  std::vector<Finding> findings;  ///< of the simulator on the same variant
  int gpu = 0;
  std::string sanitizer;   ///< empty: $ROOFGEN_SANITIZER, PATH, the toolkit
  std::string executable;  ///< as in CounterRequest
  double timeout_s = 300;  ///< of each tool: races are hunted some hundred times slower than kernels run
  const std::atomic<bool>* stop = nullptr;
};

/// Never fails: what could not be run says why.
SanitizerReport sanitize(const SanitizerRequest& request);

/// One tool's row from what it printed and how it ended.
SanitizerRow parse_sanitizer(const std::string& tool, const std::string& output, int exit);

std::string sanitizer_text(const SanitizerReport& report);
std::string sanitizer_json(const SanitizerReport& report);  ///< an object, schema roofgen.sanitizer.1

}  // namespace roofgen
