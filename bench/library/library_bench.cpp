// The CPU time of calls of the library: a remembered pipeline, the first launch of a shape, a launch.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <roofgen/roofgen.hpp>
#include <string>

namespace {

using roofgen::Argument;

roofgen::Session& session() {
  static auto session = roofgen::Session::open();
  return *session;
}

roofgen::Request request(const char* variant) {
  return roofgen::Request("attention")
      .set("L", 256)
      .set("d", 64)
      .set("batch", 1)
      .set("heads", 2)
      .set("variant", variant)
      .set("executor", "sim")
      .set("evals", 1);
}

/// Pointers far from each other.
std::vector<Argument> arguments(int64_t length) {
  return {Argument::at("Q", 1ull << 40),
          Argument::at("K", 2ull << 40),
          Argument::at("V", 3ull << 40),
          Argument::at("O", 4ull << 40),
          {"L", length},
          {"kv_len", length}};
}

void jit(benchmark::State& state, const char* variant) {
  (void)roofgen::jit(session(), request(variant));  // remembered from now on
  for (auto _ : state)
    if (const auto made = roofgen::jit(session(), request(variant)); !made)
      return state.SkipWithError(made.error().message.c_str());
}
BENCHMARK_CAPTURE(jit, fused, "fused")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(jit, warpgroup, "warpgroup")->Unit(benchmark::kMillisecond);

void launch(benchmark::State& state, const char* variant, bool other_shapes) {
  const auto pipeline = roofgen::jit(session(), request(variant));
  if (!pipeline) return state.SkipWithError(pipeline.error().message.c_str());
  int64_t length = 256;
  for (auto _ : state) {
    if (const auto launched = pipeline->launch(nullptr, arguments(length)); !launched)
      return state.SkipWithError(launched.error().message.c_str());
    if (other_shapes) length += 256;
  }
}
BENCHMARK_CAPTURE(launch, fused, "fused", false);
BENCHMARK_CAPTURE(launch, warpgroup, "warpgroup", false);
// As many shapes as have room between the pointers.
BENCHMARK_CAPTURE(launch, fused_first_of_a_shape, "fused", true)->Iterations(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  setenv("ROOFGEN_LIBCUDA", ROOFGEN_NOTHING, 0);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
