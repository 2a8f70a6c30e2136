// Fragment maps: random tiles through ldmatrix and mma against a plain product.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "support.h"

namespace roofgen::sim_test::matrix_test {
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

/// The position of element i of a lane's fragments by the PTX ISA, for groupID g and threadID_in_group t.
struct Place {
  int row, col;
};
struct Fragments {
  const char* name;
  int k, bits;
  Place (*a)(int g, int t, int i);
  Place (*b)(int g, int t, int i);
};
const Fragments kFragments[] = {
    {"m16n8k32 8-bit", 32, 8,
     [](int g, int t, int i) {
       return Place{i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
     },
     [](int g, int t, int i) {
       return Place{t * 4 + (i & 3) + (i < 4 ? 0 : 16), g};
     }},
    {"m16n8k16 8-bit", 16, 8,
     [](int g, int t, int i) {
       return Place{i < 4 ? g : g + 8, t * 4 + (i & 3)};
     },
     [](int g, int t, int i) {
       return Place{t * 4 + i, g};
     }},
    {"m16n8k16 16-bit", 16, 16,
     [](int g, int t, int i) {
       return Place{i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
     },
     [](int g, int t, int i) {
       return Place{t * 2 + (i & 1) + (i < 2 ? 0 : 8), g};
     }},
    {"m16n8k8 tf32", 8, 32,
     [](int g, int t, int i) {
       return Place{i % 2 ? g + 8 : g, i < 2 ? t : t + 4};
     },
     [](int g, int t, int i) {
       return Place{i == 0 ? t : t + 4, g};
     }},
    {"m16n8k4 tf32", 4, 32,
     [](int g, int t, int i) {
       return Place{i == 0 ? g : g + 8, t};
     },
     [](int g, int t, int) {
       return Place{t, g};
     }},
};

float from_e4m3(uint32_t x) {
  if ((x & 127) == 127) return NAN;
  float m = static_cast<float>(x & 7), e = static_cast<float>(x >> 3 & 15);
  float v = e > 0 ? std::ldexp(1 + m / 8, static_cast<int>(e) - 7) : std::ldexp(m, -9);
  return x & 128 ? -v : v;
}
float from_tf32(uint32_t x) { return std::bit_cast<float>(x & 0xffffe000u); }

/// One mma of random elements, with each lane's registers filled through the map, against loops over rows, columns and
/// k. `one` adds a product to the sum of an element of D, as bits.
void multiply(const std::string& opcode, const Fragments& map, const std::function<uint32_t()>& draw,
              const std::function<uint32_t(uint32_t sum, uint32_t a, uint32_t b)>& one,
              const std::function<uint32_t()>& draw_c) {
  const int per_word = 32 / map.bits, b_words = map.k / per_word / 4, a_words = 2 * b_words;
  std::vector<uint32_t> a(16 * map.k), b(map.k * 8), c(16 * 8), registers(32 * 12);
  for (auto& x : a) x = draw();
  for (auto& x : b) x = draw();
  for (auto& x : c) x = draw_c();
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    uint32_t* mine = &registers[lane * 12];
    for (int i = 0; i < a_words * per_word; ++i) {
      const Place p = map.a(g, t, i);
      mine[i / per_word] |= a[p.row * map.k + p.col] << (i % per_word * map.bits % 32);
    }
    for (int i = 0; i < b_words * per_word; ++i) {
      const Place p = map.b(g, t, i);
      mine[4 + i / per_word] |= b[p.row * 8 + p.col] << (i % per_word * map.bits % 32);
    }
    for (int i = 0; i < 4; ++i) mine[8 + i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  }
  std::string body =
      "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd3,%r1,48; add.s64 "
      "%rd4,%rd1,%rd3;\n"
      "ld.global.v4.u32 {%r4,%r5,%r6,%r7},[%rd4]; ld.global.v4.u32 {%r8,%r9,%r10,%r11},[%rd4+16];\n"
      "ld.global.v4.u32 {%r12,%r13,%r14,%r15},[%rd4+32];\n";
  const bool integer = opcode.find(".s32.s8") != std::string::npos;
  for (int i = 0; i < 4; ++i)
    body += (integer ? "mov.b32 %r" + std::to_string(20 + i) : "mov.b32 %f" + std::to_string(1 + i)) + ",%r" +
            std::to_string(12 + i) + ";\n";
  const std::string d = integer ? "{%r20,%r21,%r22,%r23}" : "{%f1,%f2,%f3,%f4}";
  body += opcode + " " + d + (a_words == 4 ? ",{%r4,%r5,%r6,%r7}" : ",{%r4,%r5}") +
          (b_words == 2 ? ",{%r8,%r9}," : ",{%r8},") + d +
          ";\nmul.wide.u32 %rd5,%r1,16; add.s64 %rd6,%rd2,%rd5; st.global.v4.b32 [%rd6]," + d + ";";
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(2, body)), "") << opcode;
  DevicePtr out = bench.poisoned(512);
  RunResult r = bench.arg(bench.buffer(registers)).arg(out).run({1, 1, 1}, {32, 1, 1});
  for (const Finding& f : r.findings) ADD_FAILURE() << f.message;
  EXPECT_EQ(r.counts->mma, 1u);
  EXPECT_EQ(r.counts->mma_flops, 2u * 16 * 8 * static_cast<unsigned>(map.k));
  auto got = bench.read<uint32_t>(out, 128);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), col = lane % 4 * 2 + i % 2;
      uint32_t sum = c[row * 8 + col];
      for (int k = 0; k < map.k; ++k) sum = one(sum, a[row * map.k + k], b[k * 8 + col]);
      EXPECT_EQ(got[lane * 4 + i], sum) << opcode << " row " << row << " col " << col;
    }
}

