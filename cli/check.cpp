// roofgen check FILE: any kernel in the strict simulator.
#include "check/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/paths.h"
#include "base/shell.h"
#include "check/skeleton.h"
#include "cli/cli.h"
#include "cli/kernel_flags.h"
#include "runtime/compiler.h"

namespace roofgen::cli {
namespace {

struct CheckFlags : KernelFlags {
  std::string sarif, emit_args;
  int jobs = 0, schedules = 1;
  uint64_t max_instructions = 0, max_memory_mib = 0, top = 5;
  bool json = false, cooperative = false, allow_unfenced = false, allow_incomplete = false, fp64 = false;
};

/// --emit-args: writes a file of arguments, and prints the command that uses it.
Result<Exit> emit_arguments(const Terminal& terminal, const check::Request& r, const CheckFlags& flags) {
  ROOFGEN_TRY(const check::Skeleton skeleton, check::make_skeleton(r));
  ROOFGEN_CHECK(terminal.outputs().write(flags.emit_args, skeleton.json));
  fmt::print("wrote     {}: arguments of {}; its sizes, contents and values are placeholders\n", flags.emit_args,
             skeleton.kernel);
  for (const std::string& note : skeleton.notes) fmt::print("note      {}\n", note);
  std::string compiler;
  for (const std::string& directory : flags.include_dirs) compiler += " -I " + shell_word(directory);
  for (const std::string& define : flags.defines) compiler += " -D " + shell_word(define);
  if (flags.arch != kDefaultArch) compiler += " --arch " + flags.arch;
  fmt::print("run       roofgen check {}{} {} --args {}\n", shell_word(flags.file), compiler, skeleton.flags,
             shell_word(flags.emit_args));
  return Exit::kOk;
}

Result<Exit> run(const Terminal& terminal, const CheckFlags& flags) {
  ROOFGEN_TRY(check::Request r, kernel_request(flags, flags.emit_args.empty()));
  if (!flags.sarif.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.sarif}));
  for (const check::Argument* a : check::buffers_of(r.args))
    if (!a->dump.empty()) ROOFGEN_CHECK(terminal.outputs().check({a->dump}));
  r.outputs = terminal.outputs();
  r.cooperative = flags.cooperative;
  r.allow_unfenced = flags.allow_unfenced;
  r.max_instructions = flags.max_instructions;
  r.jobs = flags.jobs;
  r.in_double = flags.fp64;
  r.schedules = flags.schedules;
  r.max_memory_bytes = flags.max_memory_mib << 20;
  if (!flags.emit_args.empty()) return emit_arguments(terminal, r, flags);
  r.progress = [](const std::string& line) { fmt::print(stderr, "roofgen: check: {}\n", line); };
  r.progress_after_s = isatty(STDERR_FILENO) ? 2 : 10;
  ROOFGEN_TRY(const check::Report report, check::run(r));
  if (!flags.sarif.empty()) ROOFGEN_CHECK(terminal.write(flags.sarif, check::check_sarif(report)));
  fmt::print("{}", flags.json ? check::check_json(report) : check::check_text(report, flags.top));
  if (report.verdict() == check::Verdict::kFindings) return Exit::kFailed;
  return report.verdict() == check::Verdict::kClean || flags.allow_incomplete ? Exit::kOk : Exit::kIncomplete;
}

}  // namespace

Run declare_check(FlagSet app) {
  auto flags = std::make_shared<CheckFlags>();
  flags->declare(app);
  app.add_switch("--cooperative", flags->cooperative,
                 "launch as cudaLaunchCooperativeKernel does, so that CTAs may wait for each other with grid.sync()");
  app.add("--emit-args", flags->emit_args,
          "write arguments for the kernel to this file, and print the launch that the source has; runs nothing");
  app.add("--arch", flags->arch, "architecture to compile for [sm_90]");
  app.add("--max-instructions", flags->max_instructions,
          "warp-instructions that a CTA may execute before it counts as endless [1000000000]")
      .range(uint64_t{1}, uint64_t{1} << 50);
  app.add("--jobs", flags->jobs, "cores that CTAs are spread over; the report is the same [cores]").range(1, 256);
  app.add("--schedules", flags->schedules,
          "runs: the first in the usual order of CTAs and warps, the others in random orders; outputs are compared [1]")
      .range(1, 1000);
  app.add_switch("--fp64", flags->fp64,
                 "also compute in double, and tell rounding from logic; about 20 times slower, on one core");
  app.add_switch("--allow-unfenced", flags->allow_unfenced,
                 "leave out accesses that a volatile or relaxed read orders without a fence after it");
  app.add_switch("--allow-incomplete", flags->allow_incomplete,
                 "exit code 0, not 5, where nothing is wrong but not everything was run or decided");
  app.add("--max-memory", flags->max_memory_mib,
          "MiB of device memory that the launch may touch [a quarter of the machine's]")
      .range(uint64_t{1}, uint64_t{32} << 10);
  app.add("--top", flags->top, "lines to list for traffic and for bank conflicts [5]")
      .range(uint64_t{0}, uint64_t{1} << 30);
  app.add_switch("--json", flags->json, "as JSON");
  app.add("--sarif", flags->sarif, "file for the findings as SARIF 2.1.0");
  app.footer(
      "Example: roofgen check scale.cu --emit-args scale.json (writes arguments, and prints the next line)\n"
      "Example: roofgen check scale.cu --grid 4 --block 256 --args scale.json\nExit code: 0 clean, 1 findings or wrong "
      "outputs, 2 the request does not fit the kernel, 5 incomplete: nothing wrong in what ran. docs/use/findings.md "
      "says "
      "what each finding means.");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli
