// Each kind of finding: a small kernel with the fault, and the corrected kernel without findings.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "support.h"
#include "tests/support/patterns.h"

namespace roofgen::sim_test::findings_test {
namespace {

constexpr const char* kShared = ".extern .shared .align 16 .b8 smem[];\n";

/// Runs a kernel that takes one 4 KiB poisoned buffer; returns the first finding's kind or "".
std::string run(const std::string& body, uint32_t threads = 64, uint32_t smem = 4096, uint32_t ctas = 1) {
  Bench bench;
  std::string error =
      bench.load(kernel_text(1, "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2, smem;\n" + body, kShared));
  if (!error.empty()) return error;
  return bench.arg(bench.poisoned(4096)).kind({ctas, 1, 1}, {threads, 1, 1}, smem);
}

TEST(Findings, OutOfBounds) {
  EXPECT_EQ(run("st.global.u32 [%rd1+4096], %r1;"), "out-of-bounds");
  EXPECT_EQ(run("st.global.u32 [%rd1+4092], %r1;", 1), "");
  EXPECT_EQ(run("st.global.u32 [%rd1+-4], %r1;"), "out-of-bounds");
  EXPECT_EQ(run("mov.u64 %rd2, 0; ld.global.u32 %r3, [%rd2];"), "out-of-bounds");
  EXPECT_EQ(run("mov.u64 %rd2, 0; ld.u32 %r3, [%rd2];"), "out-of-bounds");
  EXPECT_EQ(run("mov.u64 %rd2, 0xfffffffffffffffc; ld.global.u32 %r3, [%rd2];"), "out-of-bounds");
  EXPECT_EQ(run("st.shared.u32 [%r2+4096], %r1;", 1), "out-of-bounds");
  EXPECT_EQ(run("st.shared.u32 [%r2+4092], %r1;", 1), "");
  EXPECT_EQ(run("mov.u32 %r3, 0; st.shared.u32 [%r3], %r1;", 1), "out-of-bounds");
  EXPECT_EQ(run("st.shared.u32 [%r2], %r1;", 1, 0), "out-of-bounds");
  EXPECT_EQ(run(".local .align 4 .b8 loc[8]; st.local.u32 [loc+8], %r1;"), "out-of-bounds");
  EXPECT_EQ(run(".local .align 4 .b8 loc[8]; st.local.u32 [loc+4], %r1; ld.local.u32 %r3, [loc+4];"), "");
}

/// The variable of an address is followed through copies and sums; where it may be another, nothing is reported.
TEST(Findings, OutOfArray) {
  const auto two = [](const std::string& body) {
    return run(".shared .align 4 .b8 a[64]; .shared .align 4 .b8 b[64]; st.shared.u32 [b+60], %r1;" + body, 1);
  };
  EXPECT_EQ(two("st.shared.u32 [a+60], %r1;"), "");
  EXPECT_EQ(two("st.shared.u32 [a+64], %r1;"), "out-of-array");
  EXPECT_EQ(two("mov.u32 %r3, a; st.shared.u32 [%r3+64], %r1;"), "out-of-array");
  EXPECT_EQ(two("st.shared.u32 [a], %r1; mov.u32 %r3, b; st.shared.u32 [%r3+-4], %r1;"), "out-of-array");
  EXPECT_EQ(two("mov.u32 %r3, a+60; st.shared.u32 [%r3+8], %r1;"), "out-of-array");
  EXPECT_EQ(two("mov.u32 %r3, a; add.u32 %r4, %r1, 68; add.u32 %r5, %r4, %r3; st.shared.u32 [%r5], %r1;"),
            "out-of-array");
  EXPECT_EQ(two("mov.u32 %r3, a; mad.lo.u32 %r4, %r1, 4, %r3; st.shared.u32 [%r4+64], %r1;"), "out-of-array");
  EXPECT_EQ(two("mov.u64 %rd3, a; cvta.shared.u64 %rd4, %rd3; st.u32 [%rd4+64], %r1;"), "out-of-array");
  EXPECT_EQ(two("mov.u32 %r3, a; sub.u32 %r3, %r3, -64; st.shared.u32 [%r3], %r1;"), "out-of-array");
  // A literal that equals the address of a; a distance of two variables; one variable of two; computed bits.
  EXPECT_EQ(two("mov.u32 %r3, 1024; st.shared.u32 [%r3+64], %r1;"), "");
  EXPECT_EQ(two("mov.u32 %r3, a; mov.u32 %r4, b; sub.u32 %r5, %r4, %r3; add.u32 %r3, %r3, %r5; "
                "st.shared.u32 [%r3], %r1;"),
            "");
  EXPECT_EQ(two("mov.u32 %r3, a; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r3, b; st.shared.u32 [%r3], %r1;"), "");
  EXPECT_EQ(two("mov.u32 %r3, a; xor.b32 %r3, %r3, 64; st.shared.u32 [%r3], %r1;"), "");
}

TEST(Findings, Misaligned) {
  EXPECT_EQ(run("st.global.u32 [%rd1+2], %r1;", 1), "misaligned");
  EXPECT_EQ(run("st.global.v4.u32 [%rd1+8], {%r1,%r1,%r1,%r1};", 1), "misaligned");
  EXPECT_EQ(run("st.global.v4.u32 [%rd1+16], {%r1,%r1,%r1,%r1};", 1), "");
  EXPECT_EQ(run("st.shared.u64 [%r2+4], %rd1;", 1), "misaligned");
  EXPECT_EQ(run("add.s32 %r3,%r2,8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];", 32), "misaligned");
}

TEST(Findings, UninitialisedMemory) {
  const std::string used = " setp.eq.u32 %p5, %r3, 7; @%p5 trap;";
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2]; add.u32 %r3, %r3, 1;"), "");  // the value decides nothing
  EXPECT_EQ(run("ld.global.u32 %r3, [%rd1];" + used), "uninitialised");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2];" + used), "uninitialised");
  EXPECT_EQ(run("st.global.u16 [%rd1], 7; ld.global.u32 %r3, [%rd1];" + used, 1), "uninitialised");
  EXPECT_EQ(run("st.global.u16 [%rd1], 1; ld.global.u32 %r3, [%rd1];" + used, 1), "");  // the value is not 7
  EXPECT_EQ(run("st.global.u16 [%rd1], 1; st.global.u16 [%rd1+2], 1; ld.global.u32 %r3, [%rd1];" + used, 1), "");
  EXPECT_EQ(run("st.shared.u8 [%r2], 7; ld.shared.u16 %rs1, [%r2]; cvt.u32.u16 %r3, %rs1;" + used, 1), "uninitialised");
  EXPECT_EQ(run(".local .align 4 .b8 loc[8]; ld.local.u32 %r3, [loc];" + used), "uninitialised");
}

