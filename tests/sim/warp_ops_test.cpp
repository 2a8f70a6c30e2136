// Instructions across lanes, divergence, barriers with votes, atomics, scopes, memory forms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "support.h"

namespace roofgen::sim_test::warp_ops_test {
namespace {

constexpr const char* kShared = ".extern .shared .align 16 .b8 smem[];\n";

/// Each thread stores %r9 to out[tid].
std::vector<uint32_t> values(const std::string& body, uint32_t threads = 32, const std::string& head = kShared) {
  Bench bench;
  std::string text =
      kernel_text(1,
                  "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd2,%r1,4; add.s64 %rd3,%rd1,%rd2;\n" +
                      body + "\nst.global.u32 [%rd3],%r9;",
                  head);
  std::string error = bench.load(text);
  EXPECT_EQ(error, "") << body;
  if (!error.empty()) return std::vector<uint32_t>(threads);
  DevicePtr out = bench.poisoned(threads * 4);
  RunResult r = bench.arg(out).run({1, 1, 1}, {threads, 1, 1}, 1024);
  for (const Finding& f : r.findings) ADD_FAILURE() << f.kind << ": " << f.message << "\n" << body;
  return bench.read<uint32_t>(out, threads);
}

void expect_each(const std::string& body, const std::function<uint32_t(uint32_t)>& want, uint32_t threads = 32) {
  auto got = values(body, threads);
  for (uint32_t i = 0; i < threads; ++i) EXPECT_EQ(got[i], want(i)) << body << " lane " << i;
}

TEST(WarpOps, Shuffles) {
  expect_each("shfl.sync.bfly.b32 %r9,%r1,5,31,-1;", [](uint32_t i) { return i ^ 5; });
  expect_each("shfl.sync.up.b32 %r9,%r1,3,0,-1;", [](uint32_t i) { return i < 3 ? i : i - 3; });
  expect_each("shfl.sync.down.b32 %r9,%r1,3,31,-1;", [](uint32_t i) { return i > 28 ? i : i + 3; });
  expect_each("shfl.sync.idx.b32 %r9,%r1,7,31,-1;", [](uint32_t) { return 7u; });
  // Width 8: c = ((32 - 8) << 8) | 31 for idx, bfly and down, (24 << 8) for up.
  expect_each("shfl.sync.idx.b32 %r9,%r1,2,6175,-1;", [](uint32_t i) { return (i & 24) + 2; });
  expect_each("shfl.sync.down.b32 %r9,%r1,2,6175,-1;", [](uint32_t i) { return (i & 7) > 5 ? i : i + 2; });
  expect_each("shfl.sync.up.b32 %r9,%r1,2,6144,-1;", [](uint32_t i) { return (i & 7) < 2 ? i : i - 2; });
  expect_each("shfl.sync.up.b32 %r3|%p1,%r1,3,0,-1; selp.u32 %r9,1,0,%p1;",
              [](uint32_t i) { return i >= 3 ? 1u : 0u; });
}

TEST(WarpOps, ConstantsBecomePredicates) {
  expect_each("setp.lt.u32 %p1,%r1,5; mov.pred %p1,0; selp.u32 %r9,7,%r1,%p1;", [](uint32_t i) { return i; });
  expect_each("setp.lt.u32 %p1,%r1,5; mov.pred %p1,-1; selp.u32 %r9,7,%r1,%p1;", [](uint32_t) { return 7u; });
  expect_each("setp.lt.u32 %p1,%r1,5; mov.pred %p2,1; @%p1 mov.pred %p2,0; selp.u32 %r9,1,0,%p2;",
              [](uint32_t i) { return i < 5 ? 0u : 1u; });
}

TEST(WarpOps, VotesAndReductions) {
  expect_each("setp.lt.u32 %p1,%r1,5; vote.sync.ballot.b32 %r9,%p1,-1;", [](uint32_t) { return 31u; });
  expect_each("setp.lt.u32 %p1,%r1,5; vote.sync.any.pred %p2,%p1,-1; selp.u32 %r9,1,0,%p2;",
              [](uint32_t) { return 1u; });
  expect_each("setp.lt.u32 %p1,%r1,5; vote.sync.all.pred %p2,!%p1,-1; selp.u32 %r9,1,0,%p2;",
              [](uint32_t) { return 0u; });
  expect_each("setp.lt.u32 %p1,%r1,99; vote.sync.uni.pred %p2,%p1,-1; selp.u32 %r9,1,0,%p2;",
              [](uint32_t) { return 1u; });
  expect_each("redux.sync.add.u32 %r9,%r1,-1;", [](uint32_t) { return 496u; });
  expect_each("sub.s32 %r3,%r1,10; redux.sync.min.s32 %r9,%r3,-1;",
              [](uint32_t) { return static_cast<uint32_t>(-10); });
  expect_each("and.b32 %r3,%r1,3; match.any.sync.b32 %r9,%r3,-1;", [](uint32_t i) { return 0x11111111u << (i & 3); });
  expect_each("match.all.sync.b32 %r9|%p1,%r1,-1;", [](uint32_t) { return 0u; });
  expect_each("setp.lt.u32 %p1,%r1,7; mov.u32 %r9,0; @%p1 activemask.b32 %r9;",
              [](uint32_t i) { return i < 7 ? 127u : 0u; });
  expect_each(
      "setp.lt.u32 %p1,%r1,40; bar.red.popc.u32 %r9,0,%p1;", [](uint32_t) { return 40u; }, 64);
  expect_each(
      "setp.lt.u32 %p1,%r1,40; bar.red.or.pred %p2,0,%p1; selp.u32 %r9,1,0,%p2;", [](uint32_t) { return 1u; }, 64);
  expect_each(
      "setp.lt.u32 %p1,%r1,40; bar.red.and.pred %p2,0,%p1; selp.u32 %r9,1,0,%p2;", [](uint32_t) { return 0u; }, 64);
}

TEST(WarpOps, IntegersArePredicates) {
  for (const char* truth : {"1", "-1", "2"})
    expect_each(std::string("setp.lt.u32 %p1,%r1,5; xor.pred %p2,%p1,") + truth + "; selp.u32 %r9,1,0,%p2;",
                [](uint32_t i) { return i < 5 ? 0u : 1u; });
}

TEST(WarpOps, DivergentLoopsComeBackTogether) {
  // Each lane loops lane+1 times, then all meet in a full-warp shuffle.
  expect_each(
      "mov.u32 %r3,0;\nL: add.s32 %r3,%r3,1; setp.le.u32 %p1,%r3,%r1; @%p1 bra L;\nshfl.sync.bfly.b32 "
      "%r9,%r3,1,31,-1;",
      [](uint32_t i) { return (i ^ 1) + 1; });
  // Nested branches.
  expect_each(
      "and.b32 %r3,%r1,1; setp.eq.u32 %p1,%r3,0; @%p1 bra A; setp.lt.u32 %p2,%r1,16; @%p2 bra B; mov.u32 "
      "%r9,1; bra E;\n"
      "B: mov.u32 %r9,2; bra E;\nA: mov.u32 %r9,3;\nE: bar.warp.sync -1;",
      [](uint32_t i) { return i % 2 == 0 ? 3u
                              : i < 16   ? 2u
                                         : 1u; });
}

TEST(WarpOps, LanesMeetAtABarrierThatLiesBehindThem) {
  // Compilers may place the end of a loop body before its beginning: both paths reach M by backward branches.
  expect_each(
      "mov.u32 %r9,1; bra T;\n"
      "M: add.s32 %r9,%r9,10; bar.warp.sync -1; shfl.sync.bfly.b32 %r9,%r9,1,31,-1; bra E;\n"
      "T: and.b32 %r3,%r1,1; setp.eq.u32 %p1,%r3,0; @%p1 bra M; mov.u32 %r9,2; bra.uni M;\nE:",
      [](uint32_t i) { return i % 2 == 0 ? 12u : 11u; });
}

TEST(WarpOps, ASpinningLaneDoesNotStarveTheLaneItWaitsFor) {
  // Lane 0 waits at a lower pc for a flag that the other lanes set later in the code.
  expect_each(
      "mov.u32 %r4,smem; st.volatile.shared.u32 [%r4],0; setp.ne.u32 %p1,%r1,0; @%p1 bra SET;\n"
      "W: ld.volatile.shared.u32 %r5,[%r4]; setp.eq.u32 %p2,%r5,0; @%p2 bra W; mov.u32 %r9,%r5; bra E;\n"
      "SET: st.volatile.shared.u32 [%r4],7; mov.u32 %r9,7;\nE: bar.warp.sync -1;",
      [](uint32_t) { return 7u; });
}

TEST(WarpOps, ScopesRepeatNames) {
  expect_each(
      "mov.u32 %r9,0;\n"
      "{ .reg .pred P; .reg .b32 t; mov.u32 t,%r1; LOOP: add.s32 %r9,%r9,1; sub.s32 t,t,1; setp.ge.s32 "
      "P,t,0; @P bra LOOP; }\n"
      "{ .reg .pred P; .reg .b32 t; mov.u32 t,%r1; LOOP: add.s32 %r9,%r9,100; sub.s32 t,t,1; setp.ge.s32 "
      "P,t,0; @P bra LOOP; }",
      [](uint32_t i) { return (i + 1) * 101; });
}

TEST(WarpOps, PackingMoves) {
  expect_each("cvt.u16.u32 %rs1,%r1; mov.u16 %rs2,9; mov.b32 %r9,{%rs1,%rs2};",
              [](uint32_t i) { return i | 9u << 16; });
  expect_each("mov.b64 %rd4,{%r1,7}; mov.b64 {%r9,_},%rd4;", [](uint32_t i) { return i; });
  expect_each("mov.b64 %rd4,{7,%r1}; mov.b64 {%r3,%r9},%rd4;", [](uint32_t i) { return i; });
  expect_each("mov.b32 %r3,0x00050003; mov.b32 {%rs1,%rs2},%r3; sub.s16 %rs3,%rs2,%rs1; cvt.u32.u16 %r9,%rs3;",
              [](uint32_t) { return 2u; });
}

TEST(WarpOps, Atomics) {
  auto got = values("mov.u32 %r4,smem; st.shared.u32 [%r4],0; bar.warp.sync -1; atom.shared.add.u32 %r9,[%r4],1;");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], i);
  expect_each(
      "mov.u32 %r4,smem; st.shared.u32 [%r4],100; bar.warp.sync -1; atom.shared.cas.b32 %r9,[%r4],100,5; bar.warp.sync "
      "-1; ld.shared.u32 "
      "%r9,[%r4];",
      [](uint32_t) { return 5u; });
  expect_each(
      "mov.u32 %r4,smem; st.shared.f32 [%r4],0f3F800000; bar.warp.sync -1; red.shared.add.f32 [%r4],0f40000000; "
      "bar.warp.sync -1; ld.shared.b32 "
      "%r9,[%r4];",
      [](uint32_t) { return std::bit_cast<uint32_t>(65.0f); });
  expect_each(
      "mov.u32 %r4,smem; st.shared.u32 [%r4],3; bar.warp.sync -1; atom.shared.max.s32 %r3,[%r4],%r1; bar.warp.sync -1; "
      "ld.shared.u32 %r9,[%r4];",
      [](uint32_t) { return 31u; });
  expect_each(
      "mov.u32 %r4,smem; st.shared.u32 [%r4],0; bar.warp.sync -1; atom.shared.inc.u32 %r3,[%r4],4; bar.warp.sync -1; "
      "ld.shared.u32 %r9,[%r4];",
      [](uint32_t) { return 2u; });
}

