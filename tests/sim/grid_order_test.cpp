// The order between CTAs: clocks, patterns of release and acquire with their scopes, deadlocks, schedules. Whole
// kernels are in tests/check/wrong and tests/check/right.
#include "runtime/sim/grid_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "support.h"

namespace roofgen::sim_test::grid_order_test {
namespace {

TEST(GridOrder, ClocksJoinLikeMaps) {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    const uint32_t ctas = 1u << rng() % 20;
    std::vector<sim::Clock> clocks(4);
    std::vector<std::map<uint32_t, sim::Row>> maps(4);
    for (int step = 0; step < 60; ++step) {
      const size_t a = rng() % 4, b = rng() % 4;
      if (rng() % 3) {
        const uint32_t cta = static_cast<uint32_t>(rng() % ctas);
        sim::Row row{};
        row[rng() % sim::kMaxWarps] = static_cast<uint32_t>(rng() % 100);
        clocks[a].add(cta, row);
        sim::Row& known = maps[a][cta];
        for (uint32_t w = 0; w < sim::kMaxWarps; ++w) known[w] = std::max(known[w], row[w]);
      } else {
        clocks[a].join(clocks[b]);
        for (const auto& [cta, row] : std::map(maps[b])) {
          sim::Row& known = maps[a][cta];
          for (uint32_t w = 0; w < sim::kMaxWarps; ++w) known[w] = std::max(known[w], row[w]);
        }
      }
    }
    for (size_t i = 0; i < 4; ++i)
      for (int probe = 0; probe < 50; ++probe) {
        const uint32_t cta = static_cast<uint32_t>(rng() % (2 * ctas));
        const sim::Row* row = clocks[i].of(cta);
        const auto known = maps[i].find(cta);
        ASSERT_EQ(row != nullptr, known != maps[i].end());
        ASSERT_TRUE(!row || *row == known->second);
      }
  }
}

/// 100,000 clocks, each with one CTA more than the one before: 10^10 rows if they shared nothing.
TEST(GridOrder, ClocksShareWhatIsEqual) {
  std::vector<sim::Clock> all(1);
  for (uint32_t cta = 0; cta < 100'000; ++cta) {
    sim::Clock next = all.back();
    next.add(cta, sim::Row{cta});
    all.push_back(next);
  }
  EXPECT_EQ((*all.back().of(0))[0], 0u);
  EXPECT_EQ((*all.back().of(99'999))[0], 99'999u);
  EXPECT_EQ(all[50'000].of(50'000), nullptr);
}

/// CTA 0 writes data and sets a flag; CTA 1 waits for the flag and reads the data. The kind of the first finding.
std::string pass(const std::string& fence, const std::string& store, const std::string& load, const std::string& then,
                 Dim3 cluster = {1, 1, 1}) {
  Bench bench;
  const std::string error = bench.load(
      kernel_text(1,
                  "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%ctaid.x; mov.u32 %r2,1; setp.ne.u32 %p1,%r1,0; @%p1 bra W;\n"
                  "st.global.u32 [%rd1+128], %r2;\n" +
                      fence + store + "bra E;\nW: " + load + "setp.eq.u32 %p2,%r3,0; @%p2 bra W;\n" + then +
                      "ld.global.u32 %r4,[%rd1+128]; st.global.u32 [%rd1+256], %r4;\nE:"));
  if (!error.empty()) return error;
  return bench.clusters(cluster).arg(bench.buffer(std::vector<uint32_t>(128))).kind({2, 1, 1}, {32, 1, 1});
}

TEST(GridOrder, PatternsAndScopes) {
  const auto one = [](const char* order) { return fmt::format("st.{}.global.u32 [%rd1], %r2;\n", order); };
  const auto get = [](const char* order) { return fmt::format("ld.{}.global.u32 %r3, [%rd1];\n", order); };
  const std::string atom = "atom.global.exch.b32 %r5, [%rd1], %r2;\n", look = "atom.global.add.u32 %r3, [%rd1], 0;\n";
  const std::string gl = "membar.gl;\n", cta = "membar.cta;\n", sys = "fence.sc.sys;\n";
  // Release and acquire.
  EXPECT_EQ(pass("", one("release.gpu"), get("acquire.gpu"), ""), "");
  EXPECT_EQ(pass("", one("release.sys"), get("acquire.sys"), ""), "");
  EXPECT_EQ(pass("", one("relaxed.gpu"), get("acquire.gpu"), ""), "race");
  EXPECT_EQ(pass("", one("release.gpu"), get("relaxed.gpu"), ""), "race");
  EXPECT_EQ(pass("", one("relaxed.gpu"), get("relaxed.gpu"), ""), "race");
  // Fences.
  EXPECT_EQ(pass(gl, one("volatile"), get("volatile"), gl), "");
  EXPECT_EQ(pass(sys, one("volatile"), get("volatile"), sys), "");
  EXPECT_EQ(pass("", one("volatile"), get("volatile"), gl), "race");
  EXPECT_EQ(pass(gl, one("volatile"), get("volatile"), ""), "race");
  EXPECT_EQ(pass(cta, one("volatile"), get("volatile"), gl), "race");
  EXPECT_EQ(pass(gl, one("volatile"), get("volatile"), cta), "race");
  EXPECT_EQ(pass("fence.acq_rel.gpu;\n", one("relaxed.gpu"), get("relaxed.gpu"), "fence.acq_rel.gpu;\n"), "");
  EXPECT_EQ(pass("fence.release.gpu;\n", one("relaxed.gpu"), get("relaxed.gpu"), "fence.acquire.gpu;\n"), "");
  EXPECT_EQ(pass("fence.acquire.gpu;\n", one("relaxed.gpu"), get("relaxed.gpu"), "fence.acquire.gpu;\n"), "race");
  EXPECT_EQ(pass("fence.release.gpu;\n", one("relaxed.gpu"), get("relaxed.gpu"), "fence.release.gpu;\n"), "race");
  EXPECT_EQ(pass("fence.proxy.async;\n", one("relaxed.gpu"), get("acquire.gpu"), ""), "race");
  // One side of each.
  EXPECT_EQ(pass(gl, one("relaxed.gpu"), get("acquire.gpu"), ""), "");
  EXPECT_EQ(pass("", one("release.gpu"), get("relaxed.gpu"), gl), "");
  // Atomics; `red` releases, but acquires nothing.
  EXPECT_EQ(pass(gl, atom, look, gl), "");
  EXPECT_EQ(pass("", atom, look, gl), "race");
  EXPECT_EQ(pass(gl, atom, look, ""), "race");
  EXPECT_EQ(pass("", "atom.release.gpu.global.exch.b32 %r5, [%rd1], %r2;\n",
                 "atom.acquire.gpu.global.add.u32 %r3, [%rd1], 0;\n", ""),
            "");
  EXPECT_EQ(pass("", "atom.acq_rel.gpu.global.exch.b32 %r5, [%rd1], %r2;\n", get("acquire.gpu"), ""), "");
  EXPECT_EQ(pass(gl, "red.global.add.u32 [%rd1], 1;\n", get("acquire.gpu"), ""), "");
  EXPECT_EQ(pass("", "red.release.gpu.global.add.u32 [%rd1], 1;\n", get("acquire.gpu"), ""), "");
  // A barrier of the CTA acquires for a warp that has fenced, as the last block of a reduction does, and for no other.
  EXPECT_EQ(pass(gl, atom, gl + look, "bar.sync 0;\n"), "");
  EXPECT_EQ(pass(gl, atom, look, "bar.sync 0;\n"), "race");
  // The flag itself: plain accesses race, and so do scopes that leave out the other.
  EXPECT_EQ(pass(gl, "st.global.u32 [%rd1], 1;\n", get("acquire.gpu"), ""), "race");
  EXPECT_EQ(pass("", one("release.cta"), get("acquire.gpu"), ""), "race");
  EXPECT_EQ(pass("", one("release.gpu"), get("acquire.cta"), ""), "race");
  EXPECT_EQ(pass(gl, "atom.cta.global.exch.b32 %r5, [%rd1], %r2;\n", look, gl), "race");
  EXPECT_EQ(pass("", one("release.cluster"), get("acquire.cluster"), ""), "race");
  // In a cluster its scope is enough.
  EXPECT_EQ(pass("", one("release.cluster"), get("acquire.cluster"), "", {2, 1, 1}), "");
  EXPECT_EQ(pass("fence.acq_rel.cluster;\n", one("relaxed.cluster"), get("relaxed.cluster"), "fence.acq_rel.cluster;\n",
                 {2, 1, 1}),
            "");
  EXPECT_EQ(pass("", one("release.gpu"), get("acquire.gpu"), "", {2, 1, 1}), "");
  EXPECT_EQ(pass("", one("release.cta"), get("acquire.cta"), "", {2, 1, 1}), "race");
  // As CUTLASS writes them.
  EXPECT_EQ(pass("", "st.global.release.gpu.b32 [%rd1], %r2;\n", "ld.global.acquire.gpu.b32 %r3, [%rd1];\n", ""), "");
}

/// What was released before a later plain or relaxed write of the same word counts only as far as the model says.
TEST(GridOrder, ReadsBeforeWritesRace) {
  const auto kind = [](const std::string& body) {
    Bench bench;
    EXPECT_EQ(bench.load(kernel_text(1,
                                     "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%ctaid.x; setp.eq.u32 %p1,%r1,0; "
                                     "setp.eq.u32 %p2,%r1,3; setp.eq.u32 %p3,%r1,1;\n" +
                                         body)),
              "");
    return bench.arg(bench.buffer(std::vector<uint32_t>(64, 5))).kind({4, 1, 1}, {1, 1, 1});
  };
  EXPECT_EQ(kind("@%p1 ld.global.u32 %r3,[%rd1]; @%p2 st.global.u32 [%rd1], %r1;"), "race");
  EXPECT_EQ(kind("@%p1 ld.global.u16 %r3,[%rd1]; @%p2 st.global.u16 [%rd1+2], %r1;"), "");
  EXPECT_EQ(kind("@%p1 ld.global.u16 %r3,[%rd1+2]; @%p2 st.global.u32 [%rd1], %r1;"), "race");
  EXPECT_EQ(kind("ld.global.u32 %r3,[%rd1]; @%p2 st.global.u32 [%rd1], %r1;"), "race");
  EXPECT_EQ(kind("ld.global.u32 %r3,[%rd1]; @%p1 st.global.u32 [%rd1], %r1;"), "race");
  EXPECT_EQ(kind("ld.global.u32 %r3,[%rd1]; @%p2 st.global.u32 [%rd1+4], %r1;"), "");
  EXPECT_EQ(kind("@%p1 ld.global.u32 %r3,[%rd1]; @%p2 atom.global.add.u32 %r4, [%rd1], 1;"), "race");
  EXPECT_EQ(kind("@%p1 ld.volatile.global.u32 %r3,[%rd1]; @%p2 atom.global.add.u32 %r4, [%rd1], 1;"), "");
  EXPECT_EQ(kind("@%p1 ld.volatile.global.u32 %r3,[%rd1]; @%p2 st.global.u32 [%rd1], 6;"), "race");
  // Equal values, unless another CTA reads or stores another value.
  EXPECT_EQ(kind("mov.u32 %r3,%ntid.x; st.global.u32 [%rd1], %r3; ld.global.u32 %r4, [%rd1];"), "");
  EXPECT_EQ(kind("mov.u32 %r3,%ntid.x; @!%p1 st.global.u32 [%rd1], %r3; @%p1 ld.global.u32 %r4, [%rd1];"), "race");
  EXPECT_EQ(kind("mov.u32 %r3,%ntid.x; @!%p2 st.global.u32 [%rd1], %r3; @%p2 st.global.u32 [%rd1], 9;"), "race");
  EXPECT_EQ(kind("mov.u32 %r3,%ntid.x; @!%p2 st.global.u32 [%rd1], %r3; @%p2 ld.global.u32 %r4, [%rd1];"), "race");
}

TEST(GridOrder, PollingWithoutEndIsADeadlock) {
  const auto begin = std::chrono::steady_clock::now();
  const auto run = [](const std::string& body, uint32_t ctas, uint32_t threads) {
    Bench bench;
    EXPECT_EQ(bench.load(kernel_text(
                  1,
                  "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r9, s; mov.u32 %r8, 0; "
                  "st.volatile.shared.u32 [%r9], %r8;\n" +
                      body,
                  ".shared .align 4 .b32 s[2];\n")),
              "");
    const RunResult r = bench.arg(bench.buffer(std::vector<uint32_t>(64))).run({ctas, 1, 1}, {threads, 1, 1});
    return r.findings.empty() ? "" : r.findings[0].kind + ": " + r.findings[0].message;
  };
  const std::string wait = "W: ld.volatile.global.u32 %r3,[%rd1]; setp.eq.u32 %p1,%r3,0; @%p1 bra W;\n";
  EXPECT_EQ(run(wait, 3, 64),
            "deadlock: 3 CTAs poll device memory that none changes; CTAs 0-2: warps 0-1 at PTX line 15");
  EXPECT_TRUE(run("setp.eq.u32 %p2,%r2,1; @%p2 bra E;\n" + wait + "E:", 3, 64)
                  .starts_with("deadlock: 2 CTAs poll device memory that none changes; 2 CTAs from 0: "));
  EXPECT_TRUE(run("W: atom.global.cas.b32 %r3,[%rd1],0,1; setp.ne.u32 %p1,%r3,0; @%p1 bra W;", 2, 32)
                  .starts_with("deadlock: 2 CTAs"));
  EXPECT_TRUE(run("W: atom.shared.cas.b32 %r3,[%r9],0,1; setp.ne.u32 %p1,%r3,0; @%p1 bra W;", 1, 96)
                  .starts_with("deadlock: the CTA polls shared memory"));
  // Each lane waits for the one after it.
  EXPECT_TRUE(run("W: ld.volatile.shared.u32 %r3,[%r9]; setp.ne.u32 %p1,%r3,%r1; @%p1 bra W; setp.eq.u32 %p2,%r1,7; "
                  "@%p2 bra V; add.u32 %r3,%r3,1; st.volatile.shared.u32 [%r9], %r3; exit;\n"
                  "V: ld.volatile.shared.u32 %r4,[%r9+4]; setp.ne.u32 %p1,%r4,1; @%p1 bra V;",
                  1, 32)
                  .starts_with("uninitialised"));
  // A loop that counts may end.
  const std::string counts =
      "mov.u32 %r5, 0;\nW: ld.volatile.global.u32 %r3,[%rd1]; add.u32 %r5,%r5,1; setp.lt.u32 %p1,%r5,20000; @%p1 bra "
      "W;";
  EXPECT_EQ(run(counts, 2, 32), "");
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 20);
}

TEST(GridOrder, SchedulesRepeatBySeed) {
  // Each CTA stores its ticket, each warp of a CTA the order in which it came.
  const auto tickets = [](uint64_t schedule) {
    Bench bench;
    EXPECT_EQ(bench.load(kernel_text(1,
                                     "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; "
                                     "mad.lo.u32 %r4,%r2,2,0; shr.u32 %r5,%r1,5; add.u32 %r4,%r4,%r5; "
                                     "atom.global.add.u32 %r3,[%rd1],1; mul.wide.u32 %rd2,%r4,4; "
                                     "add.u64 %rd2,%rd2,%rd1; and.b32 %r6,%r1,31; setp.eq.u32 %p1,%r6,0; "
                                     "@%p1 st.global.u32 [%rd2+4],%r3;")),
              "");
    const DevicePtr out = bench.buffer(std::vector<uint32_t>(2 * 1500 + 1));
    RunOptions options;
    options.schedule = schedule;
    options.threads = 4;
    EXPECT_TRUE(bench.arg(out).run({1500, 1, 1}, {64, 1, 1}, 0, options).findings.empty());
    return bench.read<uint32_t>(out, 2 * 1500 + 1);
  };
  const auto usual = tickets(0);
  EXPECT_TRUE(std::is_sorted(usual.begin() + 1, usual.end()));
  for (uint64_t schedule = 1; schedule < 4; ++schedule) {
    auto one = tickets(schedule);
    EXPECT_EQ(one, tickets(schedule));
    EXPECT_NE(one, usual);
    EXPECT_NE(one, tickets(schedule + 1));
    EXPECT_EQ(one[0], usual[0]);
    std::sort(one.begin() + 1, one.end());
    EXPECT_EQ(one, usual);  // every CTA ran once
  }
}

}  // namespace
}  // namespace roofgen::sim_test::grid_order_test
