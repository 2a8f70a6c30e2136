// The arithmetic-intensity notebook: artifacts 55 to 69.
#include <algorithm>

#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {
namespace {

void notebook_products(Checks& check) {
  check(55, "H100 FP16", ridge_of("h100-sxm", "fp16"), "295.2");
  check(55, "H100 FP8", ridge_of("h100-sxm", "fp8"), "590.4");
  check(55, "B200 FP16", ridge_of("b200", "fp16"), "293.3");
  check(55, "B200 FP8", ridge_of("b200", "fp8"), "586.5");
  const struct {
    const char *shape, *ai;
    bool memory;
  } table[] = {
      {"M=1 N=1 K=1024", "0.50", true},         {"M=1 N=4096 K=4096", "1.00", true},
      {"M=32 N=4096 K=4096", "31.5", true},     {"M=256 N=4096 K=4096", "227.6", true},
      {"M=1024 N=4096 K=4096", "682.7", false}, {"M=4096 N=4096 K=4096", "1365", false},
  };
  for (const auto& row : table) {
    const std::string line = std::string("gemm ") + row.shape;
    check(56, row.shape, ai(line), row.ai);
    check.holds(56, std::string(row.shape) + (row.memory ? " left" : " right"),
                on("h100-sxm", line).below_ridge() == row.memory);
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
  check(69, "the ceiling does",
        attainable_tflops("h100-sxm", big + "fp8") / attainable_tflops("h100-sxm", big + "bf16"), "2.00");
}

void notebook_attention(Checks& check) {
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
    check(62, "N = " + length, ai("attention d=128 batch=1 heads=1 passes=4 softmax_flops=5 L=" + length),
          by_length[i]);
  }
  check(62, "limit", ai("attention d=128 batch=1 heads=1 passes=4 softmax_flops=5 L=4194304"), "64.62");
  check(62, "limit without the softmax's FLOPs", ai("attention d=128 batch=1 heads=1 passes=4 L=4194304"), "64.0");
}

ModelRun decode(int64_t batch, int64_t kv) { return decode_step("generic-7b", "h100-sxm", batch, kv); }

/// The document computes throughput and latency with 3350 GB/s; the catalogue's H100 has 3352.
void decode_steps(Checks& check) {
  const char* intensity[] = {"1.00", "1.86", "3.25", "5.19", "7.41", "9.43", "10.92", "11.85", "12.38"};
  const char* tokens_per_s[] = {"192", "357", "624", "998", "1424", "1812", "2097", "2276", "2378"};
  const char* request_ms[] = {"5.207", "2.804", "1.603", "1.002", "0.702", "0.552", "0.477", "0.439", "0.421"};
  for (size_t i = 0; i < 9; ++i) {
    const int64_t batch = int64_t{1} << i;
    const ModelRun run = decode(batch, 2048);
    const std::string at = "batch " + std::to_string(batch);
    check(63, at, run.arithmetic_intensity(), intensity[i]);
    check(65, at + " tokens/s", run.units_per_s(), tokens_per_s[i]);
    check(68, at + " ms per token and sequence", 1e3 * run.seconds / static_cast<double>(batch), request_ms[i]);
  }
  const ModelRun run = decode(1, 2048);
  for (int artifact : {63, 64}) check(artifact, "AI as the batch grows", run.ai_limit.value_or(0), "12.96");
  check(64, "batch 32", decode(32, 2048).arithmetic_intensity(), "9.4");
  check(64, "batch 128", decode(128, 2048).arithmetic_intensity(), "11.8");
  check(65, "tokens/s as the batch grows", run.units_per_s_limit.value_or(0), "2385");
  check(65, "reading the cache alone", run.kv_units_per_s.value_or(0), "2497");
  check(65, "largest batch that fits", static_cast<double>(run.largest_batch), "62");
  check(65, "first doubling", decode(2, 2048).units_per_s() / run.units_per_s(), "1.86");
  check(65, "last doubling", decode(256, 2048).units_per_s() / decode(128, 2048).units_per_s(), "1.04");
  check(65, "% by the document's bandwidth, which is all of the difference",
        100 * (decode(256, 2048).units_per_s() / 2376.2 - 1), "0.1");
  double most = 0;
  for (int64_t batch = 1; batch <= 128; batch *= 2)
    for (int64_t kv = 256; kv <= 8192; kv *= 2) {
      const ModelRun cell = decode(batch, kv);
      most = std::max(most, cell.arithmetic_intensity());
      check.holds(67, "batch " + std::to_string(batch) + ", " + std::to_string(kv) + " keys: memory-bound",
                  cell.below_ridge());
    }
  check(67, "largest AI", most, "54.6");
  const char* by_keys[] = {"4.86", "4.91", "5.01", "5.21", "5.61", "6.41", "8.01"};
  for (int i = 0; i < 7; ++i)
    check(68, "ms at " + std::to_string(256 << i) + " keys", 1e3 * decode(1, 256 << i).seconds, by_keys[i]);
}

/// lint's findings for the notebook's claims.
void notebook_claims(Checks& check) {
  const auto batch_32_at = [](double ai) {
    return [ai](Claim& c) {
      c.ai = ai;
      c.dtype = "fp16";
      c.phase = "decode";
      c.batch = 32;
      c.kv_len = 2048;
      c.hidden = 4096;
      c.layers = 32;
    };
  };
  check.holds(64, "batch 32 at AI 25 shares the cache", breaks("R14", "h100-sxm", batch_32_at(25)));
  check.holds(64, "at the right AI it does not",
              !breaks("R14", "h100-sxm", batch_32_at(decode(32, 2048).arithmetic_intensity())));
  for (int artifact : {59, 66})
    check.holds(artifact, "a dot without an origin", breaks("R16", "h100-sxm", [&](Claim& c) {
                  c.ai = 500;
                  c.achieved_tflops = 500;
                }));
  check.holds(65, "batch 64 does not fit",
              breaks("R18", "h100-sxm", [&](Claim& c) { c.memory_bytes = decode(64, 2048).memory.total(); }));
}

}  // namespace

void intensity_notebook(Checks& check) {
  notebook_products(check);
  notebook_attention(check);
  decode_steps(check);
  notebook_claims(check);
}

}  // namespace roofgen::errata