/// Warps and CTAs may store the same value to one location in any order.
TEST(Findings, ManyMaySetOneFlag) {
  EXPECT_EQ(run("st.global.u32 [%rd1], 1;", 64, 0, 2), "");
  EXPECT_EQ(run("mov.u32 %r3, 1; st.global.u32 [%rd1], %r3;", 64, 0, 2), "");
  EXPECT_EQ(run("mov.u32 %r4, %ctaid.x; add.u32 %r3, %r4, 1; st.global.u32 [%rd1], %r3;", 64, 0, 2), "race");
  EXPECT_EQ(run("mov.u32 %r4, %ntid.x; add.u32 %r3, %r4, 1; st.global.u32 [%rd1], %r3;", 64, 0, 2), "");
  EXPECT_EQ(run("mov.u32 %r3, 1; mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0; @%p1 mov.u32 %r3, 2; st.global.u32 "
                "[%rd1], %r3;",
                64, 0, 2),
            "race");
  EXPECT_EQ(
      run("mov.u32 %r3, 1; st.global.u32 [%rd1], %r3; bar.sync 0; ld.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, 1;", 64,
          0, 2),
      "");
  EXPECT_EQ(run("st.shared.u32 [%r2], 1;"), "");
  EXPECT_EQ(run("shr.u32 %r3, %r1, 5; st.shared.u32 [%r2], %r3;"), "race");
  EXPECT_EQ(run("st.shared.u32 [%r2], 1; ld.shared.u32 %r4, [%r2]; add.u32 %r4, %r4, 1;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1, %r1, 32; @%p1 st.shared.u32 [%r2], 1; @!%p1 ld.shared.u32 %r4, [%r2];"), "race");
}

TEST(Findings, AnEndlessLoopReportsEachWarpsPosition) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(
                1, "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 64;\n@!%p1 bra.uni DONE;\nL:\nbra.uni L;\nDONE:")),
            "");
  RunOptions options;
  options.max_warp_instructions = 5000;
  const RunResult r = bench.arg(bench.poisoned(4)).run({1, 1, 1}, {96, 1, 1}, 0, options);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].message, "the CTA ran 5000 warp-instructions without finishing: warps 0-1 at PTX line " +
                                       std::to_string(r.findings[0].ptx.line));
}

/// Copies of a struct in whole words include its padding; computations on padding bytes are findings.
TEST(Findings, CopiesMayHaveHoles) {
  for (const char* made :
       {"st.shared.u8 [%r2], 1; ld.shared.u32 %r3, [%r2];", "st.global.u16 [%rd1+8], 1; ld.global.u32 %r3, [%rd1+8];",
        ".local .align 4 .b8 loc[8]; st.local.u8 [loc+1], 1; ld.local.u32 %r3, [loc];"}) {
    EXPECT_EQ(run(std::string(made) + "st.global.u32 [%rd1], %r3;", 1), "");
    EXPECT_EQ(run(std::string(made) + "st.global.u32 [%rd1], %r3; add.u32 %r4, %r3, 1;", 1), "uninitialised");
    // Padding stays unwritten along the copy.
    for (const char* there : {"st.global.u32 [%rd1], %r3; ld.global.u8 %r4, [%rd1+3];",
                              "st.shared.u32 [%r2+64], %r3; ld.shared.u8 %r4, [%r2+67];"})
      EXPECT_EQ(run(std::string(made) + there + "add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4;", 1), "uninitialised")
          << made << there;
  }
  EXPECT_EQ(
      run("st.shared.u32 [%r2+4], 1; ld.shared.v2.u32 {%r3, %r4}, [%r2]; st.global.v2.u32 [%rd1], {%r3, %r4};", 1), "");
  EXPECT_EQ(run("st.shared.u32 [%r2+4], 1; ld.shared.v2.u32 {%r3, %r4}, [%r2]; st.global.v2.u32 [%rd1], {%r3, %r4}; "
                "ld.global.u32 %r5, [%rd1+4]; add.u32 %r5, %r5, 1; ld.global.u32 %r6, [%rd1]; add.u32 %r6, %r6, 1; "
                "st.global.u32 "
                "[%rd1], %r6;",
                1),
            "uninitialised");
  EXPECT_EQ(run("st.shared.u32 [%r2+4], 1; ld.shared.v2.u32 {%r3, %r4}, [%r2]; st.global.v2.u32 [%rd1], {%r3, %r4}; "
                "ld.global.u32 %r5, [%rd1+4]; add.u32 %r5, %r5, 1;",
                1),
            "");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd1], %r3;", 1), "uninitialised");
  EXPECT_EQ(
      run("st.shared.v2.u32 [%r2], {1, 2}; ld.shared.v2.u32 {%r3, %r4}, [%r2]; st.global.v2.u32 [%rd1], {%r3, %r4};",
          1),
      "");
}