uint32_t add_float(uint32_t sum, float a, float b) {
  const float r = std::fma(a, b, std::bit_cast<float>(sum));
  return std::isnan(r) ? 0x7fffffffu : std::bit_cast<uint32_t>(r);
}

TEST(Matrix, Tf32IsTruncated) {
  std::mt19937 rng(3);
  // All 23 mantissa bits are random; bits below the 10th must be ignored.
  auto draw = [&] { return (rng() & 0x807fffffu) | (120 + rng() % 12) << 23; };
  auto one = [](uint32_t sum, uint32_t a, uint32_t b) { return add_float(sum, from_tf32(a), from_tf32(b)); };
  for (int round = 0; round < 4; ++round) {
    multiply("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", kFragments[3], draw, one, draw);
    multiply("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", kFragments[4], draw, one, draw);
  }
}

TEST(Matrix, Fp8) {
  std::mt19937 rng(4);
  auto c = [&] { return std::bit_cast<uint32_t>(static_cast<float>(rng() % 2001) / 500 - 2); };
  auto e4m3 = [](uint32_t sum, uint32_t a, uint32_t b) { return add_float(sum, from_e4m3(a), from_e4m3(b)); };
  auto e5m2 = [](uint32_t sum, uint32_t a, uint32_t b) {
    return add_float(sum, from_half(static_cast<uint16_t>(a << 8)), from_half(static_cast<uint16_t>(b << 8)));
  };
  // First without NaN, which would hide other values; then with NaN.
  auto finite = [&] { return rng() & 1 ? rng() % 127 : 128 + rng() % 127; };
  auto any = [&] { return rng() % 64 == 0 ? 127u : finite(); };
  auto finite_e5m2 = [&] { return (rng() & 128) | rng() % 124; };
  for (int round = 0; round < 4; ++round) {
    multiply("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", kFragments[0], finite, e4m3, c);
    multiply("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", kFragments[0], any, e4m3, c);
    multiply("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", kFragments[1], finite, e4m3, c);
    multiply("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", kFragments[0], finite_e5m2, e5m2, c);
  }
}

