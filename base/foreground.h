// Running a program in the foreground: with this process's standard input, output and error.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

struct ForegroundOptions {
  std::vector<std::string> argv;                                 ///< argv[0] is a path, or a name to be found in PATH
  std::vector<std::pair<std::string, std::string>> environment;  ///< on top of this process's
  bool stdout_to_stderr = false;
  /// Called from time to time with the process id while the program runs.
  std::function<void(pid_t)> watch = {};
};

struct ForegroundResult {
  int exit = 0;    ///< its status; 0 when it was ended by a signal
  int signal = 0;  ///< that ended it
};

/// Runs the program to its end. It stays in this process's group, so that the terminal is its own and Ctrl-C reaches
/// it; signals that another process sends to this one are forwarded to it. Error: it could not be started.
Result<ForegroundResult> run_in_foreground(const ForegroundOptions& options);

}  // namespace roofgen
