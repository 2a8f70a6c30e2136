// Running another program to its end: its output with a limit, its time with a limit, its whole process
// group killed when it passes either.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] is a path, or a name to be found in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< on top of this process's
  std::string input = {};                                             ///< its standard input
  double timeout_s = 60;
  size_t most_output = size_t{8} << 20;  ///< bytes of standard output and standard error, each
  const std::atomic<bool>* stop = nullptr;
};

struct ProcessResult {
  std::string out, err;
  int exit = 0;                                              ///< its status; 0 when it was ended by a signal
  int signal = 0;                                            ///< that ended it
  bool timed_out = false, flooded = false, stopped = false;  ///< why it was killed
  bool ok() const { return exit == 0 && signal == 0; }
};

/// Error only when it could not be started.
Result<ProcessResult> run_process(const ProcessOptions& options);

/// The first that is an executable file: `chosen` (when not empty, nothing else is tried), `name` in each
/// directory of $PATH, then `others`, in which a last component `*` stands for the greatest name there.
/// Empty: none.
std::string find_program(const std::string& chosen, const std::string& name, const std::vector<std::string>& others);

}  // namespace roofgen
