// The one place where roofgen starts a process.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

namespace roofgen {

inline constexpr int kNoFile = -1;  ///< in spawn(): /dev/null

/// Starts `program` (a path, or a name that PATH resolves) with `argv`, `environment` ("NAME=value") and `files` as its
/// standard input, output and error. No signal is blocked or ignored in the child, which leads a process group of its
/// own: the processes that it starts end with it, and Ctrl-C reaches roofgen alone. 0, or an errno value.
int spawn(pid_t* pid, const std::string& program, std::vector<std::string> argv, std::vector<std::string> environment,
          std::array<int, 3> files);

/// This process's environment.
std::vector<std::string> own_environment();

}  // namespace roofgen
