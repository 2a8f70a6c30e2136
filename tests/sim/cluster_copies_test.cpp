// Copies and arrivals between the CTAs of a cluster, and what orders them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::cluster_copies_test {
namespace {

/// Two CTAs of a warp. %r1 is the thread, %r2 the rank, %r3 the thread's word of `tile`, %r4 the barrier (of `arrivals`
/// arrivals), %r5 and %r6 the same places in the other CTA; %p1: not thread 0; %p2: rank 1. %rd1 is p0, %rd3 the
/// thread's word of p1.
std::string text(uint32_t arrivals, const std::string& body) {
  return kernel_text(2, fmt::format(R"(
.shared .align 128 .b8 tile[128];
.shared .align 8 .b8 bar[8];
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r7, tile;
shl.b32 %r8, %r1, 2;
add.u32 %r3, %r7, %r8;
mov.u32 %r4, bar;
xor.b32 %r9, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, %r9;
mapa.shared::cluster.u32 %r6, %r4, %r9;
mapa.shared::cluster.u32 %r20, %r7, %r9;
mad.lo.u32 %r10, %r2, 32, %r1;
mul.wide.u32 %rd4, %r10, 4;
add.u64 %rd3, %rd2, %rd4;
setp.ne.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 1;
@%p1 bra INIT;
mbarrier.init.shared::cta.b64 [%r4], {};
fence.mbarrier_init.release.cluster;
INIT:
bar.sync 0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
{}
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
)",
                                    arrivals, body));
}
struct Outcome {
  std::string kind, message;
  std::vector<uint32_t> out;
};
Outcome run(uint32_t arrivals, const std::string& body) {
  Bench b;
  if (const std::string error = b.load(text(arrivals, body)); !error.empty()) return {"refused", error, {}};
  std::vector<uint32_t> x(64);
  for (uint32_t i = 0; i < 64; ++i) x[i] = 100 + i;
  const DevicePtr in = b.buffer(x), out = b.buffer(std::vector<uint32_t>(64, 0));
  const RunResult r = b.clusters({2, 1, 1}).arg(in).arg(out).run({2, 1, 1}, {32, 1, 1});
  Outcome o{"", "", b.read<uint32_t>(out, 64)};
  if (!r.findings.empty()) o.kind = r.findings[0].kind, o.message = r.findings[0].message;
  return o;
}

const std::string kExpect = "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;\n";
const std::string kWait = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;\n@!%p5 bra W;\n";
const std::string kShow = "ld.shared.u32 %r11, [%r3];\nst.global.u32 [%rd3], %r11;\n";
std::string multicast(int ctas) {
  return fmt::format(
      "mov.u16 %rs1, {};\nor.pred %p3, %p1, %p2;\n@!%p3 "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r7], [%rd1], 128, [%r4], "
      "%rs1;\n",
      ctas);
}

TEST(ClusterCopies, AMulticastLandsInEachCta) {
  const Outcome o = run(1, kExpect + multicast(3) + kWait + kShow);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], 100 + i % 32) << i;
}

TEST(ClusterCopies, EachCtaFillsAHalfOfBoth) {
  const std::string halves =
      "mov.u16 %rs1, 3;\nshl.b32 %r13, %r2, 6;\nadd.u32 %r14, %r7, %r13;\ncvt.u64.u32 %rd6, %r13;\n"
      "add.u64 %rd7, %rd1, %rd6;\n@!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r14], [%rd7], 64, [%r4], %rs1;\n";
  const Outcome o = run(1, kExpect + halves + kWait + kShow);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], 100 + i % 32) << i;
  std::string other_half = halves;
  other_half.replace(other_half.find("mov.u16 %rs1, 3"), 15, "mov.u16 %rs1, 1");
  EXPECT_EQ(run(1, kExpect + other_half + kWait + kShow).kind, "deadlock") << "rank 1 gets nothing";
}

TEST(ClusterCopies, AMulticastToTooFewIsADeadlockThatNamesTheWarp) {
  const Outcome o = run(1, kExpect + multicast(1) + kWait + kShow);
  EXPECT_EQ(o.kind, "deadlock");
  EXPECT_NE(o.message.find("CTA 1: warp 0"), std::string::npos) << o.message;
  EXPECT_NE(o.message.find("parity 0 of the mbarrier at shared memory address"), std::string::npos) << o.message;
  EXPECT_NE(o.message.find("0 of 1 arrivals and 128 bytes are missing"), std::string::npos) << o.message;
  EXPECT_EQ(run(1, kExpect + multicast(7) + kWait + kShow).kind, "out-of-bounds") << "there is no rank 2";
}

TEST(ClusterCopies, AMulticastToACtaThatHasEndedIsAFinding) {
  const std::string meet = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
  EXPECT_EQ(run(1, "@%p2 exit;\n" + meet + kExpect + multicast(3) + kWait + kShow).kind, "out-of-bounds");
}

TEST(ClusterCopies, SharedMemoryIsCopiedToTheOtherCta) {
  const std::string fill = "mad.lo.u32 %r12, %r2, 1000, %r1;\nst.shared.u32 [%r3], %r12;\n";
  const std::string copy =
      "@!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r20+128], "
      "[%r7], 128, [%r6];\n";
  std::string body = fill + "fence.proxy.async.shared::cta;\nbar.sync 0;\n" + kExpect + copy + kWait +
                     "ld.shared.u32 %r11, [%r3+128];\nst.global.u32 [%rd3], %r11;\n";
  const auto wide = [&](const std::string& b) {
    std::string t = text(1, b);
    t.replace(t.find("tile[128]"), 9, "tile[256]");
    Bench bench;
    EXPECT_EQ(bench.load(t), "");
    const DevicePtr in = bench.buffer(std::vector<uint32_t>(64)), out = bench.buffer(std::vector<uint32_t>(64));
    const RunResult r = bench.clusters({2, 1, 1}).arg(in).arg(out).run({2, 1, 1}, {32, 1, 1});
    return Outcome{r.findings.empty() ? "" : r.findings[0].kind, r.findings.empty() ? "" : r.findings[0].message,
                   bench.read<uint32_t>(out, 64)};
  };
  const Outcome o = wide(body);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], (i < 32 ? 1000 : 0) + i % 32) << i;
  body.erase(body.find("fence.proxy.async.shared::cta;\n"), 31);
  EXPECT_EQ(wide(body).kind, "race") << "no proxy fence";
}

TEST(ClusterCopies, StAsyncBringsItsBytes) {
  const std::string store =
      "mad.lo.u32 %r12, %r2, 1000, %r1;\nst.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r12, "
      "[%r6];\n";
  const Outcome o = run(1, kExpect + store + kWait + kShow);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], (i < 32 ? 1000 : 0) + i % 32) << i;
  EXPECT_NE(run(1, kExpect + store + kShow).kind, "") << "read before it has come";
}

TEST(ClusterCopies, ReductionsAddInDeviceMemory) {
  const std::string fill = "st.shared.u32 [%r3], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 bra R;\n";
  const std::string reduce =
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r7], 128;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nR:\n";
  const Outcome o = run(1, fill + reduce);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(o.out[i], 2 * i) << "both CTAs add";
}

TEST(ClusterCopies, ArrivalsAtTheOtherCtaOrderItsMemory) {
  // Rank 1 writes to rank 0 and arrives there.
  const std::string arrive = "@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n";
  const std::string write = "@%p2 st.shared::cluster.u32 [%r5], %r1;\n";
  const std::string receive = "@%p2 bra D;\n" + kWait + kShow + "D:\n";
  const Outcome o = run(32, write + arrive + receive);
  ASSERT_EQ(o.kind, "") << o.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(o.out[i], i);
  EXPECT_EQ(run(32, "@!%p2 st.shared.u32 [%r3], %r8;\n" + arrive + write + receive).kind, "race")
      << "the write comes after the arrival";
  EXPECT_EQ(run(32, "@%p2 mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r6], 0;\n").kind, "bad-barrier")
      << "one cannot wait there";
  EXPECT_EQ(run(32, "mbarrier.arrive.shared::cluster.b64 %rd9, [%r6];\n").kind, "refused") << "no state comes back";
}

TEST(ClusterCopies, WhatTheOtherCtaReadsIsNotOverwritten) {
  // Rank 0 reads its tile; rank 1 overwrites it, after rank 0's arrival at its barrier or at once.
  const std::string fill =
      "st.shared.u32 [%r3], %r1;\nbarrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n";
  const std::string read = "@%p2 bra O;\n" + kShow + "mbarrier.arrive.shared::cluster.b64 _, [%r6];\nbra D;\nO:\n";
  const std::string write = "st.shared::cluster.u32 [%r5], %r2;\nD:\n";
  EXPECT_EQ(run(32, fill + read + kWait + write).kind, "");
  EXPECT_EQ(run(32, fill + read + write).kind, "race");
}

TEST(ClusterCopies, CopiesUnderWayAtTheEndAreFindings) {
  const std::string load =
      kExpect + "@!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd1], 128, [%r4];\n";
  EXPECT_EQ(run(1, load).kind, "async-pending");
  EXPECT_EQ(run(1, load + kWait).kind, "");
}

}  // namespace
}  // namespace roofgen::sim_test::cluster_copies_test
