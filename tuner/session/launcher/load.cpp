// The winner of a request, from the cache, the store or a search.
#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "tuner/session/launcher/pipeline.h"
#include "tuner/session/suite/file.h"
#include "tuner/session/winner.h"
#include "tuner/session/workbench.h"

namespace roofgen {
namespace {

/// The driver, opened once and for all.
Result<std::shared_ptr<const cuda::Driver>> open_driver() {
  static std::mutex mutex;
  static std::shared_ptr<const cuda::Driver> driver;
  const std::lock_guard lock(mutex);
  if (!driver) {
    ROOFGEN_TRY(std::unique_ptr<cuda::Driver> fresh, cuda::Driver::open(cuda::default_library()));
    ROOFGEN_CHECK(fresh->have(fresh->current_context, "contexts of other programs"));
    driver = std::move(fresh);
  }
  return driver;
}

struct CurrentDevice {
  int ordinal = 0;
  std::string name, arch;  ///< "sm_90"
};

Result<CurrentDevice> current_device(const cuda::Driver& cu) {
  cuda::Handle context = nullptr;
  ROOFGEN_CHECK(cu.check(cu.current_context(&context), "asking for the current context"));
  if (!context)
    return Error{Exit::kUnavailable,
                 "the thread has no current CUDA context; cuCtxSetCurrent or any call of the CUDA "
                 "runtime gives it one"};
  CurrentDevice out;
  char name[256] = {};
  int major = 0, minor = 0;
  ROOFGEN_CHECK(cu.check(cu.current_device(&out.ordinal), "asking for the device of the context"));
  ROOFGEN_CHECK(cu.check(cu.device_name(name, sizeof name - 1, out.ordinal), "asking for the GPU's name"));
  ROOFGEN_CHECK(cu.check(cu.device_attribute(&major, cuda::kAttributeMajor, out.ordinal), "asking for the arch"));
  ROOFGEN_CHECK(cu.check(cu.device_attribute(&minor, cuda::kAttributeMinor, out.ordinal), "asking for the arch"));
  out.name = name;
  out.arch = fmt::format("sm_{}{}", major, minor);
  return out;
}

/// The device of the catalogue that the driver names so; else the first with its architecture.
Result<std::string> catalogue_name(const std::vector<std::string>& data_dirs, const CurrentDevice& device,
                                   const Say& warn) {
  // Reading the catalogue takes longer than all else of a remembered kernel.
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::string> known_names;
  std::vector<std::string> key = data_dirs;
  key.insert(key.end(), {device.name, device.arch});
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known_names.find(key); at != known_names.end()) return at->second;
  }
  const DataFiles files(data_dirs);
  std::string similar;
  for (const std::string& name : json_names(files, "devices/")) {
    const auto known = load_device(files, name);
    if (!known || !tunable(*known)) continue;
    if (std::ranges::count(known->driver_names, device.name) > 0) {
      const std::lock_guard lock(mutex);
      return known_names[key] = name;
    }
    if (similar.empty() && known->arch == device.arch) similar = name;
  }
  if (similar.empty())
    return Error{Exit::kUnavailable,
                 fmt::format("no device of the catalogue is {} as {} is", device.arch, device.name)};
  warn(fmt::format("{} is not in the catalogue; using the roofs and the model of {}", device.name, similar));
  return similar;
}

/// The request as the flags of `tune`.
struct Flags {
  explicit Flags(const Session& session) : request("tune", session.data_dirs) {}
  RequestFlags request;  ///< which `run` refers to
  ProblemFlags problem;
  RunFlags run;
};

/// The kernels of a known winner, if they become the same binaries as then.
Result<bool> take_known(const KnownWinner& known, Compiler& compiler, Winner& winner) {
  winner.variant = winner.tuned.find(known.variant);
  winner.seconds = known.seconds;
  winner.measured = known.measured;
  if (!winner.variant || winner.variant->stages.size() != known.stages.size()) return false;
  for (size_t i = 0; i < known.stages.size(); ++i) {
    const Stage& stage = winner.variant->stages[i];
    ROOFGEN_TRY(Schedule schedule,
                default_schedule(*winner.variant, stage, winner.tuned.scope, known.stages[i].params));
    auto checked = check_schedule(*winner.variant, stage, std::move(schedule), winner.tuned.scope, false);
    auto* legal = std::get_if<Legal>(&checked);
    if (!legal) return false;
    TunedKernel kernel;
    ROOFGEN_TRY(kernel.program, generate(*winner.files, stage, *legal));
    ROOFGEN_TRY(kernel.launch, make_launch(stage, *legal));
    if (compiler.digest(kernel.program) != known.stages[i].digest) return false;
    winner.legal.push_back(std::move(*legal));
    winner.kernels.push_back(std::move(kernel));
  }
  std::vector<const Program*> programs;
  for (const TunedKernel& k : winner.kernels) programs.push_back(&k.program);
  bool all = true;
  compiler.compile_all(programs, [&](CompileOutcome outcome) {
    all &= static_cast<bool>(outcome.binary);
    if (outcome.binary) winner.kernels[outcome.index].binary = std::move(*outcome.binary);
    return all;
  });
  return all;
}

