// Programmatic dependent launch: accesses of a kernel that may begin before the kernels before it have ended.
#include "runtime/sim/prerequisites.h"

#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::prerequisites_test {
namespace {

constexpr uint32_t kThreads = 64, kCtas = 4, kWords = kThreads * kCtas;

/// A stream of kernels that take the addresses of three buffers of one word for each thread: a, b and c.
class Stream {
 public:
  Stream() {
    for (const char* name : {"a", "b", "c"}) {
      buffers_.push_back(bench_.buffer(std::vector<uint32_t>(kWords, 1), name));
    }
  }
  /// Runs a kernel: %rd1 to %rd3 are the thread's places in the buffers. Returns its first finding: "race read of
  /// a...".
  std::string run(const std::string& name, const std::string& body, bool overlap, int threads = 1,
                  uint32_t ctas = kCtas) {
    std::string text = kernel_text(3, R"(
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
mul.wide.u32 %rd4, %r1, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
mov.u32 %r4, %tid.x; setp.lt.u32 %p1, %r4, 32; setp.eq.u32 %p2, %r4, 0;
)" + body);
    text.replace(text.find("entry k("), 8, "entry " + name + "(");
    EXPECT_EQ(bench_.load(text, name), "");
    for (const DevicePtr p : buffers_) bench_.arg(p);
    RunOptions options;
    options.prerequisites = &before_;
    options.threads = threads;
    options.worth_threads = 1;
    const RunResult result = bench_.overlaps(overlap).run({ctas}, {kThreads}, 0, options);
    if (result.findings.empty()) return "";
    EXPECT_GT(result.findings[0].ptx.line, 0);
    return result.findings[0].kind + " " + result.findings[0].message;
  }

