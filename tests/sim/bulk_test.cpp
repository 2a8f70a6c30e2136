// Bulk and tensor copies: destinations of the bytes, and the point from which they may be read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

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

/// A copy out of shared memory, whose words are 0, 1, ...: the words of device memory after it.
std::vector<uint32_t> stored(const std::string& copy, TensorView v, const std::vector<uint32_t>& words,
                             std::string* kind = nullptr) {
  const std::string body = fmt::format(R"(
.shared .align 1024 .b8 tile[8192];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r2, %r4;
st.shared.u32 [%r5], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra E;
{}
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
E:
)",
                                       copy);
  Bench b;
  if (const std::string error = b.load(kernel_text(1, body)); !error.empty()) {
    ADD_FAILURE() << error;
    return {};
  }
  const DevicePtr x = b.buffer(words);
  v.address = x.address;
  std::vector<std::byte> bytes(sim::kTensorMapBytes);
  v.encode(bytes.data());
  const RunResult r = b.arg(b.buffer(bytes)).run({1, 1, 1}, {256, 1, 1});
  EXPECT_EQ(r.findings.empty(), kind == nullptr);
  if (kind && !r.findings.empty()) *kind = r.findings[0].kind + ": " + r.findings[0].message;
  return b.read<uint32_t>(x, words.size());
}

TEST(Bulk, FourRowsAreGatheredAndScattered) {
  const int rows[] = {7, 0, 25, 19};
  const std::string coordinates =
                        "mov.u32 %r10, 4;\nmov.u32 %r11, 7;\nmov.u32 %r12, 0;\nmov.u32 %r13, 25;\n"
                        "mov.u32 %r14, 19;\n",
                    list = "{%r10, %r11, %r12, %r13, %r14}";
  const std::string gather = coordinates +
                             "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                             "[%r2], [%rd1, " +
                             list + "], [%r3];\n";
  for (const uint32_t swizzle : {0u, 64u}) {
    const Outcome o = run(text(gather, 4 * 64), tensor(16, 1, swizzle), 64);
    ASSERT_EQ(o.kind, "");
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t byte = 4 * i, from = (swizzle ? byte ^ (byte >> 7 & 3) << 4 : byte) / 4;
      EXPECT_EQ(o.out[i], word(4 + static_cast<int>(from) % 16, rows[from / 16])) << swizzle << " " << i;
    }
  }
  EXPECT_EQ(run(text(gather, 256), tensor(16, 4), 64).kind, "bad-tensor-map") << "a box of four rows";
  TensorView flat = tensor(16, 1);
  flat.rank = 1;
  EXPECT_EQ(run(text(gather, 256), flat, 64).kind, "bad-tensor-map");
  std::vector<uint32_t> words(64 * 20, 9999);
  const auto after = stored(
      coordinates + "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, " + list + "], [%r2];",
      tensor(16, 1), words);
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t x = 0; x < 16 && rows[i] < 20; ++x) words[static_cast<uint32_t>(rows[i]) * 64 + 4 + x] = 16 * i + x;
  EXPECT_EQ(after, words);
}

TEST(Bulk, LoadsAndStoresHaveTheirOwnModes) {
  const auto refused = [](const std::string& tail) {
    const Outcome o = run(text("cp.async.bulk.tensor." + tail, 256), tensor(16, 1), 64);
    return o.kind.find("unknown instruction") != std::string::npos;
  };
  const std::string four = "{%r1, %r1, %r1, %r1, %r1}", three = "{%r1, %r1, %r1}";
  const auto load = [&](const std::string& mode, const std::string& at) {
    return refused("2d.shared::cta.global." + mode + ".mbarrier::complete_tx::bytes [%r2], [%rd1, " + at + "], [%r3];");
  };
  const auto store = [&](const std::string& rank, const std::string& mode, const std::string& at) {
    return refused(rank + ".global.shared::cta." + mode + ".bulk_group [%rd1, " + at + "], [%r2];");
  };
  EXPECT_FALSE(load("tile::gather4", four));
  EXPECT_TRUE(load("tile::scatter4", four));
  EXPECT_TRUE(load("im2col_no_offs", three));
  EXPECT_FALSE(store("2d", "tile::scatter4", four));
  EXPECT_TRUE(store("2d", "tile::gather4", four));
  EXPECT_TRUE(store("3d", "im2col", three));
  EXPECT_FALSE(store("3d", "im2col_no_offs", three));
}

