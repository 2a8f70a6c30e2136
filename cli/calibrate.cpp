// roofgen calibrate: fits the scalars of the time models to measured times of kernels.
#include "profile/calibrate.h"

#include <fmt/format.h>

#include <thread>

#include "base/paths.h"
#include "cli/cli.h"
#include "tuner/ceilings/profile.h"

namespace roofgen::cli {
namespace {

constexpr size_t kMostTimesBytes = size_t{4} << 20;

struct CalibrateFlags {
  std::string device, output;
  std::vector<std::string> times, hold_out;
  int jobs = 0;
  bool scale = false, json = false;
};

Result<Exit> run(const Terminal& terminal, const CalibrateFlags& flags) {
  profile::CalibrateRequest r;
  ROOFGEN_TRY(r.device, load_device(DataFiles(terminal.data_dirs), flags.device));
  if (!flags.output.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.output}));
  for (const std::string& file : flags.times) {
    ROOFGEN_TRY(std::string text, read_input(file, kMostTimesBytes));
    ROOFGEN_TRY(profile::Times times,
                profile::parse_times(std::move(text), file, [](const std::string& path) { return read_input(path); }));
    std::move(times.kernels.begin(), times.kernels.end(), std::back_inserter(r.kernels));
    r.times.push_back({file, std::move(times.measured)});
  }
  r.hold_out = flags.hold_out;
  r.scale = flags.scale;
  r.jobs = flags.jobs ? flags.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  r.cache_dir = cache_dir();
  r.progress = [](const std::string& line) { fmt::print(stderr, "roofgen: calibrate: {}\n", line); };
  ROOFGEN_TRY(const profile::Calibration fitted, profile::calibrate(std::move(r)));
  fmt::print("{}", flags.json ? profile::calibration_json(fitted) : profile::calibration_text(fitted));
  if (flags.output.empty()) return Exit::kOk;
  if (fitted.cells.empty())
    return Error{Exit::kFailed, "is not written: these kernels determine no scalar", {flags.output}};
  ROOFGEN_CHECK(terminal.write(flags.output, cells_json(fitted.device, fitted.cells)));
  return Exit::kOk;
}

}  // namespace

Run declare_calibrate(FlagSet app) {
  auto flags = std::make_shared<CalibrateFlags>();
  app.add("--device", flags->device, "device of the catalogue on which the times were measured").required();
  app.add("--times", flags->times, "JSON file with kernels and their times (docs/use/calibrate.md); repeatable")
      .required()
      .repeated();
  app.add("--hold-out", flags->hold_out,
          "leave this family out of the fit and only report its errors; repeatable [each once, besides the fit]")
      .repeated();
  app.add_switch("--scale", flags->scale, "fit one factor for all times, too: the clock was unknown");
  app.add("--jobs", flags->jobs, "kernels that are compiled and modelled at a time; the report is the same [cores]")
      .range(1, 256);
  app.add("-o,--output", flags->output, "write the fitted scalars to this file, for --profile");
  app.add_switch("--json", flags->json, "as JSON");
  app.footer(
      "Example: roofgen calibrate --device rtx-3090 --times times.json -o fitted.json\nNothing is measured here: the "
      "times come from any tool. docs/use/calibrate.md explains the file and the report.");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli
