#include "tuner/timing/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/timing/sm_model.h"

namespace roofgen::timing {

Result<Machine> machine_of(const Device& d, double sm_mhz) {
  for (const char* cell : {"sms",
                           "arch",
                           "clock_fp32_mhz",
                           "clock_sustained_mhz",
                           "fp32_lanes",
                           "int_lanes",
                           "mufu_lanes",
                           "dram_sustained_gb_s",
                           "l2_sustained_gb_s",
                           "l2_bytes",
                           "l2_latency",
                           "dram_latency",
                           "launch_us",
                           "smem_per_sm",
                           "l1_bytes",
                           "smem_wavefront_cycles",
                           "smem_instruction_cycles",
                           "memory_queue",
                           "branch_cycles",
                           "cta_start_cycles",
                           "fetch_latency",
                           "instruction_cache_bytes"})
    if (!d.has(cell))
      return Error{Exit::kUnavailable, fmt::format("{} has no {}, which the time model needs", d.name, cell)};
  Machine m;
  m.device = d.name;
  m.arch = d.arch;
  m.sms = static_cast<int>(d.at("sms"));
  m.clock_hz = 1e6 * (sm_mhz > 0 ? sm_mhz : d.at("clock_fp32_mhz"));
  m.launch_s = 1e-6 * d.at("launch_us");
  const int arch = static_cast<int>(d.at("arch"));
  const auto cell = [&](const std::string& name, double otherwise) { return d.has(name) ? d.at(name) : otherwise; };
  m.tensor_hz = sm_mhz > 0 ? m.clock_hz : 1e6 * cell("clock_wgmma_mhz", d.at("clock_sustained_mhz"));
  // A pipe of n lanes an SM has n / 4 in each scheduler's part.
  const auto cycles = [&](double lanes) { return 32.0 * m.schedulers / lanes; };
  const auto at = [&](sass::Pipe p) -> double& { return m.interval[static_cast<size_t>(p)]; };
  using sass::Pipe;
  at(Pipe::kFma) = cycles(d.at("fp32_lanes"));
  at(Pipe::kFmaHeavy) = 2;
  at(Pipe::kHalf) = cycles(cell("fp16_lanes", 2 * d.at("fp32_lanes")) / 2);
  at(Pipe::kAlu) = cycles(d.at("int_lanes"));
  at(Pipe::kFp64) = cycles(cell("fp64_lanes", 2));
  at(Pipe::kXu) = cycles(d.at("mufu_lanes"));
  at(Pipe::kUniform) = 2;
  at(Pipe::kTensorMemory) = 1;  // by its registers
  at(Pipe::kLsu) = 2;
  at(Pipe::kTex) = 4;
  at(Pipe::kBranch) = 2;
  at(Pipe::kBarrier) = 2;
  at(Pipe::kDependency) = at(Pipe::kNone) = 1;
  for (const char* newer : {"wgmma_flops_per_clk_fp16", "tcgen05_flops_per_clk_fp16"})
    if (d.has(newer)) m.tensor_share = cell("mma_sync_flops_per_clk_fp16", 0) / d.at(newer);
  m.tensor_f16 = cell("mma_sync_flops_per_clk_fp16", 0) / m.schedulers;
  m.tensor_tf32 = cell("mma_sync_flops_per_clk_tf32", 0) / m.schedulers;
  m.tensor_int8 = cell("mma_sync_flops_per_clk_int8", 0) / m.schedulers;
  m.tensor_fp64 = cell("mma_sync_flops_per_clk_fp64", 0) / m.schedulers;
  m.tensor_fp8 = cell("mma_sync_flops_per_clk_fp8", 0) / m.schedulers;
  m.tensor_mxfp8 = cell("mma_sync_flops_per_clk_mxfp8", 0) / m.schedulers;
  m.tensor_fp4 = cell("mma_sync_flops_per_clk_fp4", 0) / m.schedulers;
  m.product_f16 = cell("wgmma_flops_per_clk_fp16", 0) / m.schedulers;
  m.product_tf32 = cell("wgmma_flops_per_clk_tf32", 0) / m.schedulers;
  m.product_fp8 = cell("wgmma_flops_per_clk_fp8", 0) / m.schedulers;
  m.product_int8 = cell("wgmma_flops_per_clk_int8", 0) / m.schedulers;
  m.beside_product_cycles = cell("beside_wgmma_cycles", 0);
  m.product_latency = cell("wgmma_latency", 0);
  m.product_queue = static_cast<int>(cell("wgmma_queue", 1));
  m.shared_bytes_per_cycle = cell("smem_bytes_per_clk", 128);
  m.copy_start = cell("copy_latency", 0);
  m.copy_bytes_per_cycle = cell("copy_bytes_per_clk_sm", 128);
  m.try_wait_cycles = cell("try_wait_latency", 0);
  m.phase_cycles = cell("phase_latency", 0);
  m.cluster_cycles = cell("cluster_latency", 0);
  m.register_cycles = cell("setmaxnreg_latency", 0);
  m.copy_burst_cycles = cell("copy_burst_cycles", 0);
  m.copy_issue_cycles = cell("copy_issue_cycles", 0);
  m.copy_row_cycles = cell("copy_row_cycles", 0);
  m.copy_page_cycles = cell("copy_page_cycles", 0);
  m.matrix_f16 = cell("tcgen05_flops_per_clk_fp16", 0);
  m.matrix_fp8 = cell("tcgen05_flops_per_clk_fp8", 0);
  m.matrix_int8 = cell("tcgen05_flops_per_clk_int8", 0);
  m.matrix_fp4 = cell("tcgen05_flops_per_clk_fp4", 0);
  m.matrix_latency = cell("tcgen05_latency", 0);
  m.pair_latency = cell("tcgen05_pair_latency", m.matrix_latency);
  m.pair_least_cycles = cell("tcgen05_pair_least_cycles", 0);
  m.commit_cycles = cell("tcgen05_commit_latency", 0);
  m.tensor_memory_bytes_per_cycle = cell("tmem_bytes_per_clk", 512);
  m.tensor_memory_latency = cell("tmem_latency", 0);
  m.cycles_per_wavefront = d.at("smem_wavefront_cycles");
  m.shared_least = d.at("smem_instruction_cycles");
  m.memory_queue = static_cast<int>(d.at("memory_queue"));
  m.branch_cycles = d.at("branch_cycles");
  m.new_cta_cycles = d.at("cta_start_cycles");
  m.fetch_latency = d.at("fetch_latency");
  m.xu_latency = cell("mufu_latency", 20);
  m.shared_latency = cell("smem_latency", 22);
  m.l1_latency = cell("l1_latency", 33);
  m.l2_latency = d.at("l2_latency");
  m.dram_latency = d.at("dram_latency");
  m.barrier_cycles = cell("barrier_latency", 20);
  m.unified_bytes = d.at("l1_bytes");
  m.instruction_bytes = d.at("instruction_cache_bytes");
  // CUDA C++ Programming Guide, compute capabilities: sizes of shared memory on an SM.
  for (const double kib : {0, 8, 16, 32, 64, 100, 132, 164, 196, 228})
    if (kib * 1024 <= d.at("smem_per_sm") && (arch != 75 || kib >= 32)) m.carve_outs.push_back(kib * 1024);
  m.l2_bytes_per_cycle = cell("l2_bytes_per_clk_sm", 64);
  m.l2_total_bytes_per_cycle = 1e9 * d.at("l2_sustained_gb_s") / m.clock_hz;
  m.copy_l2_bytes_per_cycle = cell("copy_l2_bytes_per_clk", m.l2_total_bytes_per_cycle);
  m.shared_copy_l2_bytes_per_cycle = cell("shared_copy_l2_bytes_per_clk", m.copy_l2_bytes_per_cycle);
  m.dram_bytes_per_cycle = 1e9 * d.at("dram_sustained_gb_s") / m.clock_hz;
  m.l2_bytes = d.at("l2_bytes");
  return m;
}

double clock_of(const Machine& m, double tensor_share) {
  // Power goes with the share, with the clock, and with the square of the voltage, which goes with the clock.
  return std::min(m.clock_hz, m.tensor_hz / std::cbrt(std::max(tensor_share, 1e-3)));
}

Machine at_clock(Machine m, double hz) {
  m.l2_total_bytes_per_cycle *= m.clock_hz / hz;
  m.dram_bytes_per_cycle *= m.clock_hz / hz;
  m.clock_hz = hz;
  return m;
}

double carve_out(const Machine& m, double bytes) {
  for (const double size : m.carve_outs)
    if (size >= bytes) return size;
  return bytes;
}

}  // namespace roofgen::timing