TEST(Bulk, ReductionsAreNamed) {
  const auto message = [](const std::string& copy) {
    Bench b;
    EXPECT_EQ(b.load(text(copy, 0, false)), "");
    const RunResult r = b.arg(b.buffer(std::vector<uint32_t>(64))).arg(b.poisoned(128)).run({1, 1, 1}, {32, 1, 1});
    return r.findings.empty() ? "" : r.findings[0].message;
  };
  const std::string operands = " [%rd1], [%r2], 8;\n";
  EXPECT_TRUE(message("cp.async.bulk.global.shared::cta.bulk_group" + operands).starts_with("a bulk copy of 8 bytes"));
  EXPECT_TRUE(message("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32" + operands)
                  .starts_with("a bulk reduction of 8 bytes"));
}

TEST(Bulk, PiecesOf32And64BytesStayTogether) {
  for (const uint32_t atom : {32u, 64u}) {
    TensorView v = tensor(32, 16, 128);
    v.atom = atom;
    const Outcome o = run(text(load(1, 2), 2048), v, 512);
    ASSERT_EQ(o.kind, "");
    for (uint32_t i = 0; i < 512; ++i) {
      const uint32_t row = i / 32, unit = i % 32 * 4 / atom ^ row % (128 / atom);
      EXPECT_EQ(o.out[i], word(1 + static_cast<int>(unit * atom / 4 + i % (atom / 4)), 2 + static_cast<int>(row)));
    }
  }
}

TEST(Bulk, ABoxMaySkipElements) {
  TensorView v = tensor(8, 6);
  v.steps[1] = 4;  // rows 0 and 4 of the box
  const Outcome o = run(text(load(8, 3), 2 * 8 * 4), v, 16);
  ASSERT_EQ(o.kind, "");
  for (int i = 0; i < 16; ++i) EXPECT_EQ(o.out[i], word(8 + i % 8, 3 + i / 8 * 4)) << i;
}

TEST(Bulk, TensorsAreReducedByTheTypesOfTheirMaps) {
  const std::string add =
      "mov.u32 %r10, 60;\nmov.u32 %r11, 2;\ncp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
      "[%rd1, {%r10, %r11}], [%r2];";
  TensorView v = tensor(8, 4);
  v.data = sim::TensorData::kU32;
  std::vector<uint32_t> words(64 * 20, 100);
  const auto after = stored(add, v, words);
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t x = 0; x < 4; ++x) words[(2 + i) * 64 + 60 + x] = 100 + 8 * i + x;
  EXPECT_EQ(after, words);
  std::string kind;
  v.data = sim::TensorData::kU8;
  stored(add, v, words, &kind);
  EXPECT_TRUE(kind.starts_with("not-modelled")) << kind;
}

