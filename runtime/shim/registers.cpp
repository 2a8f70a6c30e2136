// Register counts of kernels, from ptxas if a toolkit has it: once per module, on the first query.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "runtime/shim/state.h"

extern char** environ;

namespace roofgen::shim {
namespace {

namespace fs = std::filesystem;

/// ptxas: $ROOFGEN_PTXAS, else of a toolkit, else on PATH; empty if there is none.
std::string find_ptxas() {
  const auto usable = [](const fs::path& path) { return access(path.c_str(), X_OK) == 0; };
  if (const char* own = std::getenv("ROOFGEN_PTXAS")) return usable(own) ? own : "";
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(name); home && *home && usable(fs::path(home) / "bin/ptxas"))
      return (fs::path(home) / "bin/ptxas").string();
  if (usable("/usr/local/cuda/bin/ptxas")) return "/usr/local/cuda/bin/ptxas";
  const char* path = std::getenv("PATH");
  for (std::string_view left = path ? path : ""; !left.empty();) {
    const size_t end = std::min(left.find(':'), left.size());
    const fs::path at = fs::path(left.substr(0, end)) / "ptxas";
    if (at.is_absolute() && usable(at)) return at.string();
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return "";
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

/// Runs a program and reads its standard error. False: it could not be started.
bool run(const std::vector<std::string>& arguments, std::string& out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const bool started = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char part[4096];
  for (ssize_t n; started && ((n = read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) out.append(part, static_cast<size_t>(n));
  close(ends[0]);
  if (started) waitpid(child, nullptr, 0);  // may fail if the host program has reaped it; the text is enough
  return started;
}

}  // namespace

std::optional<PtxasReport> State::compiled(const Function& function) {
  Module& module = *function.module;
  if (!module.ptxas_log) {
    module.ptxas_log = "";
    const std::string ptxas = find_ptxas();
    std::string file = (fs::temp_directory_path() / "roofgen-sim-XXXXXX").string();
    const int fd = ptxas.empty() ? -1 : mkostemp(file.data(), O_CLOEXEC);
    if (fd < 0) {
      log(ptxas.empty() ? "no register counts: no ptxas (ROOFGEN_PTXAS, CUDA_HOME, PATH)"
                        : "no register counts: no temporary file");
      return std::nullopt;
    }
    const bool whole = write_all(fd, module.text);
    close(fd);
    // The device's architecture, unless the PTX is for one architecture only.
    const std::string target(module.ptx.target), last = target.empty() ? "" : target.substr(target.size() - 1);
    std::vector<std::string> arguments = {
        ptxas,
        "-v",
        "-arch=" + (last == "a" || last == "f" ? target : fmt::format("sm_{}", device.integer("arch"))),
        "-o",
        "/dev/null",
        file};
    if (module.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", module.max_registers));
    if (!whole || !run(arguments, *module.ptxas_log)) log("no register counts: " + ptxas + " did not run");
    unlink(file.c_str());
  }
  PtxasReport report = parse_ptxas_log(*module.ptxas_log, function.kernel.name);
  if (report.found) return report;
  if (!module.ptxas_log->empty())
    log(fmt::format("no register count of {}: ptxas: {}", function.kernel.name, module.ptxas_log->substr(0, 200)));
  return std::nullopt;
}

}  // namespace roofgen::shim
