#include "cli/problem_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>

#include "base/paths.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/winner.h"
#include "roofline/device.h"
#include "tuner/bundle/finished.h"

namespace roofgen::cli {

namespace {

Result<ParamValue> parse_value(const std::string& text) {
  if (text == "true") return ParamValue(true);
  if (text == "false") return ParamValue(false);
  if (!text.empty() && text.find_first_not_of("0123456789-") == std::string::npos) {
    char* end = nullptr;
    errno = 0;
    const long long v = std::strtoll(text.c_str(), &end, 10);
    if (errno == 0 && *end == 0) return ParamValue(int64_t{v});
  }
  if (text.empty()) return Error{Exit::kUsage, "a value is missing"};
  return ParamValue(text);
}

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

/// Whether the kernels exist for `arch` and its code runs on `device`: the same major version, and no newer.
Result<void> check_arch(const std::string& arch, const Device& device) {
  int number = 0, own = 0, end = 0;
  if (std::sscanf(arch.c_str(), "sm_%d%n", &number, &end) != 1 || number < 10 ||
      arch.size() > static_cast<size_t>(end) + 1)
    return Error{Exit::kUsage, fmt::format("unknown arch \"{}\"; sm_80, sm_90, ... was expected", arch)};
  // cp.async and mma.sync m16n8k16 on bf16 begin with sm_80.
  if (number < 80)
    return Error{Exit::kUnavailable, fmt::format("the kernels need sm_80 or newer, not {}; analysis only", arch)};
  if (std::sscanf(device.arch.c_str(), "sm_%d", &own) == 1 && (number / 10 != own / 10 || number > own))
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

void ProblemFlags::declare(FlagSet app) {
  std::vector<std::string> names;
  for (const Op* known : ops()) names.push_back(known->name());
  app.add("op", op, fmt::format("what to compute: {}", fmt::join(names, ", ")));
  given.declare(app);
  app.add("--dtype", dtype,
          "number format of the inputs: bf16, fp16; norms and map fp32; attention fp8; gemm tf32, fp8, int8 [bf16]")
      .group("Problem");
  app.add("--device", device, fmt::format("device of the catalogue [{}]", kDefaultDevice)).group("Device");
  profile.declare(app);
  app.add("--arch", arch,
          "compile for this architecture: sm_90 for portable kernels only, sm_90a also for its own kernels [the "
          "device's]")
      .group("Device");
  app.add("--set", sets, "pin parameters: BM=128,stages=2").split(',').group("Search");
}

Result<std::map<std::string, ParamValue>> ProblemFlags::pins() const {
  std::map<std::string, ParamValue> out;
  for (const std::string& set : sets) {
    const size_t eq = set.find('=');
    if (eq == std::string::npos || eq == 0)
      return Error{Exit::kUsage, fmt::format("--set {}: name=value was expected, like BM=128", set)};
    auto value = parse_value(set.substr(eq + 1));
    if (!value) return Error{Exit::kUsage, fmt::format("--set {}: {}", set, value.error().message)};
    out[set.substr(0, eq)] = *value;
  }
  return out;
}

void RunFlags::declare(FlagSet app) {
  app.add("--variant", variants, "only these variants").split(',').group("Search");
  app.add("--strategy", strategy, fmt::format("{} [{}]", strategy_names(), strategies().front().name)).group("Search");
  app.add_switch("--exhaustive", exhaustive, "same as --strategy exhaustive: every point, without the limit of --evals")
      .group("Search")
      .excludes(app.find("--strategy"));
  app.add("--evals", evals,
          fmt::format(
              "candidates to execute [up to 72 of attention, 40 of other ops, fewer for big problems; {} with a GPU]",
              kDefaultGpuEvals))
      .number_from(1, 1e15, "a number")
      .group("Search");
  app.add("--effort", effort,
          "none (of each kernel the default schedule and the prior's best), quick (as many candidates as --evals says) "
          "or full (ten times the default) [quick]")
      .group("Search")
      .excludes(app.find("--evals"))
      .excludes(app.find("--exhaustive"));
  app.add("--until", until, "no new round of candidates once the best variant has this score, such as 0.9")
      .number_from(1e-6, 10, "a score")
      .group("Search");
  app.add("--launches", launches,
          "launches of the tuned kernel to come: the search ends when the candidates left would take longer than all "
          "launches can save")
      .number_from(1, 1e18, "a number")
      .group("Search");
  app.add("--time", time_limit_s,
          "no new candidate starts after this many seconds (with a GPU: after half of them, and timing stops after all "
          "of them)")
      .number_from(1e-3, 1e9, "a number of seconds")
      .group("Search");
  app.add("--seed", seed, "seed of random strategies [0]").group("Search");
  app.add("--jobs", jobs, "compile workers and simulation threads [cores]").range(1, 256).group("Search");
  app.add("--executor", executor,
          "auto, sim or cuda [auto: the GPU if one is found]: cuda measures, sim counts and models")
      .group("Device");
  // Without a GPU these say nothing, which is then said.
  const auto on_gpu = [&](Flag flag) { gpu_flags.push_back(flag); };
  on_gpu(app.add("--gpu", gpu, "which GPU, counted from 0 [0]").number_from(0, 1023, "a number").group("Device"));
  on_gpu(app.add("--protocol", protocol, "steady (warm, many samples), burst (few, with rests) or quick (few) [steady]")
             .group("Measurement"));
  on_gpu(app.add("--l2", l2, "rank by cold (flushed before each sample) or hot times [cold]").group("Measurement"));
  on_gpu(app.add("--check", check,
                 "with a GPU, the candidates to simulate as well: all, finalists, or gpu (none) [finalists]")
             .group("Measurement"));
  on_gpu(app.add("--timeout", timeout_s, "longest that one launch may take on the GPU, in seconds [10]")
             .number_from(0.1, 3600, "a number of seconds")
             .group("Measurement"));
  app.add("--record", record, "write every timed point here, a T4 file a stage; with --executor sim the model's times")
      .group("Measurement");
  app.add_switch("--cold", cold, "do not begin with schedules that were fast for near problems or on near devices")
      .group("Search");
  app.add_switch("--no-store", no_store, "neither read nor write the evaluation store").group("Search");
}

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
  ROOFGEN_TRY(const Op* op, find_op(flags.op));
  ROOFGEN_TRY(Problem problem, flags.problem());
  ROOFGEN_TRY(problem, op->complete(std::move(problem)));
  if (const std::string warning = op->warning(problem); !warning.empty()) session.warn(warning);
  ROOFGEN_TRY(Workbench bench, open_workbench(session, flags, run));
  bench.op = op;
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
      if (error.message.find("no CUDA driver") == std::string::npos &&
          error.message.find("finds no GPU") == std::string::npos)
        session.warn("no GPU is used: " + error.message);
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
  bench.device.arch_specific = flags.arch.empty() || flags.arch.ends_with('a');
  ROOFGEN_TRY(bench.compiler, make_nvrtc_compiler(options, session.cache, session.warn));
  ROOFGEN_TRY(bench.executor, make_sim_executor());
  if (bench.gpu && bench.gpu->info().arch != options.arch && bench.gpu->info().arch + "a" != options.arch) {
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

Result<TuneResult> run_tune(const Session& session, Workbench& bench, const ProblemFlags& flags, const RunFlags& run) {
  ROOFGEN_TRY(TuneOptions options, tune_options(session, bench, flags, run));
  Progress progress(session, "tune " + flags.op);
  options.progress = [&](const char* phase, uint64_t done, uint64_t total) { progress.show(phase, done, total); };
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

Result<std::optional<Manifest>> finished_tune(const Session& session, const Workbench& bench, const ProblemFlags& flags,
                                              const RunFlags& run) {
  if (!session.data_dirs.empty()) return std::optional<Manifest>();
  ROOFGEN_TRY(const TuneOptions options, tune_options(session, bench, flags, run));
  return recall_finished({bench.resources(), *bench.op}, {bench.problem}, options);
}

}  // namespace roofgen::cli