/// What one lane leaves in words of device memory.
std::vector<uint32_t> one_lane(const std::string& body) {
  Bench bench;
  const std::string error = bench.load(kernel_text(1, "ld.param.u64 %rd1, [p0];\n" + body));
  EXPECT_EQ(error, "") << body;
  // f32 1, 2, 3, 4; f16 pairs (1, 2), (NaN, -1); bf16 pair (1, 2); 0
  const DevicePtr words = bench.buffer(std::vector<uint32_t>{0x3f800000, 0x40000000, 0x40400000, 0x40800000, 0x40003c00,
                                                             0xbc007e00, 0x40003f80, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const RunResult r = bench.arg(words).run({1, 1, 1}, {1, 1, 1});
  for (const Finding& f : r.findings) ADD_FAILURE() << f.kind << ": " << f.message;
  return bench.read<uint32_t>(words, 16);
}

TEST(WarpOps, AMatrixThatLanesDoNotMoveIsNamed) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(0,
                                   "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 16;\n"
                                   "@%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;")),
            "");
  const RunResult r = bench.run({1, 1, 1}, {32, 1, 1});
  ASSERT_FALSE(r.findings.empty());
  EXPECT_TRUE(r.findings[0].message.starts_with("movmatrix needs all 32 lanes")) << r.findings[0].message;
}

TEST(WarpOps, VectorsOfAtomicsAreAligned) {
  for (const char* opcode : {"red.global.add.v2.f32 [%rd1+{}], {{%f1, %f1}};",
                             "atom.global.add.v4.f32 {{%f2, %f3, %f4, %f5}}, [%rd1+{}], {{%f1, %f1, %f1, %f1}};",
                             "red.global.add.noftz.v2.bf16 [%rd1+{}], {{%rs1, %rs1}};"})
    for (const bool aligned : {true, false}) {
      const std::string name(opcode);
      const int bytes = name.find("v4") != name.npos ? 16 : name.find("bf16") != name.npos ? 4 : 8;
      Bench bench;
      ASSERT_EQ(bench.load(kernel_text(1, "ld.param.u64 %rd1, [p0];\nmov.f32 %f1, 0f3F800000;\nmov.b16 %rs1, 0;\n" +
                                              fmt::format(fmt::runtime(name), aligned ? bytes : bytes / 2))),
                "");
      const RunResult r = bench.arg(bench.buffer(std::vector<uint32_t>(16))).run({1, 1, 1}, {1, 1, 1});
      ASSERT_EQ(r.findings.empty(), aligned) << name;
      if (!aligned) {
        EXPECT_EQ(r.findings[0].kind, "misaligned");
      }
    }
}