/// 32 products of a 1 with `low` for k < 16, and with `high` for k = 16 and 0 behind it, added to `c` on a target.
float fp8_sum(const std::string& target, uint32_t low, uint32_t high, float c) {
  std::string text = kernel_text(
      1, fmt::format("ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; and.b32 %r2,%r1,3; setp.eq.u32 %p1,%r2,0;\n"
                     "mov.u32 %r4,0x38383838; mov.u32 %r5,{}; mov.u32 %r6,0; @%p1 mov.u32 %r6,{}; mov.b32 %f1,{};\n"
                     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {{%f1,%f2,%f3,%f4}},{{%r4,%r4,%r4,%r4}},"
                     "{{%r5,%r6}},{{%f1,%f1,%f1,%f1}};\n"
                     "setp.eq.u32 %p1,%r1,0; @%p1 st.global.f32 [%rd1],%f3;",
                     low * 0x01010101u, high, std::bit_cast<uint32_t>(c)));
  text.replace(text.find(".target sm_90"), 13, ".target " + target);
  Bench bench;
  EXPECT_EQ(bench.load(text), "");
  DevicePtr out = bench.poisoned(4);
  for (const Finding& f : bench.arg(out).run({1, 1, 1}, {32, 1, 1}).findings) ADD_FAILURE() << f.message;
  return bench.read<float>(out, 1)[0];
}

// e4m3: 0x01 is 2^-9, 0x60 is 32.
TEST(Matrix, Fp8OfAdaIsCutOffInStepsOf16) {
  EXPECT_EQ(fp8_sum("sm_89", 0x01, 0, 32), 32);
  EXPECT_EQ(fp8_sum("sm_89", 0x01, 0x60, 0), 32 + 0x1p-5f);  // one step of 32 would lose 2^-5
  EXPECT_EQ(fp8_sum("sm_90", 0x01, 0, 32), 32 + 0x1p-5f);
}

TEST(Matrix, Int8IsExactAndWrapsAround) {
  std::mt19937 rng(5);
  auto draw = [&] { return rng() & 255; };
  auto extreme = [&] { return 128u; };
  auto near_the_end = [&] { return 0x7fffffffu - rng() % 1000000; };
  auto any = [&] { return static_cast<uint32_t>(rng()); };
  auto one = [](uint32_t sum, uint32_t a, uint32_t b) {
    return sum + static_cast<uint32_t>(static_cast<int8_t>(a) * static_cast<int8_t>(b));
  };
  multiply("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", kFragments[0], draw, one, any);
  multiply("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", kFragments[0], extreme, one, near_the_end);
  multiply("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", kFragments[1], draw, one, any);
}

TEST(Matrix, SixteenBitFragments) {
  std::mt19937 rng(6);
  auto draw = [&] { return static_cast<uint32_t>(to_bf16(static_cast<float>(rng() % 2001) / 500 - 2)); };
  auto c = [&] { return std::bit_cast<uint32_t>(static_cast<float>(rng() % 2001) / 500 - 2); };
  multiply(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", kFragments[2], draw,
      [](uint32_t sum, uint32_t a, uint32_t b) {
        return add_float(sum, from_bf16(static_cast<uint16_t>(a)), from_bf16(static_cast<uint16_t>(b)));
      },
      c);
}

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

/// A layout of CUTLASS: the place, in bits, of index i of the given sizes and strides.
struct Mode {
  uint32_t size, stride;
};
uint32_t place(uint32_t i, const std::vector<Mode>& modes) {
  uint32_t at = 0;
  for (const Mode& m : modes) at += i % m.size * m.stride, i /= m.size;
  return at;
}

/// Moves of bytes as Copy_Traits of SM100_U8x8_LDSM_T and others have them (cute/atom/copy_traits_sm100.hpp): from a
/// lane's line, or its registers, to places.
struct ByteMove {
  const char* name;
  uint32_t registers;
  std::vector<Mode> lines, lanes, values;
  uint32_t bits = 8;  ///< of an element in memory
};

