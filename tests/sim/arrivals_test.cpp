// Arrivals at mbarriers by some lanes for their warp, and mbarriers that others use before they are initialised: right
// kernels have no finding, and each with one thing wrong has a race.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::arrivals_test {
namespace {

struct Outcome {
  std::string kind, message;
};
Outcome run(const std::string& ptx, Dim3 cluster, uint32_t threads, uint64_t schedule) {
  Bench b;
  if (const std::string error = b.load(ptx); !error.empty()) return {"refused", error};
  RunOptions options;
  options.schedule = schedule;
  const DevicePtr in = b.buffer(std::vector<uint32_t>(256, 7)), out = b.poisoned(1024);
  const RunResult r = b.clusters(cluster).arg(in).arg(out).run({cluster.x, 1, 1}, {threads, 1, 1}, 0, options);
  if (r.findings.empty()) return {};
  return {r.findings[0].kind, r.findings[0].message};
}

/// Two warps. %r1 is the lane, %r2 its word of `tile`, %r3 the address of a barrier of `arrivals` arrivals; %p1: not
/// lane 0. Both warps write the tile; then warp 1 does `works`, and warp 0 waits for the barrier and does `follows`.
std::string pair(uint32_t arrivals, const std::string& works, const std::string& follows) {
  return kernel_text(2, fmt::format(R"(
.shared .align 128 .b8 tile[256];
.shared .align 8 .b8 bar[16];
ld.param.u64 %rd1, [p0];
mov.u32 %r10, %tid.x;
and.b32 %r1, %r10, 31;
mov.u32 %r4, tile;
shl.b32 %r5, %r1, 2;
add.u32 %r2, %r4, %r5;
mov.u32 %r3, bar;
setp.ne.u32 %p1, %r1, 0;
setp.ne.u32 %p2, %r10, 0;
@%p2 bra INIT;
mbarrier.init.shared::cta.b64 [%r3], {};
mbarrier.init.shared::cta.b64 [%r3+8], 1;
INIT:
shl.b32 %r6, %r10, 2;
add.u32 %r7, %r4, %r6;
st.shared.u32 [%r7], 1;
bar.sync 0;
setp.lt.u32 %p3, %r10, 32;
@%p3 bra WAITS;
{}
bra END;
WAITS:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra WAITS;
{}
END:
)",
                                    arrivals, works, follows));
}

const std::string kRead = "ld.shared.u32 %r20, [%r2];\n", kWrite = "st.shared.u32 [%r2], 2;\n",
                  kSync = "bar.warp.sync 0xffffffff;\n", kArrive = "@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];\n",
                  kAllArrive = "mbarrier.arrive.shared::cta.b64 _, [%r3];\n";
/// Lane 0 of warp 0 copies over the tile, and waits for the copy.
const std::string kCopy =
    "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+8], 128;\n"
    "@!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 128, [%r3+8];\n"
    "C:\nmbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3+8], 0;\n@!%p5 bra C;\n";
/// Lanes below 16 read or write, and synchronise.
std::string half(const std::string& what) {
  return "setp.lt.u32 %p6, %r1, 16;\n@!%p6 bra H;\n" + what + "bar.warp.sync 0x0000ffff;\nH:\n";
}

