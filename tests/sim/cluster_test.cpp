// Clusters: the barrier, distributed shared memory, and faults in their use.
#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::cluster_test {
namespace {

/// %r1 is the thread, %r2 the rank, %r3 the number of CTAs in the cluster, %r4 the address of the thread's word in
/// `mine`, %rd3 the address of the thread's word in p0.
std::string text(const std::string& body) {
  return kernel_text(1, R"(
.shared .align 16 .b8 mine[256];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, %cluster_nctarank;
mov.u32 %r4, mine;
shl.b32 %r5, %r1, 2;
add.u32 %r4, %r4, %r5;
mov.u32 %r6, %ctaid.x;
mov.u32 %r7, %ntid.x;
mad.lo.u32 %r8, %r6, %r7, %r1;
mul.wide.u32 %rd2, %r8, 4;
add.u64 %rd3, %rd1, %rd2;
)" + body);
}
const std::string kMeet = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
/// %r11: the next rank; %r12: this thread's word in that CTA.
const std::string kNext =
    "add.u32 %r10, %r2, 1;\nrem.u32 %r11, %r10, %r3;\nmapa.shared::cluster.u32 %r12, %r4, %r11;\n";

RunResult run(const std::string& ptx, Dim3 grid, Dim3 cluster, uint32_t threads, std::vector<uint32_t>* out = nullptr) {
  Bench b;
  EXPECT_EQ(b.load(ptx), "");
  const DevicePtr y = b.poisoned(grid.count() * threads * 4);
  RunResult r = b.clusters(cluster).arg(y).run(grid, {threads, 1, 1});
  if (out) *out = b.read<uint32_t>(y, grid.count() * threads);
  return r;
}
std::string kind(const std::string& ptx, uint32_t ctas = 4, uint32_t cluster = 2, uint32_t threads = 64) {
  const RunResult r = run(ptx, {ctas, 1, 1}, {cluster, 1, 1}, threads);
  return r.findings.empty() ? "" : r.findings[0].kind;
}

TEST(Cluster, ACtaReadsDataOfAnotherAfterTheBarrier) {
  std::vector<uint32_t> y;
  const RunResult r = run(text("st.shared.u32 [%r4], %r8;\n" + kMeet + kNext +
                               "ld.shared::cluster.u32 %r9, [%r12];\nst.global.u32 [%rd3], %r9;\n" + kMeet),
                          {8, 1, 1}, {4, 1, 1}, 64, &y);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  for (uint32_t i = 0; i < 512; ++i) EXPECT_EQ(y[i], i / 256 * 256 + (i + 64) % 256);
}

TEST(Cluster, SomeClustersOfAGridRunAsInTheWholeGrid) {
  Bench b;
  ASSERT_EQ(b.load(text("st.shared.u32 [%r4], %r8;\n" + kMeet + kNext +
                        "ld.shared::cluster.u32 %r9, [%r12];\nst.global.u32 [%rd3], %r9;\n" + kMeet)),
            "");
  const DevicePtr y = b.poisoned(8 * 64 * 4);
  RunOptions options;
  options.ctas = CtaSelection{{2, 3, 6, 7}};
  std::vector<std::vector<LineAccess>> trace;
  options.trace = &trace;
  const RunResult r = b.clusters({2, 1, 1}).arg(y).run({8, 1, 1}, {64, 1, 1}, 0, options);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.counts->ctas, 4u);
  EXPECT_EQ(trace.size(), 4u);
  const auto out = b.read<uint32_t>(y, 8 * 64);
  for (const uint32_t first : {128u, 384u})
    for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[first + i], first + (i + 64) % 128);
}

TEST(Cluster, ItsCtasAreNumberedXFirst) {
  std::vector<uint32_t> y;
  const RunResult r = run(text("mov.u32 %r9, %cluster_ctaid.y;\nmov.u32 %r10, %cluster_nctaid.x;\nmov.u32 %r11, "
                               "%clusterid.x;\nmov.u32 %r12, %nclusterid.y;\n"
                               "mov.u32 %r20, %ctaid.y;\nmov.u32 %r21, %nctaid.x;\nmad.lo.u32 %r8, %r20, %r21, "
                               "%r6;\nmul.wide.u32 %rd2, %r8, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
                               "mul.lo.u32 %r13, %r2, 10000;\nmad.lo.u32 %r13, %r9, 1000, %r13;\nmad.lo.u32 %r13, "
                               "%r10, 100, %r13;\nmad.lo.u32 %r13, %r11, 10, %r13;\nadd.u32 %r13, %r13, %r12;\n"
                               "st.global.u32 [%rd3], %r13;\n"),
                          {4, 6, 1}, {2, 3, 1}, 1, &y);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  for (uint32_t cy = 0; cy < 6; ++cy)
    for (uint32_t cx = 0; cx < 4; ++cx)
      EXPECT_EQ(y[cy * 4 + cx], (cx % 2 + cy % 3 * 2) * 10000 + cy % 3 * 1000 + 2 * 100 + cx / 2 * 10 + 2)
          << cx << " " << cy;
}

