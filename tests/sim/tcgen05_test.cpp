// Products of tcgen05: values in every layout, kind and group, compared with sums of the numbers that were encoded.
#include <gtest/gtest.h>

#include "runtime/sim/opcode_table.h"
#include "tcgen05_support.h"

namespace roofgen::sim_test::tcgen05_test {
namespace {

void expect_right(const Mma& p, const std::string& what, uint32_t seed = 1) {
  const MmaResult r = run_mma(p, p.text(), seed);
  ASSERT_EQ(r.refused, "") << what;
  ASSERT_TRUE(r.run.findings.empty()) << what << ": " << r.run.findings[0].kind << " " << r.run.findings[0].message;
  for (size_t i = 0; i < r.expected.size(); ++i)
    ASSERT_EQ(r.after[i], r.expected[i]) << what << ", CTA " << i / (kLanes * kColumns) << ", lane " << i % kLanes
                                         << ", column " << i / kLanes % kColumns;
}

Mma mma(const std::string& kind, const ElementType& a, const ElementType& b, uint32_t m, uint32_t n,
        uint32_t group = 1) {
  Mma p;
  p.kind = kind;
  p.m = m, p.n = n, p.group = group;
  const uint32_t container = kind == "tf32" ? 32 : kind == "f16" ? 16 : kind.starts_with("mxf4") ? 4 : 8;
  p.a.type = a, p.b.type = b;
  p.a.container = p.b.container = container;
  p.a.rows = m / group, p.b.rows = n / group;
  if (kind == "i8") p.sum = 2;
  if (kind == "mxf8f6f4") p.scales = 1;
  if (kind == "mxf4" || kind == "mxf4nvf4") p.scales = 2;
  if (kind == "mxf4nvf4") p.opcode_tail = ".scale_vec::2X";
  return p;
}

TEST(Tcgen05, MultipliesEachShape) {
  for (const uint32_t m : {64u, 128u})
    for (const uint32_t n : {8u, 24u, 64u, 120u, 256u})
      expect_right(mma("f16", kBf16, kBf16, m, n), fmt::format("m {} n {}", m, n), n);
  for (const uint32_t m : {128u, 256u})
    for (const uint32_t n : {16u, 48u, 256u})
      expect_right(mma("f16", kF16, kF16, m, n, 2), fmt::format("pair, m {} n {}", m, n), n);
  for (const uint32_t m : {32u, 64u, 128u})
    for (const uint32_t n : {64u, 128u, 256u}) {
      Mma p = mma("f16", kF16, kF16, m, n);
      p.stationary = true;
      expect_right(p, fmt::format("stationary, m {} n {}", m, n), n);
    }
  Mma upper = mma("f16", kF16, kF16, 64, 32);
  upper.d_lane = 16;
  expect_right(upper, "the upper 16 lanes of each warp");
}

TEST(Tcgen05, MultipliesEachLayout) {
  for (const auto& [kind, type] : {std::pair{"f16", kBf16}, {"tf32", kTf32}, {"f8f6f4", kE4m3}, {"i8", kS8}})
    for (const uint32_t span_a : {16u, 32u, 64u, 128u})
      for (const uint32_t span_b : {16u, 32u, 64u, 128u})
        for (int turns = 0; turns < 4; ++turns) {
          Mma p = mma(kind, type, type, 128, 64);
          p.a.span = span_a, p.b.span = span_b;
          p.a.turned = turns & 1, p.b.turned = turns & 2;
          if (!p.a.turned && span_a == 128) p.a.step = 3;
          if (!p.b.turned && span_b == 64) p.b.step = 1;
          expect_right(p, fmt::format("{} A {}{} B {}{}", kind, span_a, p.a.turned ? " turned" : "", span_b,
                                      p.b.turned ? " turned" : ""));
        }
  Mma wide = mma("tf32", kTf32, kTf32, 128, 64);
  wide.a.turned = wide.b.turned = wide.a.wide_atoms = wide.b.wide_atoms = true;
  expect_right(wide, "swizzled by 32 bytes");
}

TEST(Tcgen05, MultipliesEachType) {
  for (const uint32_t group : {1u, 2u}) {
    const uint32_t m = 128 * group;
    for (const ElementType& a : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1})
      for (const ElementType& b : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1})
        for (const char* kind : {"f8f6f4", "mxf8f6f4"})
          expect_right(mma(kind, a, b, m, 64, group), fmt::format("{} {} {} {}", kind, a.name, b.name, group));
    for (const ElementType& a : {kS8, kU8})
      for (const ElementType& b : {kS8, kU8})
        expect_right(mma("i8", a, b, m, 32, group), fmt::format("i8 {} {} {}", a.name, b.name, group));
    expect_right(mma("tf32", kTf32, kTf32, m, 48, group), "tf32");
    expect_right(mma("f16", kF16, kBf16, m, 48, group), "f16 and bf16");
  }
}

TEST(Tcgen05, ScalesBlocks) {
  for (const uint32_t group : {1u, 2u})
    for (const uint32_t n : {16u, 64u, 160u, 256u}) {
      const uint32_t m = 128 * group;
      Mma p = mma("mxf4", kE2m1x2, kE2m1x2, m, n, group);
      expect_right(p, fmt::format("mxf4 n {}", n), n);
      p.scale_a = 2;
      expect_right(p, "mxf4, upper scales of A");
      p = mma("mxf4nvf4", kE2m1x2, kE2m1x2, m, n, group);
      p.scales = 4, p.ue8m0 = false, p.opcode_tail = ".scale_vec::4X";
      expect_right(p, fmt::format("nvf4 n {}", n), n);
      p.keeps = true, p.opcode_tail = ".block16";
      expect_right(p, "nvf4, adding");
      for (uint32_t id = 0; id < 4; ++id) {
        p = mma("mxf8f6f4", kE4m3, kE5m2, m, n, group);
        p.scale_a = id, p.scale_b = 3 - id;
        expect_right(p, fmt::format("mxf8f6f4 id {}", id), id);
      }
    }
  // Half of the rows in each CTA: B's scales are split between the lower and the upper lanes.
  for (const uint32_t n : {32u, 128u, 256u}) expect_right(mma("mxf8f6f4", kE4m3, kE4m3, 128, n, 2), "64 rows", n);
}

TEST(Tcgen05, TakesAFromTensorMemory) {
  for (const auto& [kind, type] : {std::pair{"f16", kF16},
                                   {"tf32", kTf32},
                                   {"f8f6f4", kE5m2},
                                   {"i8", kU8},
                                   {"mxf8f6f4", kE4m3},
                                   {"mxf4", kE2m1x2}})
    for (const uint32_t group : {1u, 2u})
      for (const uint32_t m : {64u * group, 128u * group}) {
        if (m == 64 && kind[0] == 'm') continue;
        Mma p = mma(kind, type, type, m, 64, group);
        p.a_in_tensor = true;
        expect_right(p, fmt::format("{} group {} m {}", kind, group, m));
      }
}

TEST(Tcgen05, AddsNegatesAndScalesSums) {
  for (const uint32_t sum : {0u, 1u})
    for (int signs = 0; signs < 4; ++signs)
      for (const bool keeps : {false, true}) {
        Mma p = mma("f16", kF16, kF16, 128, 32);
        p.sum = sum, p.keeps = keeps, p.negates_a = signs & 1, p.negates_b = signs & 2;
        expect_right(p, fmt::format("sum {} signs {} keeps {}", sum, signs, keeps));
      }
  for (const uint32_t group : {1u, 2u}) {
    Mma p = mma("i8", kS8, kU8, 128 * group, 32, group);
    p.keeps = true;
    expect_right(p, "i8");
    p = mma("tf32", kTf32, kTf32, 128 * group, 32, group);
    p.keeps = true, p.operands_tail = ", 2";
    expect_right(p, "a quarter of the sums");
    for (uint32_t i = 0; i < 4 * group; ++i) p.disabled.push_back(0x8001f00fu * (i + 1));
    expect_right(p, "disabled lanes");
  }
}

Mma sparse(const std::string& kind, const ElementType& a, const ElementType& b, uint32_t n, uint32_t group = 1) {
  Mma p = mma(kind, a, b, 128 * group, n, group);
  p.sparse = true;
  p.b.rows_of_32 = 2;
  return p;
}

