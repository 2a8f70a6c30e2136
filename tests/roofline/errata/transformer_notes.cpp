// The transformer roofline notes: artifacts 70 to 80.
#include <limits>

#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {

void transformer_notes(Checks& check) {
  const Explanation tiny = on("h200-sxm", "rmsnorm rows=16 cols=4096");
  for (int artifact : {70, 75}) check.holds(artifact, "a tiny kernel is launch-bound", tiny.regime == Regime::kLaunch);
  const Explanation large = on("h200-sxm", "rmsnorm rows=65536 cols=4096");
  check(70, "us: one launch and the slowest roof", 1e6 * large.seconds, "225.0");
  check(70, "us: the slowest roof", 1e6 * seconds_under(large, "DRAM"), "223.7");
  check(71, "bandwidth, H200 / B200 at 8 TB/s", cell("h200-sxm", "dram_gb_s") / 8000, "0.600");
  check(71, "bandwidth, H200 / B200 as it reports", cell("h200-sxm", "dram_gb_s") / cell("b200", "dram_gb_s"), "0.626");
  check(71, "BF16, H200 / B200", peak("h200-sxm", "bf16", "fp32") / peak("b200", "bf16", "fp32"), "0.44");
  const Explanation unfused = on("h200-sxm", "elementwise x*(1+a)+b rows=64 cols=1536 unfused"),
                    fused = on("h200-sxm", "elementwise x*(1+a)+b rows=64 cols=1536");
  check.holds(72, "many small kernels are launch-bound", unfused.regime == Regime::kLaunch);
  check(72, "times faster as one launch instead of three", unfused.seconds / fused.seconds, "2.8");
  check.holds(75, "redundant work is bound like any other",
              on("h200-sxm", "rmsnorm rows=65536 cols=1536").regime == Regime::kMemory);
  check(73, "33 % of the time gone", amdahl_bound(0.33, std::numeric_limits<double>::infinity()), "1.49");
  const ModelRun one = decode_step("generic-7b", "h200-sxm", 16, 2048);
  const ModelRun two = decode_step("generic-7b", "h200-sxm", 16, 2048, 2);
  check(74, "weights per GPU, one over two", one.memory.weights / two.memory.weights, "2.00");
  check(74, "MB on the link", two.parallel.link_bytes / 1e6, "8.39");
  check(74, "speed-up with the exchange at bandwidth alone", two.parallel.speedup, "1.98");
  check(74, "weight bytes of two shards, each",
        megabytes("gemm M=1 N=16384 K=4096") / megabytes("gemm M=1 N=8192 K=4096"), "2.00");
  check(76, "NVLink, A100", cell("a100-sxm-80", "nvlink_gb_s"), "300");
  check(76, "NVLink, H100", cell("h100-sxm", "nvlink_gb_s"), "450");
  check(76, "NVLink, B200", cell("b200", "nvlink_gb_s"), "900");
  check(77, "launches, naive", static_cast<double>(work("attention L=2048 d=64 passes=4").kernels.size()), "3");
  check(77, "launches, fused", static_cast<double>(work("attention L=2048 d=64").kernels.size()), "1");
  // A layer of width D at S tokens: 4 S^2 D in attention, 24 S D^2 in its products.
  const double attention = gigaflops("attention L=2160 d=72 batch=1 heads=16");
  const double products = gigaflops("gemm M=2160 N=3456 K=1152") + gigaflops("gemm M=2160 N=1152 K=1152") +
                          2 * gigaflops("gemm M=2160 N=4608 K=1152");
  check(78, "attention's share, S / (S + 6 D)", attention / (attention + products), "0.238");
  check(78, "all-gather of 8 GPUs, MB on a link", work("all_gather elements=1e8 gpus=8").kernels[0].link_bytes / 1e6,
        "175");
  const double launch = 1e-6 * cell("h200-sxm", "launch_us"),
               once = on("h200-sxm", "rmsnorm rows=65536 cols=4096").seconds - launch;
  check(79, "twice the bytes, twice the time",
        (on("h200-sxm", "rmsnorm rows=131072 cols=4096").seconds - launch) / once, "2.00");
}

}  // namespace roofgen::errata
