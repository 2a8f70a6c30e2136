// Speed of the simulator on one attention head, L = 2048, d = 64, with all checks enabled. The kernel is a committed
// PTX fixture, so neither NVRTC nor a GPU is needed. Target: 0.1 s on one core.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/executor.h"
#include "runtime/sim/opcode_table.h"

namespace {

using namespace roofgen;

constexpr uint32_t kLength = 2048, kDepth = 64, kRowBlock = 64;

std::string fixture_text() {
  std::ifstream in(ROOFGEN_SOURCE_DIR "/tests/sim/fixtures/flash.ptx");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// bf16 values in [-1, 1) from a hash of the position; cheap, so that the simulator dominates the time.
void fill(uint64_t offset, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    uint64_t h = (offset + i) * 0x9e3779b97f4a7c15ull;
    float x = static_cast<float>(static_cast<int32_t>(h >> 32)) * 0x1p-31f;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    auto half = static_cast<uint16_t>(bits >> 16);
    std::memcpy(out.data() + i, &half, 2);
  }
}

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
  std::exit(1);
}
template <class T>
T need(Result<T> r) {
  if (!r) fail(r.error());
  return std::move(*r);
}

void flash_head(benchmark::State& state) {
  auto executor = need(make_sim_executor());
  Binary binary;
  binary.entry = "flash";
  binary.ptx = fixture_text();
  ModuleId module = need(executor->load(binary));
  uint64_t bytes = uint64_t{kLength} * kDepth * 2;
  Launch launch;
  launch.grid = {kLength / kRowBlock, 1, 1};
  launch.block = {128, 1, 1};
  launch.smem_bytes = 40960;
  for (const char* name : {"q", "k", "v"})
    launch.args.push_back({name, true, need(executor->allocate(bytes, name, fill)).address, 8});
  DevicePtr out = need(executor->allocate(bytes, "o"));
  launch.args.push_back({"o", true, out.address, 8});
  float scale = 0.125f * 1.44269504f;
  uint32_t scale_bits;
  std::memcpy(&scale_bits, &scale, 4);
  for (uint32_t v : {1u, kLength, kLength, scale_bits}) launch.args.push_back({"s", false, v, 4});
  Counts counts;
  for (auto _ : state) {
    RunResult r = need(executor->run(module, launch, {}));
    if (!r.findings.empty()) {
      state.SkipWithError(r.findings[0].message.c_str());
      break;
    }
    counts = *r.counts;
  }
  state.counters["warp_inst"] = static_cast<double>(counts.warp_instructions);
  state.counters["mma"] = static_cast<double>(counts.mma);
  state.counters["warp_inst_per_s"] =
      benchmark::Counter(static_cast<double>(counts.warp_instructions), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(flash_head)->Unit(benchmark::kMillisecond);

void load_kernel(benchmark::State& state) {
  auto executor = need(make_sim_executor());
  Binary binary;
  binary.entry = "flash";
  binary.ptx = fixture_text();
  for (auto _ : state) executor->unload(need(executor->load(binary)));
}
BENCHMARK(load_kernel)->Unit(benchmark::kMillisecond);

/// One warp-wide mma of each type with operands in registers: FLOP/s of one core.
void mma(benchmark::State& state, const char* spelling, double k) {
  const sim::LaneEntry* entry = sim::OpcodeTable::host().find(spelling);
  alignas(64) static uint32_t rows[16 * 32];
  for (uint32_t i = 0; i < 16 * 32; ++i)
    rows[i] = 0x3c3c3c3c ^ (i * 0x9e3779b9u & 0x83838383);  // moderate values in all types
  uint32_t lists[14], predicates[1] = {~0u};
  for (uint32_t i = 0; i < 14; ++i) lists[i] = i;
  sim::Inst in;
  for (auto _ : state) {
    entry->fn({rows, predicates}, in, lists, ~0u);
    benchmark::ClobberMemory();
  }
  state.counters["FLOP/s"] = benchmark::Counter(2 * 16 * 8 * k, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(mma, bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16);
BENCHMARK_CAPTURE(mma, fp16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16);
BENCHMARK_CAPTURE(mma, tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8);
BENCHMARK_CAPTURE(mma, fp8, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 32);
BENCHMARK_CAPTURE(mma, int8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32);

}  // namespace

BENCHMARK_MAIN();