TEST(Tcgen05, MultipliesSparseMatrices) {
  for (const uint32_t group : {1u, 2u}) {
    for (const uint32_t n : {16u, 64u, 256u})
      for (const uint32_t selector : {0u, 1u}) {
        Mma p = sparse("f16", kBf16, kBf16, n, group);
        p.selector = selector;
        expect_right(p, fmt::format("f16 n {} selector {} group {}", n, selector, group), n);
        p = sparse("tf32", kTf32, kTf32, n, group);
        p.selector = selector, p.keeps = true;
        expect_right(p, fmt::format("tf32 n {} selector {} group {}", n, selector, group), n);
      }
    for (const ElementType& a : {kE4m3, kE5m2, kE3m2, kE2m1})
      for (const char* kind : {"f8f6f4", "mxf8f6f4"})
        expect_right(sparse(kind, a, kE4m3, 64, group), fmt::format("{} {} group {}", kind, a.name, group));
    expect_right(sparse("i8", kS8, kU8, 32, group), "i8");
    expect_right(sparse("mxf4", kE2m1x2, kE2m1x2, 64, group), "mxf4");
    Mma p = sparse("mxf4nvf4", kE2m1x2, kE2m1x2, 64, group);
    p.scales = 4, p.ue8m0 = false, p.opcode_tail = ".scale_vec::4X";
    expect_right(p, "nvf4");
    for (const auto& [kind, type] : {std::pair{"f16", kF16}, {"tf32", kTf32}, {"f8f6f4", kE5m2}, {"mxf4", kE2m1x2}}) {
      p = sparse(kind, type, type, 64, group);
      p.a_in_tensor = true;
      expect_right(p, fmt::format("{} with A in tensor memory", kind));
    }
  }
  for (const uint32_t span_a : {16u, 32u, 64u, 128u})
    for (const uint32_t span_b : {16u, 64u, 128u})
      for (int turns = 0; turns < 4; ++turns) {
        Mma p = sparse("f16", kF16, kF16, 64);
        p.a.span = span_a, p.b.span = span_b, p.a.turned = turns & 1, p.b.turned = turns & 2;
        expect_right(p, fmt::format("A {} B {} turns {}", span_a, span_b, turns));
      }
  Mma p = sparse("f16", kF16, kF16, 64);
  p.stationary = true;
  expect_right(p, "stationary");
}

TEST(Tcgen05, SaturatesSums) {
  for (const bool saturates : {false, true})
    for (const uint32_t group : {1u, 2u})
      for (const bool in_tensor : {false, true}) {
        Mma p = mma("i8", kS8, kS8, 128 * group, 32, group);
        p.keeps = true, p.saturates = saturates, p.old_sums = 0x7fffffff, p.a_in_tensor = in_tensor;
        expect_right(p, fmt::format("saturates {} group {}", saturates, group));
        p.old_sums = 3;
        expect_right(p, "small sums");
      }
}

