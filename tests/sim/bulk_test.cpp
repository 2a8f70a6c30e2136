// Bulk and tensor copies: destinations of the bytes, and the point from which they may be read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/sim/tensor_map.h"
#include "support.h"

namespace roofgen::sim_test::bulk_test {
namespace {

using sim::TensorView;

/// p0 is a tensor map or a source, p1 the target of `out`. Thread 0 initialises the barrier, expects `bytes` and starts
/// `copy`. All threads wait for phase 0 and store their word of `tile` (%r20, at byte 4 * thread) to p1. %r1 holds the
/// thread, %r2 the address of `tile`, %r3 the address of the barrier.
std::string text(const std::string& copy, uint32_t bytes, bool wait = true, const std::string& after = "") {
  const std::string waits = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra W;\n";
  return kernel_text(2, fmt::format(R"(
.shared .align 1024 .b8 tile[8192];
.shared .align 8 .b8 bar[8];
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mov.u32 %r3, bar;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra M;
mbarrier.init.shared::cta.b64 [%r3], 1;
M:
bar.sync 0;
@%p1 bra N;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {};
{}
N:
{}
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r2, %r4;
ld.shared.u32 %r20, [%r5];
cvt.u64.u32 %rd3, %r4;
add.u64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4], %r20;
{}
)",
                                    bytes, copy, wait ? waits : "", after));
}

struct Outcome {
  std::string kind;
  std::vector<uint32_t> out;
};
/// A tensor of 64 x 20 words in row-major order: word (x, y) is 1000 y + x. `map` receives its address.
Outcome run(const std::string& ptx, TensorView map, uint32_t threads, const RunOptions& options = {}) {
  Bench b;
  if (const std::string error = b.load(ptx); !error.empty()) return {error, {}};
  std::vector<uint32_t> words(64 * 20);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i / 64 * 1000 + i % 64;
  map.address = b.buffer(words).address;
  std::vector<std::byte> bytes(sim::kTensorMapBytes);
  map.encode(bytes.data());
  const DevicePtr first = map.rank ? b.buffer(bytes, "map") : DevicePtr{map.address}, out = b.poisoned(threads * 4);
  const RunResult r = b.arg(first).arg(out).run({1, 1, 1}, {threads, 1, 1}, 0, options);
  return {r.findings.empty() ? "" : r.findings[0].kind, b.read<uint32_t>(out, threads)};
}
TensorView tensor(uint32_t wide, uint32_t high, uint32_t swizzle = 0) {
  TensorView v;
  v.rank = 2;
  v.element_bytes = 4;
  v.swizzle_bytes = swizzle;
  v.dims[0] = 64, v.dims[1] = 20;
  v.strides[1] = 256;
  v.box[0] = wide, v.box[1] = high;
  return v;
}
std::string load(int x, int y) {
  return fmt::format(
      "mov.u32 %r10, {};\nmov.u32 %r11, "
      "{};\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {{%r10, "
      "%r11}}], [%r3];\n",
      x, y);
}
uint32_t word(int x, int y) { return x >= 0 && x < 64 && y >= 0 && y < 20 ? static_cast<uint32_t>(1000 * y + x) : 0; }

TEST(Bulk, ABoxIsStoredByRowsWithZerosOutsideTheTensor) {
  for (const auto& [x, y] :
       {std::pair(0, 0), std::pair(5, 3), std::pair(-3, -1), std::pair(60, 18), std::pair(64, 0), std::pair(0, 25)}) {
    const Outcome o = run(text(load(x, y), 8 * 16 * 4), tensor(8, 16), 128);
    ASSERT_EQ(o.kind, "") << x << " " << y;
    for (int i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], word(x + i % 8, y + i / 8)) << x << " " << y << " " << i;
  }
}

TEST(Bulk, ASingleWaitMayEndWithoutSuccess) {
  RunOptions options;
  options.vain_waits = true;
  const std::string right = text(load(0, 0), 8 * 16 * 4);
  EXPECT_EQ(run(right, tensor(8, 16), 128, options).kind, "");
  std::string wrong = right;
  const std::string again = "@!%p2 bra W;";
  wrong.replace(wrong.find(again), again.size(), "");
  EXPECT_EQ(run(wrong, tensor(8, 16), 128).kind, "");
  EXPECT_NE(run(wrong, tensor(8, 16), 128, options).kind, "");
}

