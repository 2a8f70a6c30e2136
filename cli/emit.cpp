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
#include "cli/family.h"
#include "generator/interface.h"
#include "tuner/dispatch/serving.h"
#include "tuner/evidence/counters.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

struct EmitFlags {
  ProblemFlags problem;
  RunFlags run;
  FamilyFlags family;
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

/// The kernels of one pipeline, and what they refer to.
struct Pipeline {
  ProblemVariants tuned_for;
  std::vector<TunedKernel> kernels;
  std::vector<Binary> binaries;
  EmittedPipeline emitted;
};

/// The best kernels on one device.
struct Tuned {
  Workbench bench;
  TuneResult result;    ///< of a single problem
  DispatchTable table;  ///< of several
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  std::vector<EmittedShape> shapes;
  const std::string& arch() const { return pipelines.front()->emitted.arch; }
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
Result<std::vector<Binary>> without_lines(const Session& session, const std::vector<TunedKernel>& kernels,
                                          const std::string& arch) {
  CompileOptions options;
  options.arch = arch;
  options.line_info = false;
  options.jobs = 1;
  ROOFGEN_TRY(const auto compiler, make_nvrtc_compiler(options, session.cache, session.warn));
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

/// `arch`: for which the kernels were compiled.
Result<std::unique_ptr<Pipeline>> pipeline_of(const Session& session, const Workbench& bench, const Problem& problem,
                                              const std::string& variant, std::vector<TunedKernel> kernels,
                                              const std::string& arch) {
  auto out = std::make_unique<Pipeline>();
  ROOFGEN_TRY(out->tuned_for, variants_of(*bench.files, *bench.op, bench.device, problem));
  ROOFGEN_TRY(out->binaries, without_lines(session, kernels, arch));
  out->kernels = std::move(kernels);
  const expr::Map& scope = out->tuned_for.scope;
  const Variant& v = *out->tuned_for.find(variant);
  ROOFGEN_TRY(std::vector<Buffer> own, temporaries(v, scope));
  out->emitted = {bench.device.arch, &v, std::move(own), scope, {}, ""};
  for (size_t i = 0; i < v.stages.size(); ++i) {
    const TunedKernel& k = out->kernels[i];
    auto checked = check_schedule(v, v.stages[i], k.program.schedule, scope);
    out->emitted.kernels.push_back(
        {&v.stages[i], &k.program, &out->binaries[i], &k.launch, std::get<Legal>(checked).scope});
    if (k.binary.arch.ends_with('a')) out->emitted.arch = k.binary.arch;
  }
  return out;
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
  ROOFGEN_TRY(out->pipelines.emplace_back(), pipeline_of(session, bench, bench.problem, report.best_variant,
                                                         out->result.winners[report.best_variant], report.arch));
  out->pipelines.front()->emitted.evidence = evidence(report);
  out->shapes.push_back({bench.problem.dims, 0});
  return out;
}

/// The kernels of a dispatch table. They are for devices that run all of them.
Result<std::unique_ptr<Tuned>> tuned_family(const Session& session, const EmitFlags& flags,
                                            std::vector<Problem> problems) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Op* op, find_op(flags.problem.op));
  std::vector<std::map<std::string, int64_t>> sizes;
  for (const Problem& p : problems) {
    ROOFGEN_TRY(const Problem whole, op->complete(p));
    sizes.push_back(whole.dims);
  }
  ROOFGEN_TRY(const Problem first, op->complete(problems.front()));
  ROOFGEN_TRY(expr::Map scope, problem_scope(*op, first, {}));
  ROOFGEN_TRY(Interface interface, Interface::load(files, first, std::move(scope), {}));
  ROOFGEN_CHECK(interface.add_sizes(sizes));
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(FamilyRun family, tune_family(session, flags.problem, flags.run, flags.family, std::move(problems)));
  out->bench = std::move(family.bench);
  out->table = std::move(family.result.table);
  out->bench.problem = out->table.shapes.front().problem;
  for (size_t k = 0; k < out->table.kernels.size(); ++k) {
    const DispatchKernel& kernel = out->table.kernels[k];
    ROOFGEN_TRY(out->pipelines.emplace_back(),
                pipeline_of(session, out->bench, out->table.shapes[kernel.tuned_for].problem, kernel.variant,
                            std::move(family.result.kernels[k]), out->table.arch));
  }
  std::string arch = out->arch();
  for (const auto& p : out->pipelines)
    if (p->emitted.arch.ends_with('a')) arch = p->emitted.arch;
  for (const auto& p : out->pipelines) p->emitted.arch = arch;
  for (const DispatchShape& s : out->table.shapes) out->shapes.push_back({s.problem.dims, s.kernel});
  return out;
}

Result<Exit> run(const Session& session, const EmitFlags& flags) {
  ROOFGEN_CHECK(check_name(flags.name));
  if (const auto op = find_op(flags.problem.op); !op) return op.error();
  ROOFGEN_TRY(std::vector<Problem> problems, flags.problem.problems());
  const bool single = problems.size() == 1;
  ROOFGEN_CHECK(single ? check_no_family(flags.family) : check_family(flags.family));
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
    ROOFGEN_TRY(std::unique_ptr<Tuned> one,
                single ? tuned(session, problem, flags.run) : tuned_family(session, flags, std::move(problems)));
    if (!one) return Exit::kInterrupted;
    if (std::none_of(all.begin(), all.end(), [&](const auto& t) { return t->arch() == one->arch(); }))
      all.push_back(std::move(one));
  }
  const Tuned& first = *all.front();
  // The newest architecture first; before code for all of its devices, code for this one alone.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto key = [](const std::string& arch) { return std::pair(std::atoi(arch.c_str() + 3), arch.size()); };
    return key(a->arch()) > key(b->arch());
  });
  const std::string compiler = first.bench.compiler->description();
  EmitRequest request;
  request.name = flags.name.empty() ? first.bench.problem.op : flags.name;
  request.files = &files;
  request.problem = &first.bench.problem;
  request.buffers = first.bench.op->buffers(first.bench.problem);
  request.compiler = compiler.substr(0, compiler.find(" at "));
  if (!single) request.table = dispatch_json(first.table);
  for (const auto& t : all) {
    for (const EmittedShape& s : t->shapes) request.shapes.push_back({s.sizes, request.pipelines.size() + s.pipeline});
    for (const auto& p : t->pipelines) request.pipelines.push_back(p->emitted);
  }
  ROOFGEN_TRY(const auto texts, emit(request));
  for (const auto& [name, text] : texts) ROOFGEN_CHECK(write_output(flags.directory + "/" + name, text));
  if (flags.replay) {
    ROOFGEN_TRY(const CounterRequest replay,
                counter_request(files, *first.bench.op, first.result, first.result.report.best_variant));
    ROOFGEN_CHECK(write_replay(replay.replay, flags.directory + "/replay"));
  }
  if (!single) session.out(dispatch_text(first.table) + "\n");
  for (const auto& t : all)
    if (const TuneReport& report = t->result.report; single)
      session.out(fmt::format("{} {} for {} ({} on {}, score {:.2f})\n", report.best_variant, t->bench.problem.op,
                              t->arch(), time_text(report.find(report.best_variant)->seconds), t->bench.device.name,
                              report.score.value));
  session.out(fmt::format("written to {}:\n", flags.directory));
  for (const auto& [name, text] : texts)
    session.out(fmt::format("  {:<28} {}\n", name, bytes_text(static_cast<double>(text.size()))));
  if (flags.replay)
    session.out(fmt::format("  {:<28} {}\n", "replay/", "the launch of this problem, docs/counters.md"));
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
  flags->family.declare(app, {"--archs", "--replay"});
  app.footer("Example: roofgen emit attention --L 2048 --d 64 -o third_party/attn");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli
