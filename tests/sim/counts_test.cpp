// Counts against hand counts: coalescing, bank conflicts, classes, unique sectors, traces.
#include "runtime/sim/counts.h"

#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::counts_test {
namespace {

const char* kHead = ".extern .shared .align 128 .b8 smem[];\n";

RunResult run(const std::string& body, uint32_t threads = 32, uint32_t ctas = 1,
              std::vector<std::vector<LineAccess>>* trace = nullptr) {
  Bench bench;
  EXPECT_EQ(bench.load(kernel_text(1, "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2,smem;\n" + body, kHead)),
            "");
  // The buffer's first 256 bytes are line-aligned.
  std::vector<uint32_t> zeros(16384);
  RunOptions options;
  options.trace = trace;
  RunResult r = bench.arg(bench.buffer(zeros)).run({ctas, 1, 1}, {threads, 1, 1}, 32768, options);
  for (const Finding& f : r.findings) ADD_FAILURE() << f.kind << ": " << f.message;
  return r;
}
/// Sectors of one 4-byte load per lane at a given stride.
uint64_t sectors(int stride) {
  return run("mul.lo.s32 %r3,%r1," + std::to_string(stride) +
             "; cvt.u64.u32 %rd2,%r3; add.s64 %rd3,%rd1,%rd2; ld.global.u32 %r4,[%rd3];")
      .counts->l2_read_sectors;
}

TEST(Counts, CoalescingOfOneRequest) {
  EXPECT_EQ(sectors(0), 1u);
  EXPECT_EQ(sectors(4), 4u);
  EXPECT_EQ(sectors(8), 8u);
  EXPECT_EQ(sectors(16), 16u);
  EXPECT_EQ(sectors(32), 32u);
  EXPECT_EQ(sectors(512), 32u);
  auto wide =
      run("shl.b32 %r3,%r1,4; cvt.u64.u32 %rd2,%r3; add.s64 %rd3,%rd1,%rd2; ld.global.v4.u32 "
          "{%r4,%r5,%r6,%r7},[%rd3];");
  EXPECT_EQ(wide.counts->l2_read_sectors, 16u);
  EXPECT_EQ(wide.counts->bulk_load_16, 32u);
  EXPECT_EQ(wide.counts->narrow_load, 0u);
  // Lanes that return to an earlier line of the request add no sectors.
  auto zigzag =
      run("and.b32 %r3,%r1,1; shl.b32 %r3,%r3,7; cvt.u64.u32 %rd2,%r3; add.s64 %rd3,%rd1,%rd2; ld.global.u32 "
          "%r4,[%rd3];");
  EXPECT_EQ(zigzag.counts->l2_read_sectors, 2u);
  auto store = run("shl.b32 %r3,%r1,2; cvt.u64.u32 %rd2,%r3; add.s64 %rd3,%rd1,%rd2; st.global.u32 [%rd3],%r1;");
  EXPECT_EQ(store.counts->l2_write_sectors, 4u);
  EXPECT_EQ(store.counts->unique_write_sectors, 4u);
}

TEST(Counts, UniqueSectorsAreOverTheRun) {
  auto r = run("ld.global.u32 %r4,[%rd1]; ld.global.u32 %r4,[%rd1]; ld.global.u32 %r4,[%rd1+32];", 32, 3);
  EXPECT_EQ(r.counts->l2_read_sectors, 9u);
  EXPECT_EQ(r.counts->unique_read_sectors, 2u);
  EXPECT_EQ(r.counts->ctas, 3u);
}

/// Wavefronts of a shared store of `bytes` per lane at a given stride.
std::pair<uint64_t, uint64_t> wavefronts(int stride, int bytes) {
  std::string address = "mul.lo.s32 %r3,%r1," + std::to_string(stride) + "; add.s32 %r4,%r2,%r3;\n";
  std::string value = bytes == 4   ? "st.shared.u32 [%r4],%r2;"
                      : bytes == 8 ? "st.shared.v2.u32 [%r4],{%r2,%r2};"
                                   : "st.shared.v4.u32 [%r4],{%r1,%r1,%r1,%r1};";
  auto r = run(address + value);
  return {r.counts->smem_wavefronts, r.counts->smem_ideal_wavefronts};
}
using Pair = std::pair<uint64_t, uint64_t>;

TEST(Counts, BankConflicts) {
  EXPECT_EQ(wavefronts(4, 4), Pair(1, 1));
  EXPECT_EQ(wavefronts(0, 4), Pair(1, 1));     // one word for all: broadcast
  EXPECT_EQ(wavefronts(8, 4), Pair(2, 1));     // stride 2 words: two lanes per bank
  EXPECT_EQ(wavefronts(12, 4), Pair(1, 1));    // stride 3: odd, no conflict
  EXPECT_EQ(wavefronts(128, 4), Pair(32, 1));  // all in one bank
  EXPECT_EQ(wavefronts(132, 4), Pair(1, 1));   // padded row
  EXPECT_EQ(wavefronts(8, 8), Pair(2, 2));     // one half-warp per pass
  EXPECT_EQ(wavefronts(16, 8), Pair(4, 2));
  EXPECT_EQ(wavefronts(16, 16), Pair(4, 4));    // one quarter-warp per pass
  EXPECT_EQ(wavefronts(128, 16), Pair(32, 4));  // eight lanes of a quarter-warp in one bank group
  EXPECT_EQ(wavefronts(144, 16), Pair(4, 4));
}

TEST(Counts, NeighboursWithOneAddressAreServedTwoForOne) {
  // Wavefronts of 16 and of 8 bytes a lane, where lane l reads the element element(l).
  const auto wavefronts = [](uint32_t bytes, auto element) {
    uint32_t offsets[32];
    for (uint32_t l = 0; l < 32; ++l) offsets[l] = bytes * element(l);
    return sim::shared_wavefronts(offsets, ~0u, bytes).needed;
  };
  for (const auto& [bytes, groups] : {std::pair{16u, 4u}, std::pair{8u, 2u}}) {
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return l; }), groups);
    EXPECT_EQ(wavefronts(bytes, [](uint32_t) { return 7; }), groups / 2);                        // one address for all
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return l / 2; }), groups / 2);                  // of lanes l and l ^ 1
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return (l & 1) | l >> 2 << 1; }), groups / 2);  // of lanes l and l ^ 2
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return l / 4; }), groups / 2);       // of four neighbours: not better
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return l % 8; }), groups);           // of lanes eight apart
    EXPECT_EQ(wavefronts(bytes, [](uint32_t l) { return l ? l / 2 : 31; }), groups);  // one pair differs
  }
  // Inactive neighbours do not matter.
  uint32_t offsets[32];
  for (uint32_t l = 0; l < 32; ++l) offsets[l] = l % 2 ? 16 * 77 : 16 * (l / 2);
  EXPECT_EQ(sim::shared_wavefronts(offsets, 0x55555555, 16).needed, 2u);
}

