// The arithmetic-intensity notebook: artifacts 55 to 69.
#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {
namespace {

void products(Checks& check) {
  check(55, "H100 FP16", ridge_of("h100-sxm", "fp16"), "295.2");
  check(55, "H100 FP8", ridge_of("h100-sxm", "fp8"), "590.4");
  check(55, "B200 FP16", ridge_of("b200", "fp16"), "293.3");
  check(55, "B200 FP8", ridge_of("b200", "fp8"), "586.5");
  const struct {
    const char *shape, *ai;
    bool memory;
  } table[] = {
      {"M=1 N=1 K=1024", "0.50", true},        {"M=1 N=4096 K=4096", "1.00", true},     {"M=32 N=4096 K=4096", "31.5", true},
      {"M=256 N=4096 K=4096", "227.6", true},  {"M=1024 N=4096 K=4096", "682.7", false}, {"M=4096 N=4096 K=4096", "1365", false},
  };
  for (const auto& row : table) {
    const std::string line = std::string("gemm ") + row.shape;
    check(56, row.shape, ai(line), row.ai);
    check.holds(56, std::string(row.shape) + (row.memory ? " left" : " right"), on("h100-sxm", line).below_ridge() == row.memory);
  }
  for (int artifact : {57, 59}) check(artifact, "batch 128", ai("gemm M=128 N=4096 K=4096"), "120.5");
  check(57, "crossing, H100", crossing("h100-sxm", "gemm M=1 N=4096 K=4096"), "345");
  check(57, "crossing, B200 at 8 TB/s", crossing("b200", "gemm M=1 N=4096 K=4096", 8000), "327");
  check(59, "batch 32", ai("gemm M=32 N=4096 K=4096"), "31.5");
  check(64, "prefill of 1024", ai("gemm M=1024 N=4096 K=4096"), "683");
  check(66, "% of the H100's roof at AI 2", 100 * 0.1 / (2 * cell("h100-sxm", "dram_gb_s") / 1e3), "1.5");
  check(66, "% of the H100's roof at AI 25", 100 * 3 / (25 * cell("h100-sxm", "dram_gb_s") / 1e3), "3.6");
  check(66, "% of the H100's roof at AI 500", 100 * 500 / peak("h100-sxm", "fp16", "fp32"), "51");
  const std::string big = "gemm M=4096 N=4096 K=4096 dtype:";
  check(69, "FLOPs do not change with the precision", gigaflops(big + "bf16") - gigaflops(big + "fp8"), "0");
  check(69, "the ceiling does", attainable_tflops("h100-sxm", big + "fp8") / attainable_tflops("h100-sxm", big + "bf16"), "2.00");
}

void attention(Checks& check) {
  const OpWork step = work("attention L=4096 d=128 batch=1 heads=1 passes=4 softmax_flops=5");
  const char* names[] = {"scores", "softmax", "pv"};
  const char* flops[] = {"4.295", "0.084", "4.295"};
  const char* bytes[] = {"35.65", "67.11", "35.65"};
  const char* intensity[] = {"120.5", "1.25", "120.5"};
  for (int artifact : {60, 61})
    for (size_t i = 0; i < 3; ++i) {
      const KernelWork& k = step.kernels.at(i);
      check.holds(artifact, names[i], k.name == names[i]);
      check(artifact, std::string(names[i]) + " GFLOP", step.flops(k) / 1e9, flops[i]);
      check(artifact, std::string(names[i]) + " MB", k.dram_bytes() / 1e6, bytes[i]);
      check(artifact, std::string(names[i]) + " AI", step.flops(k) / k.dram_bytes(), intensity[i]);
    }
  check(60, "GFLOP in all", step.flops() / 1e9, "8.674");
  check(60, "MB in all", step.dram_bytes() / 1e6, "138.4");
  check(60, "AI", step.arithmetic_intensity(), "62.67");
  const char* by_length[] = {"43.1", "51.7", "57.4", "60.8", "62.7", "63.6", "64.1", "64.4", "64.5"};
  for (size_t i = 0; i < 9; ++i) {
    const std::string length = std::to_string(256 << i);
    check(62, "N = " + length, ai("attention d=128 batch=1 heads=1 passes=4 softmax_flops=5 L=" + length), by_length[i]);
  }
  check(62, "limit", ai("attention d=128 batch=1 heads=1 passes=4 softmax_flops=5 L=4194304"), "64.62");
  check(62, "limit without the softmax's FLOPs", ai("attention d=128 batch=1 heads=1 passes=4 L=4194304"), "64.0");
}

}  // namespace

void intensity_notebook(Checks& check) {
  products(check);
  attention(check);
}

}  // namespace roofgen::errata
