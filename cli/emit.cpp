// roofgen emit OP -o DIR: tune, then write the winner as files to embed.
#include "generator/emit.h"

#include <fmt/format.h>

#include <cctype>

#include "base/output_file.h"
#include "base/units.h"
#include "cli/problem_flags.h"
#include "tuner/evidence/counters.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

struct EmitFlags {
  ProblemFlags problem;
  RunFlags run;
  std::string directory, name;
};

/// Why `name` cannot begin the names of C functions; nothing when it can.
Result<void> check_name(const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(name[i]);
    if (!(std::isalpha(c) || c == '_' || (i > 0 && std::isdigit(c))))
      return Error{
          Exit::kUsage,
          fmt::format("--name: {} is no C name: letters, digits and _ were expected, not beginning with a digit",
                      name)};
  }
  return {};
}

Result<Exit> run(const Session& session, const EmitFlags& flags) {
  ROOFGEN_CHECK(check_name(flags.name));
  // The directory is checked before minutes are spent.
  ROOFGEN_CHECK(make_directory(flags.directory));
  ROOFGEN_TRY(Workbench bench, make_workbench(session, flags.problem, flags.run));
  ROOFGEN_TRY(TuneResult result, run_tune(session, bench, flags.problem, flags.run));
  const TuneReport& report = result.report;
  if (report.interrupted) return Exit::kInterrupted;
  if (report.best_variant.empty()) return Error{Exit::kFailed, "nothing to emit: " + report.verdict.reason};

  ROOFGEN_TRY(std::vector<Variant> variants, bench.op->variants(*bench.files, bench.problem));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*bench.op, bench.problem, limits(bench.device)));
  ROOFGEN_TRY(variants, expand(std::move(variants), scope));
  const Variant* variant = nullptr;
  for (const Variant& v : variants)
    if (v.name == report.best_variant) variant = &v;
  EmitRequest request{flags.name.empty() ? bench.problem.op : flags.name,
                      &bench.problem,
                      variant,
                      bench.op->buffers(bench.problem),
                      scope,
                      {},
                      tune_json(report)};
  ROOFGEN_TRY(const std::vector<Buffer> own, temporaries(*variant, scope));
  request.buffers.insert(request.buffers.end(), own.begin(), own.end());
  for (size_t i = 0; i < variant->stages.size(); ++i) {
    const TunedKernel& k = result.winners[variant->name][i];
    auto checked = check_schedule(*variant, variant->stages[i], k.program.schedule, scope);
    request.kernels.push_back({&variant->stages[i], &k.program, &k.binary, &k.launch, std::get<Legal>(checked).scope});
  }
  ROOFGEN_TRY(const auto files, emit(request));
  for (const auto& [name, text] : files) ROOFGEN_CHECK(write_output(flags.directory + "/" + name, text));
  // The same binaries with the launch of the tuned problem, for profilers and for bench/peers.
  ROOFGEN_TRY(const CounterRequest replay, counter_request(*bench.files, *bench.op, result, variant->name));
  ROOFGEN_CHECK(write_replay(replay.replay, flags.directory + "/replay"));
  fmt::print("{} {} ({}, score {:.2f}) written to {}:\n", variant->name, bench.problem.op,
             time_text(report.find(variant->name)->seconds), report.score.value, flags.directory);
  for (const auto& [name, text] : files)
    fmt::print("  {:<28} {}\n", name, bytes_text(static_cast<double>(text.size())));
  fmt::print("  {:<28} {}\n", "replay/", "the launch of this problem, docs/counters.md");
  return Exit::kOk;
}

}  // namespace

Run declare_emit(FlagSet app) {
  auto flags = std::make_shared<EmitFlags>();
  flags->problem.declare(app);
  flags->run.declare(app);
  app.add("-o,--output", flags->directory, "directory to write to").required();
  app.add("--name", flags->name, "prefix of the files and C functions [the op's name]");
  app.footer("Example: roofgen emit attention --L 2048 --d 64 -o kernels/");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli
