// roofgen emit OP -o DIR: tune, then write the winner as a library to build in.
#include "generator/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/json.h"
#include "base/output_file.h"
#include "base/paths.h"
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
  std::vector<std::string> archs;
  bool replay = false;
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

/// The best kernels on one device, and what they refer to.
struct Tuned {
  Workbench bench;
  TuneResult result;
  std::vector<Variant> variants;
  const Variant* variant = nullptr;
  std::vector<Binary> binaries;
  EmittedPipeline pipeline;
};

/// The flags of a run for "90a" or "90" of --archs: on the chosen device if that is one of the architecture, else on
/// the first of the catalogue.
Result<ProblemFlags> on_arch(const DataFiles& files, ProblemFlags flags, const std::string& asked) {
  const std::string digits = asked.starts_with("sm_") ? asked.substr(3) : asked;
  const bool specific = digits.ends_with('a');
  const std::string number = specific ? digits.substr(0, digits.size() - 1) : digits;
  if (number.size() < 2 || number.size() > 3 || number.find_first_not_of("0123456789") != std::string::npos)
    return Error{Exit::kUsage, fmt::format("--archs: unknown arch \"{}\"; 80, 90, 90a, ... was expected", asked)};
  const std::string arch = "sm_" + number;
  std::vector<std::string> names = json_names(files, "devices/");
  names.insert(names.begin(), flags.device.empty() || flags.device == "gpu" ? kDefaultDevice : flags.device);
  std::vector<std::string> known;
  for (const std::string& name : names) {
    const auto device = find_device(files, name, ProfileFlags{});
    if (!device || !tunable(*device)) continue;
    if (device->arch == arch) {
      if (flags.device != "gpu" || name != kDefaultDevice) flags.device = name;
      flags.arch = specific ? "" : arch;
      return flags;
    }
    known.push_back(device->arch.substr(3));
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return Error{Exit::kUsage,
               fmt::format("--archs: no device of the catalogue is {}; {} was expected", arch, fmt::join(known, ", "))};
}

/// The binaries of the winner without line numbers, which are most of their bytes. They are those that were verified:
/// the PTX is the same.
Result<std::vector<Binary>> without_lines(const std::vector<TunedKernel>& kernels, const std::string& arch) {
  CompileOptions options;
  options.arch = arch;
  options.line_info = false;
  options.jobs = 1;
  ROOFGEN_TRY(const auto compiler, make_nvrtc_compiler(options, cache_dir(), warn));
  std::vector<const Program*> programs;
  std::vector<Binary> out;
  for (const TunedKernel& k : kernels) {
    programs.push_back(&k.program);
    out.push_back(k.binary);
  }
  compiler->compile_all(programs, [&](CompileOutcome outcome) {
    if (outcome.binary && bare_ptx(outcome.binary->ptx) == bare_ptx(out[outcome.index].ptx)) {
      outcome.binary->digest = out[outcome.index].digest;
      out[outcome.index] = std::move(*outcome.binary);
    }
    return true;
  });
  return out;
}

/// The facts of a result that another run with the same store repeats.
std::string evidence(const TuneReport& report) {
  const Json all = parse_json(tune_json(report));
  Json out;
  for (const char* member : {"device", "strategy", "floor", "score", "score_datasheet"}) out[member] = all[member];
  for (const Json& v : all["variants"])
    if (v["name"] == report.best_variant) out["variant"] = v;
  return json_line(out);
}

/// Null: interrupted.
Result<std::unique_ptr<Tuned>> tuned(const Session& session, const ProblemFlags& problem, const RunFlags& run) {
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(out->bench, make_workbench(session, problem, run));
  Workbench& bench = out->bench;
  ROOFGEN_TRY(out->result, run_tune(session, bench, problem, run));
  const TuneReport& report = out->result.report;
  if (report.interrupted) return std::unique_ptr<Tuned>();
  if (report.best_variant.empty()) return Error{Exit::kFailed, "nothing to emit: " + report.verdict.reason};
  ROOFGEN_TRY(out->variants, bench.op->variants(*bench.files, bench.problem));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*bench.op, bench.problem, limits(bench.device)));
  ROOFGEN_TRY(out->variants, expand(std::move(out->variants), scope));
  for (const Variant& v : out->variants)
    if (v.name == report.best_variant) out->variant = &v;
  const std::vector<TunedKernel>& winners = out->result.winners[out->variant->name];
  ROOFGEN_TRY(out->binaries, without_lines(winners, report.arch));
  ROOFGEN_TRY(std::vector<Buffer> own, temporaries(*out->variant, scope));
  out->pipeline = {bench.device.arch, out->variant, std::move(own), scope, {}, evidence(report)};
  for (size_t i = 0; i < out->variant->stages.size(); ++i) {
    const TunedKernel& k = winners[i];
    auto checked = check_schedule(*out->variant, out->variant->stages[i], k.program.schedule, scope);
    out->pipeline.kernels.push_back(
        {&out->variant->stages[i], &k.program, &out->binaries[i], &k.launch, std::get<Legal>(checked).scope});
    if (k.binary.arch.ends_with('a')) out->pipeline.arch = k.binary.arch;
  }
  return out;
}

