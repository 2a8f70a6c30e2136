// The one place where roofgen starts a process.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace roofgen {

inline constexpr int kNoFile = -1;  ///< in spawn(): /dev/null

/// Starts `program` (a path, or a name that PATH resolves) with `argv`, `environment` ("NAME=value") and `files` as its
/// file descriptors 0, 1, 2, ... (standard input, output and error come first). No signal is blocked or ignored in the
/// child, which leads a process group of its own: the processes that it starts end with it, and Ctrl-C reaches roofgen
/// alone. 0, or an errno value.
int spawn(pid_t* pid, const std::string& program, std::vector<std::string> argv, std::vector<std::string> environment,
          const std::vector<int>& files);

/// argv or envp for posix_spawn; the pointers are into `strings`.
std::vector<char*> pointers(std::vector<std::string>& strings);

/// This process's environment ("NAME=value"), with some variables set.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& more = {});

}  // namespace roofgen
