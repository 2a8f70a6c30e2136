// The memory-bandwidth roofline article: artifacts 1 to 26.
#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {
namespace {

const std::string kOneHead = "attention L=2048 d=64 batch=1 heads=1 ";

void elementwise(Checks& check) {
  check(3, "ReLU in FP32", ai("elementwise relu(x) rows=4096 cols=4096 dtype:fp32"), "0.125000");
  check(3, "ReLU in FP16", ai("elementwise relu(x) rows=4096 cols=4096 dtype:fp16"), "0.250000");
  check(3, "ridge of the CUDA cores, A100", vector_ridge("a100-sxm-80"), "9.56");
  check(4, "add and ReLU, two kernels", ai("elementwise relu(x+b) rows=4096 cols=4096 dtype:fp32 unfused"), "0.100000");
  check(4, "add and ReLU, one kernel", ai("elementwise relu(x+b) rows=4096 cols=4096 dtype:fp32"), "0.166667");
  check(4, "times less traffic",
        megabytes("elementwise relu(x+b) rows=4096 cols=4096 dtype:fp32 unfused") /
            megabytes("elementwise relu(x+b) rows=4096 cols=4096 dtype:fp32"),
        "1.667");
  check(4, "with a bias per column", ai("elementwise relu(x+b[n]) rows=4096 cols=4096 dtype:fp32"), "0.2500");
  check(7, "copy", ai("copy elements=1e8 dtype:fp32"), "0.000");
  check(7, "scale", ai("scale elements=1e8 dtype:fp32"), "0.125");
  check(7, "add", ai("add elements=1e8 dtype:fp32"), "0.083333");
  check(7, "triad", ai("triad elements=1e8 dtype:fp32"), "0.166667");
  check(18, "bytes per parameter, FP16 gradients", 1e6 * megabytes("adam params=1000000 grad:fp16") / 1e6, "26");
  check(18, "bytes per parameter, FP32 gradients", 1e6 * megabytes("adam params=1000000 grad:fp32") / 1e6, "28");
  check(18, "bytes per parameter, FP16 weights written too",
        1e6 * megabytes("adam params=1000000 grad:fp16 copy_out") / 1e6, "28");
  check(18, "AI, FP16 gradients", ai("adam params=1000000 grad:fp16"), "0.462");
  check(18, "AI, least", ai("adam params=1000000 grad:fp32"), "0.429");
  check(18, "AI, most", ai("adam params=1000000 grad:fp16 decay"), "0.538");
}

void products(Checks& check) {
  check(5, "4096 in FP32", ai("gemm M=4096 N=4096 K=4096 dtype:fp32"), "682.67");
  check(5, "4096 in FP16", ai("gemm M=4096 N=4096 K=4096 dtype:fp16"), "1365.33");
  check(5, "64 in FP32", ai("gemm M=64 N=64 K=64 dtype:fp32"), "10.67");
  check(5, "64 in FP16", ai("gemm M=64 N=64 K=64 dtype:fp16"), "21.33");
  check(8, "GFLOP", gigaflops("gemm M=4096 N=4096 K=4096 dtype:fp16"), "137.4");
  check(8, "MB", megabytes("gemm M=4096 N=4096 K=4096 dtype:fp16"), "100.7");
  check(9, "QK^T", ai("gemm M=2048 N=2048 K=64 dtype:fp16"), "60.2");
  check(9, "MB", megabytes("gemm M=2048 N=2048 K=64 dtype:fp16"), "8.9");
  check.holds(9, "fits L2", warns(on("a100-sxm-80", "gemm M=2048 N=2048 K=64 dtype:fp16"), "R09"));
  check(19, "batch 1", ai("gemm M=1 N=4096 K=4096"), "1.00");
  check(19, "MFLOP", 1e3 * gigaflops("gemm M=1 N=4096 K=4096"), "33.55");
  check(19, "MB", megabytes("gemm M=1 N=4096 K=4096"), "33.57");
  check(19, "below the ridge", ridge_of("a100-sxm-80", "bf16") / ai("gemm M=1 N=4096 K=4096"), "153");
  check(20, "batch 512", ai("gemm M=512 N=4096 K=4096"), "409.60");
  check(20, "MB", megabytes("gemm M=512 N=4096 K=4096"), "41.9");
  check(20, "crossing, A100 80 GB SXM", crossing("a100-sxm-80", "gemm M=1 N=4096 K=4096"), "166");
  check(20, "crossing, H100", crossing("h100-sxm", "gemm M=1 N=4096 K=4096"), "345");
  check(20, "crossing, B200", crossing("b200", "gemm M=1 N=4096 K=4096"), "343");
  check(20, "crossing, B200 at 8 TB/s", crossing("b200", "gemm M=1 N=4096 K=4096", 8000), "327");
  check(21, "three kernels", ai("gemm M=4096 N=4096 K=4096 bias activation unfused"), "585.1");
  check(21, "one kernel", ai("gemm M=4096 N=4096 K=4096 bias activation"), "1365.2");
  const auto over_ridge = [](const std::string& format) {
    return ai("gemm M=4096 N=4096 K=4096 out:" + format + " dtype:" + format) / ridge_of("h100-sxm", format);
  };
  check(17, "FP8 ridge", ridge_of("h100-sxm", "fp8"), "590.4");
  check(17, "AI over ridge, BF16", over_ridge("bf16"), "4.63");
  check(17, "AI over ridge, FP8", over_ridge("fp8"), "4.63");
}

void attention(Checks& check) {
  check(1, "naive, d = 64", ai(kOneHead + "passes=4"), "31.0");
  check(6, "8 L^2: tends to d/2", ai("attention L=1048576 d=64 batch=1 heads=1 passes=4"), "32.00");
  check(6, "scaled in a kernel of its own", ai(kOneHead + "passes=6"), "20.9");
  for (int artifact : {6, 11}) check(artifact, "naive MB", megabytes(kOneHead + "passes=4"), "34.6");
  check(11, "naive AI", ai(kOneHead + "passes=4"), "31.03");
  check(11, "flash AI", ai(kOneHead), "1024.0");
  check(11, "flash MB", megabytes(kOneHead), "1.05");
  check(11, "times fewer bytes", megabytes(kOneHead + "passes=4") / megabytes(kOneHead), "33.0");
  const std::string long_head = "attention L=8192 d=64 batch=1 heads=1 ";
  check(12, "naive MB", megabytes(long_head + "passes=4"), "541.1");
  check(12, "naive AI", ai(long_head + "passes=4"), "31.75");
  check(12, "flash AI", ai(long_head), "4096.0");
  check(12, "times fewer bytes", megabytes(long_head + "passes=4") / megabytes(long_head), "129.0");
  check(13, "flash, no mask", ai(kOneHead), "1024.0");
  check(13, "flash, causal", ai(kOneHead + "causal"), "512.25");
  const Explanation e = on("h200-sxm", kOneHead);
  check(13, "CTAs", e.work->kernels[0].ctas, "16");
  check(13, "us of tensor time on all SMs", 1e6 * seconds_under(e, "BF16 tensor, FP32 accumulate"), "1.1");
  check.holds(13, "fits L2", warns(e, "R09"));
  check.holds(13, "few CTAs", warns(e, "R10"));
  check.holds(13, "is not compute-bound", e.regime == Regime::kParallelism);
  check(13, "us of naive traffic at full HBM", 1e6 * on("h200-sxm", kOneHead + "passes=4").dram_bytes / 4.8e12, "7.2");
}

/// lint's findings for the article's claims.
void claims(Checks& check) {
  const OpWork naive = work(kOneHead + "passes=4"), square = work("gemm M=4096 N=4096 K=4096 dtype:fp16");
  check.holds(3, "tensor ridge for ReLU", breaks("R04", "a100-sxm-80", [&](Claim& c) {
                c.matrix_work = false;
                c.ridge = 156;
              }));
  check.holds(5, "an FP32 AI for FP16", breaks("R03", "a100-sxm-80", [&](Claim& c) {
                c.work = &square;
                c.ai = 682;
                c.dtype = "fp16";
              }));
  check.holds(6, "P is not written", breaks("R06", "a100-sxm-80", [&](Claim& c) {
                c.work = &naive;
                c.bytes = 25.2e6;
              }));
  check.holds(15, "sparse peak", breaks("R01", "h100-sxm", [&](Claim& c) {
                c.peak_tflops = 1979;
                c.dtype = "bf16";
              }));
  check.holds(15, "accumulator unstated", breaks("R02", "rtx-4090", [&](Claim& c) {
                c.peak_tflops = 330;
                c.dtype = "fp16";
              }));
  check.holds(24, "a dot above its roof", breaks("R12", "a100-sxm-80", [&](Claim& c) {
                c.ai = 1;
                c.achieved_tflops = 5;
                c.origin = "measured";
              }));
}

void devices(Checks& check) {
  check(2, "A100 80 GB SXM", ridge_of("a100-sxm-80", "bf16"), "153.0");
  check(2, "A100 80 GB PCIe", ridge_of("a100-pcie-80", "bf16"), "161.2");
  check(2, "A100 40 GB SXM", ridge_of("a100-sxm-40", "bf16"), "200.6");
  check(2, "A100 40 GB PCIe", ridge_of("a100-pcie-40", "bf16"), "200.6");
  check(10, "A100 80 GB PCIe GB/s", cell("a100-pcie-80", "dram_gb_s"), "1935");
  check(10, "A100 80 GB SXM GB/s", cell("a100-sxm-80", "dram_gb_s"), "2039");
  check(15, "V100", ridge_of("v100-sxm2", "fp16"), "139");
  check(15, "A100", ridge_of("a100-sxm-80", "fp16"), "153");
  check(15, "H100", ridge_of("h100-sxm", "fp16"), "295");
  check(15, "RTX 4090", ridge_of("rtx-4090", "fp16"), "164");
  check(15, "RTX 3090", ridge_of("rtx-3090", "fp16"), "76");
  check.holds(16, "AI 277 is right of the A100's ridge", !on("a100-sxm-80", "gemm M=320 N=4096 K=4096").below_ridge());
  check.holds(16, "AI 277 is left of the H100's", on("h100-sxm", "gemm M=320 N=4096 K=4096").below_ridge());
  check.holds(16, "AI 410 is right of both", !on("h100-sxm", "gemm M=512 N=4096 K=4096").below_ridge());
  double shared = 0;
  for (const Roof& r : bandwidth_roofs(device("a100-sxm-80"), RoofSet::kDatasheet))
    if (r.name == "shared memory") shared = r.rate / 1e12;
  check(23, "A100 shared memory and L1, TB/s", shared, "19.5");
  check(23, "A100 L2, TB/s", cell("a100-sxm-80", "l2_gb_s") / 1e3, "7.2");
  check(25, "A100 sustained GB/s", cell("a100-sxm-80", "dram_sustained_gb_s"), "1800");
  const Explanation small = on("h200-sxm", "rmsnorm rows=16 cols=4096");
  for (const char* rule : {"R09", "R10", "R17"}) check.holds(25, rule, warns(small, rule));
  const Explanation naive = on("h200-sxm", "attention L=2048 d=64 batch=8 heads=8 passes=4");
  check.holds(26, "a lever for naive attention", naive.next_lever.find("--passes 0") != std::string::npos);
}

}  // namespace

void bandwidth_article(Checks& check) {
  elementwise(check);
  products(check);
  attention(check);
  claims(check);
  devices(check);
}

}  // namespace roofgen::errata
