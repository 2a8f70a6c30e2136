// Products of warpgroups: values in every layout, and what is undefined.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "runtime/sim/opcode_table.h"
#include "wgmma_support.h"

namespace roofgen::sim_test::wgmma_test {
namespace {

void expect_right(const Product& p, const std::string& what, uint32_t seed = 1) {
  const ProductResult r = run_product(p, p.text(), seed);
  ASSERT_TRUE(r.run.findings.empty()) << what << ": " << r.run.findings[0].kind << " " << r.run.findings[0].message;
  for (size_t i = 0; i < r.expected.size(); ++i)
    ASSERT_EQ(sum_at(p, r, i), r.expected[i]) << what << ", thread " << i / (p.n() / 2) << ", sum " << i % (p.n() / 2);
}

Product product(uint32_t n, const std::string& type = "bf16", uint32_t span = 128) {
  Product p;
  p.a.type = p.b.type = type;
  p.a.span = p.b.span = span;
  p.b.rows = n;
  if (type == "s8" || type == "u8") p.sum = "s32";
  return p;
}

TEST(Wgmma, MultipliesAllWidths) {
  for (uint32_t n = 8; n <= 256; n += 8) expect_right(product(n), fmt::format("n = {}", n), n);
}

TEST(Wgmma, MultipliesEveryLayoutOfTwoByteTypes) {
  for (const char* type : {"bf16", "f16"})
    for (const uint32_t span_a : {16u, 32u, 64u, 128u})
      for (const uint32_t span_b : {16u, 32u, 64u, 128u})
        for (int turns = 0; turns < 4; ++turns)
          for (const uint32_t n : {8u, 72u, 128u}) {
            Product p = product(n, type);
            p.a.span = span_a, p.b.span = span_b;
            p.a.turned = turns & 1, p.b.turned = turns & 2;
            expect_right(p, fmt::format("{} A {}{} B {}{} n {}", type, span_a, p.a.turned ? " turned" : "", span_b,
                                        p.b.turned ? " turned" : "", n));
          }
}

TEST(Wgmma, MultipliesOtherTypes) {
  for (const auto& [a, b] : {std::pair("tf32", "tf32"),
                             {"e4m3", "e4m3"},
                             {"e4m3", "e5m2"},
                             {"e5m2", "e4m3"},
                             {"e5m2", "e5m2"},
                             {"s8", "s8"},
                             {"u8", "s8"},
                             {"s8", "u8"},
                             {"u8", "u8"}})
    for (const uint32_t span : {16u, 32u, 64u, 128u})
      for (const uint32_t n : {8u, 24u, 96u, 256u})
        for (const bool registers : {false, true}) {
          Product p = product(n, a, span);
          p.b.type = b;
          p.registers = registers;
          expect_right(p, fmt::format("{} {} span {} n {} {}", a, b, span, n, registers));
        }
}

TEST(Wgmma, IntegersSaturate) {
  for (const bool keeps : {false, true})
    for (const char* type : {"s8", "u8"}) {
      Product p = product(64, type);
      p.b.type = "s8";
      p.keeps = keeps, p.saturates = true;
      expect_right(p, fmt::format("{} keeps {}", type, keeps));
    }
  Product p = product(64);
  p.saturates = true;
  EXPECT_EQ(run_product(p, p.text()).run.findings[0].kind, "refused");
}

TEST(Wgmma, TakesAFromRegisters) {
  for (const char* type : {"bf16", "f16"})
    for (const bool turned : {false, true})
      for (const uint32_t n : {8u, 64u, 136u, 256u}) {
        Product p = product(n, type);
        p.registers = true;
        p.b.turned = turned;
        p.keeps = n == 64;
        expect_right(p, fmt::format("{} n {}", type, n));
      }
}

TEST(Wgmma, AddsScalesAndRoundsSums) {
  for (const char* sum : {"f32", "f16"})
    for (const auto& [a, b] : {std::pair(1, 1), {1, -1}, {-1, 1}, {-1, -1}})
      for (const bool keeps : {false, true}) {
        Product p = product(48, "f16");
        p.sum = sum, p.scale_a = a, p.scale_b = b, p.keeps = keeps;
        expect_right(p, fmt::format("{} {} {} {}", sum, a, b, keeps));
      }
  for (const bool keeps : {false, true}) {
    Product p = product(32, "s8");
    p.keeps = keeps;
    expect_right(p, "s8");
    p = product(32, "e4m3");
    p.keeps = keeps, p.sum = "f16";
    expect_right(p, "e4m3 in f16");
  }
}

/// Random bits, infinities and NaNs among them: all instruction sets of the host give the same sums.
TEST(Wgmma, HostsAgree) {
  using namespace sim;
  std::mt19937 random(7);
  const auto fill = [&](auto& array) {
    for (auto& row : array)
      for (auto& word : row) word = static_cast<std::decay_t<decltype(word)>>(random());
  };
  for (int type = 0; type < 7; ++type)
    for (const WgmmaSum sum : {WgmmaSum::kF32, WgmmaSum::kF16, WgmmaSum::kS32}) {
      const auto element = static_cast<Multiplicand>(type);
      if ((sum == WgmmaSum::kS32) != (element >= Multiplicand::kS8)) continue;
      const uint32_t k = element == Multiplicand::kTf32 ? 8 : element <= Multiplicand::kBf16 ? 16 : 32, n = 40;
      for (const bool turned : {false, true}) {
        if (turned && k != 16) continue;
        alignas(64) static uint32_t before[128][32], after[2][128][32];
        alignas(64) static float a[2][16 * 32], b[2][40 * 32];
        fill(before);
        std::vector<std::array<std::array<uint32_t, 4>, 8>> source((16 + n) / 8 * 2);
        for (auto& piece : source)
          for (auto& row : piece)
            for (auto& word : row) word = random();
        std::vector<uint32_t> places(source.size() * 8);
        for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint32_t>(16 * i);
        int set = 0;
        for (const LaneTable* table : all_host_lanes()) {
          const int at = set++ ? 1 : 0;
          table->wgmma.decode(element, turned, false, source.data(), places.data(), 4, a[at]);
          table->wgmma.decode(element, turned, true, source.data() + 4, places.data(), n / 8 * 2, b[at]);
          std::memcpy(after[at], before, sizeof before);
          uint32_t* sums[128];
          for (int i = 0; i < 128; ++i) sums[i] = after[at][i];
          uint32_t* const* all = sums;
          const bool keeps = true;
          if (is_fp8(element))
            table->wgmma.multiply_fp8(element, element, sum, &all, a[at], b[at], n, k, &keeps, 1);
          else
            table->wgmma.multiply(sum, sums, a[at], b[at], n, k, true);
          ASSERT_TRUE(!at || std::memcmp(after[0], after[1], sizeof after[0]) == 0) << table->isa << " " << type;
        }
      }
    }
}

TEST(Wgmma, CountsWork) {
  const Product p = product(128);
  const ProductResult r = run_product(p, p.text());
  EXPECT_EQ(r.run.counts->mma_flops, 4u * 2 * 64 * 128 * 16);
  EXPECT_EQ(r.run.counts->mma, 16u) << "instructions of warps";
  EXPECT_EQ(r.run.counts->smem_wavefronts, r.run.counts->smem_ideal_wavefronts);
  EXPECT_GE(r.run.counts->smem_wavefronts, 4u * (64 + 128) * 32 / 128);
}

// ---- what is undefined ---------------------------------------------------------------------------------

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string kind_of(const Product& p, const std::string& text, uint32_t threads = 128) {
  const ProductResult r = run_product(p, text, 1, threads);
  return r.run.findings.empty() ? "" : r.run.findings[0].kind;
}
std::string message_of(const Product& p, const std::string& text) {
  const ProductResult r = run_product(p, text);
  return r.run.findings.empty() ? "" : r.run.findings[0].message;
}

TEST(WgmmaFindings, SumsInFlightAreUntouchable) {
  const Product p = product(16);
  const std::string text = p.text();
  ASSERT_EQ(kind_of(p, text), "");
  EXPECT_EQ(kind_of(p, with(text, "wgmma.wait_group.sync.aligned 0;\n", "")), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "wait_group.sync.aligned 0", "wait_group.sync.aligned 1")), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "wgmma.commit_group.sync.aligned;\n", "")), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", "add.f32 %d0, %d1, %d2;\n")), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", "mov.b32 %d0, 0;\n")), "async-pending");
  EXPECT_NE(message_of(p, with(text, "//committed\n", "add.f32 %f1, %d1, %d2;\n")).find("%d1"), std::string::npos);
}

/// ptxas makes one register of a register and its copy; only what is done with the copy counts.
TEST(WgmmaFindings, CopiesOfSumsInFlightAreInFlight) {
  const Product p = product(16);
  const std::string text = p.text(), copy = "mov.b32 %r30, %d3;\n", use = "add.u32 %r31, %r30, 1;\n";
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", copy)), "");
  EXPECT_EQ(kind_of(p, with(with(text, "//committed\n", copy), "//done\n", use)), "");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", copy + use)), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", copy + "mov.b32 %d3, %r30;\n")), "");
}

TEST(WgmmaFindings, RegistersOfAInFlightAreNotWritten) {
  Product p = product(16);
  p.registers = true;
  const std::string text = p.text();
  ASSERT_EQ(kind_of(p, text), "");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", "add.u32 %a4, %r1, %r1;\n")), "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "//done\n", "add.u32 %a4, %r1, %r1;\n")), "");
  EXPECT_EQ(kind_of(p, with(text, "//committed\n", "add.u32 %r31, %a4, 1;\n")), "") << "the product only reads it too";
}

TEST(WgmmaFindings, RegistersNeedAFence) {
  Product p = product(16);
  EXPECT_EQ(kind_of(p, with(p.text(), "wgmma.fence.sync.aligned;\n", "")), "race");
  p.keeps = true;
  const std::string text = p.text(), change = "add.f32 %d1, %d2, %d3;\n";
  ASSERT_EQ(kind_of(p, text), "");
  EXPECT_EQ(kind_of(p, with(text, "//before\n", change)), "");
  EXPECT_EQ(kind_of(p, with(text, "wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\n" + change)), "race");
  EXPECT_NE(
      message_of(p, with(text, "wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\n" + change)).find("%d1"),
      std::string::npos);
  p.registers = true;
  EXPECT_EQ(
      kind_of(p, with(p.text(), "wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\nand.b32 %a8, %a8, %a8;\n")),
      "race");
}

