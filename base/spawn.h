// The one place where roofgen starts a process.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace roofgen {

inline constexpr int kNoFile = -1;  ///< in spawn(): /dev/null

/// Starts `program` (a path, or a name that PATH resolves) with `argv`, `environment` ("NAME=value") and `files` as its
/// standard input, output and error. No signal is blocked or ignored in the child, which leads a process group of its
/// own: the processes that it starts end with it, and Ctrl-C reaches roofgen alone. 0, or an errno value.
int spawn(pid_t* pid, const std::string& program, std::vector<std::string> argv, std::vector<std::string> environment,
          std::array<int, 3> files);

/// argv or envp for posix_spawn; the pointers are into `strings`.
std::vector<char*> pointers(std::vector<std::string>& strings);

/// This process's environment ("NAME=value"), with some variables set.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& more = {});

/// This process's environment, with some variables set.
inline std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> out;
  for (char** e = environ; *e; ++e) {
    const std::string entry = *e;
    const bool replaced =
        std::any_of(more.begin(), more.end(), [&](const auto& m) { return entry.starts_with(m.first + "="); });
    if (!replaced) out.push_back(entry);
  }
  for (const auto& [name, value] : more) out.push_back(name + "=" + value);
  return out;
}

/// argv or envp for posix_spawn; it points into `strings`.
inline std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace roofgen