TEST(Matrix, BytesAndExpandedElementsGoWhereCutlassHasThem) {
  const std::vector<Mode> lanes = {{4, 256}, {8, 8}}, straight = {{32, 32}};
  const std::vector<ByteMove> moves = {
      {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8",
       2,
       {{2, 128}, {2, 1024}, {4, 256}, {2, 0}},
       lanes,
       {{8, 1}, {2, 128}, {2, 64}, {2, 1024}}},
      {"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8",
       4,
       {{2, 128}, {2, 1024}, {4, 256}, {2, 2048}},
       lanes,
       {{8, 1}, {2, 128}, {2, 64}, {4, 1024}}},
      {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", 1, {{8, 128}, {4, 0}}, straight, {{32, 1}}, 4},
      {"ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32",
       2,
       {{16, 128}, {2, 0}},
       straight,
       {{32, 1}, {2, 1024}},
       6},
      {"ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", 4, {{32, 128}}, straight, {{32, 1}, {4, 1024}}, 4},
      {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", 1, {{8, 128}, {4, 0}}, lanes, {{8, 1}, {2, 128}, {2, 64}}},
      {"stmatrix.sync.aligned.m16n8.x4.trans.shared.b8",
       4,
       {{32, 128}},
       lanes,
       {{8, 1}, {2, 128}, {2, 64}, {4, 1024}}}};
  for (const ByteMove& move : moves) {
    const bool stores = move.name[0] == 's';
    std::string registers;
    for (uint32_t i = 0; i < move.registers; ++i) registers += (i ? ", %r" : "{%r") + std::to_string(10 + i);
    registers += "}";
    // Lane l's line lies at 16 * (5 l mod 32). Of expanded elements, the rest of the line is never written.
    const uint32_t used = 2 * move.bits;
    std::string body =
        "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mul.lo.u32 %r3, %r1, 80; and.b32 %r3, %r3, "
        "511; add.u32 %r3, %r3, %r2; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;\n"
        "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];\n";
    for (uint32_t at = 0; at < used; at += 4)
      body +=
          "st.shared.u32 [%r3+" + std::to_string(at) + "], " + (stores ? "0" : "%r1" + std::to_string(at / 4)) + ";\n";
    body += "bar.warp.sync -1;\n" + std::string(move.name) +
            (stores ? " [%r3], " + registers : " " + registers + ", [%r3]") + ";\nbar.warp.sync -1;\n";
    if (stores) body += "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3];\n";
    body += "st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};\n";
    std::string text = kernel_text(1, body, ".shared .align 16 .b8 smem[512];\n");
    text.replace(text.find(".target sm_90"), 13, ".target sm_120a");
    std::mt19937 rng(5);
    std::vector<uint8_t> bytes(512);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng());
    Bench bench;
    ASSERT_EQ(bench.load(text), "");
    const DevicePtr x = bench.buffer(bytes);
    const RunResult r = bench.arg(x).run({1, 1, 1}, {32, 1, 1});
    ASSERT_TRUE(r.findings.empty()) << move.name << ": " << r.findings[0].message;
    const auto got = bench.read<uint8_t>(x, 512);
    // The matrix between both sides, by the place of a byte in bits; lines that no lane of its own has are not in it.
    std::map<uint32_t, uint8_t> matrix;
    const uint32_t count = 8 * move.registers;
    const auto each_value = [&](auto&& visit) {
      for (uint32_t l = 0; l < 32; ++l)
        for (uint32_t k = 0; k < 4 * move.registers; ++k)
          visit(l * 16 + k, place(l, move.lanes) + place(8 * k, move.values));
    };
    if (stores) {
      each_value([&](uint32_t at, uint32_t where) { matrix[where] = bytes[at]; });
      for (uint32_t l = 0; l < count; ++l)
        for (uint32_t k = 0; k < 16; ++k)
          EXPECT_EQ(got[l * 16 + k], matrix.at(place(l, move.lines) + 8 * k)) << move.name << " " << l << " " << k;
    } else {
      for (uint32_t l = 0; l < count; ++l)
        for (uint32_t k = 0; k < 16; ++k) {
          uint32_t element = 0;
          for (uint32_t bit = 0; bit < move.bits; ++bit) {
            const uint32_t at = k * move.bits + bit;
            element |= (bytes[l * 16 + at / 8] >> at % 8 & 1u) << bit;
          }
          matrix[place(l, move.lines) + 8 * k] = static_cast<uint8_t>(element);
        }
      each_value([&](uint32_t at, uint32_t where) { EXPECT_EQ(got[at], matrix.at(where)) << move.name << " " << at; });
    }
  }
  Bench bench;
  EXPECT_NE(bench.load(kernel_text(1, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [%r2];"))
                .find("needs '.target"),
            std::string::npos);
}

}  // namespace
}  // namespace roofgen::sim_test::matrix_test