Result<Exit> run(const Session& session, const EmitFlags& flags) {
  ROOFGEN_CHECK(check_name(flags.name));
  const DataFiles files(session.data_dirs);
  std::vector<ProblemFlags> runs;
  for (const std::string& arch : flags.archs) {
    ROOFGEN_TRY(runs.emplace_back(), on_arch(files, flags.problem, arch));
  }
  if (runs.empty()) runs.push_back(flags.problem);
  // The directory is checked before minutes are spent.
  ROOFGEN_CHECK(make_directory(flags.directory));
  std::vector<std::unique_ptr<Tuned>> all;
  for (const ProblemFlags& problem : runs) {
    ROOFGEN_TRY(std::unique_ptr<Tuned> one, tuned(session, problem, flags.run));
    if (!one) return Exit::kInterrupted;
    if (std::none_of(all.begin(), all.end(), [&](const auto& t) { return t->pipeline.arch == one->pipeline.arch; }))
      all.push_back(std::move(one));
  }
  const Tuned& first = *all.front();
  // The newest architecture first; before code for all of its devices, code for this one alone.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto key = [](const std::string& arch) { return std::pair(std::atoi(arch.c_str() + 3), arch.size()); };
    return key(a->pipeline.arch) > key(b->pipeline.arch);
  });
  const std::string compiler = first.bench.compiler->description();
  EmitRequest request{flags.name.empty() ? first.bench.problem.op : flags.name,
                      &files,
                      &first.bench.problem,
                      first.bench.op->buffers(first.bench.problem),
                      {},
                      compiler.substr(0, compiler.find(" at "))};
  for (const auto& t : all) request.pipelines.push_back(t->pipeline);
  ROOFGEN_TRY(const auto texts, emit(request));
  for (const auto& [name, text] : texts) ROOFGEN_CHECK(write_output(flags.directory + "/" + name, text));
  if (flags.replay) {
    ROOFGEN_TRY(const CounterRequest replay,
                counter_request(files, *first.bench.op, first.result, first.variant->name));
    ROOFGEN_CHECK(write_replay(replay.replay, flags.directory + "/replay"));
  }
  for (const auto& t : all)
    fmt::print("{} {} for {} ({} on {}, score {:.2f})\n", t->variant->name, t->bench.problem.op, t->pipeline.arch,
               time_text(t->result.report.find(t->variant->name)->seconds), t->bench.device.name,
               t->result.report.score.value);
  fmt::print("written to {}:\n", flags.directory);
  for (const auto& [name, text] : texts)
    fmt::print("  {:<28} {}\n", name, bytes_text(static_cast<double>(text.size())));
  if (flags.replay) fmt::print("  {:<28} {}\n", "replay/", "the launch of this problem, docs/counters.md");
  return Exit::kOk;
}

}  // namespace

Run declare_emit(FlagSet app) {
  auto flags = std::make_shared<EmitFlags>();
  flags->problem.declare(app);
  flags->run.declare(app);
  app.add("-o,--output", flags->directory, "directory to write to").required();
  app.add("--name", flags->name, "prefix of the files and C functions [the op's name]");
  app.add("--archs", flags->archs,
          "kernels for these architectures, each tuned on a device of it: 80,90a [the device's]")
      .split(',');
  app.add_switch("--replay", flags->replay, "also write replay/, the launch of the tuned problem for profilers");
  app.footer("Example: roofgen emit attention --L 2048 --d 64 -o third_party/attn");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli
