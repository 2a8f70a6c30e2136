// clusterlaunchcontrol: CTAs take over work of CTAs that have not begun.
#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace roofgen::sim_test::launch_control_test {
namespace {

/// Each CTA adds kBegan + 1 at the place of its own number, and 1 at the place of each one that it takes over. p0:
/// places by CTA; the text has marks.
constexpr uint32_t kBegan = 256;
std::string text() {
  std::string body = R"(
.reg .b128 %q;
.shared .align 16 .b8 response[16];
.shared .align 8 .b8 bar[8];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, response;
mov.u32 %r3, bar;
mov.u32 %r4, %ctaid.x;
mov.u32 %r5, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 1;
fence.mbarrier_init.release.cluster;
mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd2, %rd2, %rd1;
ld.global.u32 %r6, [%rd2];
add.u32 %r6, %r6, 256;
st.global.u32 [%rd2], %r6;
READY:
bar.sync 0;
AGAIN:
@%p1 bra ASKED;
mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd2, %rd2, %rd1;
ld.global.u32 %r6, [%rd2];
add.u32 %r6, %r6, 1;
st.global.u32 [%rd2], %r6;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
//ask
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r3];
ASKED:
//wait
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r5;
@!%p2 bra WAIT;
//read
ld.shared.b128 %q, [%r2];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
@!%p3 bra END;
//place
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r4, %r7, %r8, _}, %q;
xor.b32 %r5, %r5, 1;
fence.proxy.async.shared::cta;
bar.sync 0;
bra AGAIN;
END:
ret;
)";
  std::string out = kernel_text(1, body);
  out.replace(out.find(".target sm_90\n"), 14, ".target sm_100a\n");
  return out;
}

RunResult run(const std::string& ptx, uint32_t ctas, std::vector<uint32_t>* counts, const RunOptions& options = {},
              uint32_t cluster = 1) {
  Bench b;
  EXPECT_EQ(b.load(ptx), "");
  const DevicePtr places = b.buffer(std::vector<uint32_t>(ctas));
  b.clusters({cluster, 1, 1}).arg(places);
  RunResult r = b.run({ctas, 1, 1}, {64, 1, 1}, 0, options);
  if (counts) *counts = b.read<uint32_t>(places, ctas);
  return r;
}

TEST(LaunchControl, EachTileIsWorkedOnOnce) {
  for (const uint32_t ctas : {1u, 2u, 7u, 64u})
    for (const uint64_t schedule : {0u, 3u}) {
      std::vector<uint32_t> counts;
      RunOptions options;
      options.schedule = schedule;
      options.threads = 2;
      const RunResult r = run(text(), ctas, &counts, options);
      ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
      EXPECT_EQ(std::ranges::count_if(counts, [](uint32_t n) { return n % kBegan == 1; }), ctas) << schedule;
    }
}

TEST(LaunchControl, FewerCtasBegin) {
  std::vector<uint32_t> counts;
  ASSERT_TRUE(run(text(), 9, &counts).findings.empty());
  EXPECT_EQ(std::ranges::count(counts, 1u), 6) << "each of three CTAs takes over two others";
  EXPECT_EQ(std::ranges::count(counts, kBegan + 1), 3);
}

/// Clusters that take turns at their barrier do not all begin before the first one asks.
TEST(LaunchControl, ClustersTakeOverOthers) {
  std::string ptx = text();
  for (int i = 0; i < 2; ++i)
    ptx.insert(ptx.find("AGAIN:"), "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n");
  std::vector<uint32_t> counts;
  const RunResult r = run(ptx, 16, &counts, {}, 2);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_LT(std::ranges::count_if(counts, [](uint32_t n) { return n >= kBegan; }), 16);
}

std::string kind_of(const std::string& from, const std::string& to) {
  std::string ptx = text();
  const size_t at = ptx.find(from);
  EXPECT_NE(at, ptx.npos);
  ptx.replace(at, from.size(), to);
  const RunResult r = run(ptx, 8, nullptr);
  return r.findings.empty() ? "" : r.findings[0].kind;
}

TEST(LaunchControl, WrongUse) {
  EXPECT_EQ(kind_of("", ""), "");
  const std::string wait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r5;\n@!%p2 bra WAIT;\n";
  EXPECT_EQ(kind_of(wait, ""), "uninitialised");
  EXPECT_EQ(kind_of("ld.shared.b128 %q, [%r2];", "mov.b64 %rd3, 5;\nmov.b128 %q, {%rd3, %rd3};"),
            "bad-launch-response");
  EXPECT_EQ(kind_of("@!%p3 bra END;", ""), "bad-launch-response") << "the place of nothing";
  EXPECT_EQ(kind_of("@!%p3 bra END;",
                    "@%p3 bra GO;\n@%p1 bra END;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
                    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], "
                    "[%r3];\nGO:"),
            "bad-launch-response")
      << "another request";
  EXPECT_EQ(kind_of("//ask", "add.u32 %r2, %r2, 8;"), "misaligned");
}

}  // namespace
}  // namespace roofgen::sim_test::launch_control_test
