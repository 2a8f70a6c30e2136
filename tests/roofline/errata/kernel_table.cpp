// The GB200 kernel table: artifacts 43 to 54. Its projections have the shapes of DeepSeek-R1.
#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {
namespace {

struct Projection {
  const char* name;
  const char* shape;
  const char *limit, *at_128, *tflops_at_128;                           ///< BF16 x FP4 against the FP4 ridge
  const char *nvfp4_at_128, *crossing, *crossing_8tb, *crossing_gb200;  ///< both operands NVFP4, BF16 out
};

constexpr Projection kProjections[] = {
    {"qkv_a", " N=2112 K=7168 ", "1631.3", "389.7", "3118", "404.9", "486", "457", "534"},
    {"q_b", " N=24576 K=1536 ", "1445.6", "378.1", "3025", "349.7", "1481", "1243", "2046"},
    {"kv_b", " N=32768 K=512 ", "504.1", "254.0", "2032", "240.4", "-1", "-1", "-1"},
    {"o_proj", " N=7168 K=16384 ", "4986.4", "464.3", "3715", "435.2", "374", "357", "402"},
};

const std::string kFp4Weights = "b:fp4 math:fp4", kNvfp4 = "dtype:nvfp4 out:bf16";

void projections(Checks& check) {
  for (const Projection& p : kProjections) {
    const std::string at_128 = std::string("gemm M=128") + p.shape;
    check(44, std::string(p.name) + " limit", *work(at_128 + kFp4Weights).ai_limit, p.limit);
    check(44, std::string(p.name) + " at M = 128", ai(at_128 + kFp4Weights), p.at_128);
    check(44, std::string(p.name) + " TFLOP/s at 8 TB/s", 8 * ai(at_128 + kFp4Weights), p.tflops_at_128);
    check.holds(44, std::string(p.name) + " is left of the FP4 ridge", on("b200", at_128 + kFp4Weights).below_ridge());
    check(46, std::string(p.name) + " with NVFP4 operands", ai(at_128 + kNvfp4), p.nvfp4_at_128);
    check(46, std::string(p.name) + " crossing, B200", crossing("b200", at_128 + kNvfp4), p.crossing);
    check(46, std::string(p.name) + " crossing, B200 at 8 TB/s", crossing("b200", at_128 + kNvfp4, 8000),
          p.crossing_8tb);
    check(46, std::string(p.name) + " crossing, GB200", crossing("gb200", at_128 + kNvfp4), p.crossing_gb200);
  }
  const std::string q_b = "gemm M=128 N=24576 K=1536 ";
  check(45, "MB", megabytes(q_b + "b:fp4"), "25.56");
  check(45, "AI", ai(q_b + "b:fp4"), "378.09");
  const OpWork kv_b = work("gemm M=128 N=32768 K=512 " + kFp4Weights);
  check.holds(44, "AI 15000 is above the limit", breaks("R08", "b200", [&](Claim& c) {
                c.work = &kv_b;
                c.ai = 15000;
              }));
  check.holds(45, "BF16 x FP4 runs at the BF16 rate", on("b200", q_b + "b:fp4").compute.math == "bf16");
  check.holds(45, "and is compute-bound there", on("b200", q_b + "b:fp4").regime == Regime::kCompute);
  check.holds(46, "NVFP4 operands: memory-bound", on("b200", q_b + kNvfp4).regime == Regime::kMemory);
  const std::string one = "gemm M=1 N=24576 K=1536 " + kFp4Weights;
  check(51, "AI", ai(one), "3.99");
  check(51, "TFLOP/s at 8 TB/s", attainable_tflops("gb200", one), "31.9");
  check(51, "% of 9000", 100 * 8 * ai(one) / 9000, "0.35");
  check(52, "M = 16", ai("gemm M=16 N=24576 K=1536 b:fp4"), "61.3");
  check(52, "M = 128", ai(q_b + "b:fp4"), "378.1");
}

void small_products(Checks& check) {
  const auto bmm = [](int b, const char* rest) {
    return "gemm batch=128 dtype:fp8 out:fp8 M=" + std::to_string(b) + rest;
  };
  for (const char* shape : {" N=512 K=128", " N=128 K=512"}) {
    check(47, std::string("B = 1") + shape, ai(bmm(1, shape)), "1.98");
    check(47, std::string("B = 64") + shape, ai(bmm(64, shape)), "78.8");
    check(47, std::string("limit") + shape, *work(bmm(64, shape)).ai_limit, "204.8");
    check(47, std::string("never at the ridge") + shape, crossing("b200", bmm(1, shape)), "-1");
  }
  check(48, "B = 16", ai("gemm M=16 N=2112 K=7168"), "15.8");
  check(48, "TFLOP/s at 8 TB/s", attainable_tflops("gb200", "gemm M=16 N=2112 K=7168"), "127");
}

void per_element(Checks& check) {
  check(49, "RMSNorm of 5 FLOPs, TFLOP/s",
        attainable_tflops("gb200", "rmsnorm rows=65536 cols=7168 flops_per_element=5"), "10.0");
  check(49, "SiLU and multiply, TFLOP/s", attainable_tflops("gb200", "silu_and_mul rows=65536 cols=2048"), "5.33");
  check(49, "AI 2, TFLOP/s", 2 * cell("gb200", "dram_gb_s") / 1e3, "16.0");
  check(49, "top-k softmax by formula", ai("topk_softmax rows=1000000"), "1.88");
  const std::string norm = "rmsnorm rows=65536 cols=7168 ";
  check.holds(49, "10 GFLOPS at AI 1.25 is a unit slip", breaks("R07", "gb200", [&](Claim& c) {
                c.matrix_work = false;
                c.ai = 1.25;
                c.attainable_tflops = 0.010;
              }));
  check(50, "RMSNorm", ai(norm), "1.000");
  check(50, "with the residual, one kernel", ai(norm + "residual"), "0.625");
  check(50, "with the residual, two kernels", ai(norm + "residual unfused"), "0.500");
  check(50, "times the traffic", megabytes(norm + "residual unfused") / megabytes(norm + "residual"), "1.25");
  check.holds(50, "less AI than RMSNorm alone, less time than two kernels",
              on("gb200", norm + "residual").seconds < on("gb200", norm + "residual unfused").seconds);
}

}  // namespace

