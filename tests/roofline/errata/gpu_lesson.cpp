// The GPU roofline lesson: artifacts 27 to 42.
#include <cmath>

#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {
namespace {

void ceilings(Checks& check) {
  check(27, "A100 TF32 / FP32", peak("a100-sxm-80", "tf32", "fp32") / peak("a100-sxm-80", "fp32", ""), "8.0");
  check(27, "H100 TF32 / FP32", peak("h100-sxm", "tf32", "fp32") / peak("h100-sxm", "fp32", ""), "7.4");
  check(27, "H100 FP16 / FP32", peak("h100-sxm", "fp16", "fp32") / peak("h100-sxm", "fp32", ""), "14.8");
  check(27, "H100 FP8 / FP32", peak("h100-sxm", "fp8", "fp32") / peak("h100-sxm", "fp32", ""), "29.6");
  check(28, "A100 FP16, CUDA cores", peak("a100-sxm-80", "fp16", ""), "78");
  check(28, "A100 BF16, CUDA cores", peak("a100-sxm-80", "bf16", ""), "39");
  check(28, "A100 INT8, CUDA cores", peak("a100-sxm-80", "int8", ""), "78");
  check(28, "A100 INT4", peak("a100-sxm-80", "int4", "int32"), "1248");
  check(28, "H100 has no INT4", peak("h100-sxm", "int4", "int32"), "0");
  check(29, "A100 has no FP8", peak("a100-sxm-80", "fp8", "fp32"), "0");
  check(29, "A100 INT8", peak("a100-sxm-80", "int8", "int32"), "624");
  check.holds(29, "FP8 operands are widened",
              on("a100-sxm-80", "gemm M=4096 N=4096 K=4096 dtype:fp8").compute.math == "fp16");
  check(30, "INT8", peak("a100-sxm-80", "int8", "int32") / 2.039, "306.0");
  check(30, "BF16", ridge_of("a100-sxm-80", "bf16"), "153.0");
  check(30, "FP32", vector_ridge("a100-sxm-80"), "9.56");
  check(30, "FP64", peak("a100-sxm-80", "fp64", "") / 2.039, "4.76");
  const std::string at_20 = "gemm M=20 N=4096 K=4096 ";
  check(31, "AI", ai(at_20), "19.8");
  check.holds(31, "left of the tensor cores' ridge", on("a100-sxm-80", at_20).below_ridge());
  check.holds(31, "right of the FP32 ridge", !on("a100-sxm-80", at_20 + "math:fp32").below_ridge());
  const std::string big = "gemm M=4096 N=4096 K=4096 dtype:";
  check(32, "FP32", attainable_tflops("a100-sxm-80", big + "fp32"), "19.5");
  check(32, "TF32", attainable_tflops("a100-sxm-80", big + "tf32"), "156");
  check(32, "FP16", attainable_tflops("a100-sxm-80", big + "fp16"), "312");
  check(40, "compute, H100 / A100", peak("h100-sxm", "bf16", "fp32") / peak("a100-sxm-80", "bf16", "fp32"), "3.17");
  check(40, "bandwidth, 80 GB", cell("h100-sxm", "dram_gb_s") / cell("a100-sxm-80", "dram_gb_s"), "1.64");
  check(40, "bandwidth, 40 GB", cell("h100-sxm", "dram_gb_s") / cell("a100-sxm-40", "dram_gb_s"), "2.16");
  check(40, "FP8 against FP16", peak("h100-sxm", "fp8", "fp32") / peak("a100-sxm-80", "fp16", "fp32"), "6.34");
}

void lesson_attention(Checks& check) {
  const std::string prefill = "attention L=2048 d=128 batch=1 heads=32 ";
  check(33, "GFLOP", gigaflops(prefill + "passes=4"), "68.7");
  check(33, "naive", ai(prefill + "passes=4"), "60.2");
  check(33, "flash", ai(prefill), "1024.0");
  check.holds(33, "naive is memory-bound", on("a100-sxm-80", prefill + "passes=4").regime == Regime::kMemory);
  check.holds(33, "flash is compute-bound", on("a100-sxm-80", prefill).regime == Regime::kCompute);
  const std::string decode = "attention L=1 kv_len=4096 d=128 batch=1 heads=32 ";
  check(35, "AI", ai(decode), "1.000");
  check(35, "TFLOP/s on an A100", attainable_tflops("a100-sxm-80", decode), "2.04");
  check(35, "% of its peak", 100 * attainable_tflops("a100-sxm-80", decode) / 312, "0.65");
  check(35, "GQA, 4 query heads a key head", ai(decode + "kv_heads=8"), "4.00");
  check(41, "ridge of the H100", ridge_of("h100-sxm", "fp16"), "295.2");
  check(41, "TFLOP/s on an H100", attainable_tflops("h100-sxm", decode), "3.35");
  check(41, "% of its peak", 100 * attainable_tflops("h100-sxm", decode) / 989.4, "0.34");
  check(41, "TFLOP/s at AI 4", attainable_tflops("h100-sxm", decode + "kv_heads=8"), "13.4");
  check(41, "INT8 cache", ai(decode + "kv:int8"), "2.00");
  check(41, "TFLOP/s with an INT8 cache", attainable_tflops("h100-sxm", decode + "kv:int8"), "6.70");
}

void feed_forward(Checks& check) {
  const double d2 = 4096.0 * 4096.0;
  const std::string up = " N=16384 K=4096", down = " N=4096 K=16384";
  const auto ffn = [&](double (*f)(const std::string&), int m) {
    return f("gemm M=" + std::to_string(m) + up) + f("gemm M=" + std::to_string(m) + down);
  };
  check(36, "FLOPs of two products over D^2", 1e9 * ffn(gigaflops, 1) / d2, "16");
  check(36, "GiB of weights, 32 layers", 32 * 1e6 * ffn(megabytes, 1) / std::exp2(30), "8.0");
  check(36, "GB of weights of the layers", decode_step("generic-7b", "a100-sxm-80", 1, 2048).memory.weights / 1e9,
        "12.9");
  double llama = 0;
  for (const OperatorRun& o : decode_step("llama-2-7b", "a100-sxm-80", 1, 2048).operators)
    if (o.name == "gate, up" || o.name == "down") llama += o.dram_bytes;
  check(36, "GiB of Llama 2 7B's FFN, with its activations", llama / std::exp2(30), "8.06");
  check(37, "AI at 156", ai("gemm M=156" + up), "148.9");
  check(37, "AI at 16", ai("gemm M=16" + up), "15.92");
  check(37, "AI of both products at 156", 1e3 * ffn(gigaflops, 156) / ffn(megabytes, 156), "148.9");
  check(37, "crossing", crossing("a100-sxm-80", "gemm M=1" + up), "161");
  check(37, "crossing at 2.0 TB/s", crossing("a100-sxm-80", "gemm M=1" + up, 2000), "164");
  // 156 sequences of 4096 keys and values in 32 layers: reads of a decode step's cache.
  check(37, "GiB of cache",
        32 * 1e6 *
            (megabytes("attention L=1 kv_len=4096 d=128 batch=156 heads=32") - megabytes("copy elements=638976")) /
            std::exp2(30),
        "312.0");
  check(38, "prefill", ai("gemm M=2048" + up), "1260.3");
  check(38, "bytes: 2 (5 P D + 4 D^2)", 1e6 * megabytes("gemm M=2048" + up) - 2 * (5.0 * 2048 * 4096 + 4 * d2), "0");
  check(39, "decode attention", ai("attention L=1 kv_len=4096 d=128 batch=1 heads=32"), "1.00");
  check(39, "FFN, batch 1", ai("gemm M=1" + up), "1.00");
  check(39, "FFN, batch 16", ai("gemm M=16" + up), "15.9");
  check(39, "FFN, prefill", ai("gemm M=2048" + up), "1260");
}

}  // namespace

void gpu_lesson(Checks& check) {
  ceilings(check);
  lesson_attention(check);
  feed_forward(check);
}

}  // namespace roofgen::errata
