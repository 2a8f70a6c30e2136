// Time of one product of a warpgroup, m64n<n>k16 of bf16 or m64n<n>k32 of e4m3, with both matrices in shared memory and
// all checks enabled.
// Target: m64n128k16 in under 3 us on one core.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/executor.h"

namespace {

using namespace roofgen;

template <class T>
T need(Result<T> r) {
  if (!r) {
    std::fprintf(stderr, "%s\n", to_string(r.error()).c_str());
    std::exit(1);
  }
  return std::move(*r);
}

/// `rounds` batches of four products on tiles of ones.
std::string text(int n, int rounds, bool fp8) {
  std::string sums, clears;
  for (int i = 0; i < n / 2; ++i) {
    sums += (i ? ", %d" : "%d") + std::to_string(i);
    clears += "mov.b32 %d" + std::to_string(i) + ", 0;\n";
  }
  std::string products;
  for (int step = 0; step < 4; ++step)
    products += "add.u64 %rd3, %rd1, " + std::to_string(2 * step) + ";\nadd.u64 %rd4, %rd2, " +
                std::to_string(2 * step) + ";\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(n) +
                (fp8 ? "k32.f32.e4m3.e4m3 {" : "k16.f32.bf16.bf16 {") + sums + "}, %rd3, %rd4, 1, 1, 1" +
                (fp8 ? ";\n" : ", 0, 0;\n");
  return ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
         ".visible .entry k()\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .b32 %d<128>;\n.reg .pred %p1;\n"
         "mov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nshl.b32 %r3, %r1, 4;\nadd.u32 %r3, %r3, %r2;\n"
         "mov.u32 %r4, 0;\nmov.u32 %r7, 0x3f803f80;\nFILL:\nst.shared.v4.u32 [%r3], {%r7, %r7, %r7, %r7};\nadd.u32 "
         "%r3, %r3, 2048;\nadd.u32 %r4, %r4, 2048;\n"
         "setp.lt.u32 %p1, %r4, 40960;\n@%p1 bra FILL;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n" +
         clears +
         "shr.u32 %r5, %r2, 4;\ncvt.u64.u32 %rd1, %r5;\nor.b64 %rd1, %rd1, 0x4000004000010000;\n"
         "add.u64 %rd2, %rd1, 512;\nmov.u32 %r6, 0;\nLOOP:\nwgmma.fence.sync.aligned;\n" +
         products +
         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.u32 %r6, %r6, 1;\n"
         "setp.lt.u32 %p1, %r6, " +
         std::to_string(rounds) + ";\n@%p1 bra LOOP;\nret;\n}\n";
}

void product(benchmark::State& state, bool fp8) {
  constexpr int kRounds = 512;
  auto executor = need(make_sim_executor());
  Binary binary;
  binary.entry = "k";
  binary.ptx = text(static_cast<int>(state.range(0)), kRounds, fp8);
  const ModuleId module = need(executor->load(binary));
  Launch launch;
  launch.grid = {1, 1, 1};
  launch.block = {128, 1, 1};
  launch.smem_bytes = 40960;
  for (auto _ : state) {
    const RunResult r = need(executor->run(module, launch, {}));
    if (!r.findings.empty()) {
      state.SkipWithError(r.findings[0].message.c_str());
      break;
    }
  }
  state.counters["us_per_product"] = benchmark::Counter(
      4.0 * kRounds * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(product, bf16, false)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(product, e4m3, true)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
