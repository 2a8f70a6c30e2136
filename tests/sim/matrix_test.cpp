// Fragment maps: random tiles through ldmatrix and mma against a plain product.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support.h"

namespace roofgen::sim_test {
namespace {

float from_half(uint16_t h) {
  int e = h >> 10 & 31;
  float m = static_cast<float>(h & 1023), v = e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
  return h & 0x8000 ? -v : v;
}

/// One warp: A (16 x 16, row-major) and B (K x N = 16 x 8, stored as N rows of K or K rows of N)
/// through shared memory; D = A x B + C in the accumulator layout of the PTX ISA.
void product(const char* type, bool trans_b) {
  std::string body =
      "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; ld.param.u64 %rd3,[p2]; mov.u32 %r1,%tid.x; mov.u32 "
      "%r2,smem;\n"
      "shl.b32 %r3,%r1,4; cvt.u64.u32 %rd4,%r3; add.s64 %rd5,%rd1,%rd4; ld.global.v4.u32 "
      "{%r4,%r5,%r6,%r7},[%rd5];\n"
      "add.s32 %r8,%r2,%r3; st.shared.v4.u32 [%r8],{%r4,%r5,%r6,%r7};\n"  // A: 512 bytes
      "setp.lt.u32 %p1,%r1,16; add.s64 %rd6,%rd2,%rd4; mov.u32 %r4,0; mov.u32 %r5,0; mov.u32 %r6,0; mov.u32 "
      "%r7,0;\n"
      "@%p1 ld.global.v4.u32 {%r4,%r5,%r6,%r7},[%rd6]; @%p1 st.shared.v4.u32 [%r8+512],{%r4,%r5,%r6,%r7}; "
      "bar.sync 0;\n"
      // A: lanes 0-15 rows at column 0, lanes 16-31 rows at column 8.
      "and.b32 %r10,%r1,15; shl.b32 %r10,%r10,5; and.b32 %r11,%r1,16; add.s32 %r12,%r2,%r10; add.s32 "
      "%r12,%r12,%r11;\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23},[%r12];\n";
  if (trans_b)  // K rows of 8 values, 16 bytes each
    body +=
        "and.b32 %r13,%r1,15; shl.b32 %r13,%r13,4; add.s32 %r13,%r13,%r2;\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r24,%r25},[%r13+512];\n";
  else  // N rows of 16 values, 32 bytes each; lanes 8-15 at k = 8
    body +=
        "and.b32 %r13,%r1,7; shl.b32 %r13,%r13,5; and.b32 %r14,%r1,8; shl.b32 %r14,%r14,1; add.s32 "
        "%r13,%r13,%r14; add.s32 %r13,%r13,%r2;\n"
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r24,%r25},[%r13+512];\n";
  body +=
      "cvt.rn.f32.u32 %f1,%r1; mov.f32 %f2,0f3F000000; mov.f32 %f3,0f40000000; neg.f32 %f4,%f1;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32." +
      std::string(type) + "." + type +
      ".f32 {%f5,%f6,%f7,%f8},{%r20,%r21,%r22,%r23},{%r24,%r25},{%f1,%f2,%f3,%f4};\n"
      "add.s64 %rd7,%rd3,%rd4; st.global.v4.f32 [%rd7],{%f5,%f6,%f7,%f8};";
  std::mt19937 rng(17);
  bool bf16 = std::string(type) == "bf16";
  auto draw = [&] {
    return static_cast<uint16_t>(bf16 ? to_bf16(static_cast<float>(rng() % 2001) / 500 - 2)
                                      : 0x2c00 + (rng() & 0x93ff));
  };
  auto number = [&](uint16_t x) { return bf16 ? from_bf16(x) : from_half(x); };
  std::vector<uint16_t> a(256), b(128);
  for (auto& x : a) x = draw();
  for (auto& x : b) x = draw();
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(3, body, ".extern .shared .align 16 .b8 smem[];\n")), "");
  DevicePtr out = bench.poisoned(512);
  RunResult r = bench.arg(bench.buffer(a)).arg(bench.buffer(b)).arg(out).run({1, 1, 1}, {32, 1, 1}, 1024);
  for (const Finding& f : r.findings) ADD_FAILURE() << f.message;
  auto d = bench.read<float>(out, 128);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = lane / 4 + 8 * (i / 2), col = lane % 4 * 2 + i % 2;
      float c[] = {static_cast<float>(lane), 0.5f, 2.0f, -static_cast<float>(lane)};
      float sum = c[i];
      for (uint32_t k = 0; k < 16; ++k)
        sum = std::fma(number(a[row * 16 + k]), number(trans_b ? b[k * 8 + col] : b[col * 16 + k]), sum);
      EXPECT_EQ(d[lane * 4 + i], sum) << type << " row " << row << " col " << col;
    }
}

TEST(Matrix, Bf16) { product("bf16", false); }
TEST(Matrix, Bf16TransposedB) { product("bf16", true); }
TEST(Matrix, Fp16) { product("f16", false); }
TEST(Matrix, Fp16TransposedB) { product("f16", true); }

TEST(Matrix, StoreIsTheMirrorOfLoad) {
  for (const char* trans : {"", ".trans"}) {
    std::string t = trans;
    std::string body =
        "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2,smem; mul.lo.s32 %r20,%r1,65537; add.s32 "
        "%r21,%r20,1000; add.s32 %r22,%r20,2000; add.s32 %r23,%r20,3000;\n"
        "shl.b32 %r3,%r1,4; add.s32 %r4,%r2,%r3; stmatrix.sync.aligned.m8n8.x4" +
        t +
        ".shared.b16 [%r4],{%r20,%r21,%r22,%r23};\n"
        "ldmatrix.sync.aligned.m8n8.x4" +
        t +
        ".shared.b16 {%r24,%r25,%r26,%r27},[%r4];\n"
        "cvt.u64.u32 %rd4,%r3; add.s64 %rd5,%rd1,%rd4; st.global.v4.u32 [%rd5],{%r24,%r25,%r26,%r27};";
    Bench bench;
    ASSERT_EQ(bench.load(kernel_text(1, body, ".extern .shared .align 16 .b8 smem[];\n")), "");
    DevicePtr out = bench.poisoned(512);
    RunResult r = bench.arg(out).run({1, 1, 1}, {32, 1, 1}, 512);
    for (const Finding& f : r.findings) ADD_FAILURE() << f.message;
    auto v = bench.read<uint32_t>(out, 128);
    for (uint32_t i = 0; i < 32; ++i)
      for (uint32_t k = 0; k < 4; ++k) EXPECT_EQ(v[4 * i + k], i * 65537 + 1000 * k);
  }
}

}  // namespace
}  // namespace roofgen::sim_test