Result<void> take_result(const Session& session, Flags& flags, Workbench& bench, Winner& winner) {
  ROOFGEN_TRY(TuneResult result, run_search(session, bench, flags.problem, flags.run));
  if (result.report.interrupted) return Error{Exit::kInterrupted, "interrupted"};
  if (result.report.best_variant.empty())
    return Error{Exit::kFailed, "no kernel to launch: " + result.report.verdict.reason};
  winner.variant = winner.tuned.find(result.report.best_variant);
  winner.seconds = result.report.find(result.report.best_variant)->seconds;
  winner.measured = result.report.time_origin() == Origin::kMeasured;
  winner.kernels = std::move(result.winners[result.report.best_variant]);
  winner.legal.clear();
  for (size_t i = 0; i < winner.kernels.size(); ++i) {
    auto checked = check_schedule(*winner.variant, winner.variant->stages[i], winner.kernels[i].program.schedule,
                                  winner.tuned.scope, false);
    if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
    winner.legal.push_back(std::get<Legal>(std::move(checked)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Pipeline>> load_pipeline(const Session& session, SuiteProblem problem) {
  ROOFGEN_TRY(const auto driver, open_driver());
  ROOFGEN_TRY(const CurrentDevice device, current_device(*driver));
  const auto has = [&](const char* flag) {
    return std::ranges::any_of(problem.flags, [&](const auto& f) { return f.first == flag; });
  };
  std::erase_if(problem.flags,
                [](const auto& f) { return f.first == "--device" && f.second == std::vector<std::string>{"gpu"}; });
  if (!has("--device")) {
    ROOFGEN_TRY(const std::string name, catalogue_name(session.data_dirs, device, session.warn));
    problem.flags.push_back({"--device", {name}});
  }
  if (!has("--gpu") && device.ordinal > 0) problem.flags.push_back({"--gpu", {std::to_string(device.ordinal)}});
  Flags flags(session);
  flags.problem.declare(flags.request.flags());
  flags.run.declare(flags.request.flags());
  ROOFGEN_CHECK(flags.request.read(problem));
  // What the cache remembers needs neither GPU nor store.
  RunFlags least = flags.run;
  least.executor = "sim";
  least.no_store = true;
  least.record.clear();
  least.gpu_flags.clear();
  ROOFGEN_TRY(Workbench bench, make_workbench(session, flags.problem, least));
  Winner winner;
  winner.files = std::make_unique<DataFiles>(session.data_dirs);
  winner.op = bench.op;
  winner.device = bench.device;
  ROOFGEN_TRY(winner.tuned, variants_of(*winner.files, *bench.op, limits(bench.device), bench.problem));
  // Those of the search say nothing about the shape.
  RequestFlags of_problem("tune", session.data_dirs);
  ProblemFlags unused;
  unused.declare(of_problem.flags());
  for (const auto& flag : problem.flags)
    if (of_problem.flags().has(flag.first) && flag.first != "--set") winner.flags.push_back(flag);
  if (const std::string file = capture_file(); !file.empty())
    if (const auto can = can_capture(file); !can) session.warn(can.error().message);
  ROOFGEN_TRY(const TuneOptions options, tune_options(session, bench, flags.problem, flags.run));
  const bool measures = flags.run.executor != "sim" && !driver->simulated && !worker_program().empty();
  bool taken = false;
  if (const auto known = known_winner(session, bench, options, measures); known && !flags.run.no_store) {
    const Result<bool> usable = take_known(*known, *bench.compiler, winner);
    taken = usable && *usable;
    if (!taken) forget_winner(session, bench, options);
  }
  if (!taken) {
    winner.kernels.clear();
    winner.legal.clear();
    ROOFGEN_TRY(Workbench whole, open_workbench(session, flags.problem, flags.run));
    whole.op = bench.op, whole.problem = std::move(bench.problem);
    bench = std::move(whole);
    ROOFGEN_CHECK(take_result(session, flags, bench, winner));
  }
  return Pipeline::load(driver, std::move(winner));
}

}  // namespace roofgen