TEST(WgmmaFindings, SumsNeedAValueOnlyIfTheyAreKept) {
  Product p = product(16);
  EXPECT_EQ(kind_of(p, with(p.text(), "setp.ne.u32 %p3, 0, 0;", "setp.ne.u32 %p3, 1, 0;")), "uninitialised");
}

/// As the producer of a ring does: a tile is overwritten by any kind of write.
TEST(WgmmaFindings, TilesInFlightAreNotOverwritten) {
  const Product p = product(16);
  const std::string text = p.text(), sync = "bar.sync 0;\n";
  const std::string store = "@%p1 bra S1;\nst.shared.u32 [%r3], %r1;\nS1:\n";
  const std::string async = "@%p1 bra S1;\ncp.async.cg.shared.global [%r2], [%rd3], 16;\nS1:\n";
  const std::string load =
      "@%p1 bra S1;\nfence.proxy.async.shared::cta;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 8192;\n"
      "mov.u32 %r11, 0;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1, "
      "{%r11, %r11}], [%r4];\nS1:\nW2:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 1;\n@!%p2 bra W2;\n";
  for (const std::string& write : {store, async, load}) {
    EXPECT_EQ(kind_of(p, with(text, "//committed\n", sync + write)), "async-pending") << write;
    EXPECT_EQ(kind_of(p, with(text, "//done\n", sync + write)), "") << write;
    EXPECT_EQ(kind_of(p, with(text, "//done\n", write)), "") << "a product ends as a whole: " << write;
  }
}

