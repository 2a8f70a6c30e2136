#include "tuner/session/workbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/suggest.h"
#include "base/target.h"
#include "roofline/device.h"
#include "tuner/bundle/finished.h"
#include "tuner/session/winner.h"
#include "tuner/tune.h"

namespace roofgen {
namespace {

/// The device whose roofs count: the one asked for, else the GPU that is there, else the default.
Result<Device> choose_device(const DataFiles& files, const std::string& asked, const GpuExecutor* gpu,
                             const ProfileFlags& profile, const Say& say) {
  if (!asked.empty() && asked != "gpu") {
    ROOFGEN_TRY(Device device, find_device(files, asked, profile, say));
    const auto& names = device.driver_names;
    if (gpu && std::find(names.begin(), names.end(), gpu->info().device_name) == names.end())
      say(fmt::format("the GPU is {}; using the roofs and the model of {}", gpu->info().device_name, device.name));
    return device;
  }
  if (!gpu) return find_device(files, asked.empty() ? kDefaultDevice : asked, profile, say);
  auto matched = gpu_device(files, *gpu, profile, say);
  if (matched || !asked.empty() || !profile.file.empty()) return matched;
  say(matched.error().message + "; using the roofs and the model of " + kDefaultDevice);
  return find_device(files, kDefaultDevice, profile, say);
}

/// Whether the kernels exist for `arch` and its code runs on `device`.
Result<void> check_arch(const std::string& arch, const Device& device) {
  const std::optional<Target> target = parse_target(arch);
  if (!target) return Error{Exit::kUsage, fmt::format("unknown arch \"{}\"; sm_80, sm_90, ... was expected", arch)};
  // cp.async and mma.sync m16n8k16 on bf16 begin with sm_80.
  if (target->arch < 80)
    return Error{Exit::kUnavailable, fmt::format("the kernels need sm_80 or newer, not {}; analysis only", arch)};
  if (!target->runs_on(static_cast<int>(device.integer("arch"))))
    return Error{Exit::kUsage,
                 fmt::format("code for {} does not run on {}, which is {}", arch, device.name, device.arch)};
  return {};
}

Result<Protocol> protocol_of(const RunFlags& run) {
  Protocol p;
  ROOFGEN_TRY(p.mode, parse_mode(run.protocol));
  if (run.l2 != "cold" && run.l2 != "hot")
    return Error{Exit::kUsage, fmt::format("unknown --l2 \"{}\"{}", run.l2, did_you_mean(run.l2, {"cold", "hot"}))};
  p.cold = run.l2 == "cold";
  p.seed = run.seed;
  return p;
}

}  // namespace

std::unique_ptr<Evaluations> open_store(const Session& session) {
  if (session.home.empty()) return nullptr;
  auto store = Store::open(session.home + "/evaluations.sqlite", session.warn);
  if (store) return std::make_unique<Store>(std::move(*store));
  session.warn(store.error().message + "; going on without remembering");
  return nullptr;
}

void hurry(Protocol& protocol) {
  protocol.rest_s = 0;
  protocol.warmup_s = 0;
}

Result<Workbench> make_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run) {
  ROOFGEN_TRY(const Op* op, find_op(DataFiles(session.data_dirs), flags.op));
  ROOFGEN_TRY(Problem problem, flags.problem());
  return make_workbench(session, *op, std::move(problem), flags, run);
}

Result<Workbench> make_workbench(const Session& session, const Op& op, Problem problem, const ProblemFlags& flags,
                                 const RunFlags& run) {
  ROOFGEN_TRY(problem, op.complete(std::move(problem)));
  if (const std::string warning = op.warning(problem); !warning.empty()) session.warn(warning);
  ROOFGEN_TRY(Workbench bench, open_workbench(session, flags, run));
  bench.op = &op;
  bench.problem = std::move(problem);
  return bench;
}