TEST(Bulk, SwizzledPiecesChangePlacesWithinTheirRows) {
  for (const uint32_t span : {32u, 64u, 128u}) {
    const int wide = static_cast<int>(span / 4), high = 512 / wide;
    const Outcome o =
        run(text(load(1, 2), 2048), tensor(static_cast<uint32_t>(wide), static_cast<uint32_t>(high), span), 512);
    ASSERT_EQ(o.kind, "") << span;
    for (int i = 0; i < 512; ++i) {
      const uint32_t byte = static_cast<uint32_t>(i) * 4, from = byte ^ ((byte >> 7 & (span / 16 - 1)) << 4);
      const int element = static_cast<int>(from) / 4;
      ASSERT_EQ(o.out[i], word(1 + element % wide, 2 + element / wide)) << span << " " << i;
    }
  }
}

TEST(Bulk, AnArgumentMayBeAMap) {
  std::string ptx = text(load(3, 2), 512);
  const std::string parameter = ".param .u64 p0";
  ptx.replace(ptx.find(parameter), parameter.size(), ".param .align 64 .b8 p0[128]");
  const std::string loads = "ld.param.u64 %rd1, [p0];";
  ptx.replace(ptx.find(loads), loads.size(), "mov.b64 %rd9, p0;\ncvta.param.u64 %rd1, %rd9;");
  auto executor = *make_sim_executor();
  Binary binary;
  binary.entry = "k";
  binary.ptx = ptx;
  auto module = executor->load(binary);
  ASSERT_TRUE(module) << to_string(module.error());
  std::vector<uint32_t> words(64 * 20), out(128);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i / 64 * 1000 + i % 64;
  const DevicePtr x = *executor->allocate(words.size() * 4, "x"), y = *executor->allocate(512, "y");
  ASSERT_TRUE(executor->write(x, std::as_bytes(std::span(words))));
  TensorMap map;
  map.dtype = DType::kFp32;
  map.dims = {64, 20};
  map.stride_bytes = {256};
  map.box = {8, 16};
  Launch launch;
  launch.block = {128, 1, 1};
  launch.args = {{"x", true, x.address, 8, std::make_shared<TensorMap>(map)}, {"y", true, y.address, 8}};
  auto r = executor->run(*module, launch, {});
  ASSERT_TRUE(r) << to_string(r.error());
  ASSERT_TRUE(r->findings.empty()) << r->findings[0].message;
  ASSERT_TRUE(executor->read(y, std::as_writable_bytes(std::span(out))));
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[i], word(3 + i % 8, 2 + i / 8));
  map.box = {3, 16};
  launch.args[0].map = std::make_shared<TensorMap>(map);
  EXPECT_FALSE(executor->run(*module, launch, {}));
}

TEST(Bulk, TheFillIsTheMaps) {
  TensorView v = tensor(8, 4);
  v.fill = 0x7fffffff;
  const Outcome o = run(text(load(60, 0), 128), v, 32);
  ASSERT_EQ(o.kind, "");
  EXPECT_EQ(o.out[3], 63u);
  EXPECT_EQ(o.out[4], 0x7fffffffu);
}

TEST(Bulk, APlainPieceLandsToo) {
  const Outcome o =
      run(text("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];\n", 256),
          TensorView(), 64);
  ASSERT_EQ(o.kind, "");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], i);
}

TEST(Bulk, ReadsBeforeTheBarrierAreFindings) {
  EXPECT_EQ(run(text(load(0, 0), 128, false), tensor(8, 4), 32).kind, "async-pending");
}

TEST(Bulk, UnexpectedOrMissingBytesAreADeadlock) {
  EXPECT_EQ(run(text(load(0, 0), 1024), tensor(8, 16), 128).kind, "deadlock");
  EXPECT_EQ(run(text(load(0, 0), 256), tensor(8, 16), 128).kind, "deadlock");
}

