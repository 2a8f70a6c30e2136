#include "tuner/ceilings/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/paths.h"
#include "cli/ceilings.h"
#include "cli/progress.h"
#include "roofline/device.h"
#include "runtime/compiler.h"
#include "tuner/ceilings/profile.h"

namespace roofgen::cli {
namespace {

/// Keeps the profile and says on stderr what became of it.
Result<void> keep(const CeilingsReport& report, const std::string& path, const Outputs& outputs) {
  if (path.empty()) {
    warn("the GPU has no UUID, or there is no data folder: the profile is not kept (--output FILE keeps it)");
    return {};
  }
  ROOFGEN_TRY(const Kept kept, keep_profile(report, path, outputs));
  if (kept == Kept::kWritten)
    fmt::print(stderr, "roofgen: profile {}{}\n", path, report.complete() ? "" : " (not complete)");
  if (kept == Kept::kPartialKept)
    warn(fmt::format("incomplete measurement: the existing profile {} is unchanged", path));
  if (kept == Kept::kNothingMeasured) warn("no ceiling was measured; no profile is written");
  return {};
}

}  // namespace

void MeasureFlags::declare(FlagSet app) {
  const Flag on = app.add_switch("--measure", measure,
                                 "measure the ceilings of a GPU and use them from then on (docs/evidence/ceilings.md)")
                      .group("Measure");
  app.add("--gpu", gpu, "which GPU, counted from 0 [0]").range(0, 1023).needs(on).group("Measure");
  app.add("--protocol", protocol, "steady: at the clock of a busy GPU; burst: with rests; quick: few samples [steady]")
      .needs(on)
      .group("Measure");
  app.add("--only", only, "only these ceilings: dram_copy,mma_bf16").split(',').needs(on).group("Measure");
  app.add("--output", output, "keep the profile here [its place in the data folder]").needs(on).group("Measure");
}

Result<Exit> measure_roofline(const Terminal& terminal, const MeasureFlags& flags) {
  CeilingsOptions options;
  ROOFGEN_TRY(options.protocol.mode, parse_mode(flags.protocol));
  options.only = flags.only;
  options.date = utc_now();
  if (!flags.output.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.output}));
  const DataFiles files(terminal.data_dirs);
  GpuWorkerOptions worker;
  worker.ordinal = flags.gpu;
  worker.warn = warn;
  ROOFGEN_TRY(const std::unique_ptr<GpuExecutor> gpu, make_gpu_worker(worker));
  const bool simulated = gpu->origin() != Origin::kMeasured;
  if (simulated) {
    const char* allowed = std::getenv("ROOFGEN_ALLOW_SIMULATED_DRIVER");  // for tests of this path
    if (!allowed || std::string(allowed) != "1")
      return Error{Exit::kUnavailable, "the CUDA driver is simulated (docs/use/shim.md): there is no GPU to measure"};
    warn("the CUDA driver is simulated: nothing below was measured");
    options.protocol.rest_s = options.protocol.warmup_s = 0;
  }
  // Without its profile: ceilings are held against what the maker states, not against the last measurement.
  ROOFGEN_TRY(const Device device, match_device(files, gpu->info().driver));
  if (device.integer("arch") < 80)
    return Error{Exit::kUnavailable,
                 fmt::format("the micro-kernels need sm_80 or newer; {} is {}", device.name, device.arch)};
  CompileOptions compile;
  compile.arch = device.arch;
  ROOFGEN_TRY(const std::unique_ptr<Compiler> compiler, make_nvrtc_compiler(compile, cache_dir(), warn));
  Progress progress(terminal, "ceilings");
  options.hooks.progress = [&](const char* phase, uint64_t done, uint64_t total) { progress.show(phase, done, total); };
  options.hooks.warn = warn;
  options.hooks.stop = terminal.stop;
  ROOFGEN_TRY(const CeilingsReport report, measure_ceilings({files, device, *compiler, *gpu}, options));
  fmt::print("{}", flags.json ? ceilings_json(report) : ceilings_text(report));
  if (!flags.output.empty()) {
    ROOFGEN_CHECK(keep(report, flags.output, terminal.outputs()));
  } else if (!simulated) {
    ROOFGEN_CHECK(keep(report, profile_path(terminal.home, report.gpu.uuid), Outputs(terminal.home, /*force=*/true)));
  }
  if (report.interrupted) return Exit::kInterrupted;
  const auto any =
      std::any_of(report.results.begin(), report.results.end(), [](const CeilingResult& r) { return r.measured(); });
  const auto bug =
      std::any_of(report.results.begin(), report.results.end(), [](const CeilingResult& r) { return r.impossible; });
  return report.lost || bug || !any ? Exit::kFailed : Exit::kOk;
}

}  // namespace roofgen::cli
