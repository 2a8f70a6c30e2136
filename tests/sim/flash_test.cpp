// A whole FlashAttention-2 style kernel (fixtures/flash.cu) end to end against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support.h"

namespace roofgen::sim_test::flash_test {
namespace {

constexpr int kD = 64;

struct Problem {
  int batch, heads, rows, keys;
};

struct Outcome {
  RunResult run;
  double worst = 0;  ///< largest |y - reference|
};

Outcome run_flash(const Problem& p) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  auto make = [&](int n) {
    std::vector<uint16_t> v(static_cast<size_t>(p.batch * n * p.heads * kD));
    for (auto& x : v) x = to_bf16(normal(rng));
    return v;
  };
  auto q = make(p.rows), k = make(p.keys), v = make(p.keys);
  Bench bench;
  EXPECT_EQ(bench.load(fixture("flash.ptx"), "flash"), "");
  DevicePtr out = bench.poisoned(q.size() * 2, "o");
  float scale = 0.125f * 1.44269504f;
  bench.arg(bench.buffer(q, "q")).arg(bench.buffer(k, "k")).arg(bench.buffer(v, "v")).arg(out);
  bench.arg32(static_cast<uint32_t>(p.heads)).arg32(static_cast<uint32_t>(p.rows)).arg32(static_cast<uint32_t>(p.keys));
  uint32_t scale_bits;
  std::memcpy(&scale_bits, &scale, 4);
  bench.arg32(scale_bits);
  Outcome o;
  o.run = bench.run({static_cast<uint32_t>((p.rows + 63) / 64), static_cast<uint32_t>(p.batch * p.heads), 1},
                    {128, 1, 1}, 16384);
  auto y = bench.read<uint16_t>(out, q.size());
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int r = 0; r < p.rows; r += std::max(1, p.rows / 16)) {
        auto at = [&](int n, int row, int c) { return static_cast<size_t>(((b * n + row) * p.heads + h) * kD + c); };
        std::vector<double> s(static_cast<size_t>(p.keys));
        double top = -INFINITY, sum = 0;
        for (int j = 0; j < p.keys; ++j) {
          double dot = 0;
          for (int c = 0; c < kD; ++c)
            dot += double(from_bf16(q[at(p.rows, r, c)])) * double(from_bf16(k[at(p.keys, j, c)]));
          s[static_cast<size_t>(j)] = dot * 0.125;
          top = std::max(top, dot * 0.125);
        }
        for (auto& x : s) sum += x = std::exp(x - top);
        for (int c = 0; c < kD; ++c) {
          double ref = 0;
          for (int j = 0; j < p.keys; ++j)
            ref += s[static_cast<size_t>(j)] / sum * double(from_bf16(v[at(p.keys, j, c)]));
          o.worst = std::max(o.worst, std::abs(ref - double(from_bf16(y[at(p.rows, r, c)]))));
        }
      }
  return o;
}

TEST(Flash, WholeTilesAreCleanAndRight) {
  Outcome o = run_flash({1, 1, 256, 256});
  for (const Finding& f : o.run.findings) ADD_FAILURE() << f.kind << ": " << f.message << " at PTX line " << f.ptx.line;
  EXPECT_LT(o.worst, 4e-3);
  // 4 row blocks x 16 key blocks x 4 warps x (8 + 8) mma per block.
  EXPECT_EQ(o.run.counts->mma, 4u * 16 * 4 * 16);
  EXPECT_EQ(o.run.counts->mma_flops, o.run.counts->mma * 4096);
  EXPECT_EQ(o.run.counts->smem_wavefronts, o.run.counts->smem_ideal_wavefronts);
}

TEST(Flash, TailsHeadsAndBatchesAreCleanAndRight) {
  Outcome o = run_flash({2, 3, 77, 139});
  for (const Finding& f : o.run.findings) ADD_FAILURE() << f.kind << ": " << f.message << " at PTX line " << f.ptx.line;
  EXPECT_LT(o.worst, 4e-3);
}

}  // namespace
}  // namespace roofgen::sim_test::flash_test
