// roofgen doctor: what was found, where, and which version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/problem_flags.h"
#include "roofline/device_match.h"
#include "roofline/work.h"
#include "runtime/paths.h"

namespace roofgen::cli {
namespace {

struct Findings {
  NvrtcInfo nvrtc;
  std::string gpu, gpu_arch, gpu_device, gpu_missing;
  std::vector<std::string> faults;  ///< of data files
  std::vector<std::string> devices;
  std::string cache, data;
};

Findings examine(const Session& session) {
  Findings f;
  f.nvrtc = nvrtc_info();
  if (auto gpu = make_cuda_executor()) {
    f.gpu = (*gpu)->info().device_name;
    f.gpu_arch = (*gpu)->info().arch;
    const auto device = match_device(DataFiles(session.data_dirs), (*gpu)->info().driver);
    f.gpu_device = device ? device->name : device.error().message;
  } else {
    f.gpu_missing = gpu.error().message;
  }
  const DataFiles files(session.data_dirs);
  f.devices = device_names(files);
  for (const std::string& name : f.devices)
    if (const auto device = load_device(files, name); !device) f.faults.push_back(to_string(device.error()));
  for (const std::string& name : WorkFormula::names(files))
    if (const auto formula = WorkFormula::load(files, name); !formula) f.faults.push_back(to_string(formula.error()));
  f.cache = cache_dir();
  f.data = data_home();
  return f;
}

std::string text(const Findings& f) {
  std::string out = "roofgen   " ROOFGEN_VERSION "\n";
  if (f.nvrtc.found) {
    out += fmt::format("NVRTC     {}.{} at {}\n", f.nvrtc.major, f.nvrtc.minor, f.nvrtc.library);
    out += fmt::format("          targets {}\n", fmt::join(f.nvrtc.archs, " "));
  } else {
    out += "NVRTC     not found; nothing can be compiled. Searched:\n";
    for (const std::string& s : f.nvrtc.searched) out += "          " + s + "\n";
  }
  out += f.gpu.empty() ? fmt::format("GPU       none: {}\n          kernels run on the simulator\n", f.gpu_missing)
                       : fmt::format("GPU       {} ({}); its roofs: {}\n", f.gpu, f.gpu_arch, f.gpu_device);
  out += fmt::format("devices   {} (default {})\n", fmt::join(f.devices, ", "), kDefaultDevice);
  for (const std::string& fault : f.faults) out += "fault     " + fault + "\n";
  out += fmt::format("cache     {}\nstore     {}\n", f.cache.empty() ? "none (no home directory)" : f.cache,
                     f.data.empty() ? "none (no home directory)" : f.data + "/evaluations.sqlite");
  return out;
}

std::string json(const Findings& f) {
  const nlohmann::ordered_json j{
      {"schema", "roofgen.doctor.1"},
      {"version", ROOFGEN_VERSION},
      {"nvrtc", {{"found", f.nvrtc.found}, {"library", f.nvrtc.library}, {"version", fmt::format("{}.{}", f.nvrtc.major, f.nvrtc.minor)},
                 {"archs", f.nvrtc.archs}, {"searched", f.nvrtc.searched}}},
      {"gpu", {{"found", !f.gpu.empty()}, {"name", f.gpu}, {"arch", f.gpu_arch}, {"device", f.gpu_device}, {"reason", f.gpu_missing}}},
      {"devices", f.devices},
      {"faults", f.faults},
      {"cache", f.cache},
      {"data", f.data}};
  return j.dump(2) + "\n";
}

}  // namespace

Run declare_doctor(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "as JSON");
  return [as_json](const Session& session) -> Result<Exit> {
    const Findings f = examine(session);
    fmt::print("{}", *as_json ? json(f) : text(f));
    if (!f.faults.empty()) return Exit::kFailed;
    return f.nvrtc.found ? Exit::kOk : Exit::kUnavailable;
  };
}

}  // namespace roofgen::cli
