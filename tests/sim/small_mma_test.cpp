// mma.sync of the kinds of sm_120: every pair of formats, and scales of blocks by each byte and thread.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tcgen05_support.h"

namespace roofgen::sim_test::small_mma_test {
namespace {

constexpr ElementType kS4{"s4", 4, 0, 0, 0}, kU4{"u4", 4, 0, 0, 0};

struct Case {
  std::string opcode;
  ElementType a, b;
  uint32_t k = 32, scales = 0;
  bool powers = true;
  uint32_t byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
  uint32_t rows = 16;
  int sum = 1;  ///< 0 f16, 1 f32, 2 s32
  bool sparse = false;
  uint32_t selector = 0;
  uint32_t bits() const {
    return a.field == kE2m1.field && a.bits == 4 ? 8 : std::max(a.bits == 4 ? 4u : 8u, a.bits > 8 ? a.bits : 0u);
  }
};

struct Fragments {
  std::vector<uint32_t> words;  ///< by lane: A, B, C, metadata, scales of A and of B
  uint32_t of_a, of_b, of_c;
  uint32_t per_lane() const { return of_a + of_b + of_c + 3; }
  uint32_t& at(uint32_t lane, uint32_t i) { return words[lane * per_lane() + i]; }
};

/// A sparse row: which elements of each chunk are stored, in turn all choices; and the code that says so.
struct Choice {
  std::vector<uint32_t> places;
  uint32_t code;
};
Choice choice(const Case& c, uint32_t row, uint32_t chunk) {
  static constexpr uint32_t kPairs[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  if (c.bits() == 32) return {{(row + chunk) % 2}, (row + chunk) % 2 ? 0b1110u : 0b0100u};
  const auto [first, second] = kPairs[(5 * row + chunk) % 6];
  if (c.bits() != 4) return {{first, second}, first | second << 2};
  return {{2 * first, 2 * first + 1, 2 * second, 2 * second + 1}, first | second << 2};
}

/// The lane and the bit of the code for dense element k of a row: the layouts of CUTLASS (ELayout).
std::pair<uint32_t, uint32_t> place_of_code(const Case& c, uint32_t row, uint32_t k) {
  const uint32_t bits_of_four = c.bits() == 32 ? 8 : c.bits() == 4 ? 2 : 4, high = row / 8;
  const uint32_t bits = 16 * c.k * bits_of_four / 4, lanes = bits / 32 / 8;  // of four
  const uint32_t half = c.k / 2, lane = row % 8 * 4;
  if (lanes == 1) return {lane + c.selector, (k + c.k * high) * bits_of_four / 4};
  if (lanes == 2) return {lane + 2 * c.selector + k / half, (k % half + half * high) * bits_of_four / 4};
  return {lane + high + 2 * (k / half), k % half * bits_of_four / 4};
}

/// One warp multiplies pseudo-random small numbers; each lane's sums against those of the fragments' definition.
void expect_right(const Case& c, uint32_t spoil = 0) {
  uint64_t state = 77;
  const auto next = [&](int low, int high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int>((state >> 33) % static_cast<uint64_t>(high - low + 1));
  };
  const uint32_t bits = c.bits(), per_word = 32 / bits, stored = c.sparse ? c.k / 2 : c.k, high = c.rows / 8;
  const bool integers = c.a.exponent == 0;
  std::vector<std::vector<float>> a(c.rows, std::vector<float>(c.k)), b(8, std::vector<float>(c.k)),
      packed(c.rows, std::vector<float>(stored));
  float of_a[16][4], of_b[8][4], before[16][8];
  for (auto& row : packed)
    for (float& x : row) x = static_cast<float>(next(c.a.name[0] == 'u' ? 0 : -3, 3));
  for (auto& row : b)
    for (float& x : row) x = static_cast<float>(next(c.b.name[0] == 'u' ? 0 : -3, 3));
  for (auto& row : before)
    for (float& x : row) x = static_cast<float>(next(-9, 9));
  const auto scale = [&](float& value) {
    const int which = next(0, 2);
    value = c.powers ? std::ldexp(1.0f, which - 1) : 1.0f + 0.5f * static_cast<float>(which);
    return c.powers ? static_cast<uint32_t>(126 + which) : small_float(value, 4, 3);
  };
  Fragments in;
  in.of_a = stored / per_word / 4 * high, in.of_b = c.k / per_word / 4, in.of_c = (c.sum ? 2 : 1) * high;
  in.words.resize(32 * in.per_lane());
  const auto pack = [&](const ElementType& t, float x) {
    const uint32_t code = encode(t, x) & (t.bits == 32 ? ~0u : (1u << t.bits) - 1);
    return bits == 8 && t.bits == 4 ? code << 2 : code;  // in the middle of the byte
  };
  for (uint32_t row = 0; row < c.rows; ++row)
    for (uint32_t i = 0; i < stored; ++i) {
      const uint32_t w = i / per_word;
      in.at(row % 8 * 4 + w % 4, row / 8 + high * (w / 4)) |= pack(c.a, packed[row][i]) << i % per_word * bits;
    }
  const uint32_t chunk = !c.sparse ? 1 : bits == 32 ? 2 : bits == 4 ? 8 : 4;
  for (uint32_t row = 0; row < c.rows; ++row)
    for (uint32_t i = 0; i < c.k / chunk; ++i) {
      if (!c.sparse) {
        a[row][i] = packed[row][i];
        continue;
      }
      const Choice which = choice(c, row, i);
      for (uint32_t j = 0; j < which.places.size(); ++j)
        a[row][i * chunk + which.places[j]] = packed[row][i * which.places.size() + j];
      const auto [lane, bit] = place_of_code(c, row, i * chunk);
      in.at(lane, in.of_a + in.of_b + in.of_c) |= which.code << bit;
    }
  if (spoil)
    in.at(4 * (spoil % 8), in.of_a + in.of_b + in.of_c) ^=
        (in.at(4 * (spoil % 8), in.of_a + in.of_b + in.of_c) ^ 5) & 15;
  for (uint32_t column = 0; column < 8; ++column)
    for (uint32_t k = 0; k < c.k; ++k) {
      const uint32_t w = k / per_word;
      in.at(column * 4 + w % 4, in.of_a + w / 4) |= pack(c.b, b[column][k]) << k % per_word * bits;
    }
  const auto bits_of_sum = [&](double x) {
    return c.sum == 2 ? static_cast<uint32_t>(static_cast<int>(x))
           : c.sum    ? std::bit_cast<uint32_t>(static_cast<float>(x))
                      : small_float(static_cast<float>(x), 5, 10);
  };
  const auto put_sum = [&](uint32_t& word, uint32_t column, double x) {
    word |= bits_of_sum(x) << (c.sum ? 0 : column % 2 * 16);
  };
  const auto register_of_sum = [&](uint32_t row, uint32_t column) {
    return c.sum ? 2 * (row / 8) + column % 2 : row / 8;
  };
  for (uint32_t row = 0; row < c.rows; ++row)
    for (uint32_t column = 0; column < 8; ++column)
      put_sum(in.at(row % 8 * 4 + column / 2, in.of_a + in.of_b + register_of_sum(row, column)), column,
              before[row][column]);
  for (uint32_t s = 0; s < c.scales; ++s) {
    for (uint32_t row = 0; row < 16; ++row)
      in.at(row % 8 * 4 + 2 * c.thread_a + row / 8, in.per_lane() - 2) |= scale(of_a[row][s]) << 8 * (c.byte_a + s);
    for (uint32_t column = 0; column < 8; ++column)
      in.at(column * 4 + c.thread_b, in.per_lane() - 1) |= scale(of_b[column][s]) << 8 * (c.byte_b + s);
  }
  std::string body = fmt::format(
      "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, {};\nadd.u64 %rd1, %rd1, %rd3;\nmul.wide.u32 %rd3, %r1, {};\n"
      "add.u64 %rd2, %rd2, %rd3;\n",
      4 * in.per_lane(), 4 * in.of_c);
  uint32_t from = 10;
  const auto vector = [&](uint32_t n, uint32_t first) {
    std::string out;
    for (uint32_t i = 0; i < n; ++i) out += fmt::format("{}%r{}", i ? ", " : "", first + i);
    return "{" + out + "}";
  };
  for (uint32_t i = 0; i < in.per_lane(); ++i) body += fmt::format("ld.global.u32 %r{}, [%rd1+{}];\n", from + i, 4 * i);
  body +=
      fmt::format("mov.u16 %rs1, {};\n{} {}, {}, {}, {}", c.byte_a, c.opcode, vector(in.of_c, 40),
                  vector(in.of_a, from), vector(in.of_b, from + in.of_a), vector(in.of_c, from + in.of_a + in.of_b));
  from += in.per_lane();
  if (c.sparse) body += fmt::format(", %r{}, {}", from - 3, c.selector);
  if (c.scales)
    body += fmt::format(", {{%r{}}}, {{%rs1, {}}}, {{%r{}}}, {{{}, {}}}", from - 2, c.thread_a, from - 1, c.byte_b,
                        c.thread_b);
  body += ";\n";
  for (uint32_t i = 0; i < in.of_c; ++i) body += fmt::format("st.global.u32 [%rd2+{}], %r{};\n", 4 * i, 40 + i);
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(2, body)), "") << c.opcode;
  const DevicePtr memory = bench.buffer(in.words), to = bench.poisoned(32 * 4 * in.of_c);
  bench.arg(memory).arg(to);
  const RunResult run = bench.run({1, 1, 1}, {32, 1, 1});
  if (spoil) {
    ASSERT_FALSE(run.findings.empty()) << c.opcode;
    EXPECT_EQ(run.findings[0].kind, "bad-metadata");
    EXPECT_NE(run.findings[0].message.find("are 0b0101, which is no choice of elements of row"), std::string::npos)
        << run.findings[0].message;
    return;
  }
  ASSERT_TRUE(run.findings.empty()) << c.opcode << ": " << run.findings[0].message;
  EXPECT_TRUE(c.rows == 8 || run.counts->mma_flops == 2u * 16 * 8 * c.k) << c.opcode;
  const std::vector<uint32_t> out = bench.read<uint32_t>(to, 32 * in.of_c);
  const bool saturates = c.opcode.find("satfinite") != std::string::npos;
  for (uint32_t row = 0; row < c.rows; ++row)
    for (uint32_t column = 0; column < 8; ++column) {
      double sum = before[row][column];
      for (uint32_t k = 0; k < c.k; ++k) {
        const uint32_t s = c.scales ? k * c.scales / c.k : 0;
        sum += double{a[row][k]} * b[column][k] * (c.scales ? double{of_a[row][s]} * of_b[column][s] : 1.0);
      }
      const uint32_t got = out[(row % 8 * 4 + column / 2) * in.of_c + register_of_sum(row, column)];
      ASSERT_EQ(c.sum ? got : got >> column % 2 * 16 & 0xffff, bits_of_sum(sum))
          << c.opcode << ", row " << row << ", column " << column << integers << saturates;
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

TEST(SmallMma, DenseTypesWithoutAFastFunction) {
  const auto dense = [](const char* shape, uint32_t k, const ElementType& a, const ElementType& b, int sum,
                        uint32_t rows = 16) {
    const char* const kSums[] = {"f16", "f32", "s32"};
    Case c{fmt::format("mma.sync.aligned.{}.row.col.{}.{}.{}.{}", shape, kSums[sum], a.name, b.name, kSums[sum]), a, b,
           k};
    c.sum = sum, c.rows = rows;
    expect_right(c);
  };
  for (const auto& [a, b] : {std::pair{kS8, kU8}, {kU8, kS8}}) {
    dense("m16n8k16", 16, a, b, 2);
    dense("m16n8k32", 32, a, b, 2);
    dense("m8n8k16", 16, a, b, 2, 8);
  }
  for (const auto& [a, b] : {std::pair{kS4, kS4}, {kS4, kU4}, {kU4, kS4}, {kU4, kU4}}) {
    dense("m16n8k32", 32, a, b, 2);
    dense("m16n8k64", 64, a, b, 2);
    dense("m8n8k32", 32, a, b, 2, 8);
  }
  for (const auto& [a, b] : {std::pair{kE4m3, kE5m2}, {kE5m2, kE4m3}, {kE5m2, kE5m2}})
    for (const int sum : {0, 1}) {
      dense("m16n8k16", 16, a, b, sum);
      if (a.name != b.name || sum == 0) dense("m16n8k32", 32, a, b, sum);
    }
  Case wide{"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e3m2.e2m1.f16", kE3m2, kE2m1};
  wide.sum = 0;
  expect_right(wide);
}

TEST(SmallMma, SumsSaturate) {
  for (const bool saturates : {false, true})
    for (const uint32_t c : {0x7fffffffu, 0x80000000u}) {
      const std::string body = fmt::format(
          "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"
          "mov.u32 %r2, {};\nmov.u32 %r3, 0x01010101;\nmov.u32 %r4, {};\n"
          "mma.sync.aligned.m16n8k16.row.col{}.s32.s8.u8.s32 {{%r5, %r6, %r7, %r8}}, {{%r3, %r3}}, {{%r4}}, {{%r2, "
          "%r2, "
          "%r2, %r2}};\nst.global.u32 [%rd1], %r5;\n",
          c, c >> 31 ? "0xfefefefe" : "0x01010101", saturates ? ".satfinite" : "");
      std::string text = body;
      if (c >> 31) text.replace(text.find("s8.u8"), 5, "u8.s8");
      Bench bench;
      ASSERT_EQ(bench.load(kernel_text(1, text)), "");
      const DevicePtr out = bench.poisoned(128);
      ASSERT_TRUE(bench.arg(out).run({1, 1, 1}, {32, 1, 1}).findings.empty());
      const uint32_t wrapped = c >> 31 ? c - 32 : c + 16;
      for (const uint32_t x : bench.read<uint32_t>(out, 32)) EXPECT_EQ(x, saturates ? c : wrapped);
    }
}

Case sparse(const std::string& tail, const ElementType& a, const ElementType& b, uint32_t k, int sum = 1,
            uint32_t selector = 0, const char* sp = "mma.sp") {
  Case c{sp + (".sync.aligned.m16n8k" + std::to_string(k)) + ".row.col." + tail, a, b, k};
  c.sparse = true, c.sum = sum, c.selector = selector;
  return c;
}

TEST(SmallMma, SparseProducts) {
  for (const char* sp : {"mma.sp", "mma.sp::ordered_metadata"}) {
    for (uint32_t selector = 0; selector < 4; ++selector) {
      expect_right(sparse("f32.f16.f16.f32", kF16, kF16, 16, 1, selector, sp));
      expect_right(sparse("f16.f16.f16.f16", kF16, kF16, 16, 0, selector, sp));
      expect_right(sparse("f32.bf16.bf16.f32", kBf16, kBf16, 16, 1, selector, sp));
      expect_right(sparse("f32.tf32.tf32.f32", kTf32, kTf32, 8, 1, selector, sp));
    }
    for (const uint32_t selector : {0u, 1u}) {
      expect_right(sparse("f32.f16.f16.f32", kF16, kF16, 32, 1, selector, sp));
      expect_right(sparse("f16.f16.f16.f16", kF16, kF16, 32, 0, selector, sp));
      expect_right(sparse("f32.bf16.bf16.f32", kBf16, kBf16, 32, 1, selector, sp));
      expect_right(sparse("f32.tf32.tf32.f32", kTf32, kTf32, 16, 1, selector, sp));
    }
    for (const auto& [a, b] : {std::pair{kS8, kS8}, {kS8, kU8}, {kU8, kU8}})
      expect_right(sparse(fmt::format("s32.{}.{}.s32", a.name, b.name), a, b, 64, 2, 0, sp));
    for (const auto& [a, b] : {std::pair{kS4, kS4}, {kU4, kS4}})
      expect_right(sparse(fmt::format("satfinite.s32.{}.{}.s32", a.name, b.name), a, b, 128, 2, 0, sp));
    for (const auto& [a, b] : {std::pair{kE4m3, kE4m3}, {kE4m3, kE5m2}, {kE5m2, kE5m2}})
      expect_right(sparse(fmt::format("f32.{}.{}.f32", a.name, b.name), a, b, 64, 1, 0, sp));
  }
  for (const ElementType& a : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1})
    for (const ElementType& b : {kE4m3, kE2m3, kE2m1}) {
      Case c{fmt::format("mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata.m16n8k64.row.col.f32.{}.{}.f32", a.name,
                         b.name),
             a, b, 64};
      c.sparse = true;
      expect_right(c);
      c.opcode = fmt::format(
          "mma.sync.aligned.kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64.row.col.f32.{}.{}."
          "f32.ue8m0",
          a.name, b.name);
      c.scales = 1, c.byte_a = 2, c.thread_a = 1, c.byte_b = 1, c.thread_b = 3;
      expect_right(c);
    }
  for (const bool powers : {false, true}) {
    Case c{fmt::format("mma.sync.aligned.kind::mxf4nvf4.sp::ordered_metadata.block_scale.scale_vec::4X.m16n8k128.row."
                       "col.f32.e2m1.e2m1.f32.{}",
                       powers ? "ue8m0" : "ue4m3"),
           kE2m1x2,
           kE2m1x2,
           128,
           4,
           powers};
    c.sparse = true, c.thread_a = 1, c.thread_b = 2;
    expect_right(c);
  }
}

TEST(SmallMma, BadMetadataIsAFinding) {
  for (const uint32_t row : {8u, 3u}) {
    expect_right(sparse("f32.f16.f16.f32", kF16, kF16, 32), row);
    expect_right(sparse("s32.s8.s8.s32", kS8, kS8, 64, 2), row);
    expect_right(sparse("f32.tf32.tf32.f32", kTf32, kTf32, 16), row);
  }
  const auto error = [](const std::string& text) {
    Bench bench;
    return bench.load(kernel_text(0, text));
  };
  const std::string four = "{%r1, %r2, %r3, %r4}";
  EXPECT_NE(error("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 " + four + ", " + four + ", " + four + ", " +
                  four + ", %r5, 2;\n")
                .find("selector"),
            std::string::npos);
  EXPECT_NE(error("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " + four + ", {%r1, %r2}, {%r1, %r2}, " + four +
                  ", %r5, 0;\n")
                .find("the place of the metadata"),
            std::string::npos);
}

TEST(SmallMma, AWarpTransposesAMatrix) {
  const std::string body =
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"
      "ld.global.u32 %r2, [%rd1];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;\nst.global.u32 [%rd1], %r3;\n";
  std::vector<uint32_t> words(32);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t column = 0; column < 8; ++column)
      words[row * 4 + column / 2] |= (100 * row + column) << column % 2 * 16;
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, body)), "");
  const DevicePtr x = bench.buffer(words);
  ASSERT_TRUE(bench.arg(x).run({1, 1, 1}, {32, 1, 1}).findings.empty());
  const auto out = bench.read<uint32_t>(x, 32);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t column = 0; column < 8; ++column)
      EXPECT_EQ(out[row * 4 + column / 2] >> column % 2 * 16 & 0xffff, 100 * column + row);
}

}  // namespace
}  // namespace roofgen::sim_test::small_mma_test
