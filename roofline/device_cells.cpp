#include "roofline/device_cells.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace roofgen {
namespace {

constexpr bool kInteger = true;

// Tensor operand formats; "_acc16" accumulates in FP16, the others in FP32 (INT32 for integers, FP64 for fp64).
constexpr std::string_view kTensorKinds[] = {"bf16",      "fp16", "fp16_acc16", "tf32", "fp8",
                                             "fp8_acc16", "int8", "int4",       "fp4",  "fp64"};
constexpr std::string_view kPeakKinds[] = {"bf16",      "fp16", "fp16_acc16", "tf32",      "fp8",
                                           "fp8_acc16", "int8", "int4",       "fp4",       "fp64_tensor",
                                           "fp32",      "fp64", "fp16_cuda",  "bf16_cuda", "int8_cuda"};

std::vector<CellSpec> make_specs() {
  std::vector<CellSpec> out = {
      // Cells of an architecture.
      {"arch", "count", Need::kAnalysis, kInteger},
      {"warp_size", "count", Need::kNobody, kInteger},
      {"max_threads_per_block", "count", Need::kTuning, kInteger},
      {"max_threads_per_sm", "count", Need::kTuning, kInteger},
      {"max_warps_per_sm", "count", Need::kTuning, kInteger},
      {"max_ctas_per_sm", "count", Need::kTuning, kInteger},
      {"max_grid_x", "count", Need::kNobody, kInteger},
      {"max_grid_yz", "count", Need::kNobody, kInteger},
      {"max_cluster_size", "count", Need::kNobody, kInteger},
      {"regs_per_sm", "count", Need::kTuning, kInteger},
      {"max_regs_per_thread", "count", Need::kTuning, kInteger},
      {"reg_alloc_unit", "count", Need::kTuning, kInteger},
      {"warp_alloc_unit", "count", Need::kNobody, kInteger},
      {"subpartitions", "count", Need::kNobody, kInteger},
      {"smem_per_sm", "bytes", Need::kTuning, kInteger},
      {"smem_per_block", "bytes", Need::kTuning, kInteger},
      {"smem_per_block_static", "bytes", Need::kNobody, kInteger},
      {"smem_reserved_per_block", "bytes", Need::kTuning, kInteger, true},
      {"smem_alloc_unit", "bytes", Need::kTuning, kInteger},
      {"tmem_bytes_per_sm", "bytes", Need::kNobody, kInteger},
      {"issue_per_clk", "warp-inst/clk/SM", Need::kTuning},
      {"fp32_lanes", "lanes/clk/SM", Need::kAnalysis},
      {"fp64_lanes", "lanes/clk/SM"},
      {"fp16_lanes", "lanes/clk/SM"},
      {"bf16_lanes", "lanes/clk/SM"},
      {"dp4a_lanes", "lanes/clk/SM"},
      {"int_lanes", "lanes/clk/SM", Need::kAnalysis},
      {"cvt_lanes", "lanes/clk/SM", Need::kTuning},
      {"mufu_lanes", "lanes/clk/SM", Need::kAnalysis},
      {"shuffle_lanes", "lanes/clk/SM"},
      {"smem_bytes_per_clk", "bytes/clk/SM", Need::kAnalysis},
      {"mma_tile_m", "count", Need::kNobody, kInteger},
      {"mma_tile_n", "count", Need::kNobody, kInteger},
      {"l2_bytes_per_clk_sm", "bytes/clk/SM", Need::kTuning},
      {"alu_latency", "cycles"},
      {"mufu_latency", "cycles"},
      {"mma_sync_latency", "cycles"},
      {"smem_latency", "cycles"},
      {"l1_latency", "cycles"},
      {"l2_latency", "cycles", Need::kTuning},
      {"l2_far_latency", "cycles"},
      {"barrier_latency", "cycles"},
      // Cells of a product.
      {"sms", "count", Need::kAnalysis, kInteger},
      {"memory_bytes", "bytes", Need::kAnalysis, kInteger},
      {"l2_bytes", "bytes", Need::kTuning, kInteger},
      {"clock_tensor_mhz", "MHz", Need::kAnalysis},
      {"clock_fp32_mhz", "MHz", Need::kAnalysis},
      {"clock_sustained_mhz", "MHz", Need::kTuning},
      {"dram_gb_s", "GB/s", Need::kAnalysis},
      {"dram_sustained_gb_s", "GB/s", Need::kTuning},
      {"dram_bus_bits", "bits", Need::kNobody, kInteger},
      {"dram_latency", "cycles", Need::kTuning},
      {"l2_bytes_per_clk", "bytes/clk"},
      {"l2_gb_s", "GB/s", Need::kTuning},
      {"l2_sustained_gb_s", "GB/s", Need::kTuning},
      {"nvlink_gb_s", "GB/s"},
      {"launch_us", "us", Need::kAnalysis},
  };
  // Storage for the composed names; lives as long as the table.
  static std::vector<std::string> names;
  names.reserve(std::size(kTensorUnits) * std::size(kTensorKinds) + std::size(kPeakKinds));
  const auto needed_by_tuner = {"mma_sync_flops_per_clk_bf16", "mma_sync_flops_per_clk_fp16", "peak_bf16_tflops",
                                "peak_fp16_tflops"};
  const auto add = [&](std::string name, std::string_view unit) {
    const bool tuning = std::find(needed_by_tuner.begin(), needed_by_tuner.end(), name) != needed_by_tuner.end();
    names.push_back(std::move(name));
    out.push_back({names.back(), unit, tuning ? Need::kTuning : Need::kNobody});
  };
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
