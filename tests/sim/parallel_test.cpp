// CTAs on several cores must have the same effects as CTAs in order, or none (runtime/sim/parallel.h).
#include "runtime/sim/parallel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "runtime/sim/decode.h"
#include "runtime/sim/ptx_parser.h"
#include "runtime/sim/schedule.h"
#include "support.h"

namespace roofgen::sim_test::parallel_test {
namespace {

constexpr int kThreads = 3;

/// The effects of a launch that other launches and the user can observe.
struct Left {
  bool in_parallel = false;
  std::vector<std::string> findings;
  std::vector<std::vector<std::byte>> values;
  std::vector<std::vector<bool>> written;
  Counts counts;
  std::vector<std::vector<LineAccess>> trace;
  std::string printed;
};

/// A kernel of kernel_text() with pointers as parameters, and the buffers they point to.
struct Case {
  std::string ptx;
  std::vector<std::vector<std::byte>> buffers;
  uint32_t ctas = 1 + kThreads, threads = 32;
  std::vector<uint64_t> bytes;  ///< of each buffer; bytes beyond `buffers` are unwritten
  uint32_t launches = 1;
  uint64_t wave = 1 << 20;

  Left run(bool parallel) const {
    sim::PtxModule module = *sim::parse_ptx(ptx, "k.ptx");
    sim::DeviceMemory memory;
    EXPECT_TRUE(memory.initialise());
    auto place = [&](const sim::PtxVar& v) -> Result<uint64_t> {
      ROOFGEN_TRY(uint64_t address, memory.allocate(v.bytes(), std::string(v.name), nullptr));
      std::vector<std::byte> zeros(v.bytes());
      std::memcpy(zeros.data(), v.init.data(), std::min<size_t>(v.init.size(), zeros.size()));
      ROOFGEN_CHECK(memory.write(address, zeros));
      return address;
    };
    auto kernel = sim::decode_kernel(module, module.functions.back(), sim::OpcodeTable::host(), place, "k.ptx");
    if (!kernel) abort();
    Left left;
    std::vector<uint64_t> at;
    for (size_t i = 0; i < bytes.size(); ++i) {
      at.push_back(*memory.allocate(bytes[i], fmt::format("p{}", i), nullptr));
      if (i < buffers.size() && !memory.write(at[i], buffers[i])) abort();
    }
    Launch launch;
    launch.grid = {ctas, 1, 1};
    launch.block = {threads, 1, 1};
    std::vector<Finding> findings;
    for (uint32_t n = 0; n < launches; ++n) {
      sim::LaunchState state{*kernel, launch, {}, memory, memory.buffers(), 1 << 20};
      state.printed = &left.printed;
      state.params.resize(8 * at.size());
      std::memcpy(state.params.data(), at.data(), state.params.size());
      sim::Counter counter(*kernel);
      RunOptions options;
      options.trace = &left.trace;
      left.trace.clear();
      options.worth_threads = 0;
      options.threads = parallel ? kThreads : 1;
      left.in_parallel = sim::run_ctas(state, counter, ctas, options, findings, wave) + 1 == ctas;
      left.counts = counter.finish();
    }
    for (const Finding& f : findings)
      left.findings.push_back(fmt::format("{} {} {} {}", f.kind, f.cta, f.thread, f.message));
    for (size_t i = 0; i < at.size(); ++i) {
      left.values.emplace_back(bytes[i]);
      left.written.emplace_back();
      EXPECT_TRUE(memory.read(at[i], left.values[i], &left.written[i]));
    }
    return left;
  }
};

bool same(const LineAccess& a, const LineAccess& b) {
  return a.line == b.line && a.sectors == b.sectors && a.write == b.write;
}

/// Whether the launch ran in parallel.
bool same_in_parallel(const Case& c) {
  const Left apart = c.run(true), alone = c.run(false);
  EXPECT_EQ(apart.findings, alone.findings);
  EXPECT_EQ(apart.values, alone.values);
  EXPECT_EQ(apart.written, alone.written);
  EXPECT_EQ(apart.printed, alone.printed);
  EXPECT_EQ(std::memcmp(&apart.counts, &alone.counts, sizeof(Counts)), 0);
  EXPECT_EQ(apart.trace.size(), alone.trace.size());
  for (size_t i = 0; i < std::min(apart.trace.size(), alone.trace.size()); ++i)
    EXPECT_TRUE(
        std::equal(apart.trace[i].begin(), apart.trace[i].end(), alone.trace[i].begin(), alone.trace[i].end(), same))
        << i;
  return apart.in_parallel;
}

std::vector<std::byte> counting(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 37 + 11);
  return out;
}

/// %r8 is the thread's number in the grid; %rd1 and %rd2 are the first two parameters, %rd4 and %rd5 the addresses of
/// their elements %r8.
std::string grid_kernel(int bytes, const std::string& body, const std::string& head = "") {
  return kernel_text(
      2,
      fmt::format("ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
                  "%ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r8, %r2, %r3, %r1;\n"
                  "mul.wide.u32 %rd3, %r8, {};\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n{}\n",
                  bytes, body),
      head);
}

TEST(Parallel, CtasThatShareNothing) {
  Case c{grid_kernel(4, "ld.global.u32 %r9, [%rd4];\nmul.lo.u32 %r9, %r9, %r9;\nst.global.u32 [%rd5], %r9;"),
         {counting(50 * 256)},
         50,
         64,
         {50 * 256, 50 * 256}};
  EXPECT_TRUE(same_in_parallel(c));
  c.launches = 3;  // the next launch may overwrite data of an earlier launch
  EXPECT_TRUE(same_in_parallel(c));
  c.wave = 1;  // the smallest possible waves
  EXPECT_TRUE(same_in_parallel(c));
}

TEST(Parallel, WavesFollowEachOther) {
  // Each CTA reads data that the CTA 30 before it wrote in an earlier wave; the first CTAs read host data.
  const std::string body = "add.u64 %rd4, %rd4, 3840;\nld.global.u32 %r9, [%rd4+-3840];\nst.global.u32 [%rd4], %r9;";
  Case c{grid_kernel(4, body), {counting(80 * 128)}, 40, 32, {80 * 128, 4}};
  c.wave = 1;
  const Left left = c.run(true);
  ASSERT_EQ(left.findings.size(), 8u);
  EXPECT_TRUE(left.findings[0].starts_with("race 30 0 ")) << left.findings[0];
  EXPECT_FALSE(same_in_parallel(c));
  c.ctas = 30;
  EXPECT_TRUE(same_in_parallel(c));
}

TEST(Parallel, WavesOverwriteWhatEarlierOnesRead) {
  // Each CTA reads data that the CTA 30 after it writes in a later wave.
  Case c{grid_kernel(4, "ld.global.u32 %r9, [%rd4+3840];\nst.global.u32 [%rd4], %r8;"),
         {counting(80 * 128)},
         40,
         32,
         {80 * 128, 4}};
  c.wave = 1;
  const Left left = c.run(true);
  ASSERT_EQ(left.findings.size(), 8u);
  EXPECT_TRUE(left.findings[0].starts_with("race 30 0 write to p0[byte 3840], read by another CTA"))
      << left.findings[0];
  EXPECT_FALSE(same_in_parallel(c));
  c.ctas = 30;
  EXPECT_TRUE(same_in_parallel(c));
  // All read one line, and rows of 9 words share lines between workers and waves.
  Case shared{grid_kernel(4, "st.global.u32 [%rd4], %r8;\nld.global.u32 %r10, [%rd2];"),
              {counting(80 * 36), counting(4)},
              80,
              9,
              {80 * 36, 4}};
  shared.wave = 1;
  EXPECT_TRUE(same_in_parallel(shared));
}

TEST(Parallel, InPlace) {
  EXPECT_TRUE(same_in_parallel({grid_kernel(4,
                                            "ld.global.u32 %r9, [%rd4];\nadd.u32 %r9, %r9, 1;\nst.global.u32 [%rd4], "
                                            "%r9;\nld.global.u32 %r10, [%rd4];\nst.global.u32 [%rd5], %r10;"),
                                {counting(20 * 128)},
                                20,
                                32,
                                {20 * 128, 20 * 128}}));
}

TEST(Parallel, WordsOfOneLine) {
  // 9 threads write 36 bytes: lines and sectors are shared by several CTAs, words are not.
  EXPECT_TRUE(same_in_parallel({grid_kernel(4, "st.global.u32 [%rd5], %r8;"), {}, 40, 9, {4, 40 * 36}}));
  // Also over host data, parts of which remain.
  EXPECT_TRUE(same_in_parallel(
      {grid_kernel(4, "and.b32 %r9, %r8, 1;\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 st.global.u32 [%rd5], %r8;"),
       {{}, counting(40 * 36)},
       40,
       9,
       {4, 40 * 36}}));
}

TEST(Parallel, WordsThatAreWrittenInPart) {
  // The lowest byte of each word, in lines whose first words are already written.
  EXPECT_TRUE(same_in_parallel({grid_kernel(4, "st.global.u8 [%rd5], %r8;"), {{}, counting(20)}, 40, 9, {4, 40 * 36}}));
}

TEST(Parallel, BytesOfOneWordAreWrittenInOrder) {
  EXPECT_FALSE(
      same_in_parallel({grid_kernel(1, "st.global.u8 [%rd5], %r8;"), {}, 1 + kThreads, 9, {1, (1 + kThreads) * 9}}));
}

/// Each CTA reads the data of the next CTA, which is unwritten when CTAs run in order.
TEST(Parallel, ReadsBeforeAnotherCtasWrite) {
  EXPECT_FALSE(same_in_parallel({grid_kernel(4, "ld.global.u32 %r9, [%rd4+128];\nst.global.u32 [%rd4], %r9;"),
                                 {counting((kThreads + 1) * 128)},
                                 kThreads,
                                 32,
                                 {(kThreads + 1) * 128, 4}}));
}
TEST(Parallel, ReadsAfterAnotherCtasWrite) {
  const Case c{grid_kernel(4, "ld.global.u32 %r9, [%rd4];\nst.global.u32 [%rd4+128], %r9;"),
               {counting((kThreads + 1) * 128)},
               kThreads,
               32,
               {(kThreads + 1) * 128, 4}};
  EXPECT_FALSE(same_in_parallel(c));
  ASSERT_FALSE(c.run(true).findings.empty());
  EXPECT_TRUE(c.run(true).findings[0].starts_with("race 1 0 ")) << c.run(true).findings[0];
}
TEST(Parallel, WritesToOnePlace) {
  EXPECT_FALSE(same_in_parallel({grid_kernel(4, "st.global.u32 [%rd2], 7;"), {}, kThreads, 1, {4, 4}}));
  EXPECT_FALSE(same_in_parallel({grid_kernel(4, "st.global.u32 [%rd2], %r8;"), {}, kThreads, 1, {4, 4}}));
}

TEST(Parallel, OrderDependentKernels) {
  const auto uses = [](const std::string& body, const std::string& head = "") {
    return same_in_parallel({grid_kernel(4, body, head),
                             {counting(128 * kThreads), counting(128 * kThreads)},
                             kThreads,
                             32,
                             {128 * kThreads, 128 * kThreads}});
  };
  EXPECT_FALSE(uses("atom.global.add.u32 %r9, [%rd2], 1;"));
  EXPECT_FALSE(uses("atom.add.u32 %r9, [%rd2], 1;"));
  EXPECT_FALSE(uses("red.global.add.u32 [%rd4], 1;"));
  EXPECT_FALSE(uses("ld.volatile.global.u32 %r9, [%rd4];"));
  EXPECT_FALSE(uses("st.volatile.global.u32 [%rd4], %r8;"));
  EXPECT_FALSE(uses("st.release.gpu.global.u32 [%rd4], %r8;"));
  EXPECT_TRUE(uses("mov.u32 %r9, 0;\nst.volatile.shared.u32 [s], %r9;\nst.global.u32 [%rd4], %r8;",
                   ".shared .align 4 .b32 s[1];"));
  EXPECT_TRUE(uses("membar.gl;\nst.global.u32 [%rd4], %r8;"));
}

TEST(Parallel, OneMistakeAndAllIsDoneInOrder) {
  // The last thread of the last CTA is out of bounds.
  Case c{grid_kernel(4, "st.global.u32 [%rd5], %r8;"), {}, 8, 32, {4, 8 * 128 - 4}};
  EXPECT_FALSE(same_in_parallel(c));
  EXPECT_EQ(c.run(true).findings.size(), 1u);
  EXPECT_TRUE(c.run(true).findings[0].starts_with("out-of-bounds 7 31 "));
  c.bytes[1] = 4;  // nearly every CTA; the first eight are reported
  c.ctas = 20;
  EXPECT_FALSE(same_in_parallel(c));
  EXPECT_EQ(c.run(true).findings.size(), 8u);
}

TEST(Parallel, ConstantsThatAKernelWrites) {
  const std::string head = ".const .align 4 .b32 c[32] = {1, 2, 3};\n";
  EXPECT_TRUE(same_in_parallel({grid_kernel(4, "ld.const.u32 %r9, [c+8];\nst.global.u32 [%rd4], %r9;", head),
                                {},
                                kThreads,
                                32,
                                {128 * kThreads, 4}}));
  // The first CTA changes a constant through its address; later CTAs read the new value.
  const std::string writes =
      "mov.u64 %rd6, c;\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 st.global.u32 [%rd6+8], %r8;\nsetp.gt.u32 %p2, %r2, 0;\n@%p2 "
      "ld.const.u32 %r9, [c+8];\n@%p2 st.global.u32 [%rd4], %r9;";
  EXPECT_FALSE(same_in_parallel({grid_kernel(4, writes, head), {}, kThreads, 32, {128 * kThreads, 4}}));
}

TEST(Parallel, UnwrittenBytes) {
  // Every other CTA writes a byte of its word and copies the word. The other bytes must not be those of another CTA.
  const std::string body =
      "and.b32 %r4, %r2, 1;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 st.local.u32 [loc], %r8;\nst.local.u8 [loc], "
      "%r8;\nld.local.u32 %r9, [loc];\nst.global.u32 [%rd5], %r9;";
  const std::string kernel = grid_kernel(4, body);
  const size_t brace = kernel.find('{');
  Case c{kernel.substr(0, brace + 1) + "\n.local .align 4 .b8 loc[4];" + kernel.substr(brace + 1),
         {},
         60,
         32,
         {4, 60 * 128}};
  c.wave = 1;
  for (int again = 0; again < 10; ++again) EXPECT_TRUE(same_in_parallel(c));
}

/// Every thread reads and writes at table indices: mostly within its CTA's data, sometimes in another CTA's.
TEST(Parallel, AnyReadsAndWrites) {
  std::mt19937 random(5);
  const std::string ptx = kernel_text(
      3,
      "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nld.param.u64 %rd3, [p2];\nmov.u32 %r1, %tid.x;\nmov.u32 "
      "%r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"
      "mad.lo.u32 %r8, %r2, %r3, %r1;\nmul.wide.u32 %rd4, %r8, 8;\nadd.u64 %rd4, %rd1, %rd4;\nld.global.v2.u32 {%r4, "
      "%r5}, [%rd4];\n"
      "cvt.u64.u32 %rd5, %r4;\nadd.u64 %rd5, %rd2, %rd5;\ncvt.u64.u32 %rd6, %r5;\nadd.u64 %rd6, %rd3, %rd6;\n"
      "ld.global.u8 %r6, [%rd5];\nadd.u32 %r6, %r6, %r8;\nst.global.u8 [%rd6], %r6;\n");
  int parallel = 0, found = 0;
  for (int round = 0; round < 400; ++round) {
    const uint32_t ctas = 2 + random() % 30, threads = 1 + random() % 40, piece = 4 * (10 + random() % 24),
                   strangers = random() % 3;
    const bool one_buffer = random() % 2;
    std::vector<uint32_t> table;
    std::vector<uint32_t> places(piece);  // the threads of a CTA write to different ones
    std::iota(places.begin(), places.end(), 0u);
    for (uint32_t c = 0; c < ctas; ++c) {
      std::shuffle(places.begin(), places.end(), random);
      for (uint32_t t = 0; t < threads; ++t)
        for (const bool writes : {false, true}) {
          const uint32_t of = strangers && random() % (ctas * threads) < strangers ? random() % ctas : c;
          table.push_back(of * piece + (writes ? places[t] : random() % piece));
        }
    }
    std::vector<std::byte> tables(table.size() * 4);
    std::memcpy(tables.data(), table.data(), tables.size());
    Case c{ptx,
           {tables, counting(ctas * piece), counting(ctas * piece)},
           ctas,
           threads,
           {tables.size(), ctas * piece, ctas * piece}};
    c.wave = 1;
    if (one_buffer) {  // in place: the second and the third parameter are equal
      const size_t begin = c.ptx.find("ld.param.u64 %rd2, [p1];");
      c.ptx.replace(begin, 24, "ld.param.u64 %rd2, [p2];");
    }
    parallel += same_in_parallel(c);
    found += !c.run(false).findings.empty();
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(parallel, 100);
  EXPECT_GT(found, 20);
  EXPECT_LT(parallel + found, 400);
}

}  // namespace
}  // namespace roofgen::sim_test::parallel_test