/// Images of 5 x 4 pixels with 8 channels of a word; pixel (w, h) of image n has 1000 n + 100 h + 10 w + c.
struct Images {
  int n = 3, h = 4, w = 5, c = 8;
  int lower_w = -1, lower_h = -1, upper_w = -1, upper_h = -1;  ///< of a filter of 3 x 3 with a border of 1
  uint32_t pixels = 16, step = 1;
  TensorView view() const {
    TensorView v;
    v.rank = 4;
    v.element_bytes = 4;
    v.im2col = true;
    v.dims[0] = 8, v.dims[1] = 5, v.dims[2] = 4, v.dims[3] = 3;
    v.strides[1] = 32, v.strides[2] = 5 * 32, v.strides[3] = 4 * 5 * 32;
    v.box[0] = 8, v.box[1] = pixels;
    v.lower[0] = lower_w, v.lower[1] = lower_h, v.upper[0] = upper_w, v.upper[1] = upper_h;
    v.steps[1] = v.steps[2] = step;
    return v;
  }
  /// The pixels of a column as sums of a convolution take them: the filter's corners in order, then an offset.
  std::vector<uint32_t> column(int w0, int h0, int n0, int dw, int dh) const {
    std::vector<std::array<int, 3>> corners;
    for (int in = 0; in < n + 2; ++in)
      for (int y = lower_h; y <= h - 1 + upper_h; y += static_cast<int>(step))
        for (int x = lower_w; x <= w - 1 + upper_w; x += static_cast<int>(step)) corners.push_back({x, y, in});
    const auto first = std::find(corners.begin(), corners.end(), std::array<int, 3>{w0, h0, n0});
    std::vector<uint32_t> out;
    for (uint32_t p = 0; p < pixels; ++p) {
      const auto [x, y, in] = first[p];
      const bool inside = x + dw >= 0 && x + dw < w && y + dh >= 0 && y + dh < h && in < n;
      for (int i = 0; i < c; ++i)
        out.push_back(inside ? static_cast<uint32_t>(1000 * in + 100 * (y + dh) + 10 * (x + dw) + i) : 0);
    }
    return out;
  }
};
std::string im2col(int w, int h, int n, int dw, int dh) {
  return fmt::format(
      "mov.u32 %r10, 0;\nmov.u32 %r11, {};\nmov.u32 %r12, {};\nmov.u32 %r13, {};\nmov.u16 %rs1, {};\n"
      "mov.u16 %rs2, {};\ncp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], "
      "[%rd1, {{%r10, %r11, %r12, %r13}}], [%r3], {{%rs1, %rs2}};\n",
      w, h, n, dw, dh);
}
Outcome run_images(const Images& images, const std::string& copy) {
  Bench b;
  const uint32_t words = images.pixels * 8;
  if (const std::string error = b.load(text(copy, 4 * words)); !error.empty()) return {error, {}};
  std::vector<uint32_t> data;
  for (int n = 0; n < images.n; ++n)
    for (int h = 0; h < images.h; ++h)
      for (int w = 0; w < images.w; ++w)
        for (int c = 0; c < images.c; ++c) data.push_back(static_cast<uint32_t>(1000 * n + 100 * h + 10 * w + c));
  TensorView v = images.view();
  v.address = b.buffer(data).address;
  std::vector<std::byte> bytes(sim::kTensorMapBytes);
  v.encode(bytes.data());
  const DevicePtr map = b.buffer(bytes, "map"), out = b.poisoned(4 * words);
  const RunResult r = b.arg(map).arg(out).run({1, 1, 1}, {words, 1, 1});
  return {r.findings.empty() ? "" : r.findings[0].kind + ": " + r.findings[0].message, b.read<uint32_t>(out, words)};
}

TEST(Bulk, AColumnHasThePixelsUnderTheFilter) {
  for (const auto& [w, h, n, dw, dh] :
       {std::array{-1, -1, 0, 0, 0}, {-1, -1, 0, 2, 1}, {2, 1, 1, 1, 2}, {3, 2, 2, 0, 1}}) {
    const Outcome o = run_images({}, im2col(w, h, n, dw, dh));
    ASSERT_EQ(o.kind, "");
    EXPECT_EQ(o.out, Images().column(w, h, n, dw, dh)) << w << " " << h << " " << n << " " << dw << " " << dh;
  }
  Images strided;
  strided.step = 2, strided.pixels = 9;
  const Outcome o = run_images(strided, im2col(1, 1, 0, 1, 0));
  ASSERT_EQ(o.kind, "");
  EXPECT_EQ(o.out, strided.column(1, 1, 0, 1, 0));
}

