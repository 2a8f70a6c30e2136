// Sparse device memory, and launches from several threads at once.
#include "runtime/sim/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/sim/decode.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/ptx_parser.h"
#include "support.h"

namespace roofgen::sim_test::memory_test {
namespace {

/// Byte i of an input is a hash of i.
std::byte pattern(uint64_t i) { return static_cast<std::byte>(i * 0x9e3779b97f4a7c15ull >> 56); }
void fill(uint64_t offset, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = pattern(offset + i);
}

TEST(Memory, AnInputIsFilledOnlyWhereItIsTouched) {
  Bench bench;
  std::atomic<uint64_t> filled{0};
  uint64_t size = uint64_t{1} << 42;  // 4 TiB
  auto input = bench.executor().allocate(size, "huge", [&](uint64_t offset, std::span<std::byte> out) {
    filled += out.size();
    fill(offset, out);
  });
  ASSERT_TRUE(input) << to_string(input.error());
  ASSERT_EQ(bench.load(kernel_text(
                2,
                "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd3,%r1,1;\n"
                "shl.b64 %rd4,%rd3,37; add.s64 %rd5,%rd1,%rd4; ld.global.u8 %rs1,[%rd5+5]; add.s64 %rd6,%rd2,%rd3; "
                "st.global.u8 [%rd6],%rs1;")),
            "");
  DevicePtr out = bench.poisoned(32);
  RunResult r = bench.arg(*input).arg(out).run({1, 1, 1}, {32, 1, 1});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  auto v = bench.read<uint8_t>(out, 32);
  for (uint64_t i = 0; i < 32; ++i) EXPECT_EQ(std::byte{v[i]}, pattern((i << 37) + 5));
  EXPECT_EQ(filled.load(), 32u * 128);
}

// One thread adds 1 to each 1024th byte; another buffer of a row of words is copied, so that whole rows are written
// too.
TEST(Memory, AFilledBufferTakesWritesOnlyWhereTheyAreAllowed) {
  for (const bool allowed : {true, false}) {
    Bench bench;
    ASSERT_EQ(bench.load(kernel_text(
                  1,
                  "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd2,%r1,1024; add.s64 %rd3,%rd1,%rd2; "
                  "ld.global.u8 %rs1,[%rd3]; add.u16 %rs2,%rs1,1; st.global.u8 [%rd3],%rs2; mul.wide.u32 %rd4,%r1,4; "
                  "add.s64 %rd5,%rd1,%rd4; st.global.u32 [%rd5+256],%r1;")),
              "");
    const uint64_t size = uint64_t{1} << 40;
    auto updated = bench.executor().allocate(size, "cache", fill);
    ASSERT_TRUE(updated);
    ASSERT_TRUE(!allowed || bench.executor().allow_writes(*updated));
    RunResult r = bench.arg(*updated).run({1, 1, 1}, {32, 1, 1});
    if (!allowed) {
      ASSERT_EQ(r.findings.size(), 1u);
      EXPECT_EQ(r.findings[0].kind, "write-to-input");
      continue;
    }
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    const auto bytes = bench.read<uint8_t>(*updated, 33 * 1024);
    for (uint64_t i = 0; i < bytes.size(); ++i) {
      const auto before = static_cast<uint8_t>(pattern(i));
      const bool added = i % 1024 == 0 && i < 32 * 1024, word = i >= 256 && i < 384;
      const auto expected = static_cast<uint8_t>(word ? (i % 4 == 0 ? (i - 256) / 4 : 0) : before + added);
      ASSERT_EQ(bytes[i], expected) << i;
    }
  }
}

TEST(Memory, ImpossibleSizesAreErrors) {
  Bench bench;
  auto none = bench.executor().allocate(0, "nothing");
  ASSERT_FALSE(none);
  auto huge = bench.executor().allocate(uint64_t{1} << 60, "s");
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("1152921504606846976"), std::string::npos) << huge.error().message;
}

/// "The kernel parameter space window is always contained within the global space window" (PTX ISA, 5.1.6).
TEST(Memory, GlobalLoadsReadParameters) {
  for (const auto& [access, kind] : {std::pair("ld.global.u64 %rd4, [%rd3];", ""),
                                     {"ld.global.u64 %rd4, [%rd3+16];", "out-of-bounds"},
                                     {"st.global.u64 [%rd3], %rd1;", "out-of-bounds"}}) {
    Bench bench;
    ASSERT_EQ(bench.load(kernel_text(1, std::string("ld.param.u64 %rd1, [p0];\nmov.b64 %rd2, p0;\n"
                                                    "cvta.param.u64 %rd3, %rd2;\nmov.u64 %rd4, 0;\n") +
                                            access + "\nst.global.u64 [%rd1], %rd4;")),
              "");
    const DevicePtr out = bench.poisoned(8);
    const RunResult r = bench.arg(out).run({1, 1, 1}, {1, 1, 1});
    EXPECT_EQ(r.findings.empty() ? "" : r.findings[0].kind, kind) << access;
    if (r.findings.empty()) {
      EXPECT_EQ(bench.read<uint64_t>(out, 1)[0], out.address);
    }
  }
}

TEST(Memory, ReadBackReportsWrittenBytes) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, "ld.param.u64 %rd1,[p0]; st.global.u16 [%rd1+130],7;")), "");
  DevicePtr out = bench.poisoned(300);
  bench.arg(out).run({1, 1, 1}, {1, 1, 1});
  std::vector<std::byte> bytes(300);
  std::vector<bool> written;
  ASSERT_TRUE(bench.executor().read(out, bytes, &written));
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(written[i], i == 130 || i == 131) << i;
    if (!written[i]) {
      EXPECT_EQ(bytes[i], std::byte{0xff});
    }
  }
  ASSERT_TRUE(bench.executor().poison(out));
  ASSERT_TRUE(bench.executor().read(out, bytes, &written));
  EXPECT_FALSE(written[130]);
  bench.executor().release(out);
  EXPECT_FALSE(bench.executor().read(out, bytes, nullptr));
}

/// Each lane copies `size` bytes and reads lane % (size + 1) of them; the rest of shared memory must not change.
TEST(Memory, AsyncCopiesOfEverySizeFillTheRestWithZeros) {
  for (uint32_t size : {4u, 8u, 16u})
    for (const char* kind : {"ca", "cg"}) {
      if (size < 16 && kind[1] == 'g') continue;
      const std::string n = std::to_string(size);
      Bench bench;
      ASSERT_EQ(bench.load(kernel_text(
                    2,
                    "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; mov.u32 %r1,%tid.x; mov.u32 %r2,smem; shl.b32 "
                    "%r3,%r1,4;\n"
                    "add.s32 %r4,%r2,%r3; cvt.u64.u32 %rd3,%r3; add.s64 %rd4,%rd1,%rd3; add.s64 %rd5,%rd2,%rd3;\n"
                    "mov.u32 %r5,0xeeeeeeee; st.shared.v4.u32 [%r4],{%r5,%r5,%r5,%r5}; rem.u32 %r6,%r1," +
                        std::to_string(size + 1) + "; cp.async." + kind + ".shared.global [%r4],[%rd4]," + n +
                        ",%r6; cp.async.wait_all;\n"
                        "ld.shared.v4.u32 {%r7,%r8,%r9,%r10},[%r4]; st.global.v4.u32 [%rd5],{%r7,%r8,%r9,%r10};",
                    ".extern .shared .align 16 .b8 smem[];\n")),
                "");
      auto input = bench.executor().allocate(512, "in", fill);
      ASSERT_TRUE(input);
      const DevicePtr out = bench.poisoned(512);
      const RunResult r = bench.arg(*input).arg(out).run({1, 1, 1}, {32, 1, 1}, 512);
      ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
      const auto v = bench.read<uint8_t>(out, 512);
      for (uint32_t i = 0; i < 512; ++i) {
        const uint32_t lane = i / 16, byte = i % 16;
        const std::byte want = byte >= size ? std::byte{0xee} : byte < lane % (size + 1) ? pattern(i) : std::byte{0};
        EXPECT_EQ(std::byte{v[i]}, want) << kind << " " << size << " lane " << lane << " byte " << byte;
      }
    }
}

TEST(Memory, NarrowVectorsMoveTheirBytes) {
  struct Case {
    const char* type;
    uint32_t bytes;
  };
  for (const Case& c : {Case{"v2.b8", 2}, Case{"v4.b8", 4}, Case{"v2.u8", 2}, Case{"v2.b16", 4}, Case{"v4.b16", 8},
                        Case{"v4.u16", 8}}) {
    const std::string registers = c.type[1] == '2' ? "{%rs1,%rs2}" : "{%rs1,%rs2,%rs3,%rs4}", type = c.type,
                      stride = std::to_string(c.bytes);
    Bench bench;
    ASSERT_EQ(
        bench.load(kernel_text(
            2,
            "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd3,%r1," + stride +
                "; add.s64 %rd4,%rd1,%rd3; add.s64 %rd5,%rd2,%rd3; mov.u32 %r2,smem; mad.lo.s32 %r3,%r1," + stride +
                ",%r2;\nld.global." + type + " " + registers + ",[%rd4]; st.shared." + type + " [%r3]," + registers +
                "; ld.shared." + type + " " + registers + ",[%r3]; st.global." + type + " [%rd5]," + registers + ";",
            ".extern .shared .align 16 .b8 smem[];\n")),
        "")
        << type;
    auto input = bench.executor().allocate(256, "in", fill);
    ASSERT_TRUE(input);
    const DevicePtr out = bench.poisoned(256);
    const RunResult r = bench.arg(*input).arg(out).run({1, 1, 1}, {32, 1, 1}, 256);
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    EXPECT_EQ(r.counts->narrow_load, 32u);
    const auto v = bench.read<uint8_t>(out, 32 * c.bytes);
    for (uint32_t i = 0; i < 32 * c.bytes; ++i) EXPECT_EQ(std::byte{v[i]}, pattern(i)) << type << " " << i;
  }
}

TEST(Memory, EvictedInputsComeBackTheSame) {
  sim::DeviceMemory memory(100);  // lines
  ASSERT_TRUE(memory.initialise());
  auto a = memory.allocate(1 << 20, "a", fill);
  ASSERT_TRUE(a);
  std::vector<std::byte> out(1 << 20);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t at = 0; at < out.size(); at += 4096) {
      ASSERT_TRUE(memory.read(*a + at, std::span(out).subspan(at, 4096), nullptr));
      if (memory.over_cap()) memory.evict();
      EXPECT_LE(memory.filled_lines(), 100u);
    }
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], pattern(i));
  }
}

TEST(Memory, LaunchesFromManyThreadsAgree) {
  Bench bench;
  Binary binary;
  binary.entry = "flash";
  binary.ptx = fixture("flash.ptx");
  auto module = bench.executor().load(binary);
  ASSERT_TRUE(module);
  uint32_t rows = 192;
  uint64_t bytes = uint64_t{rows} * 64 * 2;
  auto values = [](uint64_t offset, std::span<std::byte> out) {
    for (size_t i = 0; i < out.size(); i += 2) {
      uint16_t h = to_bf16(static_cast<float>(static_cast<uint8_t>(pattern(offset + i))) / 128 - 1);
      std::memcpy(out.data() + i, &h, 2);
    }
  };
  std::vector<Arg> inputs;
  for (const char* name : {"q", "k", "v"})
    inputs.push_back({name, true, bench.executor().allocate(bytes, name, values)->address, 8});
  constexpr int kThreads = 4;
  std::vector<std::vector<std::byte>> results(kThreads, std::vector<std::byte>(bytes));
  std::vector<Counts> counts(kThreads);
  std::vector<std::vector<std::vector<LineAccess>>> traces(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Launch launch;
      launch.grid = {3, 1, 1};
      launch.block = {128, 1, 1};
      launch.smem_bytes = 16384;
      launch.args = inputs;
      auto out = bench.executor().allocate(bytes, "o");
      launch.args.push_back({"o", true, out->address, 8});
      for (uint32_t v : {1u, rows, rows, 0x3e38aa3bu}) launch.args.push_back({"s", false, v, 4});
      RunOptions options;
      options.trace = &traces[static_cast<size_t>(t)];
      auto r = bench.executor().run(*module, launch, options);
      ASSERT_TRUE(r);
      for (const Finding& f : r->findings) ADD_FAILURE() << f.message;
      counts[static_cast<size_t>(t)] = *r->counts;
      ASSERT_TRUE(bench.executor().read(*out, results[static_cast<size_t>(t)]));
      bench.executor().release(*out);
    });
  for (auto& t : threads) t.join();
  for (size_t t = 1; t < kThreads; ++t) {
    EXPECT_EQ(results[t], results[0]);
    EXPECT_EQ(counts[t].warp_instructions, counts[0].warp_instructions);
    EXPECT_EQ(counts[t].l2_read_sectors, counts[0].l2_read_sectors);
    ASSERT_EQ(traces[t].size(), 3u);
    EXPECT_EQ(traces[t][1].size(), traces[0][1].size());
  }
}

/// Three concurrent launches over inputs much larger than the resident limit.
TEST(Memory, LaunchesSurviveEviction) {
  std::string text = fixture("flash.ptx");
  auto ptx = sim::parse_ptx(text, "flash.ptx");
  ASSERT_TRUE(ptx);
  auto no_variables = [](const sim::PtxVar&) -> Result<uint64_t> { return Error{Exit::kFailed, "none", {}}; };
  auto kernel = sim::decode_kernel(*ptx, ptx->functions[0], sim::OpcodeTable::host(), no_variables, "flash.ptx");
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  constexpr uint32_t kRows = 256;
  constexpr uint64_t kBytes = uint64_t{kRows} * 64 * 2;
  auto run = [&](uint64_t cap, int threads) {
    sim::DeviceMemory memory(cap);
    EXPECT_TRUE(memory.initialise());
    std::vector<uint64_t> inputs;
    for (const char* name : {"q", "k", "v"})
      inputs.push_back(*memory.allocate(kBytes, name, [](uint64_t offset, std::span<std::byte> out) {
        fill(offset, out);
        for (size_t i = 1; i < out.size(); i += 2)
          out[i] = (out[i] & std::byte{0x83}) | std::byte{0x3c};  // bf16 around 1
      }));
    std::vector<std::vector<std::byte>> results(static_cast<size_t>(threads), std::vector<std::byte>(kBytes));
    std::vector<std::thread> pool;
    for (auto& result : results)
      pool.emplace_back([&] {
        uint64_t out = *memory.allocate(kBytes, "o", nullptr);
        Launch launch;
        launch.grid = {4, 1, 1};
        launch.block = {128, 1, 1};
        launch.smem_bytes = 16384;
        sim::LaunchState state{*kernel, launch, {}, memory, memory.buffers(), 1 << 30};
        state.params.resize(48);
        for (size_t i = 0; i < 3; ++i) std::memcpy(state.params.data() + 8 * i, &inputs[i], 8);
        std::memcpy(state.params.data() + 24, &out, 8);
        const uint32_t scalars[] = {1, kRows, kRows, 0x3e38aa3b};
        std::memcpy(state.params.data() + 32, scalars, sizeof scalars);
        sim::Counter counter(*kernel);
        sim::Machine machine(state, counter, sim::host_lanes());
        std::vector<Finding> findings;
        for (uint32_t cta = 0; cta < 4; ++cta) machine.run_cta(cta, cta, findings);
        for (const Finding& f : findings) ADD_FAILURE() << f.message;
        EXPECT_TRUE(memory.read(out, result, nullptr));
      });
    for (auto& t : pool) t.join();
    return results;
  };
  auto plenty = run(sim::kDefaultFilledCap, 1);
  for (const auto& tight : run(100, 3)) EXPECT_EQ(tight, plenty[0]);
}

TEST(Memory, BuffersComeAndGoWhileOthersAreMarkedAndEvicted) {
  sim::DeviceMemory memory(4);
  ASSERT_TRUE(memory.initialise());
  std::atomic<bool> ended{false};
  std::thread owner([&] {
    for (int i = 0; i < 2000; ++i) {
      auto input = memory.allocate(8 * sim::kLineBytes, "input", fill);
      ASSERT_TRUE(input);
      std::vector<std::byte> bytes(8 * sim::kLineBytes);
      ASSERT_TRUE(memory.read(*input, bytes, nullptr));
      for (size_t at = 0; at < bytes.size(); ++at) ASSERT_EQ(bytes[at], pattern(at));
      memory.release(*input);
    }
    ended = true;
  });
  while (!ended) {
    const auto marks = memory.filled_so_far();
    memory.evict();
    memory.drop_filled_since(marks);
  }
  owner.join();
  EXPECT_EQ(memory.filled_lines(), 0u);
}

TEST(Memory, SelectedCtasOnly) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(
                1,
                "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%ctaid.y; mov.u32 %r2,%ctaid.x; mad.lo.s32 %r3,%r1,10,%r2; "
                "mul.wide.u32 %rd2,%r3,4; add.s64 %rd3,%rd1,%rd2; st.global.u32 [%rd3],%r3;")),
            "");
  DevicePtr out = bench.poisoned(400);
  RunOptions options;
  options.ctas = CtaSelection{{3, 17, 42}};
  RunResult r = bench.arg(out).run({10, 10, 1}, {1, 1, 1}, 0, options);
  EXPECT_EQ(r.counts->ctas, 3u);
  std::vector<std::byte> bytes(400);
  std::vector<bool> written;
  ASSERT_TRUE(bench.executor().read(out, bytes, &written));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(written[4 * i], i == 3 || i == 17 || i == 42) << i;
}

}  // namespace
}  // namespace roofgen::sim_test::memory_test