TEST(WarpOps, AtomicsOfVectors) {
  auto got = one_lane(
      "mov.f32 %f1, 0f3F800000;\n"
      "atom.relaxed.gpu.global.add.L2::cache_hint.v4.f32 {%f2, %f3, %f4, %f5}, [%rd1], {%f1, %f1, %f1, %f1}, %rd1;\n"
      "st.global.v4.f32 [%rd1+32], {%f2, %f3, %f4, %f5};\n");
  EXPECT_EQ((std::vector<uint32_t>(got.begin(), got.begin() + 4)),
            (std::vector<uint32_t>{0x40000000, 0x40400000, 0x40800000, 0x40a00000}));
  EXPECT_EQ((std::vector<uint32_t>(got.begin() + 8, got.begin() + 12)),
            (std::vector<uint32_t>{0x3f800000, 0x40000000, 0x40400000, 0x40800000}));
  got = one_lane(
      "mov.b16 %rs1, 0x3e00;\n"  // 1.5
      "red.global.max.noftz.v4.f16 [%rd1+16], {%rs1, %rs1, %rs1, %rs1};\n"
      "mov.b32 %r1, 0x3fc03fc0;\n"
      "red.global.min.noftz.v2.bf16x2 [%rd1+24], {%r1, %r1};\n"
      "atom.global.exch.L2::cache_hint.b32 %r2, [%rd1], 7, %rd1;\n");
  EXPECT_EQ(got[4], 0x40003e00u);
  EXPECT_EQ(got[5], 0x3e003e00u) << "a number and NaN: the number";
  EXPECT_EQ(got[6], 0x3fc03f80u);
  EXPECT_EQ(got[7], 0u);
  EXPECT_EQ(got[0], 7u);
  Bench bench;
  EXPECT_NE(
      bench.load(kernel_text(1, "ld.param.u64 %rd1, [p0];\natom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f3, %f1};"))
          .find("results in registers of later values"),
      std::string::npos);
  EXPECT_NE(bench.load(kernel_text(1, "ld.param.u64 %rd1, [p0];\nred.global.min.noftz.f16 [%rd1], %rs1;"))
                .find("unknown instruction"),
            std::string::npos);
}

