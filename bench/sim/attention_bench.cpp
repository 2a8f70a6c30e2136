// Speed of the simulator on one head of attention by warpgroups (sm_90a): L = 2048, d = 64, bf16, the variant
// `warpgroup` at its default schedule, with all checks on. NVRTC compiles the kernel before the measurement. Target:
// 0.2 s on one core.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "generator/ops/op.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/profile/generated.h"

namespace {

using namespace roofgen;

template <class T>
T need(Result<T> r) {
  if (r) return std::move(*r);
  std::fprintf(stderr, "%s\n", to_string(r.error()).c_str());
  std::exit(1);
}

/// The kernel in an executor, with its tensors.
struct Head {
  const Op* op = need(find_op("attention"));
  Problem problem =
      need(op->complete({"attention", {{"L", 2048}, {"d", 64}, {"batch", 1}, {"heads", 1}}, DType::kBf16, {}, {}}));
  profile::Compiled compiled = need(profile::compile({problem, "h200-sxm", {}, {}, "warpgroup"}));
  std::unique_ptr<Executor> executor = need(make_sim_executor());
  ModuleId module = need(executor->load(compiled.binary));

  Head() {
    for (const Buffer& b : op->buffers(problem)) {
      Fill fill;
      if (b.has_contents())
        fill = [this, name = b.name](uint64_t offset, std::span<std::byte> out) {
          op->fill(problem, InputPattern::kNormal, name, offset, out);
        };
      const DevicePtr at = need(executor->allocate(b.bytes, b.name, fill));
      for (Arg& arg : compiled.launch.args)
        if (arg.is_buffer && arg.name == b.name) arg.bits = at.address;
    }
  }
};

void warpgroup_head(benchmark::State& state) {
  static const Head head;
  Counts counts;
  for (auto _ : state) {
    const RunResult r = need(head.executor->run(head.module, head.compiled.launch, {}));
    if (!r.findings.empty()) {
      state.SkipWithError(r.findings[0].message.c_str());
      break;
    }
    counts = *r.counts;
  }
  state.SetLabel(to_string(head.compiled.program.schedule));
  state.counters["warp_inst"] = static_cast<double>(counts.warp_instructions);
  state.counters["mma_flops"] = static_cast<double>(counts.mma_flops);
}
BENCHMARK(warpgroup_head)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  if (!nvrtc_info().found) {
    std::fprintf(stderr, "sim_attention_bench: no NVRTC on this machine\n");
    return 3;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