TEST(Bulk, ColumnsAreChecked) {
  const auto found = [](const Images& images, const std::string& copy, const char* part) {
    const std::string kind = run_images(images, copy).kind;
    EXPECT_NE(kind.find(part), kind.npos) << kind;
  };
  found({}, im2col(4, 0, 0, 0, 0),
        "out-of-bounds: the filter's corner is at 4 in W, outside the bounding box from -1 to 3");
  found({}, im2col(0, -2, 0, 0, 0), "at -2 in H");
  found({}, im2col(0, 0, 0, 0, 256), "an im2col offset of 256 in H: at most 255 with 4 dimensions");
  EXPECT_EQ(run(text(im2col(0, 0, 0, 0, 0), 512), tensor(8, 16), 128).kind, "bad-tensor-map");
  TensorView column = tensor(8, 16);
  column.rank = 3;
  EXPECT_EQ(run(text(im2col(0, 0, 0, 0, 0), 512), column, 128).kind, "bad-tensor-map");
  TensorView images = Images().view();
  images.rank = 3;
  std::string tiled = load(0, 0);
  tiled.replace(tiled.find("2d"), 2, "3d");
  tiled.replace(tiled.find("%r11}"), 5, "%r11, %r11}");
  EXPECT_EQ(run(text(tiled, 512), images, 128).kind, "bad-tensor-map") << "an im2col map in a tiled copy";
}

/// A warp copies the map at p0 to shared memory, changes it there (`changes`, at %r6), makes it known at p2 and copies
/// a box by the map at p2. %rd5 is p2, %rd6 p3.
Outcome run_changed(const std::string& changes, TensorView map, const std::string& publish, const std::string& copy,
                    uint32_t bytes) {
  std::string ptx = text(publish + copy, bytes);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ptx.replace(ptx.find(from), from.size(), to);
  };
  replace(".param .u64 p1", ".param .u64 p1, .param .u64 p2, .param .u64 p3");
  replace("mov.u32 %r3, bar;", "mov.u32 %r3, bar;\nld.param.u64 %rd5, [p2];\nld.param.u64 %rd6, [p3];");
  replace(".shared .align 8 .b8 bar[8];", ".shared .align 8 .b8 bar[8];\n.shared .align 64 .b8 changed[128];");
  replace("setp.ne.u32 %p1, %r1, 0;\n", R"(mov.u32 %r6, changed;
shl.b32 %r7, %r1, 2;
cvt.u64.u32 %rd7, %r7;
add.u64 %rd7, %rd7, %rd1;
setp.gt.u32 %p1, %r1, 31;
@%p1 bra OTHERS;
ld.global.u32 %r8, [%rd7];
add.u32 %r9, %r6, %r7;
st.shared.u32 [%r9], %r8;
bar.warp.sync -1;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra CHANGED;
)" + changes + R"(
CHANGED:
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%r6], 128;
OTHERS:
setp.ne.u32 %p1, %r1, 0;
)");
  Bench b;
  if (const std::string error = b.load(ptx); !error.empty()) return {error, {}};
  std::vector<uint32_t> words(64 * 20), others(64 * 20);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i / 64 * 1000 + i % 64, others[i] = 500000 + words[i];
  map.address = b.buffer(words).address;
  std::vector<std::byte> image(sim::kTensorMapBytes);
  map.encode(image.data());
  const uint32_t threads = std::max(32u, bytes / 4);
  const DevicePtr first = b.buffer(image, "map"), out = b.poisoned(threads * 4), place = b.poisoned(128),
                  other = b.buffer(others);
  const RunResult r = b.arg(first).arg(out).arg(place).arg(other).run({1, 1, 1}, {threads, 1, 1});
  return {r.findings.empty() ? "" : r.findings[0].kind + ": " + r.findings[0].message, b.read<uint32_t>(out, threads)};
}