TEST(Bulk, PlacesAndSizesAreChecked) {
  EXPECT_EQ(run(text("add.u32 %r2, %r2, 64;\n" + load(0, 0), 512), tensor(8, 16), 128).kind, "misaligned");
  EXPECT_EQ(run(text("add.u32 %r2, %r2, 8064;\n" + load(0, 0), 512), tensor(8, 16), 128).kind, "out-of-bounds");
  EXPECT_EQ(
      run(text("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 24, [%r3];\n", 24),
          TensorView(), 32)
          .kind,
      "misaligned");
  EXPECT_EQ(run(text("mov.u64 %rd1, %rd2;\n" + load(0, 0), 512), tensor(8, 16), 128).kind, "uninitialised")
      << "no map there";
  EXPECT_EQ(run(text(load(0, 0), 512), TensorView(), 128).kind, "bad-tensor-map");
  for (const auto& spoil : {+[](TensorView& v) { v.box[0] = 65532, v.box[1] = 65535; },
                            +[](TensorView& v) { v.element_bytes = 3; }, +[](TensorView& v) { v.swizzle_bytes = 48; },
                            +[](TensorView& v) { v.box[1] = 0; }, +[](TensorView& v) { v.box[0] = 3; }}) {
    TensorView made_up = tensor(8, 16);
    spoil(made_up);
    EXPECT_EQ(run(text(load(0, 0), 512), made_up, 128).kind, "bad-tensor-map");
  }
  EXPECT_EQ(run(text("L:\n" + load(0, 0) + "bra L;\n", 512), tensor(8, 16), 128).kind, "async-pending")
      << "again into the same place";
  TensorView wrong = tensor(8, 16);
  wrong.dims[1] = 40;  // past the buffer
  EXPECT_EQ(run(text(load(0, 10), 512), wrong, 128).kind, "out-of-bounds");
}

TEST(Bulk, AStoreWritesOnlyInsideTheTensor) {
  const std::string store =
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 bra E;\nmov.u32 %r10, 60;\nmov.u32 %r11, "
      "19;\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r10, %r11}], "
      "[%r2];\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nE:\nbar.sync 0;\n";
  Bench b;
  ASSERT_EQ(b.load(text(load(0, 0), 512, true, store)), "");
  std::vector<uint32_t> words(64 * 20);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i / 64 * 1000 + i % 64;
  TensorView v = tensor(8, 16);
  const DevicePtr x = b.buffer(words);
  v.address = x.address;
  std::vector<std::byte> bytes(sim::kTensorMapBytes);
  v.encode(bytes.data());
  const DevicePtr map = b.buffer(bytes), out = b.poisoned(512);
  const RunResult r = b.arg(map).arg(out).run({1, 1, 1}, {128, 1, 1});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.counts->l2_read_sectors, 16u) << "16 rows of 32 bytes; the map is not counted";
  EXPECT_EQ(r.counts->l2_write_sectors, 1u + 16u) << "half a row of the box, and what the threads store";
  const auto after = b.read<uint32_t>(x, words.size());
  for (uint32_t i = 0; i < words.size(); ++i)
    EXPECT_EQ(after[i], i >= 19 * 64 + 60 ? i - (19 * 64 + 60) : words[i]) << i;
}

/// Otherwise fuzzing would stop at the seed's first copy.
TEST(Bulk, TheSeedMakesAMapThatIsOne) {
  Bench b;
  ASSERT_EQ(b.load(fixture("fuzz/bulk.ptx")), "");
  const DevicePtr map = b.poisoned(128), x = b.buffer(std::vector<uint32_t>(1024, 7));
  const RunResult r = b.arg(map).arg(x).run({1, 1, 1}, {64, 1, 1});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].kind << " " << r.findings[0].message;
}

TEST(Bulk, UnsupportedFormsAreRefusedByName) {
  const auto error = [](const std::string& copy) { return run(text(copy, 16), TensorView(), 32).kind; };
  EXPECT_NE(error("cp.async.bulk.prefetch.L2.global [%rd1], 16;\n").find("prefetches"), std::string::npos);
  EXPECT_NE(error("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r2], [%r2], "
                  "16, [%r3];\n")
                .find("reductions into shared memory"),
            std::string::npos);
}

}  // namespace
}  // namespace roofgen::sim_test::bulk_test
