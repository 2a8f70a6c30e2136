// Lane instructions per second of the simulator on one core, with all checks enabled: for convergent kernels (target 1
// G/s) and for a divergent one (target 0.2 G/s). The kernels are committed PTX.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/executor.h"

namespace {

using namespace roofgen;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}
template <class T>
T need(Result<T> r) {
  if (!r) fail(to_string(r.error()));
  return std::move(*r);
}

/// An executor with a loaded kernel and its launch.
struct Bench {
  std::unique_ptr<Executor> executor = need(make_sim_executor());
  ModuleId module;
  Launch launch;

  Bench(const char* entry, Dim3 grid, Dim3 block, uint32_t smem = 0) {
    std::ifstream in(ROOFGEN_SOURCE_DIR "/tests/sim/fixtures/throughput.ptx");
    std::ostringstream text;
    text << in.rdbuf();
    Binary binary;
    binary.entry = entry;
    binary.ptx = text.str();
    module = need(executor->load(binary));
    launch.grid = grid;
    launch.block = block;
    launch.smem_bytes = smem;
  }
  template <class T>
  Bench& array(const std::vector<T>& values) {
    const DevicePtr at = need(executor->allocate(values.size() * sizeof(T), "array"));
    if (auto done = executor->write(at, std::as_bytes(std::span(values))); !done) fail(to_string(done.error()));
    launch.args.push_back({"array", true, at.address, 8});
    return *this;
  }
  template <class T>
  Bench& scalar(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    launch.args.push_back({"scalar", false, bits, sizeof value});
    return *this;
  }
  Counts run(int threads = 1) {
    RunOptions options;
    options.threads = threads;
    const RunResult r = need(executor->run(module, launch, options));
    if (!r.findings.empty()) fail(r.findings[0].kind + ": " + r.findings[0].message);
    return *r.counts;
  }
};

/// `lane_instructions`: count for one run; 0 for a convergent kernel.
void measure(benchmark::State& state, Bench bench, uint64_t lane_instructions = 0) {
  Counts counts;
  for (auto _ : state) counts = bench.run();
  if (!lane_instructions) lane_instructions = 32 * counts.warp_instructions;
  state.counters["lane_inst"] = static_cast<double>(lane_instructions);
  state.counters["lane_inst_per_s"] =
      benchmark::Counter(static_cast<double>(lane_instructions), benchmark::Counter::kIsIterationInvariantRate);
}

constexpr int kElements = 1 << 18;
const std::vector<float> kFloats(kElements, 1.5f);

void add(benchmark::State& state) {
  measure(state, std::move(Bench("add", {kElements / 256, 1, 1}, {256, 1, 1})
                               .array(kFloats)
                               .array(kFloats)
                               .array(kFloats)
                               .scalar(kElements)));
}
void saxpy(benchmark::State& state) {
  measure(
      state,
      std::move(Bench("saxpy", {64, 1, 1}, {256, 1, 1}).scalar(2.0f).array(kFloats).array(kFloats).scalar(kElements)));
}
void reduction(benchmark::State& state) {
  measure(
      state,
      std::move(
          Bench("reduce", {64, 1, 1}, {256, 1, 1}, 32).array(kFloats).array(std::vector<float>(1)).scalar(kElements)));
}
void transpose(benchmark::State& state) {
  measure(state,
          std::move(Bench("transpose", {16, 16, 1}, {32, 8, 1}).array(kFloats).array(kFloats).scalar(512).scalar(512)));
}
void polynomial(benchmark::State& state) {
  measure(state, std::move(Bench("polynomial", {64, 1, 1}, {256, 1, 1}).array(kFloats).array(kFloats).scalar(512)));
}
BENCHMARK(add)->Unit(benchmark::kMillisecond);
BENCHMARK(saxpy)->Unit(benchmark::kMillisecond);
BENCHMARK(reduction)->Unit(benchmark::kMillisecond);
BENCHMARK(transpose)->Unit(benchmark::kMillisecond);
BENCHMARK(polynomial)->Unit(benchmark::kMillisecond);

/// The same on several cores; one core is the baseline.
void on_cores(benchmark::State& state, Bench bench) {
  Counts counts;
  for (auto _ : state) counts = bench.run(static_cast<int>(state.range(0)));
  state.counters["lane_inst_per_s"] = benchmark::Counter(32 * static_cast<double>(counts.warp_instructions),
                                                         benchmark::Counter::kIsIterationInvariantRate);
}
void polynomial_on_cores(benchmark::State& state) {
  on_cores(state, std::move(Bench("polynomial", {256, 1, 1}, {256, 1, 1}).array(kFloats).array(kFloats).scalar(512)));
}
void saxpy_on_cores(benchmark::State& state) {
  on_cores(state,
           std::move(
               Bench("saxpy", {1024, 1, 1}, {256, 1, 1}).scalar(2.0f).array(kFloats).array(kFloats).scalar(kElements)));
}
BENCHMARK(polynomial_on_cores)->RangeMultiplier(2)->Range(1, 4)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(saxpy_on_cores)->RangeMultiplier(2)->Range(1, 4)->UseRealTime()->Unit(benchmark::kMillisecond);

/// The instructions of a lane equal those of a warp whose lanes all have that lane's value.
void collatz(benchmark::State& state) {
  constexpr int kValues = 4096;
  std::vector<int> parting(kValues), together(kValues * 32);
  for (int i = 0; i < kValues; ++i) parting[i] = i + 1;
  for (int i = 0; i < kValues * 32; ++i) together[i] = i / 32 + 1;
  const std::vector<int> out(kValues * 32);
  const Counts alone = Bench("collatz", {kValues / 8, 1, 1}, {256, 1, 1}).array(together).array(out).run();
  measure(state, std::move(Bench("collatz", {kValues / 256, 1, 1}, {256, 1, 1}).array(parting).array(out)),
          alone.warp_instructions);
}
BENCHMARK(collatz)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