TEST(WarpOps, AdviceToCachesAndWideAccesses) {
  const auto got = one_lane(
      "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd2, 0f3F000000;\n"
      "createpolicy.range.global.L2::evict_first.b64 %rd2, [%rd1], 64, 128;\n"
      "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd1], 64, %rd2;\n"
      "ld.relaxed.gpu.L2::cache_hint.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %rd2;\n"
      "fence.gpu;\n"
      ".reg .b128 %q1;\n"
      "mov.b128 %q1, {%r1, %r2, %r3, %r4};\n"
      "mov.b128 {%r4, %r3, %r2, %r1}, %q1;\n"
      "st.weak.v8.b32 [%rd1+32], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};\n");
  EXPECT_EQ(
      (std::vector<uint32_t>(got.begin() + 8, got.end())),
      (std::vector<uint32_t>{0x40800000, 0x40400000, 0x40000000, 0x3f800000, 0x40003c00, 0xbc007e00, 0x40003f80, 0}));
}

TEST(WarpOps, NarrowAndWideLoads) {
  expect_each("mov.u32 %r4,smem; mov.u32 %r5,0x80ff7f01; st.shared.u32 [%r4],%r5; ld.shared.s8 %r9,[%r4+3];",
              [](uint32_t) { return 0xffffff80u; });
  expect_each("mov.u32 %r4,smem; mov.u32 %r5,0x80ff7f01; st.shared.u32 [%r4],%r5; ld.shared.u8 %r9,[%r4+3];",
              [](uint32_t) { return 0x80u; });
  expect_each(
      "mov.u32 %r4,smem; mov.u32 %r5,0x80ff7f01; st.shared.u32 [%r4],%r5; ld.shared.s16 %rd4,[%r4+2]; "
      "shr.u64 %rd4,%rd4,32; cvt.u32.u64 %r9,%rd4;",
      [](uint32_t) { return 0xffffffffu; });
  expect_each(
      "mov.u32 %r4,smem; cvta.shared.u64 %rd4,1024; ld.param.u64 %rd5,[p0]; cvt.u64.u32 %rd6,%r4; st.u32 "
      "[%rd6],11; ld.shared.u32 %r9,[%r4];",
      [](uint32_t) { return 11u; });
  expect_each(
      ".local .align 8 .b8 depot[16]; mov.u64 %rd4, depot; cvta.local.u64 %rd5,%rd4; st.u32 [%rd5+4],%r1; "
      "ld.local.u32 %r9,[depot+4];",
      [](uint32_t i) { return i; });
  expect_each("isspacep.shared %p1,%rd1; selp.u32 %r9,1,0,%p1;", [](uint32_t) { return 0u; });
}

TEST(WarpOps, SpecialRegistersAndModuleVariables) {
  std::string table = ".global .align 4 .u32 table[4] = {5, 6, 7, 8};\n.const .align 4 .u32 scale = 10;\n";
  auto got = values(
      "and.b32 %r3,%r1,3; mul.wide.u32 %rd4,%r3,4; mov.u64 %rd5,table; add.s64 %rd6,%rd5,%rd4; ld.global.u32 "
      "%r4,[%rd6];\n"
      "ld.const.u32 %r5,[scale]; mul.lo.s32 %r9,%r4,%r5;",
      32, table);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], (5 + (i & 3)) * 10);
  expect_each(
      "mov.u32 %r9,%laneid; mov.u32 %r3,%warpid; mad.lo.s32 %r9,%r3,1000,%r9;",
      [](uint32_t i) { return i / 32 * 1000 + i % 32; }, 96);
  expect_each("mov.u32 %r9,%lanemask_lt;", [](uint32_t i) { return (1u << i) - 1; });
}

}  // namespace
}  // namespace roofgen::sim_test::warp_ops_test
