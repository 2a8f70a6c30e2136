// What a search needs, made from the flags of a request: data files, device, compiler, executors, store.
#pragma once

#include <memory>
#include <optional>

#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tuner/bundle/manifest.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/session/request.h"
#include "tuner/session/session.h"
#include "tuner/tune.h"

namespace roofgen {

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
Result<Workbench> make_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run);
/// The same, where the caller has the op and the problem of the flags already.
Result<Workbench> make_workbench(const Session& session, const Op& op, Problem problem, const ProblemFlags& flags,
                                 const RunFlags& run);
/// All of it but `op` and `problem`.
Result<Workbench> open_workbench(const Session& session, const ProblemFlags& flags, const RunFlags& run);
/// What the flags say of a search, without its progress.
Result<TuneOptions> tune_options(const Session& session, const Workbench& bench, const ProblemFlags& flags,
                                 const RunFlags& run);
/// Keeps the result in the store and its winner in the cache, too.
Result<TuneResult> run_search(const Session& session, Workbench& bench, const ProblemFlags& flags, const RunFlags& run);
/// The report of an earlier run_search() that would give the same, from the store.
Result<std::optional<TuneReport>> finished_report(const Session& session, const Workbench& bench,
                                                  const ProblemFlags& flags, const RunFlags& run);
/// Its kernels.
Result<std::optional<Manifest>> finished_search(const Session& session, const Workbench& bench,
                                                const ProblemFlags& flags, const RunFlags& run);

}  // namespace roofgen