TEST(Cluster, AGenericAddressReachesTheOtherCtaToo) {
  std::vector<uint32_t> y;
  const RunResult r = run(text("st.shared.u32 [%r4], 1;\n" + kMeet +
                               "add.u32 %r10, %r2, 1;\nrem.u32 %r11, %r10, %r3;\ncvt.u64.u32 %rd4, "
                               "%r4;\ncvta.shared.u64 %rd5, %rd4;\nmapa.u64 %rd6, %rd5, %r11;\n"
                               "getctarank.u64 %r13, %rd6;\natom.add.u32 %r9, [%rd6], %r13;\n" +
                               kMeet + "ld.shared.u32 %r9, [%r4];\nst.global.u32 [%rd3], %r9;\n"),
                          {2, 1, 1}, {2, 1, 1}, 32, &y);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(y[i], 1 + i / 32);
}

TEST(Cluster, ReadingUnwrittenRemoteSharedMemoryIsAFinding) {
  EXPECT_EQ(kind(text(kMeet + kNext + "ld.shared::cluster.u32 %r9, [%r12];\n" + kMeet)), "uninitialised");
}

TEST(Cluster, ItIsNoPlaceOutsideTheMemoryOfTheCta) {
  EXPECT_EQ(
      kind(text("st.shared.u32 [%r4], 1;\n" + kMeet + kNext + "ld.shared::cluster.u32 %r9, [%r12+4096];\n" + kMeet)),
      "out-of-bounds");
  EXPECT_EQ(kind(text("mov.u32 %r11, 2;\nmapa.shared::cluster.u32 %r12, %r4, %r11;\n")), "out-of-bounds");
}

TEST(Cluster, ACtaThatHasEndedHasNoMemory) {
  // Rank 1 exits after the first barrier; rank 0 waits for a while, then reads.
  const std::string body = "st.shared.u32 [%r4], 1;\n" + kMeet + "setp.eq.u32 %p1, %r2, 1;\n@%p1 ret;\n" + kMeet +
                           kNext + "ld.shared::cluster.u32 %r9, [%r12];\n";
  EXPECT_EQ(kind(text(body)), "out-of-bounds");
}

TEST(Cluster, ThreadsThatEndedAreNotWaitedFor) {
  EXPECT_EQ(kind(text("setp.gt.u32 %p1, %r1, 31;\n@%p1 ret;\n" + kMeet)), "");
}

TEST(Cluster, ItsBarrierIsArrivedAtOnceAndThenWaitedAt) {
  EXPECT_EQ(kind(text("barrier.cluster.wait.acquire.aligned;\n")), "bad-barrier");
  EXPECT_EQ(kind(text("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.arrive.release.aligned;\n")),
            "bad-barrier");
  EXPECT_EQ(kind(text("setp.gt.u32 %p1, %r1, 7;\n@%p1 bra "
                      "L;\nbarrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\nL:"
                      "\nnanosleep.u32 1;\n")),
            "divergent-barrier");
}

TEST(Cluster, AWaitThatNeverEndsIsADeadlock) {
  // The second warp of rank 1 waits at a CTA barrier that the first warp never reaches; all others wait at the cluster
  // barrier.
  EXPECT_EQ(kind(text("setp.eq.u32 %p1, %r2, 1;\nsetp.gt.and.u32 %p2, %r1, 31, %p1;\n@%p2 bar.sync 1, 64;\n" + kMeet)),
            "deadlock");
}

/// One lane of each CTA arrives at the barrier of the first CTA, named as CUTLASS does; a lane there waits for both,
/// while the rest of its warp is at `join` already. Goes on at `then`.
std::string one_waits(const std::string& join, const std::string& then) {
  return text("setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [mine+8], 2;\n" + kMeet +
              "@!%p1 bra JOIN;\nand.b32 %r20, %r4, -16777217;\nadd.u32 %r20, %r20, 8;\n"
              "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r20];\nsetp.eq.u32 %p2, %r2, 1;\n"
              "@%p2 bra JOIN;\nW:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [mine+8], 0;\n"
              "@!%p3 bra W;\nbra " +
              then + ";\nJOIN:\n" + join + "END:\nnanosleep.u32 1;\n");
}

TEST(Cluster, LanesWaitAtAnAlignedBarrierForALaneThatWaitsForAPhase) {
  for (const std::string& join : {kMeet, std::string("bar.sync 0;\n")}) {
    EXPECT_EQ(kind(one_waits(join, "JOIN")), "") << join;
    EXPECT_EQ(kind(one_waits(join, "END")), "divergent-barrier") << join;
  }
}

TEST(Cluster, ItsBarrierOrdersTheWarpsOfACta) {
  const std::string other_warp = "xor.b32 %r9, %r4, 128;\n";
  const std::string read = "ld.shared.u32 %r9, [%r9];\nst.global.u32 [%rd3], %r9;\n";
  EXPECT_EQ(kind(text("st.shared.u32 [%r4], %r1;\n" + kMeet + other_warp + read)), "");
  EXPECT_EQ(
      kind(text("st.shared.u32 [%r4], %r1;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" +
                other_warp + read)),
      "race");
}

}  // namespace
}  // namespace roofgen::sim_test::cluster_test