/// Each bit of a register is followed on its own.
TEST(Findings, UndefinedBits) {
  // Byte 1 is written, with 0x80.
  const auto then = [](const std::string& use) {
    return run("st.shared.u8 [%r2+1], 128; ld.shared.u32 %r3, [%r2];" + use, 1);
  };
  const auto stored = [&](const std::string& made) { return then(made + " st.global.u32 [%rd1], %r4;"); };
  EXPECT_EQ(stored("and.b32 %r4, %r3, 0xff00;"), "");
  EXPECT_EQ(stored("and.b32 %r4, %r3, 0x1ff00;"), "uninitialised");
  EXPECT_EQ(stored("shr.u32 %r4, %r3, 8; cvt.u32.u8 %r4, %r4;"), "");
  EXPECT_EQ(stored("shr.u32 %r4, %r3, 7; cvt.u32.u8 %r4, %r4;"), "uninitialised");
  EXPECT_EQ(stored("mov.b32 {%rs1, %rs2}, %r3; shr.u16 %rs1, %rs1, 8; cvt.u32.u16 %r4, %rs1;"), "");
  EXPECT_EQ(stored("mov.b32 {%rs1, %rs2}, %r3; shr.u16 %rs2, %rs2, 8; cvt.u32.u16 %r4, %rs2;"), "uninitialised");
  EXPECT_EQ(stored("cvt.u64.u32 %rd5, %r3; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r4, %rd5;"), "");
  EXPECT_EQ(stored("bfe.s32 %r4, %r3, 8, 8;"), "");
  EXPECT_EQ(stored("setp.lt.s32 %p1, %r3, 0; selp.b32 %r4, 1, 1, %p1;"), "");
  EXPECT_EQ(stored("setp.lt.s32 %p1, %r3, 0; selp.b32 %r4, 1, 0, %p1;"), "uninitialised");
  EXPECT_EQ(stored("setp.lt.and.s32 %p1|%p2, %r3, 0, !%p3; selp.b32 %r4, 1, 0, %p2;"), "uninitialised");
  // Sub-words: the rest of a register is zeros or copies of the sign; only what is stored counts.
  EXPECT_EQ(stored("ld.shared.u8 %r4, [%r2]; shr.u32 %r4, %r4, 8;"), "");
  EXPECT_EQ(stored("ld.shared.s8 %r4, [%r2]; shr.u32 %r4, %r4, 8;"), "uninitialised");
  EXPECT_EQ(then("shr.u32 %r4, %r3, 8; st.global.u8 [%rd1], %r4;"), "");
  EXPECT_EQ(then("shr.u32 %r4, %r3, 8; st.global.u16 [%rd1], %r4;"), "uninitialised");
  // A shuffle passes the bits on; addresses, branches and guards need theirs.
  EXPECT_EQ(stored("shfl.sync.idx.b32 %r5, %r3, 0, 31, 1; and.b32 %r4, %r5, 0x8000;"), "");
  EXPECT_EQ(stored("shfl.sync.idx.b32 %r5, %r3, 0, 31, 1; and.b32 %r4, %r5, 0x10000;"), "uninitialised");
  EXPECT_EQ(then("and.b32 %r4, %r3, 0x8000; shr.u32 %r4, %r4, 8; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], 1;"), "");
  EXPECT_EQ(then("and.b32 %r4, %r3, 0x40; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], 1;"), "uninitialised");
  EXPECT_EQ(then("and.b32 %r4, %r3, 0x8000; setp.ne.u32 %p1, %r4, 0; @%p1 bra L; add.u32 %r3, %r3, 1;\nL:"), "");
  EXPECT_EQ(then("and.b32 %r4, %r3, 0x800000; setp.ne.u32 %p1, %r4, 0; @%p1 mov.u32 %r4, 1;"), "uninitialised");
  // Of a register that was never assigned, too.
  EXPECT_EQ(run("and.b32 %r4, %r9, 0xf; shr.u32 %r4, %r4, 4; st.global.u32 [%rd1], %r4;", 1), "");
  EXPECT_EQ(run("and.b32 %r4, %r9, 0xf; shr.u32 %r4, %r4, 3; st.global.u32 [%rd1], %r4;", 1), "uninitialised");
  EXPECT_EQ(run("and.b32 %r4, %r9, 0xf00; st.global.u8 [%rd1], %r4;", 1), "");
}

/// In shared and local memory the bits beside a written bit-field stay undefined.
TEST(Findings, BitFieldsInMemory) {
  const std::string field = "bfi.b32 %r4, 5, %r3, 4, 4; ";
  const auto then = [&](const std::string& use) {
    return run("ld.shared.u32 %r3, [%r2]; " + field + "st.shared.u32 [%r2], %r4; " + use, 1);
  };
  const auto bits = [](const std::string& mask) {
    return " ld.shared.u32 %r5, [%r2]; and.b32 %r5, %r5, " + mask + "; st.global.u32 [%rd1], %r5;";
  };
  EXPECT_EQ(then(""), "");
  EXPECT_EQ(then(bits("0xf0")), "");
  EXPECT_EQ(then(bits("0xf1")), "uninitialised");
  EXPECT_EQ(then(bits("0x1f0")), "uninitialised");
  EXPECT_EQ(then("ld.shared.s8 %r5, [%r2]; shr.s32 %r5, %r5, 4; st.global.u32 [%rd1], %r5;"), "");
  // The next fields: of this byte, and of another by a word and by a byte.
  const std::string more = "ld.shared.u32 %r6, [%r2]; bfi.b32 %r6, 5, %r6, 0, 4; st.shared.u32 [%r2], %r6;";
  EXPECT_EQ(then(more + bits("0xff")), "");
  EXPECT_EQ(then(more + bits("0x1ff")), "uninitialised");
  EXPECT_EQ(then("st.shared.u8 [%r2+1], 1;" + bits("0xfff0")), "");
  // A copy has the field, too.
  EXPECT_EQ(then("ld.shared.u32 %r7, [%r2]; st.shared.u32 [%r2+64], %r7; add.u32 %r2, %r2, 64;" + bits("0xf0")), "");
  // Other bits that become undefined there later.
  const std::string hole = "st.shared.u8 [%r2+65], 1; ld.shared.u32 %r7, [%r2+64]; st.shared.u32 [%r2], %r7;";
  EXPECT_EQ(then("st.shared.u32 [%r2], 1; " + hole + bits("0xff00")), "");
  EXPECT_EQ(then("st.shared.u32 [%r2], 1; " + hole + bits("0xf0")), "uninitialised");
  // Neither a computed value, nor one from elsewhere, nor device memory.
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2]; add.u32 %r4, %r3, 1; st.shared.u32 [%r2], %r4;", 1), "uninitialised");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2]; " + field + "st.shared.u32 [%r2+4], %r4;", 1), "uninitialised");
  EXPECT_EQ(run("ld.global.u32 %r3, [%rd1]; " + field + "st.global.u32 [%rd1], %r4;", 1), "uninitialised");
  const std::string local =
      ".local .align 4 .b8 loc[8]; ld.local.u32 %r3, [loc]; " + field + "st.local.u32 [loc], %r4;";
  EXPECT_EQ(run(local + "ld.local.u8 %r5, [loc]; shr.u32 %r5, %r5, 4; st.global.u32 [%rd1], %r5;", 1), "");
  EXPECT_EQ(run(local + "ld.local.u8 %r5, [loc]; shr.u32 %r5, %r5, 3; st.global.u32 [%rd1], %r5;", 1), "uninitialised");
}

TEST(Findings, UninitialisedRegisters) {
  const auto stored = [](const std::string& made, const std::string& kind) {
    EXPECT_EQ(run(made + " st.global.u32 [%rd1], %r3;", 1), kind) << made;
  };
  // A computation on an uninitialised value is uninitialised, but not a finding until it leaves the registers ...
  EXPECT_EQ(run("add.s32 %r3, %r4, 1;"), "");
  stored("add.s32 %r3, %r4, 1;", "uninitialised");
  stored("setp.lt.u32 %p1,%r1,5; @!%p1 mov.u32 %r4, 7; add.s32 %r3, %r4, 1;", "uninitialised");
  stored("setp.lt.u32 %p1,%r1,5; @%p1 mov.u32 %r4, 7; add.s32 %r3, %r4, 1;", "");
  stored("mov.u32 %r3, 1; @%p1 mov.u32 %r3, 2;", "uninitialised");
  // ... or affects a branch, an address or a shuffle's lane.
  EXPECT_EQ(run("setp.lt.u32 %p1,%r4,5; @%p1 bra L; mov.u32 %r3, 1;\nL:"), "uninitialised");
  EXPECT_EQ(run("cvt.u64.u32 %rd5,%r4; add.u64 %rd5,%rd5,%rd1; ld.global.u32 %r3,[%rd5];", 1), "uninitialised");
  EXPECT_EQ(run("shfl.sync.idx.b32 %r3,%r1,%r4,31,-1;"), "uninitialised");
  // For a selection, only the selected value counts.
  const std::string some = "setp.eq.u32 %p1,%r1,0; @%p1 mov.u32 %r4, 7; ";
  stored(some + "selp.u32 %r3, %r4, 0, %p1;", "");
  stored(some + "selp.u32 %r3, 0, %r4, %p1; mov.u32 %r5, 1; selp.u32 %r3, %r5, %r3, %p1;", "");
  stored("setp.ne.u32 %p1,%r1,0; @%p1 mov.u32 %r4, 7; selp.u32 %r3, 0, %r4, %p1;", "uninitialised");
  // One true operand decides "or" and one false operand decides "and"; other operands do not.
  const std::string decide = "setp.eq.u32 %p1,%r1,0; setp.ne.u32 %p2,%r1,0; setp.lt.u32 %p3,%r5,3; ";
  stored(decide + "or.pred %p4,%p1,%p3; selp.u32 %r3,1,2,%p4;", "");
  stored(decide + "or.pred %p4,%p3,%p2; selp.u32 %r3,1,2,%p4;", "uninitialised");
  stored(decide + "and.pred %p4,%p3,%p2; selp.u32 %r3,1,2,%p4;", "");
  stored(decide + "and.pred %p4,%p1,%p3; selp.u32 %r3,1,2,%p4;", "uninitialised");
  stored(decide + "setp.lt.or.u32 %p4,%r5,3,%p1; selp.u32 %r3,1,2,%p4;", "");
  stored(decide + "setp.lt.and.u32 %p4,%r5,3,%p1; selp.u32 %r3,1,2,%p4;", "uninitialised");
  stored(decide + "setp.lt.and.u32 %p4,%r5,3,!%p1; selp.u32 %r3,1,2,%p4;", "");
  stored(decide + "setp.lt.xor.u32 %p4,%r5,3,%p1; selp.u32 %r3,1,2,%p4;", "uninitialised");
  // For a shuffle, the received value counts.
  EXPECT_EQ(run(some + "shfl.sync.idx.b32 %r3,%r4,0,31,-1; st.global.u32 [%rd1], %r3;", 32), "");
  EXPECT_EQ(run(some + "shfl.sync.idx.b32 %r3,%r4,1,31,-1; st.global.u32 [%rd1], %r3;", 32), "uninitialised");
  EXPECT_EQ(run(some + "shfl.sync.down.b32 %r3,%r4,1,31,-1;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 mov.u32 %r4, 7; @!%p1 mov.u32 %r4, 8; add.s32 %r3, %r4, 1;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 mov.u32 %r4, 7; @%p1 add.s32 %r3, %r4, 1;"), "");
  EXPECT_EQ(run("@%p1 mov.u32 %r4, 7;"), "uninitialised");
  EXPECT_EQ(run("mov.u32 %r4, %r5;"), "");
  EXPECT_EQ(run("mov.u32 %r4, %r5; st.global.u32 [%rd1], %r4;", 1), "uninitialised");
  // In a loop: assigned only on later iterations.
  EXPECT_EQ(run("mov.u32 %r3,0;\nL: setp.eq.u32 %p1,%r3,0; @%p1 bra M; add.s32 %r6,%r5,1;\nM: mov.u32 %r5,1; "
                "add.s32 %r3,%r3,1; setp.lt.u32 %p2,%r3,3; @%p2 bra L;"),
            "");
}

TEST(Findings, DivergentBarrier) {
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bar.sync 0;"), "divergent-barrier");
  EXPECT_EQ(run("bar.sync 0;"), "");
  // Different warps may reach the same barrier on different paths.
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 bra L; bar.sync 0; bra M;\nL: bar.sync 0;\nM:"), "");
  // A barrier does not wait for threads that have exited or exit next; threads with further work have missed the
  // barrier.
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bra L; bar.sync 0;\nL: exit;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bra L; bar.sync 0; mov.u32 %r3,1;\nL: add.u32 %r3,%r1,1; exit;"),
            "divergent-barrier");
  // A lane that waits for another warp may come to the barrier afterwards, and does, or does not.
  const auto late = [](const std::string& leaves) {
    return ".shared .align 8 .b8 mb[8];\nmov.u32 %r4, mb; setp.ne.u32 %p1,%r1,0; @%p1 bra A;\n"
           "mbarrier.init.shared.b64 [%r4], 1;\nA: bar.sync 0; @%p1 bra M;\n"
           "W: mbarrier.try_wait.parity.shared.b64 %p2,[%r4],0; @!%p2 bra W;\n"
           "setp.eq.u32 %p2,%r1," +
           leaves +
           "; @%p2 bra N;\n"
           "M: setp.eq.u32 %p2,%r1,32; @%p2 mbarrier.arrive.shared.b64 _,[%r4];\nbar.sync 0;\nN: add.u32 %r3,%r1,1;";
  };
  EXPECT_EQ(run(late("1")), "");
  EXPECT_EQ(run(late("0")), "divergent-barrier");
  // The join may lie before the code that leads to it, unless that code has a barrier of its own.
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bra L;\nM: bar.sync 0; bra N;\nL: mov.u32 %r3,0;\nK: add.u32 %r3,%r3,1; "
                "setp.lt.u32 %p2,%r3,%r1; @%p2 bra K; bra M;\nN:"),
            "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bra L;\nM: bar.sync 0; bra N;\nL: bar.sync 0; bra M;\nN:"),
            "divergent-barrier");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 exit; bar.sync 0;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 exit; bar.sync 0;"), "");
  // Parts of a warp may reach the unaligned form.
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 bra L; barrier.sync 0; bra M;\nL: barrier.sync 0;\nM:"), "");
}

TEST(Findings, Deadlock) {
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 bar.sync 1, 64;"), "deadlock");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 bar.sync 1, 32;"), "");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 bra L; bar.sync 0; bra M;\nL: bar.sync 1;\nM:"), "deadlock");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,32; @%p1 bra L; bar.sync 1, 64; bra M;\nL: bar.arrive 1, 64;\nM:"), "");
}

TEST(Findings, BadBarrier) {
  EXPECT_EQ(run("bar.sync 16;"), "bad-barrier");
  EXPECT_EQ(run("bar.sync 1, 33;"), "bad-barrier");
  EXPECT_EQ(run("bar.sync 1, 128;"), "bad-barrier");
  // A warp that arrives and then waits counts twice, as each of its arrivals does.
  const std::string two =
      "setp.ge.u32 %p2,%r1,64; @%p2 exit; setp.lt.u32 %p1,%r1,32; @%p1 bra L; bar.sync 1, 96; bra M;\n";
  EXPECT_EQ(run(two + "L: bar.arrive 1, 96; bar.sync 1, 96;\nM:", 96), "");
  EXPECT_EQ(run(two + "L: bar.arrive 1, 96; bar.arrive 1, 96;\nM:", 96), "bad-barrier");
}

const char* kFillRow = "shl.b32 %r3,%r1,4; add.s32 %r4,%r2,%r3; st.shared.v4.u32 [%r4], {%r1,%r1,%r1,%r1};\n";

TEST(Findings, SharedRaces) {
  std::string neighbour = "xor.b32 %r5,%r3,512; add.s32 %r5,%r2,%r5;\n";  // the same location in the other warp's half
  EXPECT_EQ(run(kFillRow + neighbour + "ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5];"),
            "race");  // warp 0 reads too early
  EXPECT_EQ(run(kFillRow + neighbour + "setp.ge.u32 %p1,%r1,32; @%p1 ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5];"),
            "race");
  EXPECT_EQ(run(kFillRow + neighbour + "bar.sync 0; ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5];"), "");
  EXPECT_EQ(run(kFillRow + neighbour +
                "bar.sync 0; ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5]; st.shared.v4.u32 [%r4], "
                "{%r1,%r1,%r1,%r1};"),
            "race");
  EXPECT_EQ(run(kFillRow + neighbour +
                "bar.sync 0; ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5]; bar.sync 0; st.shared.v4.u32 [%r4], "
                "{%r1,%r1,%r1,%r1};"),
            "");
  EXPECT_EQ(run("shr.u32 %r3,%r1,5; st.shared.u32 [%r2], %r3;"), "race");
  // Two warps that access two halves of one word do not race; in the same byte they do.
  EXPECT_EQ(run("shr.u32 %r3,%r1,5; shl.b32 %r3,%r3,1; add.s32 %r4,%r2,%r3; st.shared.u16 [%r4], 1;"), "");
  EXPECT_EQ(run("shr.u32 %r3,%r1,5; st.shared.u8 [%r2], %r3;"), "race");
  EXPECT_EQ(run("shr.u32 %r3,%r1,5; shl.b32 %r3,%r3,2; add.s32 %r4,%r2,%r3; st.shared.u32 [%r4], 1;"), "");
  EXPECT_EQ(run("st.volatile.shared.u32 [%r2], 1;"), "");
}

TEST(Findings, NamedBarriersOrderOnlyTheirWarps) {
  // 4 warps; warps 0 and 1 use barrier 1, warps 2 and 3 barrier 2.
  std::string pair = "shr.u32 %r10,%r1,6; add.s32 %r10,%r10,1;\n";
  std::string read = "xor.b32 %r5,%r3,512; add.s32 %r5,%r2,%r5; ld.shared.v4.u32 {%r6,%r7,%r8,%r9}, [%r5];\n";
  // Only the later pair reads the other pair's data, which is already written.
  std::string across =
      "xor.b32 %r5,%r3,1024; add.s32 %r5,%r2,%r5; setp.ge.u32 %p1,%r1,64; @%p1 ld.shared.v4.u32 "
      "{%r6,%r7,%r8,%r9}, [%r5];\n";
  EXPECT_EQ(run(pair + kFillRow + "bar.sync %r10, 64;\n" + read, 128), "");
  EXPECT_EQ(run(pair + kFillRow + "bar.sync %r10, 64;\n" + across, 128), "race");
  EXPECT_EQ(run(pair + kFillRow + "bar.sync %r10, 64; bar.sync 0;\n" + across, 128), "");
  // Rewriting a warp's own row is correct after the pair has synchronised, whatever the other pair does.
  EXPECT_EQ(run(pair + kFillRow + "bar.sync %r10, 64;\n" + read + "bar.sync %r10, 64;\n" + kFillRow +
                    "bar.sync %r10, 64;\n" + read,
                128),
            "");
  // An arrival orders earlier accesses, not later ones.
  std::string produce =
      "setp.lt.u32 %p1,%r1,32; @!%p1 bra C; mov.u32 %r3,0; st.shared.u32 [%r2], 5; bar.arrive 1, 64; ";
  EXPECT_EQ(run(produce + "bra E;\nC: bar.sync 1, 64; ld.shared.u32 %r4,[%r2];\nE:"), "");
  EXPECT_EQ(run(produce + "st.shared.u32 [%r2], 6; bra E;\nC: bar.sync 1, 64; ld.shared.u32 %r4,[%r2];\nE:"), "race");
}

/// cp.async of 16 bytes per thread from the initialised buffer into shared memory.
std::string copy(const std::string& rest, uint32_t threads = 32) {
  return run(
      "shl.b32 %r3,%r1,4; cvt.u64.u32 %rd3,%r3; add.s64 %rd4,%rd1,%rd3; st.global.v4.u32 [%rd4], "
      "{%r1,%r1,%r1,%r1};\n"
      "add.s32 %r4,%r2,%r3; cp.async.cg.shared.global [%r4], [%rd4], 16;\n" +
          rest,
      threads);
}

TEST(Findings, AsyncCopies) {
  const std::string read = "ld.shared.u32 %r5,[%r4];";
  EXPECT_EQ(copy(read), "async-pending");
  EXPECT_EQ(copy("cp.async.commit_group; " + read), "async-pending");
  EXPECT_EQ(copy("cp.async.wait_group 0; " + read), "async-pending");  // never committed
  EXPECT_EQ(copy("cp.async.commit_group; cp.async.wait_group 1; " + read), "async-pending");
  EXPECT_EQ(copy("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1; " + read), "");
  EXPECT_EQ(copy("cp.async.commit_group; cp.async.wait_group 0; " + read), "");
  EXPECT_EQ(copy("cp.async.wait_all; " + read), "");
  EXPECT_EQ(copy("st.shared.u32 [%r4], 1;"), "async-pending");
  EXPECT_EQ(copy("cp.async.cg.shared.global [%r4], [%rd4], 16;"), "async-pending");
  // Waiting makes the data visible to the waiting thread only; others need a barrier.
  const std::string other = "xor.b32 %r6,%r3,512; add.s32 %r6,%r2,%r6; ld.shared.u32 %r7,[%r6];";
  const std::string later =
      "setp.ge.u32 %p1,%r1,32; xor.b32 %r6,%r3,512; add.s32 %r6,%r2,%r6; @%p1 ld.shared.u32 %r7,[%r6];";
  EXPECT_EQ(copy("cp.async.wait_all; " + later, 64), "race");
  EXPECT_EQ(copy("cp.async.wait_all; bar.sync 0; " + other, 64), "");
  // The warp that completes a barrier continues first, so warp 0 reads the data that warp 1 has waited for.
  const std::string first_warp =
      "setp.lt.u32 %p1,%r1,32; xor.b32 %r6,%r3,512; add.s32 %r6,%r2,%r6; @%p1 ld.shared.u32 %r7,[%r6];";
  EXPECT_EQ(copy("bar.sync 0; cp.async.wait_all; " + first_warp, 64), "race");
  EXPECT_EQ(copy("bar.sync 0; cp.async.wait_all; " + other, 64), "async-pending");
  // Overwrites data that another warp reads between the same barriers.
  const std::string again = "cp.async.cg.shared.global [%r4], [%rd4], 16;";
  EXPECT_EQ(copy("cp.async.wait_all; bar.sync 0; setp.ge.u32 %p1,%r1,32; xor.b32 %r6,%r3,512; add.s32 %r6,%r2,%r6;"
                 "@%p1 ld.shared.u32 %r7,[%r6]; @!%p1 " +
                     again,
                 64),
            "race");
  EXPECT_EQ(
      copy("cp.async.wait_all; bar.sync 0; " + other + "bar.sync 0; cp.async.cg.shared.global [%r4], [%rd4], 16;", 64),
      "");
}

TEST(Findings, AsyncCopyZeroFillsPastTheSourceSize) {
  Bench bench;
  ASSERT_EQ(
      bench.load(kernel_text(2,
                             "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; mov.u32 %r2,smem; mov.u32 %r3, 6;\n"
                             "cp.async.ca.shared.global [%r2], [%rd1], 8, %r3;\n"
                             "mov.u64 %rd9, 0; mov.u32 %r4,0; cp.async.cg.shared.global [%r2+16], [%rd9], 16, %r4;\n"
                             "cp.async.wait_all; ld.shared.u64 %rd3,[%r2]; st.global.u64 [%rd2],%rd3;\n"
                             "ld.shared.u64 %rd3,[%r2+24]; st.global.u64 [%rd2+8],%rd3;",
                             kShared)),
      "");
  DevicePtr out = bench.poisoned(16);
  RunResult r = bench.arg(bench.buffer(std::vector<uint64_t>{~uint64_t{0}})).arg(out).run({1, 1, 1}, {1, 1, 1}, 64);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  auto v = bench.read<uint64_t>(out, 2);
  EXPECT_EQ(v[0], 0x0000ffffffffffffu);
  EXPECT_EQ(v[1], 0u);  // source size 0: the source address is never used
}

TEST(Findings, PartialWarp) {
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];"), "partial-warp");
  EXPECT_EQ(run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];", 48), "uninitialised");
  EXPECT_EQ(run("setp.ge.u32 %p1,%r1,32; @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];", 48),
            "partial-warp");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,5; @%p1 shfl.sync.bfly.b32 %r3,%r1,1,31,-1;"), "partial-warp");
  EXPECT_EQ(run("shfl.sync.bfly.b32 %r3,%r1,1,31,-1;"), "");
  EXPECT_EQ(run("shfl.sync.bfly.b32 %r3,%r1,1,31,1;"), "bad-member-mask");
  EXPECT_EQ(run("setp.lt.u32 %p1,%r1,2; @%p1 shfl.sync.bfly.b32 %r3,%r1,1,31,3;"), "");
}

TEST(Findings, InputsAreReadOnly) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, "ld.param.u64 %rd1,[p0]; st.global.u32 [%rd1], 1;")), "");
  auto input = bench.executor().allocate(
      64, "x", [](uint64_t, std::span<std::byte> out) { std::fill(out.begin(), out.end(), std::byte{1}); });
  ASSERT_TRUE(input);
  EXPECT_EQ(bench.arg(*input).kind({1, 1, 1}, {1, 1, 1}), "write-to-input");
}

