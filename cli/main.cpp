// Parses the command line, hands over to one subcommand, prints the one error line, exits with the
// documented code.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/costs.h"
#include "cli/cli.h"
#include "cli/manual.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tuner/evidence/replay.h"

namespace roofgen::cli {
namespace {

constexpr bool kWrites = true;

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> table = {
      {"tune", "search, verify and score the variants of an op", declare_tune, kWrites},
      {"generate", "print the source or PTX of one schedule", declare_generate},
      {"emit", "tune, then write the winner as files to embed", declare_emit, kWrites},
      {"whatif", "time every partition of a chain of operators into kernels, and explain which fusions pay",
       declare_whatif, kWrites},
      {"check", "run any kernel in the strict simulator: a sanitizer without a GPU", declare_check, kWrites},
      {"profile", "model the time of any kernel from its machine code, and explain it: a profiler without a GPU",
       declare_profile, kWrites},
      {"calibrate", "fit the scalars of the time models to measured times of kernels", declare_calibrate, kWrites},
      {"run", "run a program on the simulated CUDA driver: findings and counts of all its kernels", declare_run,
       kWrites},
      {"explain", "work, roofs, regime and next lever of an operator, by formula", declare_explain, kWrites},
      {"lint", "check a roofline table against the rules R01 to R20", declare_lint},
      {"model", "estimate a whole transformer: per operator and in total, by batch and cache length", declare_model,
       kWrites},
      {"devices", "the catalogue: ceilings, bandwidths and the source of each number", declare_devices},
      {"roofline", "all ceilings of a device, with operators placed on them", declare_roofline, kWrites},
      {"replay", "replay searches on recorded tuning spaces, to compare strategies without compiler and GPU",
       declare_replay, kWrites},
      {"db", "look into the store of evaluations; exchange it with other tools and other stores", declare_db, kWrites},
      {"report", "print a saved result again, as text or page", declare_report, kWrites},
      {"doctor", "list the components found: NVRTC, driver, GPU, directories", declare_doctor},
      {"completion", "print the completion script of a shell", declare_completion},
  };
  return table;
}

std::atomic<bool> g_stop{false};

void on_interrupt(int) {
  if (g_stop.exchange(true)) _exit(static_cast<int>(Exit::kInterrupted));
}

/// Closed standard streams would lend their numbers to the next files: a cache entry that is stderr holds warnings.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

/// An interrupted search has printed its result, and needs no message.
int fail(const Error& error) {
  if (!error.message.empty()) fmt::print(stderr, "roofgen: {}\n", to_string(error));
  return static_cast<int>(error.exit);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  if (argc > 1 && std::strcmp(argv[1], "__gpu-worker") == 0) return gpu_worker_main();
  if (argc > 1 && std::strcmp(argv[1], "__replay") == 0) return replay_main(argc - 2, argv + 2);
  CommandLine line("roofgen", "roofgen: CUDA kernels from templates, tuned and scored against the roofline",
                   fmt::format("roofgen {}", version()), data_dirs_of(argc, argv));
  Terminal terminal;
  terminal.stop = &g_stop;
  std::vector<std::pair<FlagSet, Run>> runs;
  for (const Subcommand& s : subcommands()) {
    const FlagSet flags = line.add_command(s.name, s.summary);
    flags
        .add("--data-dir", terminal.data_dirs,
             "directory with templates/, search_spaces/, devices/, work/, models/ that come before the built-in ones")
        .directory();
    flags.add("--color", terminal.color, "auto, always or never [auto]").one_of({"auto", "always", "never"});
    if (s.writes) declare_force(flags, terminal.force);
    runs.emplace_back(flags, s.declare(flags));
  }
  line.footer("Example: roofgen tune attention --L 2048 --d 64");
  terminal.commands = [&] { return line.commands(); };
  if (argc == 2 && std::strcmp(argv[1], "__manual") == 0) {
    fmt::print("{}", manual_page(line.commands(), version()));
    return static_cast<int>(Exit::kOk);
  }
  if (argc == 1) {
    fmt::print("{}", line.help());
    return static_cast<int>(Exit::kUsage);
  }
  if (std::strcmp(argv[1], "run") == 0) {
    for (const auto& [flags, start] : runs) {
      if (flags.command() != "run") continue;
      const int end = flags.end_of_flags(argc, argv);
      terminal.program.assign(argv + end + (end < argc && std::strcmp(argv[end], "--") == 0), argv + argc);
      argc = end;
      break;
    }
  }
  const auto parsed = line.parse(argc, argv);
  if (!parsed) return fail(parsed.error());
  if (!*parsed) return static_cast<int>(Exit::kOk);
  for (const int at_write : {SIGPIPE, SIGXFSZ}) std::signal(at_write, SIG_IGN);  // the write fails, and says why
  for (const auto& [flags, start] : runs) {
    if (!flags.chosen()) continue;
    // Long searches stop at the next candidate and keep what is done; all else just ends.
    const std::string command = flags.command();
    if (command == "tune" || command == "emit" || command == "whatif" ||
        (command == "roofline" && flags.find("--measure").given())) {
      struct sigaction action {};
      action.sa_handler = on_interrupt;
      sigaction(SIGINT, &action, nullptr);
      sigaction(SIGTERM, &action, nullptr);
    }
    auto result = start(terminal);
    if (!result) return fail(result.error());
    if (std::fflush(stdout) != 0 && errno == EPIPE) return 128 + SIGPIPE;
    if (std::ferror(stdout)) return fail({Exit::kFailed, fmt::format("standard output: {}", std::strerror(errno))});
    return static_cast<int>(*result);
  }
  return static_cast<int>(Exit::kUsage);
}

}  // namespace

}  // namespace roofgen::cli

int main(int argc, char** argv) {
  roofgen::cli::open_standard_streams();
  // Matrices of a reference go back to the system when they are freed. By default glibc raises this limit to the
  // largest block that was freed, and then keeps such blocks in its heaps: a fifth of the peak.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  roofgen::spend(roofgen::Cost::kRuns, 1);
  try {
    return roofgen::cli::run(argc, argv);
  } catch (const std::system_error& e) {
    // The reader has gone (`| head`): nothing is wrong, and nobody is there to be told.
    if (e.code().value() == EPIPE) return 128 + SIGPIPE;
    std::fprintf(stderr, "roofgen: error: %s\n", e.what());
    return static_cast<int>(roofgen::Exit::kFailed);
  } catch (const std::exception& e) {
    // Writing to a full or closed output lands here (fmt throws), and what no module foresaw.
    std::fprintf(stderr, "roofgen: error: %s\n", e.what());
    return static_cast<int>(roofgen::Exit::kFailed);
  }
}