TEST(WgmmaFindings, GenericWritesNeedAProxyFence) {
  Product p = product(16);
  const std::string text = p.text(), write = "st.shared.u32 [%r3], %r1;\n", fence = "fence.proxy.async.shared::cta;\n";
  const std::string one = "@%p1 bra S1;\n" + write + "//fence\nS1:\nbar.sync 0;\n";
  EXPECT_EQ(kind_of(p, with(text, "//before\n", "bar.sync 0;\n" + one)), "race");
  EXPECT_EQ(kind_of(p, with(with(text, "//before\n", "bar.sync 0;\n" + one), "//fence\n", fence)), "");
}

TEST(WgmmaFindings, TilesMustHaveLanded) {
  const Product p = product(16);
  const std::string text = p.text();
  EXPECT_EQ(kind_of(p, with(text, "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra LOADED;\n", "")),
            "async-pending");
  EXPECT_EQ(kind_of(p, with(text, "add.u32 %r3, %r2, 16384;", "add.u32 %r3, %r2, 20480;")), "")
      << "a tile may lie elsewhere";
}

TEST(WgmmaFindings, IllegalDescriptors) {
  const Product p = product(16);
  const std::string text = p.text();
  const auto changed = [&](const std::string& change) {
    return kind_of(p, with(text, "wgmma.mma_async", change + "wgmma.mma_async"));
  };
  EXPECT_EQ(changed("or.b64 %rd21, %rd21, 0x4000;\n"), "bad-descriptor") << "a reserved bit";
  EXPECT_EQ(changed("add.u64 %rd21, %rd21, 7;\n"), "bad-descriptor") << "past the row of the swizzle";
  EXPECT_EQ(changed("add.u64 %rd21, %rd21, 8;\n"), "bad-descriptor") << "not at the start of the pattern";
  EXPECT_EQ(changed("add.u64 %rd21, %rd21, 1024;\n"), "uninitialised") << "another place";
  EXPECT_EQ(changed("add.u64 %rd21, %rd21, 4096;\n"), "out-of-bounds");
  EXPECT_EQ(changed("cvt.u64.u32 %rd22, %r1;\nadd.u64 %rd21, %rd21, %rd22;\n"), "bad-descriptor")
      << "another for each lane";
}

TEST(WgmmaFindings, TheFourWarpsMeet) {
  const Product p = product(16);
  const std::string text = p.text();
  EXPECT_EQ(kind_of(p, with(text, "//before\n", "setp.gt.u32 %p5, %r1, 95;\n@%p5 exit;\n")), "partial-warp");
  EXPECT_EQ(kind_of(p, with(text, "//before\n", "setp.gt.u32 %p5, %r1, 126;\n@%p5 exit;\n")), "partial-warp");
}

// ---- registers per thread ------------------------------------------------------------------------------

/// Groups of 128 threads; each starts with 168 registers where there are three.
std::string registers_kernel(uint32_t threads, const std::string& body, const std::string& bounds = "") {
  std::string text = kernel_text(0, "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 7;\n" + body);
  text.replace(text.find(".target sm_90\n"), 14, ".target sm_90a\n");
  const size_t brace = text.find('{');
  return text.insert(brace, bounds.empty() ? fmt::format(".maxntid {}, 1, 1\n.minnctapersm 1\n", threads) : bounds);
}
std::string run_registers(uint32_t threads, const std::string& body, const std::string& bounds = "") {
  Bench b;
  if (const std::string error = b.load(registers_kernel(threads, body, bounds)); !error.empty()) return error;
  const RunResult r = b.run({1, 1, 1}, {threads, 1, 1});
  return r.findings.empty() ? "" : r.findings[0].kind + ": " + r.findings[0].message;
}
/// A producer gives registers back, the two others ask for `more`.
std::string roles(uint32_t less, uint32_t more) {
  return fmt::format(
      "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra P;\nsetmaxnreg.inc.sync.aligned.u32 {};\nbra E;\n"
      "P:\nsetmaxnreg.dec.sync.aligned.u32 {};\nE:\n",
      more, less);
}

