#include "base/foreground.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/spawn.h"

namespace roofgen {
namespace {

constexpr long kFirstTickMs = 10, kLastTickMs = 1000;  // between two calls of `watch`, doubled from one to the next

/// Signals that end this process or are meant for the program, and SIGCHLD.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&set, s);
  return set;
}

}  // namespace

Result<ForegroundResult> run_in_foreground(const ForegroundOptions& options) {
  // Blocked signals are taken by sigtimedwait below; the program gets the mask from before. SIGCHLD must not be
  // ignored.
  signal(SIGCHLD, SIG_DFL);
  const sigset_t watched = watched_signals();
  sigset_t before, pipe;
  sigprocmask(SIG_BLOCK, &watched, &before);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.stdout_to_stderr) posix_spawn_file_actions_adddup2(&actions, 2, 1);
  std::vector<std::string> arguments = options.argv, environment = environment_with(options.environment);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);

  int status = 0;
  for (long tick = kFirstTickMs; !failed && waitpid(pid, &status, WNOHANG) == 0;) {
    siginfo_t info = {};
    const timespec wait = {tick / 1000, tick % 1000 * 1000000};
    const int got = sigtimedwait(&watched, &info, &wait);
    // The terminal sends its signals to the whole group, so to the program as well.
    if (got > 0 && got != SIGCHLD && info.si_code != SI_KERNEL) kill(pid, got);
    if (got < 0 && options.watch) options.watch(pid);
    if (got < 0) tick = std::min(2 * tick, kLastTickMs);
  }
  const timespec none = {0, 0};
  while (sigtimedwait(&watched, nullptr, &none) > 0) {  // Ctrl-C that ended the program does not end its report
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (failed) return Error{Exit::kUsage, fmt::format("cannot run {}: {}", options.argv[0], std::strerror(failed))};
  if (WIFSIGNALED(status)) return ForegroundResult{0, WTERMSIG(status)};
  return ForegroundResult{WEXITSTATUS(status), 0};
}

}  // namespace roofgen
