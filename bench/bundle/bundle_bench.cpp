// What a call of a bundle adds to the driver's launch: checks of the arguments, the values computed from the sizes, and
// the call of cuTensorMapEncodeTiled for each map, without the driver's own time. Target: under 300 ns.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "fused.h"
#include "warpgroup.h"

namespace {

template <class T>
T* at(uint64_t tensor) {
  return reinterpret_cast<T*>(tensor << 40);
}

template <class Create, class Launch>
void launches(benchmark::State& state, Create create, Launch launch) {
  const auto handle = create();
  for (auto _ : state) {
    const int64_t L = 256, H = 2, D = 64, row = H * D, batch = L * row;
    const int error = launch(handle, nullptr, at<const roofgen_bf16>(1), at<const roofgen_bf16>(2),
                             at<const roofgen_bf16>(3), at<roofgen_bf16>(4), 0.125f, 1, H, H, L, L, batch, row, D,
                             batch, row, D, batch, row, D, batch, row, D, nullptr, 0);
    if (error != 0) return state.SkipWithError("the launch was refused");
  }
}

void pointers(benchmark::State& state) {
  launches(
      state,
      [] {
        fused_t* h = nullptr;
        fused_create(&h, nullptr);
        return h;
      },
      fused_launch);
}
BENCHMARK(pointers);

void tensor_maps(benchmark::State& state) {
  launches(
      state,
      [] {
        warpgroup_t* h = nullptr;
        warpgroup_create(&h, nullptr);
        return h;
      },
      warpgroup_launch);
}
BENCHMARK(tensor_maps);

}  // namespace

BENCHMARK_MAIN();