TEST(Findings, RacesBetweenCtas) {
  EXPECT_EQ(run("mov.u32 %r3,%ctaid.x; st.global.u32 [%rd1], %r3;", 1, 0, 2), "race");
  EXPECT_EQ(
      run("mov.u32 %r3,%ctaid.x; mul.wide.u32 %rd2,%r3,4; add.s64 %rd3,%rd1,%rd2; st.global.u32 [%rd3], 1;", 1, 0, 2),
      "");
  EXPECT_EQ(run("mov.u32 %r3,%ctaid.x; setp.eq.u32 %p1,%r3,0; @%p1 st.global.u32 [%rd1], 1; @!%p1 "
                "ld.global.u32 %r4,[%rd1];",
                1, 0, 2),
            "race");
  // A second launch may overwrite the first one's results.
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, "ld.param.u64 %rd1,[p0]; st.global.u32 [%rd1], 1;")), "");
  DevicePtr out = bench.poisoned(4);
  EXPECT_EQ(bench.arg(out).kind({1, 1, 1}, {1, 1, 1}), "");
  EXPECT_EQ(bench.arg(out).kind({1, 1, 1}, {1, 1, 1}), "");
}

TEST(Findings, CtasMayShareAWordWrittenByAnEarlierLaunch) {
  const std::string own =
      "ld.param.u64 %rd1,[p0]; mov.u32 %r3,%ctaid.x; mul.wide.u32 %rd2,%r3,2; add.s64 %rd3,%rd1,%rd2; cvt.u16.u32 "
      "%rs1,%r3;";
  const std::string store = "st.global.u16 [%rd3], %rs1;";
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, own + store)), "");
  DevicePtr out = bench.poisoned(8);
  for (int launch = 0; launch < 3; ++launch) EXPECT_EQ(bench.arg(out).kind({4, 1, 1}, {1, 1, 1}), "") << launch;
  // The byte below a thread's own half belongs to another thread.
  Bench wide;
  ASSERT_EQ(wide.load(kernel_text(1, own + "setp.eq.u32 %p1,%r3,1; @%p1 st.global.u8 [%rd3+-1], 7;" + store)), "");
  EXPECT_EQ(wide.arg(wide.poisoned(8)).kind({4, 1, 1}, {1, 1, 1}), "race");
}

TEST(Findings, HangsAreFound) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(0, "L: bra L;")), "");
  RunOptions options;
  options.max_warp_instructions = 10000;
  RunResult r = bench.run({1, 1, 1}, {32, 1, 1}, 0, options);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, "instruction-limit");
  EXPECT_EQ(r.findings[0].ptx.line, 13);
}

TEST(Findings, TrapAndBranchTables) {
  EXPECT_EQ(run("trap;"), "trap");
  EXPECT_EQ(run("setp.eq.u32 %p1,%r1,99; @%p1 trap;"), "");
  std::string table = "T: .branchtargets A, B;\nand.b32 %r3,%r1,";
  EXPECT_EQ(run(table + "1; brx.idx %r3, T;\nA: bra E;\nB: bra E;\nE: bar.sync 0;"), "");
  EXPECT_EQ(run(table + "3; brx.idx %r3, T;\nA: bra E;\nB: bra E;\nE: bar.sync 0;"), "bad-branch");
}

TEST(Findings, HaveAPosition) {
  Bench bench;
  std::string ptx = kernel_text(1,
                                "ld.param.u64 %rd1,[p0];\n.loc 1 42 7\nld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, "
                                "1;\nst.global.u32 [%rd1], "
                                "%r1;") +
                    ".file 1 \"kernel.cu.jinja\"\n";
  ASSERT_EQ(bench.load(ptx), "");
  RunResult r = bench.arg(bench.poisoned(64, "scores")).run({3, 1, 1}, {32, 1, 1});
  ASSERT_EQ(r.findings.size(), 3u);  // one per CTA
  EXPECT_EQ(r.findings[0].source.file, "kernel.cu.jinja");
  EXPECT_EQ(r.findings[0].source.line, 42);
  EXPECT_EQ(r.findings[0].kernel, "k");
  EXPECT_EQ(r.findings[2].cta, 2u);
  EXPECT_NE(r.findings[0].message.find("scores[byte 0]"), std::string::npos) << r.findings[0].message;
}

/// docs/use/findings.md has a heading for every kind in the sources, and every documented kind exists.
TEST(Findings, AreAllDocumented) {
  std::set<std::string> raised, documented;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFGEN_SOURCE_DIR "/runtime/sim")) {
    std::ifstream in(entry.path());
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::string raise =
        "(?:Fault\\{|finding\\(|report\\([\\w.()]+, |require_full\\(w, in, mask, )\\s*\"([a-z-]+)\"";
    for (const test::Match& m : test::matches(text, raise)) raised.insert(m[1]);
  }
  std::ifstream in(ROOFGEN_SOURCE_DIR "/docs/use/findings.md");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (const test::Match& m : test::matches(text, "\n### `([a-z-]+)`\n")) documented.insert(m[1]);
  EXPECT_GT(raised.size(), 10u);
  EXPECT_EQ(raised, documented);
}

}  // namespace
}  // namespace roofgen::sim_test::findings_test