TEST(Bulk, AKernelChangesATensorMap) {
  const std::string at = "tensormap.replace.tile.", shared = ".shared::cta.b1024.";
  const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;\n";
  std::string copy = load(2, 1);
  copy.replace(copy.find("[%rd1,"), 6, "[%rd5,");
  // 16 columns of 32 words, 10 rows, every other row.
  const std::string changes =
      at + "global_address" + shared + "b64 [%r6], %rd6;\n" + at + "global_dim" + shared + "b32 [%r6], 0, 12;\n" + at +
      "global_dim" + shared + "b32 [%r6], 1, 5;\n" + at + "global_stride" + shared + "b64 [%r6], 0, 512;\n" + at +
      "box_dim" + shared + "b32 [%r6], 0, 16;\n" + at + "box_dim" + shared + "b32 [%r6], 1, 8;\n" + at +
      "element_stride" + shared + "b32 [%r6], 1, 2;\n" + at + "swizzle_mode" + shared + "b32 [%r6], 2;\n" + at +
      "fill_mode" + shared + "b32 [%r6], 1;\n" + at + "elemtype" + shared + "b32 [%r6], 7;\n";
  const Outcome o = run_changed(changes, tensor(8, 16), acquire, copy, 256);
  ASSERT_EQ(o.kind, "");
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t byte = 4 * i, from = (byte ^ (byte >> 7 & 3) << 4) / 4, x = 2 + from % 16, y = 1 + from / 16 * 2;
    EXPECT_EQ(o.out[i], x < 12 && y < 5 ? 500000 + 1000 * (2 * y) + x : 0x7fffffffu) << i;
  }
  EXPECT_EQ(run_changed("", tensor(8, 4), acquire, copy, 128).kind, "");
  const auto found = [&](const std::string& what, const char* part) {
    const std::string kind = run_changed(what, tensor(8, 4), acquire, copy, 128).kind;
    EXPECT_NE(kind.find(part), kind.npos) << kind;
  };
  const std::string missing = run_changed("", tensor(8, 4), "", copy, 128).kind;
  EXPECT_TRUE(missing.starts_with("race: the copy uses the tensor map") &&
              missing.find("no fence.proxy.tensormap::generic.acquire") != missing.npos)
      << missing;
  found(at + "global_address" + shared + "b64 [%r6], 8;\n",
        "global_address = 8 of a tensor map: expected a multiple of 16");
  found(at + "global_stride" + shared + "b64 [%r6], 0, 24;\n", "global_stride = 24");
  found(at + "global_stride" + shared + "b64 [%r6], 4, 32;\n", "expected an ordinal from 0 to 3");
  found(at + "box_dim" + shared + "b32 [%r6], 0, 300;\n", "box_dim = 300 of a tensor map: expected 1 to 256");
  found(at + "rank" + shared + "b32 [%r6], 5;\n", "rank = 5");
  found(at + "swizzle_atomicity" + shared + "b32 [%r6], 2;\n", "not-modelled: the flip of 8 bytes");
  found(at + "elemtype" + shared + "b32 [%r6], 13;\n", "not-modelled: elements of 4 or 6 bits");
  found(at + "swizzle_mode" + shared + "b32 [%r6], 40;\n", "expected 0 to 4");
  found(at + "swizzle_atomicity" + shared + "b32 [%r6], 40;\n", "expected 0 to 3");
  found(at + "rank" + shared + "b32 [%r6+32], 1;\n", "misaligned");
  found("st.shared.u32 [%r6], 0;\n" + at + "rank" + shared + "b32 [%r6], 1;\n", "bad-tensor-map: no tensor map at");
  found(at + "rank" + shared + "b32 [%r6], 2;\n" + at + "box_dim" + shared + "b32 [%r6], 2, 1;\n",
        "a tensor of 3 dimensions is copied as one of 2");
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
  for (const auto& [form, what] :
       {std::pair{"cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [%rd1], [%r2], 16;\n", "relaxed bulk"},
        {"cp.async.bulk.weak.global.shared::cta.bulk_group.cp_mask [%rd1], [%r2], 16, 3;\n", "a mask of bytes"},
        {"cp.reduce.async.bulk.relaxed.cta.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 16;\n",
         "that only a CTA or a cluster sees"},
        {"multimem.red.relaxed.sys.global.add.u32 [%rd1], %r2;\n", "memory of several GPUs"},
        {"spcompress.b8.b2.sp::2:4.x1 {%r1}, {%r2}, {%r3, %r3}, %r3;\n", "compressions to sparse"}})
    EXPECT_NE(error(form).find(what), std::string::npos) << error(form);
  EXPECT_NE(error("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r2], [%r2], "
                  "16, [%r3];\n")
                .find("reductions into shared memory"),
            std::string::npos);
}

}  // namespace
}  // namespace roofgen::sim_test::bulk_test
