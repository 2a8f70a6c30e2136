// roofgen run -- PROGRAM: a program on the simulated CUDA driver.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/foreground.h"
#include "base/paths.h"
#include "base/scratch.h"
#include "base/subprocess.h"
#include "check/program.h"
#include "cli/cli.h"
#include "generator/generate.h"
#include "runtime/compiler.h"

namespace roofgen::cli {
namespace {

namespace fs = std::filesystem;

struct RunProgramFlags {
  std::string device, log, output;
  int jobs = 0;
  bool json = false, strict = false, keep_going = false, allow_unfenced = false, allow_incomplete = false;
};

/// libcuda.so.1: what ROOFGEN_SHIM names, the build tree's, an installed one.
Result<fs::path> find_shim() {
  std::error_code ignored;
  const fs::path here = fs::path(own_file()).parent_path();
  std::vector<fs::path> places = {here / "../shim", here / "../lib/roofgen", here};
  if (const std::string chosen = environment("ROOFGEN_SHIM"); !chosen.empty()) places = {chosen};
  for (const fs::path& place : places) {
    const fs::path file = fs::is_directory(place, ignored) ? place / "libcuda.so.1" : place;
    if (fs::is_regular_file(file, ignored) && file.filename() == "libcuda.so.1") return fs::canonical(file, ignored);
  }
  return Error{
      Exit::kUnavailable,
      environment("ROOFGEN_SHIM").empty()
          ? fmt::format("no simulated driver at {}; build the target roofgen_cuda_shim (`./roofgen run` does), "
                        "or set ROOFGEN_SHIM to libcuda.so.1 or its directory",
                        (here / "../shim").lexically_normal().string())
          : fmt::format("ROOFGEN_SHIM={}: no libcuda.so.1 there", places[0].string())};
}

/// The Python interpreter that runs the program; empty: none that can be told.
std::string interpreter(const std::string& program) {
  if (fs::path(program).filename().string().starts_with("python")) return program;
  std::ifstream in(program.find('/') == std::string::npos ? find_program("", program, {}) : program);
  std::string line;
  if (!in || !std::getline(in, line) || !line.starts_with("#!")) return "";
  const size_t at = line.find("python");
  if (at == std::string::npos) return "";
  const size_t begin = line.find_last_of("! \t", at) + 1, end = line.find_first_of(" \t\r", at);
  return line.substr(begin, end - begin);
}

using Environment = std::vector<std::pair<std::string, std::string>>;

bool python_runs(const std::string& python, const std::string& code, const Environment& environment) {
  const Result<ProcessResult> ran = run_process({{python, "-c", code}, environment});
  return ran && ran->ok();
}

/// cuda-python, as `./roofgen test` installs it, for a Python that has none of its own and that it fits.
void add_python_bindings(const std::string& program, Environment& environment_of_program) {
  std::error_code ignored;
  const fs::path bindings = fs::canonical(fs::path(own_file()).parent_path() / "../python", ignored);
  const std::string python = ignored ? "" : interpreter(program);
  if (python.empty()) return;
  constexpr const char* kFind =
      "import importlib.util; raise SystemExit(not importlib.util.find_spec('cuda.bindings'))";
  if (python_runs(python, kFind, {})) return;
  const std::string old = environment("PYTHONPATH");
  const std::pair<std::string, std::string> path = {"PYTHONPATH",
                                                    old.empty() ? bindings.string() : old + ":" + bindings.string()};
  if (python_runs(python, "import cuda.bindings.driver", {path})) environment_of_program.push_back(path);
}

/// Paths for a variable such as LD_LIBRARY_PATH; empty ones are left out.
std::string path_list(std::vector<std::string> paths) {
  std::erase(paths, "");
  return fmt::format("{}", fmt::join(paths, ":"));
}

/// PyTorch finds the CUDA runtime beside itself (RPATH), before LD_LIBRARY_PATH: the simulated driver's one of the same
/// version is loaded before it.
void add_torch_runtime(const std::string& program, const fs::path& shim, Environment& environment_of_program) {
  const std::string python = interpreter(program);
  if (python.empty()) return;
  constexpr const char* kVersion =
      "import importlib.util as u, pathlib, re\n"
      "text = pathlib.Path(u.find_spec('torch').origin).with_name('version.py').read_text()\n"
      "print(re.search(r\"^cuda\\b.*= *'(\\d+)\", text, re.M).group(1))";
  const Result<ProcessResult> ran = run_process({{python, "-c", kVersion}});
  if (!ran || !ran->ok()) return;
  std::error_code ignored;
  const fs::path runtime = shim.parent_path() / ("libcudart.so." + ran->out.substr(0, ran->out.find('\n')));
  if (!fs::is_regular_file(runtime, ignored)) return;
  environment_of_program.emplace_back("LD_PRELOAD", path_list({runtime.string(), environment("LD_PRELOAD")}));
  environment_of_program.emplace_back("ROOFGEN_SIM_PRELOADED", "1");
}

/// The directory of the NVRTC that roofgen uses, where the loader would not find one without it.
std::string nvrtc_directory() {
  if (dlopen("libnvrtc.so.13", RTLD_LAZY | RTLD_LOCAL)) return "";
  const fs::path library = nvrtc_info().library;
  return library.parent_path().string();
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// The driver's settings (docs/use/shim.md), and the simulated driver before any other libcuda.so.1.
Environment environment_for(const Terminal& terminal, const RunProgramFlags& flags, const fs::path& shim,
                            const std::string& report) {
  Environment out = {
      {"LD_LIBRARY_PATH", path_list({shim.parent_path().string(), environment("LD_LIBRARY_PATH"), nvrtc_directory()})},
      {"ROOFGEN_SIM_REPORT", report}};
  std::vector<std::string> dirs = terminal.data_dirs;
  std::transform(dirs.begin(), dirs.end(), dirs.begin(), absolute);
  if (!dirs.empty()) out.emplace_back("ROOFGEN_SIM_DATA_DIRS", path_list(dirs));
  if (!flags.device.empty()) out.emplace_back("ROOFGEN_SIM_DEVICE", flags.device);
  if (!flags.log.empty()) out.emplace_back("ROOFGEN_SIM_LOG", flags.log == "stderr" ? flags.log : absolute(flags.log));
  if (flags.jobs > 0) out.emplace_back("ROOFGEN_SIM_THREADS", std::to_string(flags.jobs));
  if (flags.strict) out.emplace_back("ROOFGEN_SIM_STRICT", "1");
  if (flags.keep_going) out.emplace_back("ROOFGEN_SIM_KEEP_GOING", "1");
  if (flags.allow_unfenced) out.emplace_back("ROOFGEN_SIM_ALLOW_UNFENCED", "1");
  add_python_bindings(terminal.program[0], out);
  add_torch_runtime(terminal.program[0], shim, out);
  return out;
}

/// A libcuda that is mapped into the process and is not the simulated driver.
std::string other_driver(pid_t pid, const fs::path& shim) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (const size_t at = line.find('/'); at != std::string::npos && line.find("/libcuda.so") != std::string::npos)
      if (line.substr(at) != shim) return line.substr(at);
  return "";
}

Result<Exit> run(const Terminal& terminal, const RunProgramFlags& flags) {
  if (terminal.program.empty())
    return Error{Exit::kUsage, "a program was expected, as in roofgen run -- python3 script.py"};
  if (!flags.device.empty()) {
    ROOFGEN_TRY(const Device device, load_device(DataFiles(terminal.data_dirs), flags.device));
    ROOFGEN_CHECK(tunable(device));
  }
  check::ProgramReport report;
  ROOFGEN_TRY(const fs::path shim, find_shim());
  for (const std::string& file : {flags.output, flags.log == "stderr" ? "" : flags.log})
    if (!file.empty()) ROOFGEN_CHECK(terminal.outputs().check({file}));
  if (!flags.log.empty() && flags.log != "stderr") ROOFGEN_CHECK(terminal.outputs().write(flags.log, ""));
  const ScratchDirectory records("roofgen-run");
  report.program = terminal.program;
  report.driver = shim.string();
  ForegroundOptions options{terminal.program, environment_for(terminal, flags, shim, records.path()), flags.json, {}};
  options.watch = [&](pid_t pid) {
    if (report.other_driver.empty()) report.other_driver = other_driver(pid, shim);
  };
  ROOFGEN_TRY(const ForegroundResult ended, run_in_foreground(options));
  report.exit = ended.exit;
  report.signal = ended.signal;
  if (!flags.log.empty()) terminal.outputs().adopt(flags.log);
  ROOFGEN_CHECK(check::read_records(records.path(), report));
  if (!flags.output.empty()) ROOFGEN_CHECK(terminal.write(flags.output, check::program_json(report)));
  if (flags.json)
    fmt::print("{}", check::program_json(report));
  else
    fmt::print(stderr, "\n{}", check::program_text(report));
  if (ended.signal) return static_cast<Exit>(128 + ended.signal);
  if (ended.exit) return static_cast<Exit>(ended.exit);
  if (report.processes.empty()) return Exit::kUnavailable;
  if (report.verdict() == check::Verdict::kFindings) return Exit::kFailed;
  return report.verdict() == check::Verdict::kClean || flags.allow_incomplete ? Exit::kOk : Exit::kIncomplete;
}

}  // namespace

Run declare_run(FlagSet app) {
  auto flags = std::make_shared<RunProgramFlags>();
  app.add("--device", flags->device, "device of the catalogue to simulate, sm_80 or newer [h200-sxm]");
  app.add("--log", flags->log, "file for one line per failed driver call and per finding, or stderr");
  app.add("--jobs", flags->jobs, "cores that CTAs are spread over; the report is the same [cores]").range(1, 256);
  app.add_switch("--strict", flags->strict,
                 "launches with undefined behaviour that no GPU detects (races, uninitialised reads) fail too");
  app.add_switch("--keep-going", flags->keep_going, "no launch fails for a finding: the program goes on after each")
      .excludes(app.find("--strict"));
  app.add_switch("--allow-unfenced", flags->allow_unfenced,
                 "leave out accesses that only a volatile or relaxed read orders");
  app.add_switch("--allow-incomplete", flags->allow_incomplete,
                 "exit code 0, not 5, where nothing is wrong but not everything ran or was decided");
  app.add_switch("--json", flags->json,
                 "report as JSON on standard output, and the program's standard output on standard error");
  app.add("--output", flags->output, "file for the report as JSON; nothing else changes");
  app.footer(
      "Usage: roofgen run [OPTIONS] [--] PROGRAM [ARGUMENTS...]\nExample: roofgen run -- python3 script.py\nExit code: "
      "the program's if it is not 0 (128 + N after signal N); "
      "else 0 clean, 1 findings, 3 the program did not load the simulated driver, 5 incomplete: nothing wrong in "
      "what ran. docs/use/run.md has the details.");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli
