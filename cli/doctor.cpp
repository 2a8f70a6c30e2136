// roofgen doctor: what was found, where, and which version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/paths.h"
#include "base/text_table.h"
#include "cli/cli.h"
#include "roofline/device.h"
#include "roofline/json.h"
#include "roofline/work.h"
#include "runtime/sass/disassembler.h"
#include "tuner/ceilings/profile.h"
#include "tuner/session/request.h"

namespace roofgen::cli {
namespace {

constexpr int kMostGpus = 64;

struct Gpu {
  std::string name, arch, roofs, failure;  ///< failure: why it cannot be used; then the rest is empty
  GpuIdentity identity;
  GpuState state;
  bool simulated = false;
};

struct Findings {
  NvrtcInfo nvrtc;
  std::vector<Gpu> gpus;
  std::string gpu_missing;          ///< why there is none
  std::vector<std::string> faults;  ///< of data files
  std::vector<std::string> devices;
  std::string cache, data;
};

/// All that the driver counts. One that cannot be opened (in exclusive use, out of memory) is listed with why.
std::vector<Gpu> gpus(const Terminal& terminal, std::string* missing) {
  std::vector<Gpu> out;
  for (int ordinal = 0; ordinal < kMostGpus; ++ordinal) {
    Gpu gpu;
    auto opened = make_cuda_executor(ordinal);
    if (!opened) {
      const Error& error = opened.error();
      if (error.exit == Exit::kUsage) break;  // past the last
      if (error.exit == Exit::kUnavailable) {
        if (out.empty()) *missing = error.message;
        break;
      }
      gpu.failure = error.message;
      out.push_back(std::move(gpu));
      continue;
    }
    gpu.identity = (*opened)->identity();
    gpu.name = gpu.identity.name;
    gpu.simulated = (*opened)->origin() != Origin::kMeasured;
    gpu.arch = (*opened)->info().arch;
    const auto device = match_device(DataFiles(terminal.data_dirs), (*opened)->info().driver);
    gpu.roofs = device ? device->name : device.error().message;
    const std::string profile = profile_path(data_home(), gpu.identity.uuid);
    if (std::error_code ignored; device && !profile.empty() && std::filesystem::exists(profile, ignored))
      gpu.roofs += ", measured: " + profile;
    if (auto state = (*opened)->state()) gpu.state = *state;
    out.push_back(std::move(gpu));
  }
  return out;
}

Findings examine(const Terminal& terminal) {
  Findings f;
  f.nvrtc = nvrtc_info();
  f.gpus = gpus(terminal, &f.gpu_missing);
  const DataFiles files(terminal.data_dirs);
  f.devices = device_names(files);
  for (const std::string& name : f.devices)
    if (const auto device = load_device(files, name); !device) f.faults.push_back(to_string(device.error()));
  for (const std::string& name : WorkFormula::names(files))
    if (const auto formula = WorkFormula::load(files, name); !formula) f.faults.push_back(to_string(formula.error()));
  f.cache = cache_dir();
  f.data = data_home();
  return f;
}

std::string gib(uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (uint64_t{1} << 30)); }
std::string mhz(double now, double most) {
  return (now > 0 ? fmt::format("{:.0f}", now) : std::string("?")) + " of " +
         (most > 0 ? fmt::format("{:.0f} MHz", most) : std::string("? MHz"));
}

/// NVML is there and knows the GPU (in a virtual machine or a slice of a GPU it may not).
bool nvml_knows(const Gpu& gpu) {
  return !gpu.identity.driver.empty() && (gpu.state.sm_mhz > 0 || gpu.identity.power_limit_w > 0);
}

std::string text(const Gpu& gpu, size_t ordinal) {
  const std::string head = fmt::format("GPU {:<6}", ordinal);
  if (!gpu.failure.empty()) return fmt::format("{}cannot be used: {}\n", head, gpu.failure);
  const GpuIdentity& id = gpu.identity;
  std::string out = fmt::format("{}{} ({}); its roofs: {}\n", head, gpu.name, gpu.arch, gpu.roofs);
  if (gpu.simulated) out += "          simulated by the driver (docs/use/shim.md): no GPU is behind it\n";
  out += fmt::format("          {}, bus {}\n", id.uuid.empty() ? "UUID unknown" : id.uuid,
                     id.pci_bus_id.empty() ? "unknown" : id.pci_bus_id);
  out +=
      fmt::format("          driver {}, CUDA {}.{}; NVML: {}\n", id.driver.empty() ? "of unknown version" : id.driver,
                  id.cuda_version / 1000, id.cuda_version % 1000 / 10,
                  nvml_knows(gpu) ? "yes" : "no, so clocks, power and other processes are unknown");
  out += fmt::format("          memory {} free of {}\n", gib(gpu.state.free_bytes), gib(id.memory_bytes));
  if (!nvml_knows(gpu)) return out;
  out += fmt::format("          SM clock {}, memory clock {}\n", mhz(gpu.state.sm_mhz, id.max_sm_mhz),
                     mhz(gpu.state.memory_mhz, id.max_memory_mhz));
  out += fmt::format("          power {} of {}, {}\n",
                     gpu.state.power_w > 0 ? fmt::format("{:.0f}", gpu.state.power_w) : std::string("?"),
                     id.power_limit_w > 0 ? fmt::format("{:.0f} W", id.power_limit_w) : std::string("? W"),
                     gpu.state.temperature_c > 0 ? fmt::format("{:.0f} C", gpu.state.temperature_c)
                                                 : std::string("temperature unknown"));
  out += fmt::format("          other processes that compute on it: {}{}\n", gpu.state.other_processes,
                     gpu.state.other_processes > 0 ? "; they disturb measurements" : "");
  return out;
}

std::string text(const Findings& f) {
  std::string out = fmt::format("roofgen   {}\n", version());
  if (f.nvrtc.found) {
    out += fmt::format("NVRTC     {}.{} at {}\n", f.nvrtc.major, f.nvrtc.minor, f.nvrtc.library);
    out += fmt::format("          targets {}\n", fmt::join(f.nvrtc.archs, " "));
  } else {
    out += fmt::format("NVRTC     nothing can be compiled: {}. Searched:\n",
                       make_nvrtc_compiler({}, "", {}).error().message);
    for (const std::string& s : f.nvrtc.searched) out += "          " + s + "\n";
  }
  const std::string& nvdisasm = sass::nvdisasm_path();
  out += fmt::format("nvdisasm  {}\n",
                     nvdisasm.empty() ? std::string("no times from machine code: ") + sass::kNoNvdisasm : nvdisasm);
  if (f.gpus.empty()) out += fmt::format("GPU       none: {}\n          kernels run on the simulator\n", f.gpu_missing);
  for (size_t i = 0; i < f.gpus.size(); ++i) out += text(f.gpus[i], i);
  out += wrapped(fmt::format("devices   {} (default {})\n", fmt::join(f.devices, ", "), kDefaultDevice), 10);
  for (const std::string& fault : f.faults) out += "fault     " + fault + "\n";
  out += fmt::format("cache     {}\nstore     {}\n", f.cache.empty() ? "none (no home directory)" : f.cache,
                     f.data.empty() ? "none (no home directory)" : f.data + "/evaluations.sqlite");
  return out;
}

Json json(const Gpu& gpu, size_t ordinal) {
  if (!gpu.failure.empty()) return {{"ordinal", ordinal}, {"usable", false}, {"reason", gpu.failure}};
  const GpuIdentity& id = gpu.identity;
  const bool nvml = nvml_knows(gpu);
  Json j{{"ordinal", ordinal}, {"usable", true}, {"name", gpu.name}, {"arch", gpu.arch}, {"device", gpu.roofs}};
  j["simulated"] = gpu.simulated;
  ROOFGEN_PUT(j, id, uuid, pci_bus_id, driver)
  j["cuda"] = fmt::format("{}.{}", id.cuda_version / 1000, id.cuda_version % 1000 / 10);
  j["nvml"] = nvml;
  j["memory_bytes"] = id.memory_bytes;
  j["free_bytes"] = gpu.state.free_bytes;
  j["l2_bytes"] = id.l2_bytes;
  for (const auto& [name, value] : {std::pair("sm_mhz", gpu.state.sm_mhz),
                                    {"max_sm_mhz", id.max_sm_mhz},
                                    {"default_sm_mhz", id.default_sm_mhz},
                                    {"memory_mhz", gpu.state.memory_mhz},
                                    {"max_memory_mhz", id.max_memory_mhz},
                                    {"power_w", gpu.state.power_w},
                                    {"power_limit_w", id.power_limit_w},
                                    {"temperature_c", gpu.state.temperature_c}})
    j[name] = known(value);
  j["other_processes"] = nvml ? Json(gpu.state.other_processes) : Json();
  return j;
}

std::string json(const Findings& f) {
  Json gpus = Json::array();
  for (size_t i = 0; i < f.gpus.size(); ++i) gpus.push_back(json(f.gpus[i], i));
  const Gpu first = f.gpus.empty() ? Gpu{} : f.gpus[0];
  const Json j{{"schema", "roofgen.doctor.1"},
               {"version", version()},
               {"nvrtc",
                {{"found", f.nvrtc.found},
                 {"library", f.nvrtc.library},
                 {"version", fmt::format("{}.{}", f.nvrtc.major, f.nvrtc.minor)},
                 {"archs", f.nvrtc.archs},
                 {"searched", f.nvrtc.searched}}},
               {"nvdisasm", sass::nvdisasm_path()},
               {"gpu",
                {{"found", !first.name.empty()},
                 {"name", first.name},
                 {"arch", first.arch},
                 {"device", first.roofs},
                 {"reason", f.gpus.empty() ? f.gpu_missing : first.failure}}},
               {"gpus", gpus},
               {"devices", f.devices},
               {"faults", f.faults},
               {"cache", f.cache},
               {"data", f.data}};
  return json_document(j);
}

}  // namespace

Run declare_doctor(FlagSet app) {
  auto as_json = std::make_shared<bool>(false);
  app.add_switch("--json", *as_json, "as JSON");
  return [as_json](const Terminal& terminal) -> Result<Exit> {
    const Findings f = examine(terminal);
    fmt::print("{}", *as_json ? json(f) : text(f));
    if (!f.faults.empty()) return Exit::kFailed;
    return f.nvrtc.found ? Exit::kOk : Exit::kUnavailable;
  };
}

}  // namespace roofgen::cli
