#include "tuner/ceilings/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "tuner/ceilings/data.h"

namespace roofgen {
namespace {

using Buffers = CeilingSpec::Buffers;
using namespace ceilings;

constexpr const char* kSmFlops = "FLOP/clk/SM";

}  // namespace

const std::vector<CeilingSpec>& ceiling_specs() {
  static const std::vector<CeilingSpec> specs = {
      {"dram_write", "DRAM write", "GB/s", "", "dram_gb_s", 1, Buffers::kStream, check_write},
      {"dram_read", "DRAM read", "GB/s", "", "dram_gb_s", 1, Buffers::kStream, check_read},
      {"dram_copy", "DRAM copy", "GB/s", "", "dram_gb_s", 1, Buffers::kStream, check_copy},
      {"dram_triad", "DRAM triad", "GB/s", "", "dram_gb_s", 1, Buffers::kStream, check_triad},
      {"l2_write", "L2 write", "GB/s", "", "l2_gb_s", 1, Buffers::kStream, check_write},
      {"l2_read", "L2 read", "GB/s", "", "l2_gb_s", 1, Buffers::kStream, check_read},
      {"l2_copy", "L2 copy", "GB/s", "", "l2_gb_s", 1, Buffers::kStream, check_copy},
      {"l2_triad", "L2 triad", "GB/s", "", "l2_gb_s", 1, Buffers::kStream, check_triad},
      {"smem_read", "shared memory read", "bytes/clk/SM", "smem_bytes_per_clk", "smem_bytes_per_clk", 1,
       Buffers::kPattern, check_smem},
      {"fp32_fma", "FP32 FMA", kSmFlops, "", "fp32_lanes", 2, Buffers::kPattern, check_fma},
      {"mufu_ex2", "ex2", "lanes/clk/SM", "mufu_lanes", "mufu_lanes", 1, Buffers::kPattern, check_mufu},
      {"mma_bf16", "mma.sync BF16, FP32 acc", kSmFlops, "mma_sync_flops_per_clk_bf16", "mma bf16", 1,
       Buffers::kOperands, check_mma},
      {"mma_fp16", "mma.sync FP16, FP32 acc", kSmFlops, "mma_sync_flops_per_clk_fp16", "mma fp16", 1,
       Buffers::kOperands, check_mma},
      {"mma_fp16_acc16", "mma.sync FP16, FP16 acc", kSmFlops, "mma_sync_flops_per_clk_fp16_acc16", "mma fp16_acc16", 1,
       Buffers::kOperands, check_mma},
      {"mma_tf32", "mma.sync TF32", kSmFlops, "mma_sync_flops_per_clk_tf32", "mma tf32", 1, Buffers::kOperands,
       check_mma},
      {"mma_int8", "mma.sync INT8", kSmFlops, "mma_sync_flops_per_clk_int8", "mma int8", 1, Buffers::kOperands,
       check_mma},
      {"mma_fp8", "mma.sync FP8 e4m3", kSmFlops, "mma_sync_flops_per_clk_fp8", "mma fp8", 1, Buffers::kOperands,
       check_mma},
      {"mma_fp64", "mma.sync FP64", kSmFlops, "mma_sync_flops_per_clk_fp64", "mma fp64", 1, Buffers::kOperands,
       check_mma},
      {"launch", "launch, in a stream", "us", "launch_us", "", 1, Buffers::kNone, nullptr},
  };
  return specs;
}

std::optional<RateLimit> rate_limit(const CeilingSpec& spec, const Device& device) {
  const std::string limit = spec.limit;
  if (!limit.starts_with("mma ")) {
    const auto cell = device.cells.find(limit);
    if (cell == device.cells.end()) return std::nullopt;
    return RateLimit{spec.factor * cell->second.value, limit, cell->second.origin};
  }
  std::optional<RateLimit> out;
  for (const char* unit : {"mma_sync", "wgmma", "tcgen05"}) {
    const auto cell = device.cells.find(fmt::format("{}_flops_per_clk_{}", unit, limit.substr(4)));
    if (cell != device.cells.end() && (!out || cell->second.value > out->value))
      out = RateLimit{cell->second.value, cell->first, cell->second.origin};
  }
  return out;
}

CeilingSizes ceiling_sizes(const Device& device) {
  CeilingSizes out;
  const double l2 = device.has("l2_bytes") ? device.at("l2_bytes") : 0x1p25;
  const double dram = std::clamp(32 * l2, 0x1p28, std::min(0x1p31, device.at("memory_bytes") / 8));
  out.dram_words = static_cast<int64_t>(dram / 4) / 1024 * 1024;
  out.l2_words = static_cast<int64_t>(l2 / 16) / 1024 * 1024;
  return out;
}

expr::Map ceiling_scope(const expr::Map& device_limits, const CeilingSizes& sizes) {
  return {{"device", expr::Value(device_limits)},
          {"dram_words", sizes.dram_words},
          {"l2_words", sizes.l2_words},
          {"clocks", sizes.clocks},
          {"seed", int64_t{stream_seed("out")}}};
}

int64_t MicroKernel::integer(const std::string& name) const {
  const auto at = legal.scope.find(name);
  const int64_t* v = at == legal.scope.end() ? nullptr : at->second.as<int64_t>();
  assert(v);
  return v ? *v : 0;
}

std::string MicroKernel::text(const std::string& name) const {
  const auto at = legal.scope.find(name);
  return at == legal.scope.end() ? "" : at->second.str();
}

std::variant<MicroKernel, Rejected, Error> make_micro_kernel(const DataFiles& files, const CeilingSpec& spec,
                                                             const Variant& variant, const Schedule& schedule,
                                                             const expr::Map& scope) {
  const Stage& stage = variant.stages.front();
  auto checked = check_schedule(variant, stage, schedule, scope);
  if (auto* rejected = std::get_if<Rejected>(&checked)) return std::move(*rejected);
  if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
  MicroKernel out;
  out.spec = &spec;
  out.legal = std::get<Legal>(std::move(checked));
  auto program = generate(files, stage, out.legal);
  if (!program) return std::move(program).error();
  out.program = std::move(*program);
  auto launch = make_launch(stage, out.legal);
  if (!launch) return std::move(launch).error();
  out.launch = std::move(*launch);
  const auto amount =
      std::find_if(stage.work.begin(), stage.work.end(), [](const auto& w) { return w.first == "amount"; });
  if (amount == stage.work.end())
    return Error{Exit::kFailed, fmt::format("{} has no work formula \"amount\"", variant.name), {variant.file}};
  auto value = amount->second.eval_number(out.legal.scope);
  if (!value) return std::move(value).error();
  out.amount = *value;
  return out;
}

Result<std::vector<MicroBuffer>> micro_buffers(const CeilingSpec& spec, const Variant& variant,
                                               const expr::Map& scope) {
  ROOFGEN_TRY(const std::vector<Buffer> declared, temporaries(variant, scope));
  std::vector<MicroBuffer> out;
  const std::string name = spec.name;
  for (const Buffer& b : declared) {
    Fill fill;
    if (b.name != "out")
      fill = spec.buffers == Buffers::kOperands ? operand_fill(name.substr(name.find('_') + 1))
                                                : pattern_fill(stream_seed(b.name));
    out.push_back({b.name, b.bytes, std::move(fill)});
  }
  return out;
}

uint32_t stream_seed(const std::string& buffer) {
  return buffer == "x" ? 0x3c6ef372u : buffer == "y" ? 0x5bd1e995u : 0x27d4eb2fu;
}

}  // namespace roofgen