TEST(Counts, LdmatrixPhases) {
  std::string fill = "shl.b32 %r3,%r1,7; add.s32 %r4,%r2,%r3;\n";
  for (int i = 0; i < 8; ++i) fill += "st.shared.v4.u32 [%r4+" + std::to_string(16 * i) + "],{%r1,%r1,%r1,%r1};\n";
  uint64_t base = run(fill).counts->smem_wavefronts;
  // Rows are 128 bytes apart: all eight rows of a phase lie in one bank group.
  auto bad = run(fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8},[%r4];");
  EXPECT_EQ(bad.counts->smem_wavefronts - base, 32u);
  // The XOR swizzle distributes the rows.
  auto good = run(fill +
                  "and.b32 %r9,%r1,7; shl.b32 %r9,%r9,4; xor.b32 %r4,%r4,%r9; "
                  "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8},[%r4];");
  EXPECT_EQ(good.counts->smem_wavefronts - base, 4u);
}

TEST(Counts, InstructionsByClass) {
  auto r =
      run("add.s32 %r3,%r1,1; setp.lt.u32 %p1,%r1,16; @%p1 bra L; mov.f32 %f1,0f3F800000; ex2.approx.ftz.f32 "
          "%f2,%f1;\n"
          "L: bar.sync 0; mov.b32 {%rs1,%rs2},%r1; cvt.rn.f32.s32 %f3,%r1;");
  const Counts& c = *r.counts;
  // A parameter load and two moves at the head; after the branch splits the warp, the fall-through lanes execute two
  // more.
  EXPECT_EQ(c.move, 3u + 1 + 1);  // an unpacking mov counts once
  EXPECT_EQ(c.int_alu, 1u);
  EXPECT_EQ(c.predicate, 1u);
  EXPECT_EQ(c.control, 2u);  // bra, ret
  EXPECT_EQ(c.mufu, 1u);
  EXPECT_EQ(c.exps, 16u);  // lanes
  EXPECT_EQ(c.barriers, 1u);
  EXPECT_EQ(c.convert, 1u);
  EXPECT_EQ(c.warp_instructions, 12u);
}

TEST(Counts, TraceListsLinesInOrder) {
  std::vector<std::vector<LineAccess>> trace;
  run("mov.u32 %r3,%ctaid.x; mul.wide.u32 %rd2,%r3,256; add.s64 %rd3,%rd1,%rd2; ld.global.u32 "
      "%r4,[%rd3+160]; st.global.u32 [%rd3],1;",
      1, 2, &trace);
  ASSERT_EQ(trace.size(), 2u);
  ASSERT_EQ(trace[0].size(), 2u);
  EXPECT_FALSE(trace[0][0].write);
  EXPECT_EQ(trace[0][0].sectors, 2);  // bytes 32..63 of the second line
  EXPECT_TRUE(trace[0][1].write);
  EXPECT_EQ(trace[0][0].line, trace[0][1].line + 1);
  EXPECT_EQ(trace[1][1].line, trace[0][1].line + 2);
}

TEST(Counts, AddressesThatClimbTakeThePassesThatAnyTake) {
  for (uint32_t bytes : {4u, 8u, 16u})
    for (int32_t elements = -70; elements <= 70; ++elements) {
      const uint32_t step = static_cast<uint32_t>(elements) * bytes;
      uint32_t offset[32];
      for (uint32_t l = 0; l < 32; ++l) offset[l] = (1u << 20) + bytes + l * step;
      const sim::Wavefronts climbing = sim::climbing_wavefronts(step, bytes),
                            any = sim::shared_wavefronts(offset, ~0u, bytes);
      EXPECT_EQ(climbing.needed, any.needed) << bytes << " bytes, " << elements << " apart";
      EXPECT_EQ(climbing.ideal, any.ideal) << bytes << " bytes";
    }
}

}  // namespace
}  // namespace roofgen::sim_test::counts_test
