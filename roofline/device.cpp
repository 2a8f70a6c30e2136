#include "roofline/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "generator/json_text.h"
#include "generator/suggest.h"

namespace roofgen {
namespace {

/// What every device must have for the model to run; everything else is optional.
constexpr const char* kRequired[] = {
    "sms", "arch", "clock_sustained_mhz", "clock_tensor_mhz", "clock_fp32_mhz", "memory_bytes", "dram_gb_s",
    "dram_sustained_gb_s", "dram_latency", "l2_bytes", "l2_gb_s", "l2_sustained_gb_s", "l2_latency", "l2_bytes_per_clk_sm",
    "launch_us", "issue_per_clk", "fp32_lanes", "int_lanes", "cvt_lanes", "mufu_lanes", "smem_bytes_per_clk",
    "mma_sync_flops_per_clk_bf16", "mma_sync_flops_per_clk_fp16", "peak_bf16_tflops", "peak_fp16_tflops",
    "smem_per_block", "smem_per_sm", "smem_reserved_per_block", "smem_alloc_unit", "regs_per_sm", "reg_alloc_unit",
    "max_regs_per_thread", "max_threads_per_block", "max_threads_per_sm", "max_warps_per_sm", "max_ctas_per_sm"};

constexpr int kMaxInheritance = 4;

Result<Origin> parse_origin(const std::string& text, const JsonFile& file) {
  for (Origin o : {Origin::kDatasheet, Origin::kCompiled, Origin::kModel, Origin::kSimulated, Origin::kMeasured, Origin::kCounter})
    if (text == to_string(o)) return o;
  return Error{Exit::kFailed, fmt::format("unknown origin \"{}\"", text), file.find(text)};
}

Result<void> merge(const DataFiles& files, const std::string& name, Device& into, int depth) {
  const std::string path = "devices/" + name + ".json";
  const auto text = files.read(path);
  if (!text || depth > kMaxInheritance)
    return Error{Exit::kFailed, fmt::format("device file {} {}", path, text ? "extends itself" : "not found")};
  ROOFGEN_TRY(JsonFile file, JsonFile::parse(*text, files.origin(path)));
  const Json& root = file.root();
  if (!root.is_object() || !root.contains("cells") || !root["cells"].is_object())
    return Error{Exit::kFailed, "a device file needs an object \"cells\"", {file.file()}};
  if (root.contains("extends")) {
    if (!root["extends"].is_string()) return Error{Exit::kFailed, "\"extends\" must be a string", file.find("extends")};
    ROOFGEN_CHECK(merge(files, root["extends"].get<std::string>(), into, depth + 1));
    if (into.arch.empty()) into.arch = root["extends"].get<std::string>();
  }
  for (const auto& [key, cell] : root["cells"].items()) {
    if (!cell.is_object() || !cell.contains("value") || !cell["value"].is_number() || !cell.contains("origin") ||
        !cell["origin"].is_string())
      return Error{Exit::kFailed, fmt::format("cell {} needs a number \"value\" and an \"origin\"", key), file.find(key)};
    ROOFGEN_TRY(Origin origin, parse_origin(cell["origin"].get<std::string>(), file));
    const auto text_of = [&](const char* k) { return cell.contains(k) && cell[k].is_string() ? cell[k].get<std::string>() : ""; };
    into.cells[key] = Cell{cell["value"].get<double>(), text_of("unit"), origin, text_of("source")};
  }
  return {};
}

int64_t round_up(int64_t v, int64_t unit) { return (v + unit - 1) / unit * unit; }

}  // namespace

double Device::at(const std::string& cell) const {
  const auto it = cells.find(cell);
  assert(it != cells.end());
  return it->second.value;
}

std::vector<std::string> device_names(const DataFiles& files) {
  std::vector<std::string> out;
  for (const std::string& path : files.list("devices/")) {
    if (!path.ends_with(".json")) continue;
    std::string name = path.substr(8, path.size() - 13);
    if (!name.starts_with("sm_")) out.push_back(std::move(name));
  }
  return out;
}

Result<Device> load_device(const DataFiles& files, const std::string& name) {
  const std::vector<std::string> names = device_names(files);
  if (std::find(names.begin(), names.end(), name) == names.end())
    return Error{Exit::kUsage, fmt::format("unknown device \"{}\"{}", name, did_you_mean(name, names))};
  Device device;
  device.name = name;
  ROOFGEN_CHECK(merge(files, name, device, 0));
  for (const char* cell : kRequired) {
    if (!device.has(cell))
      return Error{Exit::kFailed, fmt::format("device {} has no cell \"{}\"", name, cell), {files.origin("devices/" + name + ".json")}};
    if (!(device.at(cell) > 0))
      return Error{Exit::kFailed, fmt::format("cell \"{}\" of device {} must be above 0", cell, name), {files.origin("devices/" + name + ".json")}};
  }
  return device;
}

expr::Map limits(const Device& device) {
  expr::Map out;
  for (const char* cell : {"sms", "arch", "smem_per_block", "smem_per_sm", "smem_reserved_per_block", "regs_per_sm",
                           "max_regs_per_thread", "max_threads_per_block", "max_threads_per_sm", "max_warps_per_sm",
                           "max_ctas_per_sm"})
    out[cell] = expr::Value(device.integer(cell));
  return out;
}

Occupancy occupancy(const Device& device, int registers, int64_t smem_bytes, int threads) {
  const int64_t warps = (threads + 31) / 32;
  const int64_t regs_per_warp = round_up(int64_t{registers} * 32, device.integer("reg_alloc_unit"));
  const int64_t smem = round_up(smem_bytes + device.integer("smem_reserved_per_block"), device.integer("smem_alloc_unit"));
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
  const auto& tightest = *std::min_element(std::begin(bounds), std::end(bounds), [](const auto& a, const auto& b) { return a.ctas < b.ctas; });
  out.ctas_per_sm = static_cast<int>(tightest.ctas);
  out.warps_per_sm = static_cast<int>(tightest.ctas * warps);
  out.fraction = static_cast<double>(out.warps_per_sm) / device.at("max_warps_per_sm");
  out.limited_by = tightest.name;
  return out;
}

}  // namespace roofgen