struct Case {
  const char* name;
  std::string works, follows;
  const char* kind = "";
  uint32_t arrivals = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class LaneArrivals : public testing::TestWithParam<Case> {};

TEST_P(LaneArrivals, ReleaseTheirOwnLaneAndThoseThatSynchronisedWithIt) {
  const Case& c = GetParam();
  for (uint64_t schedule = 0; schedule < 8; ++schedule) {
    const Outcome o = run(pair(c.arrivals, c.works, c.follows), {1, 1, 1}, 64, schedule);
    EXPECT_EQ(o.kind, c.kind) << o.message << ", schedule " << schedule;
    if (*c.kind && o.kind == c.kind) {
      EXPECT_NE(o.message.find("another lane of that warp arrived at an mbarrier"), std::string::npos) << o.message;
    }
  }
}

const Case kCases[] = {
    {"ReadsThenWrite", kRead + kSync + kArrive, kWrite},
    {"ReadsThenWriteNoSync", kRead + kArrive, kWrite, "race"},
    {"WritesThenRead", kWrite + kSync + kArrive, kRead},
    {"WritesThenReadNoSync", kWrite + kArrive, kRead, "race"},
    {"ReadsThenCopy", kRead + kSync + kArrive, kCopy},
    {"ReadsThenCopyNoSync", kRead + kArrive, kCopy, "race"},
    {"SyncBeforeTheReads", kSync + kRead + kArrive, kWrite, "race"},
    {"AShuffleIsNoSync", kRead + "shfl.sync.bfly.b32 %r21, %r20, 1, 31, -1;\n" + kArrive, kWrite, "race"},
    {"AllLanesArrive", kRead + kAllArrive, kWrite, "", 32},
    {"BothHalvesArrive",
     kRead + "setp.lt.u32 %p6, %r1, 16;\n@%p6 mbarrier.arrive.shared::cta.b64 _, [%r3];\n" +
         "@!%p6 mbarrier.arrive.shared::cta.b64 _, [%r3];\n",
     kWrite, "", 32},
    {"ABarrierOfTheWarpOrders", kRead + "bar.sync 1, 32;\n" + kArrive, kWrite},
    // Lane 0 alone has to do with the words that follow.
    {"OtherLanesDoSomethingElse", kRead + "@!%p1 st.shared.u32 [%r4+128], 3;\n" + kArrive,
     "@!%p1 ld.shared.u32 %r22, [%r4+128];\n"},
    {"LaneZeroAlone", "@!%p1 st.shared.u32 [%r4], 3;\n" + kArrive, kRead},
    {"AHalfWarpSynchronises", half(kRead) + kArrive, kWrite},
    {"TheOtherHalfDidNot", kRead + half("") + kArrive, "@%p1 bra E;\nst.shared.u32 [%r4+80], 2;\nE:\n", "race"},
    {"OfThisHalfEachWordIsFree", kRead + half("") + kArrive, "@%p1 bra E;\nst.shared.u32 [%r4+20], 2;\nE:\n"},
    // A wait orders what comes behind it, not what the lanes did before.
    {"AWaitBetween",
     kRead + "@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n" +
         "V:\nmbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3+8], 0;\n@!%p5 bra V;\n" + kArrive,
     kWrite, "race"},
    {"LdmatrixIsOfTheWholeWarp", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r4];\n" + kArrive, kWrite},
};
INSTANTIATE_TEST_SUITE_P(All, LaneArrivals, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Two CTAs of 64 threads. Thread 0 initialises; `meets`; one lane of warp 1 of rank 1 arrives at the barrier of rank
/// 0, which waits for it.
std::string cluster_pair(const std::string& initialises, const std::string& meets,
                         const std::string& arrives =
                             "setp.eq.and.u32 %p3, %r1, 32, %p2;\n@%p3 mbarrier.arrive.shared::cluster.b64 _, [%r6];\n"
                             "@%p2 bra DONE;\n") {
  return kernel_text(2, fmt::format(R"(
.shared .align 128 .b8 tile[128];
.shared .align 8 .b8 bar[8];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r7, tile;
mov.u32 %r4, bar;
xor.b32 %r9, %r2, 1;
mapa.shared::cluster.u32 %r6, %r4, %r9;
setp.ne.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 1;
{}
{}
{}
W:
mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra W;
DONE:
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
)",
                                    initialises, meets, arrives));
}
const std::string kInit = "@!%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\n",
                  kInitFence = "@!%p1 fence.mbarrier_init.release.cluster;\n",
                  kRelaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n",
                  kMeet = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

TEST(InitialisedBarriers, AreKnownBehindABarrierOfTheCluster) {
  int races = 0;
  for (uint64_t schedule = 0; schedule < 8; ++schedule) {
    const auto kind = [&](const std::string& initialises, const std::string& meets) {
      return run(cluster_pair(initialises, meets), {2, 1, 1}, 64, schedule).kind;
    };
    EXPECT_EQ(kind(kInit + kInitFence, kRelaxed), "");
    EXPECT_EQ(kind(kInit, kMeet), "");
    EXPECT_EQ(kind(kInit + "@!%p1 fence.acq_rel.cluster;\n", kRelaxed), "");
    EXPECT_EQ(kind(kInit, kRelaxed), "race") << "no fence";
    EXPECT_EQ(kind(kInitFence + kInit, kRelaxed), "race") << "fence before the initialisation";
    // In some orders the other CTA comes first.
    const std::string found = kind(kMeet + kInit + kInitFence, "bar.sync 0;\n");
    EXPECT_TRUE(found == "race" || found == "uninitialised") << found;
    races += found == "race";
  }
  EXPECT_GE(races, 1);
}

TEST(InitialisedBarriers, AreKnownToCopiesOfOtherCtas) {
  // Rank 0 copies into both CTAs.
  const std::string copies =
      "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;\nmov.u16 %rs1, 3;\nor.pred %p3, %p1, %p2;\n"
      "@!%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r7], [%rd1], 128, "
      "[%r4], %rs1;\n";
  EXPECT_EQ(run(cluster_pair(kInit + kInitFence, kRelaxed, copies), {2, 1, 1}, 64, 0).kind, "");
  EXPECT_EQ(run(cluster_pair(kMeet + kInit + kInitFence, "bar.sync 0;\n", copies), {2, 1, 1}, 64, 0).kind, "race");
}

}  // namespace
}  // namespace roofgen::sim_test::arrivals_test
