// Explained operators per second. A sweep over batch, length and devices is interactive only if a formula takes
// microseconds. docs/internals/work.md has the results.
#include <benchmark/benchmark.h>

#include "roofline/analyses/explain.h"

using namespace roofgen;

namespace {

/// Evaluates and explains a new shape in each iteration, including warnings.
void explain_op(benchmark::State& state, const char* op, WorkRequest request, const char* varied) {
  const DataFiles files;
  const auto formula = WorkFormula::load(files, op);
  const auto device = load_device(files, "h100-sxm");
  int64_t size = 1;
  for (auto _ : state) {
    request.dims[varied] = size = size % 8192 + 1;
    auto e = explain(*device, *formula->evaluate(request));
    benchmark::DoNotOptimize(e->seconds);
  }
  state.SetItemsProcessed(state.iterations());
}

void gemm(benchmark::State& state) { explain_op(state, "gemm", {.dims = {{"N", 4096}, {"K", 4096}}}, "M"); }
void attention_four_pass(benchmark::State& state) {
  explain_op(state, "attention", {.dims = {{"d", 64}, {"passes", 4}}}, "L");
}
void rmsnorm(benchmark::State& state) { explain_op(state, "rmsnorm", {.dims = {{"cols", 4096}}}, "rows"); }

BENCHMARK(gemm)->Unit(benchmark::kMicrosecond);
BENCHMARK(attention_four_pass)->Unit(benchmark::kMicrosecond);
BENCHMARK(rmsnorm)->Unit(benchmark::kMicrosecond);

void load_formula(benchmark::State& state) {
  const DataFiles files;
  for (auto _ : state) benchmark::DoNotOptimize(WorkFormula::load(files, "attention"));
}
BENCHMARK(load_formula)->Unit(benchmark::kMicrosecond);

void load_catalogue(benchmark::State& state) {
  const DataFiles files;
  for (auto _ : state)
    for (const std::string& name : device_names(files)) benchmark::DoNotOptimize(load_device(files, name));
}
BENCHMARK(load_catalogue)->Unit(benchmark::kMillisecond);

}  // namespace
