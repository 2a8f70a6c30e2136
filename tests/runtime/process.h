// Test helpers for processes and files.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace roofgen::testing {

/// A temporary directory, removed at the end of the test.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "roofgen-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Every file with this name below `root`.
inline std::vector<std::filesystem::path> find_files(const std::string& root, const std::string& name) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, ignored))
    if (entry.path().filename() == name) out.push_back(entry.path());
  return out;
}

/// The parent of a process, 0 when the process has ended.
inline pid_t parent_of(pid_t pid) {
  std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  int parent = 0;
  // The name, in parentheses, may contain anything; the fields after it are plain.
  if (auto close = stat.rfind(')'); close != std::string::npos)
    std::sscanf(stat.c_str() + close + 1, " %*c %d", &parent);
  return parent;
}

/// Process ids of the workers started by `parent`.
inline std::vector<pid_t> workers_of(pid_t parent, const std::string& argument) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || read_text(entry.path() / "cmdline").find(argument) == std::string::npos) continue;
    if (parent_of(pid) == parent) out.push_back(pid);
  }
  return out;
}

inline std::vector<pid_t> compile_workers_of(pid_t parent) { return workers_of(parent, "__compile-worker"); }
inline std::vector<pid_t> gpu_workers_of(pid_t parent) { return workers_of(parent, "__gpu-worker"); }

/// Waits (up to a minute) until `condition` holds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Whether this child has ended with all of its threads. Before that its files are open, even if /proc reports a
/// zombie. The child remains to be waited for.
inline bool ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

}  // namespace roofgen::testing