TEST(SetRegisters, GroupsWaitForWhatOthersGiveBack) {
  EXPECT_EQ(run_registers(384, roles(24, 240)), "");
  EXPECT_EQ(run_registers(384, roles(40, 232)), "");
  EXPECT_EQ(run_registers(384, roles(32, 240)).substr(0, 8), "deadlock") << "504 registers are there, not 512";
  EXPECT_NE(run_registers(384, roles(32, 240)).find("setmaxnreg"), std::string::npos);
  EXPECT_EQ(run_registers(384, roles(24, 240), ".maxnreg 128\n").substr(0, 8), "deadlock");
  EXPECT_EQ(run_registers(384, roles(24, 240), ".maxnreg 168\n"), "");
}

TEST(SetRegisters, TheWarpsOfAGroupMayDoSoInBranches) {
  const auto branches = [](const char* one, const char* other) {
    return fmt::format(
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra P;\nsetmaxnreg.{}.sync.aligned.u32 32;\nbra E;\n"
        "P:\nsetmaxnreg.{}.sync.aligned.u32 {};\nE:\n",
        "dec", one, other);
  };
  EXPECT_EQ(run_registers(128, branches("dec", "32")), "");
  EXPECT_EQ(run_registers(128, branches("dec", "24")).substr(0, 12), "partial-warp") << "another count";
  EXPECT_EQ(run_registers(128, branches("inc", "32")).substr(0, 12), "partial-warp") << "another action";
}

TEST(SetRegisters, AreRefusedWhereTheyAreIllegal) {
  EXPECT_EQ(run_registers(128, "setmaxnreg.inc.sync.aligned.u32 64;\n", ".maxnreg 128\n").substr(0, 13),
            "bad-registers");
  EXPECT_EQ(run_registers(128, "setmaxnreg.dec.sync.aligned.u32 160;\n", ".maxnreg 128\n").substr(0, 13),
            "bad-registers");
  EXPECT_EQ(run_registers(96, "setmaxnreg.dec.sync.aligned.u32 32;\n").substr(0, 12), "partial-warp");
  EXPECT_EQ(run_registers(128, "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra E;\nsetmaxnreg.dec.sync.aligned.u32 32;\nE:\n")
                .substr(0, 12),
            "partial-warp");
  for (const char* n : {"20", "36", "264", "%r1"})
    EXPECT_NE(run_registers(128, fmt::format("setmaxnreg.dec.sync.aligned.u32 {};\n", n)).find("multiple of 8"),
              std::string::npos)
        << n;
}

// ---- refused -------------------------------------------------------------------------------------------

TEST(WgmmaText, IsCheckedWhenLoaded) {
  const Product p = product(16);
  const std::string text = p.text();
  const auto says = [&](const std::string& from, const std::string& to) {
    Bench b;
    return b.load(with(text, from, to));
  };
  EXPECT_NE(says(".target sm_90a", ".target sm_90").find("needs '.target sm_90a'"), std::string::npos);
  EXPECT_NE(says("m64n16k16", "m64n12k16").find("unknown instruction"), std::string::npos);
  EXPECT_NE(says("m64n16k16", "m64n16k8").find("unknown instruction"), std::string::npos);
  EXPECT_NE(says("k16.f32.bf16", "k16.f16.bf16").find("unknown instruction"), std::string::npos);
  EXPECT_NE(says("%d0, %d1,", "%d0, %d0,").find("twice"), std::string::npos);
  EXPECT_NE(says("%d0, %d1,", "%d1,").find("vector of 8 registers, found 7"), std::string::npos);
  EXPECT_NE(says("%p3, 1, 1", "%p3, 2, 1").find("must be the constant 1 or -1"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::sim_test::wgmma_test