Result<Workbench> open_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run) {
  Workbench bench;
  bench.files = std::make_unique<DataFiles>(session.data_dirs);
  if (run.executor != "auto" && run.executor != "sim" && run.executor != "cuda")
    return Error{Exit::kUsage, fmt::format("unknown executor \"{}\"{}", run.executor,
                                           did_you_mean(run.executor, {"auto", "sim", "cuda"}))};
  ROOFGEN_CHECK(parse_check(run.check));
  ROOFGEN_CHECK(protocol_of(run));
  if (run.executor != "sim") {
    GpuWorkerOptions worker;
    worker.ordinal = run.gpu;
    worker.warn = session.warn;
    worker.timeout_s = run.timeout_s;
    auto gpu = make_gpu_worker(std::move(worker));
    // A machine without a GPU is no mistake; a GPU that was asked for by number and is not there is one, and
    // one that is there and cannot be used is worth a word.
    if (!gpu) {
      Error error = std::move(gpu).error();
      if (error.exit == Exit::kFailed) error.exit = Exit::kUnavailable;
      const bool by_number = run.gpu_flags.front().given();
      if (run.executor == "cuda" || by_number || error.exit == Exit::kUsage) return error;
      if (!error.no_gpu) session.warn("no GPU is used: " + error.message);
    } else {
      bench.gpu = std::move(*gpu);
    }
    // "auto" asks for a GPU, and there is none.
    if (bench.simulated_driver() && run.executor == "auto") bench.gpu.reset();
    if (bench.simulated_driver())
      session.warn(
          "the CUDA driver is simulated (docs/use/shim.md): this run tests the GPU path; its times are not "
          "measurements");
  }
  if (!run.record.empty() && !bench.gpu && run.executor != "sim")
    return Error{Exit::kUnavailable, "--record: no GPU was found; with --executor sim it keeps the model's times"};
  if (!run.record.empty() && bench.simulated_driver())
    return Error{Exit::kUnavailable, "--record keeps measured times, and the CUDA driver is simulated"};
  if (!bench.gpu)
    for (const Flag& flag : run.gpu_flags)
      if (flag.given()) session.warn(fmt::format("{} has no effect: no GPU is used", flag.name()));
  ROOFGEN_TRY(bench.device, choose_device(*bench.files, flags.device, bench.gpu.get(), flags.profile, session.warn));
  ROOFGEN_CHECK(tunable(bench.device));
  CompileOptions options;
  options.arch = flags.arch.empty() ? bench.device.arch : flags.arch;
  options.jobs = run.jobs;
  ROOFGEN_CHECK(check_arch(options.arch, bench.device));
  limit_to(bench.device, flags.arch);
  ROOFGEN_TRY(bench.compiler, make_nvrtc_compiler(options, session.cache, session.warn));
  ROOFGEN_TRY(bench.executor, make_sim_executor());
  if (bench.gpu && bench.gpu->info().arch != parse_target(options.arch)->plain()) {
    const std::string why = fmt::format("{} is {}, kernels are compiled for {}", bench.gpu->info().device_name,
                                        bench.gpu->info().arch, options.arch);
    if (run.executor == "cuda" || !run.record.empty())
      return Error{Exit::kUnavailable, why + "; choose a --device or --arch that matches"};
    session.warn(why + "; going on with the simulator alone");
    bench.gpu.reset();
  }
  if (!run.no_store) bench.store = run.open_store ? run.open_store() : open_store(session);
  // The device moves with the workbench: the timer copies it.
  bench.timer = std::make_unique<KernelTimer>(bench.device, bench.store.get());
  return bench;
}

Result<TuneOptions> tune_options(const Session& session, const Workbench& bench, const ProblemFlags& flags,
                                 const RunFlags& run) {
  TuneOptions options;
  ROOFGEN_TRY(options.pins, flags.pins());
  options.variants = run.variants;
  options.strategy = run.exhaustive ? "exhaustive" : run.strategy;
  options.evals = run.evals;
  ROOFGEN_TRY(options.effort, parse_effort(run.effort));
  options.until = run.until;
  options.launches = run.launches;
  options.cold = run.cold;
  options.time_limit_s = run.time_limit_s;
  options.seed = run.seed;
  options.jobs = run.jobs;
  ROOFGEN_TRY(options.check, parse_check(run.check));
  ROOFGEN_TRY(options.protocol, protocol_of(run));
  if (bench.simulated_driver()) hurry(options.protocol);
  options.warn = session.warn;
  options.stop = session.stop;
  return options;
}

Result<TuneResult> run_search(const Session& session, Workbench& bench, const ProblemFlags& flags,
                              const RunFlags& run) {
  ROOFGEN_TRY(TuneOptions options, tune_options(session, bench, flags, run));
  options.progress = session.progress("tune " + flags.op);
  const TuneContext context{bench.resources(), *bench.op};
  ROOFGEN_TRY(TuneResult result, tune(context, bench.problem, options));
  // Data files of the user may change, the key of the result does not.
  if (session.data_dirs.empty()) note_finished(context, bench.problem, options, result);
  if (!run.no_store) keep_winner(session, bench, options, result.report);
  return result;
}

Result<std::optional<TuneReport>> finished_report(const Session& session, const Workbench& bench,
                                                  const ProblemFlags& flags, const RunFlags& run) {
  if (!session.data_dirs.empty()) return std::optional<TuneReport>();
  ROOFGEN_TRY(const TuneOptions options, tune_options(session, bench, flags, run));
  auto report = recall_report({bench.resources(), *bench.op}, bench.problem, options);
  // The cache may have been emptied since.
  if (report) keep_winner(session, bench, options, *report);
  return report;
}

Result<std::optional<Manifest>> finished_search(const Session& session, const Workbench& bench,
                                                const ProblemFlags& flags, const RunFlags& run) {
  if (!session.data_dirs.empty()) return std::optional<Manifest>();
  ROOFGEN_TRY(const TuneOptions options, tune_options(session, bench, flags, run));
  return recall_finished({bench.resources(), *bench.op}, {bench.problem}, options);
}

}  // namespace roofgen
