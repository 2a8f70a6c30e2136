#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/spawn.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// How often a stop request and the clock are looked at.
constexpr int kTickMs = 50;

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
};

/// Reads what is there. False at the end of the file.
bool drain(int fd, std::string& into, size_t most, bool& flooded) {
  char buffer[65536];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const size_t room = most - std::min(most, into.size());
  into.append(buffer, std::min(room, static_cast<size_t>(got)));
  flooded |= static_cast<size_t>(got) > room;
  return true;
}

bool executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<ProcessResult> run_process(const ProcessOptions& options) {
  if (options.argv.empty()) return Error{Exit::kFailed, "no program was named"};
  Pipe out, err;
  if (!out.open() || !err.open())
    return Error{Exit::kFailed, fmt::format("cannot start {}: {}", options.argv[0], std::strerror(errno))};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  const SpawnAttributes attributes;
  std::vector<std::string> arguments = options.argv, environment = environment_with(options.environment);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, arguments[0].c_str(), &actions, attributes.get(), pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error{Exit::kFailed, fmt::format("cannot start {}: {}", options.argv[0], std::strerror(failed))};
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);

  ProcessResult result;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::max(options.timeout_s, 0.0)));
  bool gone = false;  // ended, and not yet reaped: its process id is still its own
  while (!(gone && out.read_end < 0 && err.read_end < 0)) {
    pollfd fds[] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
    poll(fds, 2, kTickMs);
    if (fds[0].revents != 0 && !drain(out.read_end, result.out, options.most_output, result.flooded))
      Pipe::close_end(out.read_end);
    if (fds[1].revents != 0 && !drain(err.read_end, result.err, options.most_output, result.flooded))
      Pipe::close_end(err.read_end);
    // It has ended, but something it started holds the pipes: what has arrived is all there is.
    if (gone && fds[0].revents == 0 && fds[1].revents == 0) break;
    siginfo_t info = {};
    if (!gone && waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
      gone = true;
    result.stopped = options.stop && options.stop->load();
    result.timed_out = !gone && !result.stopped && Clock::now() >= deadline;
    if (result.flooded || result.stopped || result.timed_out) break;
  }
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  else
    result.exit = WEXITSTATUS(status);
  return result;
}

std::string find_program(const std::string& chosen, const std::string& name, const std::vector<std::string>& others) {
  if (!chosen.empty()) return executable(chosen) ? chosen : "";
  if (const char* path = std::getenv("PATH")) {
    std::string rest = path;
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      const std::string directory = rest.substr(0, colon);
      if (!directory.empty() && executable(fs::path(directory) / name)) return (fs::path(directory) / name).string();
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  }
  for (const std::string& other : others) {
    const size_t star = other.find("/*");
    if (star == std::string::npos) {
      if (executable(other)) return other;
      continue;
    }
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(other.substr(0, star), ignored))
      found.push_back(entry.path().string() + other.substr(star + 2));
    std::sort(found.rbegin(), found.rend());
    for (const std::string& candidate : found)
      if (executable(candidate)) return candidate;
  }
  return "";
}

}  // namespace roofgen
