// mma.sync of the kinds of sm_120: every pair of formats, and scales of blocks by each byte and thread.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tcgen05_support.h"

namespace roofgen::sim_test::small_mma_test {
namespace {

struct Case {
  std::string opcode;
  ElementType a, b;
  uint32_t k = 32, scales = 0;
  bool powers = true;
  uint32_t byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};

/// One warp multiplies pseudo-random small numbers; each lane's sums against those of the fragments' definition.
void expect_right(const Case& c) {
  uint64_t state = 77;
  const auto next = [&](int low, int high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int>((state >> 33) % static_cast<uint64_t>(high - low + 1));
  };
  const uint32_t bits = c.k == 64 ? 4 : 8, per_word = 32 / bits;
  float a[16][64], b[8][64], of_a[16][4], of_b[8][4], before[16][8];
  for (auto& row : a)
    for (float& x : row) x = static_cast<float>(next(-3, 3));
  for (auto& row : b)
    for (float& x : row) x = static_cast<float>(next(-3, 3));
  for (auto& row : before)
    for (float& x : row) x = static_cast<float>(next(-9, 9));
  const auto scale = [&](float& value) {
    const int which = next(0, 2);
    value = c.powers ? std::ldexp(1.0f, which - 1) : 1.0f + 0.5f * static_cast<float>(which);
    return c.powers ? static_cast<uint32_t>(126 + which) : small_float(value, 4, 3);
  };
  std::vector<uint32_t> in(32 * 12);  // by lane: A, B, C, scales
  const auto word = [&](uint32_t lane, uint32_t i) -> uint32_t& { return in[lane * 12 + i]; };
  const auto pack = [&](const ElementType& t, float x) {
    const uint32_t code = encode(t, x);
    return bits == 8 && t.bits == 4 ? code << 2 : code;  // in the middle of the byte
  };
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t k = 0; k < c.k; ++k) {
      const uint32_t half = c.k / 2, lane = row % 8 * 4 + k % half / per_word;
      word(lane, row / 8 + 2 * (k / half)) |= pack(c.a, a[row][k]) << k % per_word * bits;
    }
  for (uint32_t column = 0; column < 8; ++column)
    for (uint32_t k = 0; k < c.k; ++k) {
      const uint32_t half = c.k / 2, lane = column * 4 + k % half / per_word;
      word(lane, 4 + k / half) |= pack(c.b, b[column][k]) << k % per_word * bits;
    }
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t column = 0; column < 8; ++column)
      word(row % 8 * 4 + column / 2, 6 + 2 * (row / 8) + column % 2) = std::bit_cast<uint32_t>(before[row][column]);
  for (uint32_t s = 0; s < c.scales; ++s) {
    for (uint32_t row = 0; row < 16; ++row)
      word(row % 8 * 4 + 2 * c.thread_a + row / 8, 10) |= scale(of_a[row][s]) << 8 * (c.byte_a + s);
    for (uint32_t column = 0; column < 8; ++column)
      word(column * 4 + c.thread_b, 11) |= scale(of_b[column][s]) << 8 * (c.byte_b + s);
  }
  std::string body =
      "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, 48;\nadd.u64 %rd1, %rd1, %rd3;\nmul.wide.u32 %rd3, %r1, 16;\n"
      "add.u64 %rd2, %rd2, %rd3;\n";
  for (uint32_t i = 0; i < 12; ++i) body += fmt::format("ld.global.u32 %r{}, [%rd1+{}];\n", 10 + i, 4 * i);
  body += fmt::format("mov.u16 %rs1, {};\n", c.byte_a) + c.opcode +
          " {%r30, %r31, %r32, %r33}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r16, %r17, %r18, %r19}";
  if (c.scales) body += fmt::format(", {{%r20}}, {{%rs1, {}}}, {{%r21}}, {{{}, {}}}", c.thread_a, c.byte_b, c.thread_b);
  body += ";\n";
  for (uint32_t i = 0; i < 4; ++i) body += fmt::format("st.global.u32 [%rd2+{}], %r{};\n", 4 * i, 30 + i);
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(2, body)), "") << c.opcode;
  const DevicePtr from = bench.buffer(in), to = bench.poisoned(32 * 16);
  bench.arg(from).arg(to);
  const RunResult run = bench.run({1, 1, 1}, {32, 1, 1});
  ASSERT_TRUE(run.findings.empty()) << c.opcode << ": " << run.findings[0].message;
  EXPECT_EQ(run.counts->mma_flops, 2u * 16 * 8 * c.k) << c.opcode;
  const std::vector<uint32_t> out = bench.read<uint32_t>(to, 32 * 4);
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t column = 0; column < 8; ++column) {
      double sum = before[row][column];
      for (uint32_t k = 0; k < c.k; ++k) {
        const uint32_t s = c.scales ? k * c.scales / c.k : 0;
        sum += double{a[row][k]} * b[column][k] * (c.scales ? double{of_a[row][s]} * of_b[column][s] : 1.0);
      }
      const uint32_t got = out[(row % 8 * 4 + column / 2) * 4 + 2 * (row / 8) + column % 2];
      ASSERT_EQ(std::bit_cast<float>(got), sum) << c.opcode << ", row " << row << ", column " << column;
    }
}

TEST(SmallMma, EachPairOfFormats) {
  for (const ElementType& a : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1})
    for (const ElementType& b : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1}) {
      expect_right({fmt::format("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{}.{}.f32", a.name, b.name), a, b});
      expect_right({fmt::format("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.{}.{}."
                                "f32.ue8m0",
                                a.name, b.name),
                    a, b, 32, 1});
    }
}

TEST(SmallMma, ScalesOfEachByteAndThread) {
  for (uint32_t byte = 0; byte < 4; ++byte)
    for (uint32_t thread = 0; thread < 4; ++thread)
      expect_right({"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0", kE4m3,
                    kE5m2, 32, 1, true, byte, thread % 2, 3 - byte, thread});
  for (const uint32_t byte : {0u, 2u}) {
    expect_right({"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
                  kE2m1x2, kE2m1x2, 64, 2, true, byte, 1, 2 - byte, 3});
    expect_right({"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
                  kE2m1x2, kE2m1x2, 64, 2, true, byte, 0, byte, 1});
  }
  expect_right({"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
                kE2m1x2, kE2m1x2, 64, 4, false, 0, 1, 0, 2});
}

}  // namespace
}  // namespace roofgen::sim_test::small_mma_test
