// The flags that describe a problem and where it is tuned; shared by tune, generate and emit.
#pragma once

#include <functional>
#include <memory>

#include "cli/cli.h"
#include "cli/op_flags.h"
#include "cli/profile.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tuner/bundle/manifest.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/store/store.h"
#include "tuner/strategy/strategy.h"
#include "tuner/tune.h"

namespace roofgen::cli {

struct ProblemFlags {
  std::string op;
  OpFlags given;
  std::string dtype = "bf16";
  std::string device;  ///< empty: the default device
  std::string arch;    ///< empty: the device's
  std::vector<std::string> sets;
  ProfileFlags profile;

  void declare(FlagSet app);
  Result<Problem> problem() const { return given.problem(op, dtype); }
  Result<std::vector<Problem>> problems() const { return given.problems(op, dtype); }
  Result<std::map<std::string, ParamValue>> pins() const;
};

/// How a run is bounded and where it may remember things.
struct RunFlags {
  std::vector<std::string> variants;
  std::string strategy = "prior", executor = "auto";
  std::string check = "finalists", protocol = "steady", l2 = "cold", record;  ///< on a GPU
  double timeout_s = 10;
  int gpu = 0;
  std::string effort = "quick";
  bool exhaustive = false, no_store = false, cold = false;
  double until = 0, launches = 0;
  uint64_t evals = 0, seed = 0;
  double time_limit_s = 0;
  int jobs = 0;
  std::vector<Flag> gpu_flags;                               ///< --gpu first; those that need a GPU
  std::function<std::unique_ptr<Evaluations>()> open_store;  ///< instead of the store of this machine
  void declare(FlagSet app);
};

/// Everything a tuning run needs, made from the flags. Owns what TuneContext refers to.
struct Workbench {
  std::unique_ptr<DataFiles> files;
  const Op* op = nullptr;
  Problem problem;
  Device device;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<GpuExecutor> gpu;  ///< in a worker process, when a GPU is there
  std::unique_ptr<Evaluations> store;
  std::unique_ptr<KernelTimer> timer;  ///< when no GPU is there
  bool simulated_driver() const { return gpu && gpu->origin() != Origin::kMeasured; }
  TuneResources resources() const {
    return {*files, device, *compiler, *executor, gpu.get(), store.get(), timer.get()};
  }
};
/// The store of this machine. Null if there is none, with a warning where it cannot be used.
std::unique_ptr<Evaluations> open_store(const Session& session);
/// Without rests and warm-up: a simulated driver has no clock that moves.
void hurry(Protocol& protocol);
inline constexpr const char* kDefaultDevice = "h200-sxm";
Result<Workbench> make_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run);
/// All of it but `op` and `problem`.
Result<Workbench> open_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run);
/// What the flags say of a search, without its progress.
Result<TuneOptions> tune_options(const Session& session, const Workbench& bench, const ProblemFlags& flags,
                                 const RunFlags& run);
/// Keeps the result in the store, too.
Result<TuneResult> run_tune(const Session& session, Workbench& bench, const ProblemFlags& flags, const RunFlags& run);
/// The report of an earlier run_tune() that would give the same, from the store.
Result<std::optional<TuneReport>> finished_report(const Session& session, const Workbench& bench,
                                                  const ProblemFlags& flags, const RunFlags& run);
/// Its kernels.
Result<std::optional<Manifest>> finished_tune(const Session& session, const Workbench& bench, const ProblemFlags& flags,
                                              const RunFlags& run);

}  // namespace roofgen::cli
