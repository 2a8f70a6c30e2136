// Start-up time of the simulated driver: dlopen, cuInit and a current context, each time in a new process. Target:
// under 20 ms.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

namespace {

template <class F>
F* entry(void* library, const char* symbol) {
  void* at = dlsym(library, symbol);
  F* out = nullptr;
  std::memcpy(&out, &at, sizeof out);
  return out;
}

/// False on failure. `parts`: seconds from the start until dlopen, cuInit and the context are done.
bool start(double (&parts)[3]) {
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  void* library = dlopen(ROOFGEN_SHIM, RTLD_NOW);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), false;
  parts[0] = now();
  if (entry<int(unsigned)>(library, "cuInit")(0) != 0) return false;
  parts[1] = now();
  void* context = nullptr;
  if (entry<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0) != 0) return false;
  if (entry<int(void*)>(library, "cuCtxSetCurrent")(context) != 0) return false;
  parts[2] = now();
  return true;
}

void start_up(benchmark::State& state) {
  double sums[3] = {};
  for (auto _ : state) {
    int ends[2];
    if (pipe(ends) != 0) return state.SkipWithError("no pipe");
    const pid_t child = fork();
    double parts[3] = {};
    if (child == 0) {
      const bool good = start(parts) && write(ends[1], parts, sizeof parts) == sizeof parts;
      _exit(good ? 0 : 1);
    }
    close(ends[1]);
    const bool got = read(ends[0], parts, sizeof parts) == sizeof parts;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!got || status != 0) return state.SkipWithError("the driver did not start");
    for (int i = 0; i < 3; ++i) sums[i] += parts[i];
    state.SetIterationTime(parts[2]);
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["dlopen_ms"] = 1e3 * sums[0] / n;
  state.counters["init_ms"] = 1e3 * (sums[1] - sums[0]) / n;
  state.counters["context_ms"] = 1e3 * (sums[2] - sums[1]) / n;
}
BENCHMARK(start_up)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
