// Parses the command line, hands over to one subcommand, prints the one error line, exits with the
// documented code.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/suggest.h"
#include "cli/cli.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tuner/evidence/replay.h"

namespace roofgen::cli {
namespace {

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> table = {
      {"tune", "search, verify and score the variants of an op", declare_tune},
      {"generate", "print the source or PTX of one schedule", declare_generate},
      {"emit", "tune, then write the winner as files to embed", declare_emit},
      {"whatif", "every way to cut a chain of operators into kernels, timed: what to fuse, and why", declare_whatif},
      {"check", "run any kernel in the strict simulator: a sanitizer without a GPU", declare_check},
      {"run", "run a program on the simulated CUDA driver: findings and counts of all its kernels", declare_run},
      {"explain", "work, roofs, regime and next lever of an operator, by formula", declare_explain},
      {"lint", "check a roofline table against the rules R01 to R20", declare_lint},
      {"model", "a whole transformer: per operator and in all, by batch and cache length", declare_model},
      {"devices", "the catalogue: ceilings, bandwidths and the source of each number", declare_devices},
      {"roofline", "all ceilings of a device, with operators placed on them", declare_roofline},
      {"report", "a result again, as text or page, without running it", declare_report},
      {"doctor", "what was found: NVRTC, driver, GPU, directories", declare_doctor},
  };
  return table;
}

std::atomic<bool> g_stop{false};

void on_interrupt(int) {
  if (g_stop.exchange(true)) _exit(static_cast<int>(Exit::kInterrupted));
}

int fail(const Error& error) {
  fmt::print(stderr, "roofgen: {}\n", to_string(error));
  return static_cast<int>(error.exit);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  return out;
}

/// CLI11's exceptions as one line with a suggestion.
int usage_error(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  std::string message = e.what();
  const CLI::App* sub = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) || dynamic_cast<const CLI::RequiredError*>(&e)) {
    for (int i = 1; i < argc; ++i) {
      std::string word = argv[i];
      if (const size_t eq = word.find('='); eq != std::string::npos && word.starts_with("--")) word.resize(eq);
      if (sub == &app && !word.starts_with("-")) {
        std::vector<std::string> names;
        for (const Subcommand& s : subcommands()) names.emplace_back(s.name);
        return fail({Exit::kUsage, fmt::format("unknown command \"{}\"{}", word, did_you_mean(word, names))});
      }
      if (word.size() > 1 && word.starts_with("-") && !std::isdigit(static_cast<unsigned char>(word[1])) &&
          !sub->get_option_no_throw(word) && !app.get_option_no_throw(word)) {
        const std::string near = nearest(word, option_names(*sub));
        return fail({Exit::kUsage, fmt::format("unknown option {}{}", word,
                                               near.empty() ? fmt::format("; see roofgen {} --help", sub->get_name())
                                                            : fmt::format("; did you mean {}?", near))});
      }
    }
  }
  if (dynamic_cast<const CLI::ConversionError*>(&e)) message += "; a number was expected";
  if (const size_t newline = message.find('\n'); newline != std::string::npos) message.resize(newline);
  return fail({Exit::kUsage, message});
}

/// The index where the options of `run` end. The words from there on are the program's, and are not parsed.
int begin_of_program(const CLI::App& run, int argc, char** argv) {
  int i = 2;
  for (; i < argc && argv[i][0] == '-' && std::strcmp(argv[i], "--") != 0; ++i)
    if (const CLI::Option* option = run.get_option_no_throw(argv[i]); option && option->get_items_expected_max() > 0)
      ++i;
  return std::min(i, argc);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  if (argc > 1 && std::strcmp(argv[1], "__gpu-worker") == 0) return gpu_worker_main();
  if (argc > 1 && std::strcmp(argv[1], "__replay") == 0) return replay_main(argc - 2, argv + 2);
  CLI::App app{"roofgen: CUDA kernels from templates, tuned and scored against the roofline", "roofgen"};
  app.set_version_flag("--version", "roofgen " ROOFGEN_VERSION);
  app.require_subcommand(1);
  Session session;
  session.stop = &g_stop;
  std::vector<std::pair<CLI::App*, Run>> runs;
  for (const Subcommand& s : subcommands()) {
    CLI::App* sub = app.add_subcommand(s.name, s.summary);
    sub->add_option(
           "--data-dir", session.data_dirs,
           "directory with templates/, search_spaces/, devices/, work/, models/ that come before the built-in ones")
        ->check(CLI::ExistingDirectory);
    sub->add_option("--color", session.color, "auto, always or never [auto]")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    runs.emplace_back(sub, s.declare(*sub));
  }
  app.footer("Example: roofgen tune attention --L 2048 --d 64");
  if (argc == 1) {
    fmt::print("{}", app.help());
    return static_cast<int>(Exit::kUsage);
  }
  if (std::strcmp(argv[1], "run") == 0) {
    const int end = begin_of_program(*app.get_subcommand("run"), argc, argv);
    session.program.assign(argv + end + (end < argc && std::strcmp(argv[end], "--") == 0), argv + argc);
    argc = end;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return usage_error(app, e, argc, argv);
  }
  std::signal(SIGPIPE, SIG_IGN);
  for (const auto& [sub, start] : runs) {
    if (!sub->parsed()) continue;
    // Long searches stop at the next candidate and keep what is done; all else just ends.
    if (sub->get_name() == "tune" || sub->get_name() == "emit" || sub->get_name() == "whatif" ||
        (sub->get_name() == "roofline" && sub->count("--measure") > 0)) {
      struct sigaction action {};
      action.sa_handler = on_interrupt;
      sigaction(SIGINT, &action, nullptr);
      sigaction(SIGTERM, &action, nullptr);
    }
    auto result = start(session);
    if (!result) return fail(result.error());
    if (std::fflush(stdout) != 0 && errno == EPIPE) return 128 + SIGPIPE;
    if (std::ferror(stdout)) return fail({Exit::kFailed, fmt::format("standard output: {}", std::strerror(errno))});
    return static_cast<int>(*result);
  }
  return static_cast<int>(Exit::kUsage);
}

}  // namespace

bool Session::use_color(int fd) const {
  if (color != "auto") return color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(fd) && !(no_color && *no_color);
}

}  // namespace roofgen::cli

int main(int argc, char** argv) {
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
