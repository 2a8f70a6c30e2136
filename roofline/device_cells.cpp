#include "roofline/device_cells.h"

#include <algorithm>
#include <deque>
#include <sstream>
#include <vector>

namespace roofgen {
namespace {

// Tensor operand formats; "_acc16" accumulates in FP16, the others in FP32 (INT32 for integers, FP64 for fp64).
constexpr std::string_view kTensorKinds[] = {"bf16",  "fp16", "fp16_acc16", "tf32", "fp8", "fp8_acc16",
                                             "mxfp8", "fp6",  "int8",       "int4", "fp4", "fp64"};
constexpr std::string_view kPeakKinds[] = {"bf16",  "fp16", "fp16_acc16", "tf32",      "fp8",      "fp8_acc16",
                                           "mxfp8", "fp6",  "int8",       "int4",      "fp4",      "fp64_tensor",
                                           "fp32",  "fp64", "fp16_cuda",  "bf16_cuda", "int8_cuda"};

struct Group {
  std::string_view unit;
  Need need;
  const char* names;
};
constexpr Group kGroups[] = {
    {"count", Need::kAnalysis, "arch sms"},
    {"count", Need::kNobody,
     "warp_size max_grid_x max_grid_yz max_cluster_size warp_alloc_unit subpartitions "
     "mma_tile_m mma_tile_n"},
    {"count", Need::kTuning,
     "max_threads_per_block max_threads_per_sm max_warps_per_sm max_ctas_per_sm "
     "regs_per_sm max_regs_per_thread reg_alloc_unit"},
    {"bytes", Need::kTuning, "smem_per_sm smem_per_block smem_reserved_per_block smem_alloc_unit l2_bytes"},
    {"bytes", Need::kNobody, "smem_per_block_static tmem_bytes_per_sm"},
    {"warp-inst/clk/SM", Need::kTuning, "issue_per_clk"},
    {"lanes/clk/SM", Need::kAnalysis, "fp32_lanes int_lanes mufu_lanes"},
    {"lanes/clk/SM", Need::kNobody, "fp64_lanes fp16_lanes bf16_lanes dp4a_lanes shuffle_lanes"},
    {"lanes/clk/SM", Need::kTuning, "cvt_lanes"},
    {"bytes/clk/SM", Need::kAnalysis, "smem_bytes_per_clk"},
    {"bytes/clk/SM", Need::kTuning, "l2_bytes_per_clk_sm"},
    {"bytes/clk/SM", Need::kNobody, "copy_bytes_per_clk_sm tmem_bytes_per_clk"},
    {"cycles", Need::kNobody,
     "alu_latency mufu_latency mma_sync_latency smem_latency l1_latency l2_far_latency "
     "barrier_latency wgmma_latency beside_wgmma_cycles copy_latency try_wait_latency phase_latency cluster_latency "
     "setmaxnreg_latency copy_issue_cycles copy_row_cycles copy_page_cycles copy_burst_cycles "
     "tcgen05_latency tcgen05_pair_latency tcgen05_pair_least_cycles tcgen05_commit_latency "
     "tmem_latency smem_wavefront_cycles smem_instruction_cycles branch_cycles cta_start_cycles fetch_latency"},
    {"count", Need::kNobody, "memory_queue wgmma_queue cluster_4_sms cluster_8_sms"},
    {"bytes", Need::kNobody, "l1_bytes instruction_cache_bytes"},
    {"cycles", Need::kTuning, "l2_latency dram_latency"},
    {"bytes", Need::kAnalysis, "memory_bytes"},
    {"MHz", Need::kAnalysis, "clock_tensor_mhz clock_fp32_mhz"},
    {"MHz", Need::kTuning, "clock_sustained_mhz"},
    {"MHz", Need::kNobody, "clock_wgmma_mhz"},
    {"GB/s", Need::kAnalysis, "dram_gb_s"},
    {"GB/s", Need::kTuning, "dram_sustained_gb_s l2_gb_s l2_sustained_gb_s"},
    {"bits", Need::kNobody, "dram_bus_bits"},
    {"bytes/clk", Need::kNobody, "l2_bytes_per_clk copy_l2_bytes_per_clk shared_copy_l2_bytes_per_clk"},
    {"GB/s", Need::kNobody, "nvlink_gb_s"},
    {"us", Need::kAnalysis, "launch_us"},
    {"us", Need::kNobody, "dependent_launch_saves_us"},
};

std::vector<CellSpec> make_specs() {
  std::vector<CellSpec> out;
  static std::deque<std::string> names;  // lives as long as the table
  const auto add = [&](std::string name, std::string_view unit, Need need = Need::kNobody) {
    const bool integer = unit == "count" || unit == "bytes" || unit == "bits";
    const bool zero_is_fine = name == "smem_reserved_per_block";
    if (name == "mma_sync_flops_per_clk_bf16" || name == "mma_sync_flops_per_clk_fp16" || name == "peak_bf16_tflops" ||
        name == "peak_fp16_tflops")
      need = Need::kTuning;
    out.push_back({names.emplace_back(std::move(name)), unit, need, integer, zero_is_fine});
  };
  for (const Group& group : kGroups) {
    std::istringstream words(group.names);
    for (std::string name; words >> name;) add(name, group.unit, group.need);
  }
  for (const std::string_view tensor_unit : kTensorUnits)
    for (const std::string_view kind : kTensorKinds)
      add(std::string(tensor_unit) + "_flops_per_clk_" + std::string(kind), "FLOP/clk/SM");
  for (const std::string_view kind : kPeakKinds) add("peak_" + std::string(kind) + "_tflops", "TFLOP/s");
  std::sort(out.begin(), out.end(), [](const CellSpec& a, const CellSpec& b) { return a.name < b.name; });
  return out;
}

}  // namespace

std::span<const CellSpec> cell_specs() {
  static const std::vector<CellSpec> specs = make_specs();
  return specs;
}

const CellSpec* cell_spec(std::string_view name) {
  const auto specs = cell_specs();
  const auto it = std::lower_bound(specs.begin(), specs.end(), name,
                                   [](const CellSpec& s, std::string_view n) { return s.name < n; });
  return it != specs.end() && it->name == name ? &*it : nullptr;
}

std::optional<PeakParts> peak_parts(const Device& device, std::string_view peak_cell) {
  constexpr std::string_view kPrefix = "peak_", kSuffix = "_tflops", kCuda = "_cuda";
  if (!peak_cell.starts_with(kPrefix) || !peak_cell.ends_with(kSuffix)) return std::nullopt;
  std::string kind(peak_cell.substr(kPrefix.size(), peak_cell.size() - kPrefix.size() - kSuffix.size()));
  const auto value = [&](const std::string& cell) { return device.has(cell) ? device.at(cell) : 0.0; };
  PeakParts out{value("sms"), 0, value("clock_fp32_mhz")};
  if (kind == "fp32" || kind == "fp64") {
    out.flops_per_clk_sm = 2 * value(kind + "_lanes");
  } else if (kind == "int8_cuda") {
    out.flops_per_clk_sm = 8 * value("dp4a_lanes");  // four multiplications and four additions per lane
  } else if (kind.ends_with(kCuda)) {
    out.flops_per_clk_sm = 2 * value(kind.substr(0, kind.size() - kCuda.size()) + "_lanes");
  } else {
    // FP64 has its own tensor rate, but runs at the FP32 clock.
    if (kind == "fp64_tensor")
      kind = "fp64";
    else
      out.mhz = value("clock_tensor_mhz");
    for (const std::string_view tensor_unit : kTensorUnits)
      out.flops_per_clk_sm = std::max(out.flops_per_clk_sm, value(std::string(tensor_unit) + "_flops_per_clk_" + kind));
  }
  if (!(out.tflops() > 0)) return std::nullopt;
  return out;
}

}  // namespace roofgen
