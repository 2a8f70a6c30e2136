#include "roofline/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "base/json_text.h"
#include "base/suggest.h"
#include "base/target.h"
#include "roofline/device_cells.h"
#include "roofline/device_file.h"

namespace roofgen {
namespace {

constexpr size_t kMaxInheritance = 4;
/// The first architecture with cp.async and mma.sync m16n8k16 on bf16.
constexpr int kOldestTunable = 80;

/// The chain of files from the device to its base architecture.
Result<void> read_chain(const DataFiles& files, const std::string& name, std::vector<DeviceFile>& chain) {
  ROOFGEN_TRY(DeviceFile file, read_device_file(files, name));
  const std::string base = file.extends;
  const Where where = file.json.find("extends");
  chain.push_back(std::move(file));
  if (base.empty()) return {};
  if (chain.size() > kMaxInheritance) return Error{Exit::kFailed, fmt::format("device {} extends itself", name), where};
  if (!files.read("devices/" + base + ".json"))
    return Error{Exit::kFailed, fmt::format("\"extends\" names \"{}\", which is not a device file", base), where};
  return read_chain(files, base, chain);
}

int64_t round_up(int64_t v, int64_t unit) { return (v + unit - 1) / unit * unit; }

}  // namespace

double Device::at(const std::string& cell) const {
  const auto it = cells.find(cell);
  assert(it != cells.end());
  return it->second.value;
}

void limit_to(Device& device, const std::string& arch) {
  const auto target = parse_target(arch);
  if (!target) return;
  device.arch_specific = target->features == Target::Features::kOwn;
  device.family_specific = !target->is_portable();
}

std::vector<std::string> device_names(const DataFiles& files) {
  std::vector<std::string> out = json_names(files, "devices/");
  std::erase_if(out, [](const std::string& name) { return name.starts_with("sm_"); });
  return out;
}

Result<Device> load_device(const DataFiles& files, const std::string& name) {
  const std::vector<std::string> names = device_names(files);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::string message = fmt::format("unknown device \"{}\"{}", name, did_you_mean(name, names));
    for (const std::string& other : suggestions(name, names))
      if (const auto device = load_device(files, other))
        if (const auto usable = tunable(*device); !usable) message += fmt::format(" ({})", usable.error().message);
    return Error{Exit::kUsage, message};
  }
  std::vector<DeviceFile> chain;
  ROOFGEN_CHECK(read_chain(files, name, chain));
  Device device;
  device.name = name;
  device.title = chain.front().title.empty() ? name : chain.front().title;
  device.driver_names = chain.front().driver_names;
  std::vector<const JsonFile*> places;
  for (const DeviceFile& file : chain) {
    device.cells.insert(file.cells.begin(), file.cells.end());  // does not replace cells of the extending file
    places.push_back(&file.json);
  }
  for (const CellSpec& spec : cell_specs())
    if (spec.need == Need::kAnalysis && !device.has(std::string(spec.name)))
      return Error{
          Exit::kFailed, fmt::format("device {} has no cell \"{}\"", name, spec.name), {chain.front().json.file()}};
  device.arch = fmt::format("sm_{}", device.integer("arch"));
  ROOFGEN_CHECK(check_consistency(device, places));
  return device;
}

Result<void> tunable(const Device& device) {
  if (device.integer("arch") < kOldestTunable)
    return Error{Exit::kUnavailable, fmt::format("the kernels need sm_{} or newer; {} is {}: analysis only",
                                                 kOldestTunable, device.name, device.arch)};
  std::vector<std::string_view> missing;
  for (const CellSpec& spec : cell_specs())
    if (spec.need != Need::kNobody && !device.has(std::string(spec.name))) missing.push_back(spec.name);
  if (!missing.empty())
    return Error{Exit::kUnavailable,
                 fmt::format("{} is for analysis only: it has no {}", device.name, fmt::join(missing, ", "))};
  return {};
}

Result<void> overlay(Device& device, std::string text, std::string file) {
  ROOFGEN_TRY(const DeviceFile profile, parse_device_file(std::move(text), std::move(file)));
  if (profile.name != device.name)
    return Error{Exit::kFailed,
                 fmt::format("the profile is of \"{}\", the device is \"{}\"", profile.name, device.name),
                 profile.json.find("name")};
  if (!profile.extends.empty())
    return Error{Exit::kFailed, "a measured profile must not have \"extends\"", profile.json.find("extends")};
  Device changed = device;
  for (const auto& [name, cell] : profile.cells) {
    const bool is_fitted =
        cell.origin == Origin::kModel && std::ranges::find(kTimeScalars, name) != std::end(kTimeScalars);
    if (cell.origin != Origin::kMeasured && !is_fitted)
      return Error{Exit::kFailed, fmt::format("cell \"{}\" of a profile must have the origin \"measured\"", name),
                   profile.json.find(name)};
    changed.cells[name] = cell;
  }
  ROOFGEN_CHECK(check_measured(device, changed, profile));
  device = std::move(changed);
  return {};
}

expr::Map limits(const Device& device) {
  expr::Map out;
  for (const char* cell :
       {"sms", "arch", "smem_per_block", "smem_per_sm", "smem_reserved_per_block", "regs_per_sm", "max_regs_per_thread",
        "max_threads_per_block", "max_threads_per_sm", "max_warps_per_sm", "max_ctas_per_sm"})
    if (device.has(cell)) out[cell] = expr::Value(device.integer(cell));
  out["arch_specific"] = expr::Value(device.arch_specific);
  out["family_specific"] = expr::Value(device.family_specific);
  out["dependent_launch"] = expr::Value(device.has("dependent_launch_saves_us"));
  return out;
}

std::string limits_text(const Device& device) { return expr::Value(limits(device)).str(); }

std::string cells_text(const Device& device) {
  std::string out;
  for (const auto& [name, cell] : device.cells) out += fmt::format("{}={} ", name, cell.value);
  return out;
}

Occupancy occupancy(const Device& device, int registers, int64_t smem_bytes, int threads) {
  const int64_t warps = (threads + 31) / 32;
  const int64_t regs_per_warp = round_up(int64_t{registers} * 32, device.integer("reg_alloc_unit"));
  const int64_t smem =
      round_up(smem_bytes + device.integer("smem_reserved_per_block"), device.integer("smem_alloc_unit"));
  const auto whole = [](int64_t have, int64_t need) { return need > 0 ? have / need : have; };
  const struct {
    int64_t ctas;
    const char* name;
  } bounds[] = {
      {whole(device.integer("regs_per_sm"), regs_per_warp * warps), "registers"},
      {whole(device.integer("smem_per_sm"), smem), "shared memory"},
      {whole(device.integer("max_warps_per_sm"), warps), "threads"},
      {device.integer("max_ctas_per_sm"), "CTAs"},
  };
  Occupancy out;
  const auto& tightest = *std::min_element(std::begin(bounds), std::end(bounds),
                                           [](const auto& a, const auto& b) { return a.ctas < b.ctas; });
  out.ctas_per_sm = static_cast<int>(tightest.ctas);
  out.warps_per_sm = static_cast<int>(tightest.ctas * warps);
  out.fraction = static_cast<double>(out.warps_per_sm) / device.at("max_warps_per_sm");
  out.limited_by = tightest.name;
  return out;
}

Occupancy occupancy(const Device& device, const Binary& binary, const Launch& launch) {
  return occupancy(device, binary.registers, binary.static_smem_bytes + launch.smem_bytes,
                   static_cast<int>(launch.block.count()));
}

}  // namespace roofgen
