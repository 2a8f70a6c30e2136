// roofgen run: what a program did on the simulated driver, out of the records that its processes wrote
// (docs/use/run.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::check {

/// A process that loaded the simulated driver.
struct DriverProcess {
  int64_t pid = 0, parent = 0;
  std::string program;        ///< its command line
  std::string device, title;  ///< empty: it did not initialise the driver
  uint64_t peak_bytes = 0;    ///< of device memory
};

/// All launches of the kernels of one name.
struct KernelUse {
  std::string kernel, mangled;
  uint64_t launches = 0, not_run = 0;  ///< not_run: queued, but the program ended without waiting for them
  uint64_t findings = 0;
  Counts counts;
};

/// Findings of one kind at one PTX line.
struct ProgramFinding {
  Finding first;
  std::string instruction;  ///< the text of the PTX line
  uint64_t count = 0;
};

/// Driver calls that returned the same error.
struct FailedCall {
  std::string call, error, message;  ///< message: of the first one
  int status = 0;
  uint64_t count = 0;
};

struct ProgramReport {
  std::vector<std::string> program;  ///< with its arguments
  int exit = 0, signal = 0;          ///< how it ended; exit is 0 when a signal ended it
  std::string driver;                ///< the simulated driver's file
  std::string other_driver;          ///< another libcuda that the program had loaded
  std::vector<DriverProcess> processes;
  std::vector<KernelUse> kernels;  ///< in the order of their first launch
  std::vector<ProgramFinding> findings;
  std::vector<FailedCall> calls;
  std::vector<Where> deciding;  ///< lines at which a value that other threads may change decides a branch
  /// Without findings: incomplete where no kernel ran, launches did not run, the simulator refused kernels, or a value
  /// that other threads may change decided.
  Verdict verdict() const;
};

/// Adds the records of all files in the directory, of one process each.
Result<void> read_records(const std::string& directory, ProgramReport& report);
std::string program_text(const ProgramReport& report);
/// schema roofgen.run.1
std::string program_json(const ProgramReport& report);

}  // namespace roofgen::check