/// Each lane's greatest or least of eight columns while they are loaded.
TEST(Tcgen05, LoadsReduce) {
  const auto run = [](const std::string& operation, const std::vector<uint32_t>& values, std::string* error = nullptr) {
    std::string text = kernel_text(2, fmt::format(R"(
.shared .align 8 .b8 place[8];
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
mov.u32 %r1, %tid.x;
mov.u32 %r2, place;
mul.wide.u32 %rd3, %r1, 32;
add.u64 %rd1, %rd1, %rd3;
ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd1];
ld.global.v4.u32 {{%r14, %r15, %r16, %r17}}, [%rd1+16];
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
bar.warp.sync -1;
ld.shared.u32 %r3, [%r2];
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r3], {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.red.sync.aligned.32x32b.x8.{} {{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}}, %r30, [%r3];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd3, %r1, 8;
add.u64 %rd2, %rd2, %rd3;
st.global.u32 [%rd2], %r30;
st.global.u32 [%rd2+4], %r27;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
)",
                                                  operation));
    text.replace(text.find(".target sm_90\n"), 14, error ? ".target sm_100a\n" : ".target sm_103a\n");
    Bench bench;
    const std::string why = bench.load(text);
    if (error) *error = why;
    if (!why.empty()) return std::vector<uint32_t>();
    const DevicePtr from = bench.buffer(values), to = bench.poisoned(256);
    const RunResult r = bench.arg(from).arg(to).run({1, 1, 1}, {32, 1, 1});
    EXPECT_TRUE(r.findings.empty()) << r.findings[0].message;
    return bench.read<uint32_t>(to, 64);
  };
  std::vector<uint32_t> values(256);
  uint32_t state = 5;
  for (uint32_t& x : values) {
    x = (state = state * 1664525u + 1013904223u) >> 9;
    x = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(x % 2001) - 1000));
  }
  values[3] = values[8 * 7] = 0x7fc00000;  // NaN
  for (uint32_t i = 0; i < 8; ++i) values[8 * 9 + i] = 0xffc00000;
  for (const bool least : {false, true})
    for (const bool magnitude : {false, true})
      for (const bool nan : {false, true}) {
        const auto out =
            run(fmt::format("{}{}{}.f32", least ? "min" : "max", magnitude ? ".abs" : "", nan ? ".NaN" : ""), values);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          std::vector<float> line;
          bool any = false;
          for (uint32_t i = 0; i < 8; ++i) {
            const float x = std::bit_cast<float>(values[8 * lane + i]);
            any |= std::isnan(x);
            if (!std::isnan(x)) line.push_back(magnitude ? std::fabs(x) : x);
          }
          const float got = std::bit_cast<float>(out[2 * lane]);
          if (line.empty() || (nan && any))
            EXPECT_TRUE(std::isnan(got)) << lane;
          else
            EXPECT_EQ(got, least ? *std::ranges::min_element(line) : *std::ranges::max_element(line)) << lane;
          EXPECT_EQ(out[2 * lane + 1], values[8 * lane + 7]);
        }
      }
  for (const bool least : {false, true}) {
    const auto whole = run(least ? "u32.min" : "max.u32", values),
               with_sign = run(least ? "min.s32" : "s32.max", values);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const std::vector<uint32_t> line(values.begin() + 8 * lane, values.begin() + 8 * lane + 8);
      const std::vector<int32_t> signs(line.begin(), line.end());
      EXPECT_EQ(whole[2 * lane], least ? *std::ranges::min_element(line) : *std::ranges::max_element(line));
      EXPECT_EQ(static_cast<int32_t>(with_sign[2 * lane]),
                least ? *std::ranges::min_element(signs) : *std::ranges::max_element(signs));
    }
  }
  std::string error;
  run("max.f32", values, &error);
  EXPECT_NE(error.find("needs '.target sm_103a'"), error.npos) << error;
}

/// All instruction sets of the host give the same sums.
TEST(Tcgen05, HostsAgree) {
  using namespace sim;
  alignas(64) static uint32_t sums[64 * 128];
  alignas(64) static float a[16 * 128], b[64 * 16];
  uint32_t state = 7;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (const WgmmaSum type : {WgmmaSum::kF32, WgmmaSum::kF16, WgmmaSum::kS32})
    for (const uint32_t groups : {2u, 4u, 8u}) {
      for (float& x : a) x = static_cast<float>(next() % 255) - 127;
      for (float& x : b) x = static_cast<float>(next() % 255) - 127;
      if (type != WgmmaSum::kS32)
        for (float& x : a) x = std::ldexp(x, static_cast<int>(next() % 40) - 20);
      std::vector<uint32_t> first;
      for (const LaneTable* lanes : all_host_lanes()) {
        state = 11;
        for (uint32_t& x : sums)
          x = type == WgmmaSum::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(next())) : next() & 0x3bff;
        uint32_t* rows[8];
        for (uint32_t g = 0; g < groups; ++g) rows[g] = sums + 16 * g;
        const float one = 1;
        lanes->tensor.multiply(type, rows, groups, a, b, 64, 16, &one);
        if (first.empty()) first.assign(std::begin(sums), std::end(sums));
        ASSERT_TRUE(std::equal(first.begin(), first.end(), std::begin(sums))) << lanes->isa;
      }
    }
}

}  // namespace
}  // namespace roofgen::sim_test::tcgen05_test