void kernel_table(Checks& check) {
  check(43, "B200 FP4", peak("b200", "fp4", "fp32"), "9000");
  check(43, "B200 FP8", peak("b200", "fp8", "fp32"), "4500");
  check(43, "B200 FP16", peak("b200", "fp16", "fp32"), "2250");
  check(43, "GB200 FP4 ridge", ridge_of("gb200", "fp4"), "1250.0");
  check(43, "GB200 FP8 ridge", ridge_of("gb200", "fp8"), "625.0");
  check(43, "GB200 FP16 ridge", ridge_of("gb200", "fp16"), "312.5");
  projections(check);
  small_products(check);
  per_element(check);
  check(53, "latent attention, one sequence", ai("mla batch=1 kv_len=4096"), "228.3");
  check(53, "latent attention, 128 sequences", ai("mla batch=128 kv_len=4096"), "228.3");
  check(53, "its limit for long caches", ai("mla batch=1 kv_len=10000000"), "241.8");
  check(53, "FP8 cache", ai("mla batch=128 kv_len=4096 kv:fp8"), "432.5");
  check.holds(53, "right of it with an FP8 cache", !on("b200", "mla batch=128 kv_len=4096 kv:fp8").below_ridge());
  check.holds(53, "left of the BF16 ridge", on("b200", "mla batch=1 kv_len=10000000").below_ridge());
}

}  // namespace roofgen::errata
