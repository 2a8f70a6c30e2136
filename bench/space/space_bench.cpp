// The construction of a space of 10^8 combinations.
#include <benchmark/benchmark.h>

#include "tests/generator/large_space.h"

static void large_space_built(benchmark::State& state) {
  uint64_t legal = 0;
  for (auto _ : state) legal = roofgen::large_space()->number;
  state.counters["legal"] = static_cast<double>(legal);
}
BENCHMARK(large_space_built)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