 private:
  Bench bench_;
  std::vector<DevicePtr> buffers_;
  sim::Prerequisites before_;
};

const std::string kWait = "griddepcontrol.wait;\n", kTrigger = "griddepcontrol.launch_dependents;\n",
                  kWriteA = "st.global.u32 [%rd1], %r1;\n", kReadA = "ld.global.u32 %r9, [%rd1];\n",
                  kWriteB = "st.global.u32 [%rd2], %r9;\n", kReadB = "ld.global.u32 %r9, [%rd2];\n",
                  kWriteC = "st.global.u32 [%rd3], %r1;\n";

/// What the second of two kernels does wrong, if it is a dependent launch behind one that writes a and reads b.
std::string second(const std::string& body, bool overlap = true, int threads = 1) {
  Stream stream;
  EXPECT_EQ(stream.run("first", kTrigger + kReadB + kWriteA, false, threads), "");
  return stream.run("second", body, overlap, threads);
}

TEST(Prerequisites, WaitOrdersAccesses) {
  EXPECT_EQ(second(kWait + kReadA + kWriteB), "");
  EXPECT_EQ(second(kWriteC + kWait + kReadA + kWriteB), "") << "nothing before accesses c";
  EXPECT_EQ(second(kReadB + kWait + kReadA), "") << "both only read b";
  EXPECT_EQ(second(kReadA + kWriteB, false), "") << "a normal launch";
}

TEST(Prerequisites, AccessesBeforeTheWait) {
  const std::string read =
      "race read of a[byte 0], which first writes, before a griddepcontrol.wait: first may still run";
  EXPECT_EQ(second(kReadA + kWriteC), read);
  EXPECT_EQ(second(kReadA + kWait + kWriteC), read);
  EXPECT_EQ(second(kReadA + kWait + kWriteC, true, 4), read) << "on several cores";
  EXPECT_EQ(second("mov.u32 %r9, 0;\n" + kWriteB + kWait),
            "race write to b[byte 0], which first reads, before a griddepcontrol.wait: first may still run");
  EXPECT_EQ(second(kWriteA + kWait),
            "race write to a[byte 0], which first writes, before a griddepcontrol.wait: first may still run");
  EXPECT_EQ(second("{ .shared .align 16 .b8 s[1024]; .reg .b32 %s; mov.u32 %s, s; mad.lo.u32 %s, %r4, 4, %s;\n"
                   "cp.async.ca.shared.global [%s], [%rd1], 4; }\n" +
                   kWait + "cp.async.wait_all;\n"),
            read)
      << "an asynchronous copy";
  EXPECT_EQ(second("atom.global.add.u32 %r9, [%rd1], 1;\n" + kWait).substr(0, 27), "race write to a[byte 0], wh");
}

TEST(Prerequisites, BytesDecide) {
  for (const std::string half : {"@!%p1 ", "@%p1 "}) {
    Stream stream;
    EXPECT_EQ(stream.run("first", "@%p1 " + kWriteA, false), "");  // half of each CTA's words
    EXPECT_EQ(stream.run("second", half + kReadA + kWait, true) == "", half == "@!%p1 ");
  }
}

TEST(Prerequisites, ReadOnlyLoadsBehindTheWait) {
  EXPECT_EQ(second(kWait + "ld.global.nc.u32 %r9, [%rd1];\n"),
            "race ld.global.nc of a[byte 0], which first writes while this launch may have begun");
  EXPECT_EQ(second(kWait + "ld.global.nc.u32 %r9, [%rd2];\n"), "");
}

/// A wait holds the thread that executes it; others must synchronise with it.
TEST(Prerequisites, OneWarpWaits) {
  const std::string race =
      "race read of a[byte 128], which first writes, before a griddepcontrol.wait: first may still run";
  EXPECT_EQ(second("@%p1 " + kWait + kReadA), race);
  EXPECT_EQ(second("@%p1 " + kWait + "bar.sync 0;\n" + kReadA), "");
  EXPECT_EQ(second("bar.sync 0;\n@%p1 " + kWait + kReadA), race) << "the barrier is before the wait";
  const std::string barrier =
                        "{ .shared .align 8 .b64 m; .reg .b32 %m; .reg .pred %q; mov.u32 %m, m;\n"
                        "@%p2 mbarrier.init.shared.b64 [%m], 32;\nbar.sync 0;\n",
                    arrive = "@%p1 mbarrier.arrive.shared.b64 _, [%m];\n",
                    pass = "LOOP: mbarrier.test_wait.parity.shared.b64 %q, [%m], 0;\n@!%q bra LOOP;\n" + kReadA + "}\n";
  EXPECT_EQ(second(barrier + "@%p1 " + kWait + arrive + pass), "");
  EXPECT_NE(second(barrier + arrive + "@%p1 " + kWait + pass), "") << "it arrives before it waits";
}

TEST(Prerequisites, OneLaneWaits) {
  const std::string race =
      "race read of a[byte 4], which first writes, before a griddepcontrol.wait: first may still run";
  const std::string read = "@%p1 " + kReadA;
  EXPECT_EQ(second("@%p2 " + kWait + read), race);
  EXPECT_EQ(second("@%p2 " + kWait + "bar.warp.sync 0xffffffff;\n" + read), "");
  EXPECT_EQ(second("@%p2 " + kWait + "@%p2 " + kReadA), "");
}

/// Of three kernels the last reads what the first wrote, behind its own wait.
TEST(Prerequisites, EachKernelOfAChainMustWait) {
  const auto third = [](const std::string& middle, const std::string& last, bool overlap = true) {
    Stream stream;
    EXPECT_EQ(stream.run("first", kTrigger + kWriteA, false), "");
    EXPECT_EQ(stream.run("middle", middle, overlap), "");
    return stream.run("last", last, true);
  };
  const std::string missing =
      "race read of a[byte 0], which first writes: no launch after first executed griddepcontrol.wait, so it may "
      "still run";
  EXPECT_EQ(third(kTrigger + kWait + kWriteC, kWait + kReadA), "");
  EXPECT_EQ(third(kTrigger + kWriteC, kWait + kReadA), missing);
  EXPECT_EQ(third(kTrigger + kWriteC, kWait + kReadA, false), "") << "a normal launch in the middle";
  EXPECT_EQ(third("@%p2 " + kWait + kWriteC, kWait + kReadA), "") << "one thread holds the whole kernel";
  // The last may begin beside the first, unless all CTAs of the middle trigger it behind their wait.
  EXPECT_NE(third(kTrigger + kWait + kWriteC, kReadA + kWait), "");
  EXPECT_EQ(third(kWait + kTrigger + kWriteC, kReadA + kWait), "");
  EXPECT_EQ(third(kWait + kWriteC, kReadA + kWait), "");
}

TEST(Prerequisites, ANormalLaunchEndsTheChain) {
  Stream stream;
  EXPECT_EQ(stream.run("first", kWriteA, false), "");
  EXPECT_EQ(stream.run("middle", kWriteC, true), "");
  EXPECT_EQ(stream.run("normal", kReadA, false), "");
  EXPECT_EQ(stream.run("last", "mov.u32 %r9, 0;\n" + kWriteC, true), "");
  EXPECT_NE(stream.run("last", kWriteA, true), "") << "normal reads a";
}

TEST(Prerequisites, OneCta) {
  Stream stream;
  EXPECT_EQ(stream.run("first", kWriteA, false, 1, 1), "");
  EXPECT_NE(stream.run("second", kReadA + kWait, true, 1, 1), "");
}

}  // namespace
}  // namespace roofgen::sim_test::prerequisites_test
