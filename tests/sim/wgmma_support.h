// Kernels with products of warpgroups: tiles that tensor copies bring to shared memory, in every layout.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/sim/tensor_map.h"
#include "support.h"

namespace roofgen::sim_test {

/// One of the two matrices: rows (of A, or columns of B) times 128 bytes along k, four steps of a product.
struct Tile {
  std::string type = "bf16";
  uint32_t rows = 64, span = 128;  ///< span 16: no swizzle
  bool turned = false;             ///< contiguous along m or n
  uint32_t bytes() const { return type == "tf32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1; }
  uint32_t k() const { return 128 / bytes(); }
  uint32_t k_step() const { return 32 / bytes(); }
  /// Of the tensor in device memory, rows of `width` elements.
  uint32_t width() const { return turned ? (rows * bytes() + span - 1) / span * span / bytes() : k(); }
  uint32_t height() const { return turned ? k() : rows; }
  uint32_t boxes() const { return width() * bytes() / span; }
  uint32_t box_bytes() const { return height() * span; }
  uint32_t box_stride() const { return (box_bytes() + 1023) / 1024 * 1024; }
  size_t at(uint32_t row, uint32_t column) const {
    return turned ? size_t{column} * width() + row : size_t{row} * width() + column;
  }
  /// The descriptor of a step, without the address: the address is that of the tile plus `offset`.
  uint64_t descriptor() const {
    const uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    const bool plain = span == 16;
    const uint64_t leading = turned ? (plain ? 128 : box_stride()) : plain ? box_stride() : 16;
    const uint64_t stride = turned && plain ? box_stride() : 8 * span;
    return swizzle << 62 | stride >> 4 << 32 | leading >> 4 << 16;
  }
  uint32_t offset(uint32_t step) const {
    if (turned) return step * k_step() * span;
    return step * 32 / span * box_stride() + step * 32 % span;
  }
  sim::TensorView map(uint64_t address) const {
    sim::TensorView v;
    v.address = address;
    v.rank = 2;
    v.element_bytes = bytes();
    v.swizzle_bytes = span == 16 ? 0 : span;
    v.dims[0] = width(), v.dims[1] = height();
    v.strides[0] = bytes(), v.strides[1] = uint64_t{width()} * bytes();
    v.box[0] = span / bytes(), v.box[1] = height();
    return v;
  }
};

/// A small integer as an element of the type.
inline uint32_t encoded(const std::string& type, int value) {
  if (type == "s8" || type == "u8") return static_cast<uint8_t>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value)), sign = bits >> 31;
  const int exponent = static_cast<int>(bits >> 23 & 255) - 127;
  if (type == "tf32") return bits;
  if (type == "bf16") return bits >> 16;
  const auto small = [&](uint32_t exponent_bits, uint32_t mantissa_bits) {
    if (value == 0) return uint32_t{0};
    const auto biased = static_cast<uint32_t>(exponent + (1 << (exponent_bits - 1)) - 1);
    return sign << (exponent_bits + mantissa_bits) | biased << mantissa_bits |
           (bits & 0x7fffff) >> (23 - mantissa_bits);
  };
  return type == "f16" ? small(5, 10) : type == "e4m3" ? small(4, 3) : small(5, 2);
}

/// D = A B (+ D), 64 x n x 128 bytes. The text has marks that tests replace to make it wrong.
struct Product {
  Tile a, b;
  std::string sum = "f32";
  bool registers = false;  ///< A
  bool keeps = false;
  bool saturates = false;  ///< sums that begin near the ends of their range
  int scale_a = 1, scale_b = 1;

  static constexpr uint32_t kPlaceB = 16384, kPlaceBarrier = 16384 + 32768, kShared = kPlaceBarrier + 64;
  uint32_t n() const { return b.rows; }
  uint32_t sums() const { return sum == "f16" ? n() / 4 : n() / 2; }
  bool integer() const { return sum == "s32"; }
  std::string vector(const std::string& name, uint32_t count) const {
    std::string out = "{";
    for (uint32_t i = 0; i < count; ++i) out += fmt::format("{}{}{}", i ? ", " : "", name, i);
    return out + "}";
  }
  std::string instruction(uint32_t step) const {
    std::string out = fmt::format(
        "wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {}, %rd21, {}", n(), a.k_step(),
        saturates ? ".satfinite" : "", sum, a.type, b.type, vector("%d", sums()),
        registers ? fmt::format("{{%a{}, %a{}, %a{}, %a{}}}", 4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3)
                  : "%rd20",
        step == 0 ? "%p3" : "%p4");
    if (!integer()) out += fmt::format(", {}, {}", scale_a, scale_b);
    if (a.bytes() == 2 && !registers) out += fmt::format(", {}", int{a.turned});
    if (a.bytes() == 2) out += fmt::format(", {}", int{b.turned});
    return out + ";\n";
  }
  /// p0, p1: maps of A and B; p2: A; p3: sums before; p4: sums after, by thread.
  std::string text() const {
    std::string body = R"(
.reg .b32 %d<128>;
.reg .b32 %a<16>;
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
ld.param.u64 %rd3, [p2];
ld.param.u64 %rd4, [p3];
ld.param.u64 %rd5, [p4];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
)";
    body += fmt::format("add.u32 %r3, %r2, {};\nadd.u32 %r4, %r2, {};\n", kPlaceB, kPlaceBarrier);
    body += R"(setp.ne.u32 %p1, %r1, 0;
@%p1 bra INIT;
mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
INIT:
bar.sync 0;
@%p1 bra LOADED;
)";
    const auto loads = [&](const Tile& t, const char* to, const char* map) {
      for (uint32_t box = 0; box < t.boxes(); ++box)
        body += fmt::format(
            "add.u32 %r10, {}, {};\nmov.u32 %r11, {};\nmov.u32 %r12, "
            "0;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [{}, {{%r11, "
            "%r12}}], [%r4];\n",
            to, box * t.box_stride(), box * t.span / t.bytes(), map);
    };
    const uint32_t total = (registers ? 0 : a.boxes() * a.box_bytes()) + b.boxes() * b.box_bytes();
    body += fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {};\n", total);
    if (!registers) loads(a, "%r2", "%rd1");
    loads(b, "%r3", "%rd2");
    body += R"(LOADED:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra LOADED;
)";
    if (registers) {
      // Row 16 w + g and the one 8 further, 16 bytes apart along k.
      body += fmt::format(R"(
shr.u32 %r13, %r1, 5;
and.b32 %r14, %r1, 31;
shr.u32 %r15, %r14, 2;
and.b32 %r16, %r14, 3;
mad.lo.u32 %r17, %r13, 16, %r15;
mul.lo.u32 %r17, %r17, {};
mad.lo.u32 %r17, %r16, 4, %r17;
cvt.u64.u32 %rd10, %r17;
add.u64 %rd10, %rd10, %rd3;
)",
                          a.width() * a.bytes());
      for (uint32_t step = 0; step < 4; ++step)
        for (uint32_t i = 0; i < 4; ++i)
          body += fmt::format("ld.global.b32 %a{}, [%rd10+{}];\n", 4 * step + i,
                              (i & 1) * 8 * a.width() * a.bytes() + step * 32 + (i >> 1) * 16);
    }
    body += fmt::format("mul.lo.u32 %r18, %r1, {};\ncvt.u64.u32 %rd11, %r18;\n", sums() * 4);
    body += "add.u64 %rd4, %rd4, %rd11;\nadd.u64 %rd5, %rd5, %rd11;\n";
    for (uint32_t i = 0; keeps && i < sums(); ++i) body += fmt::format("ld.global.b32 %d{}, [%rd4+{}];\n", i, 4 * i);
    body += fmt::format("setp.ne.u32 %p3, {}, 0;\nsetp.eq.u32 %p4, 0, 0;\n", int{keeps});
    const auto descriptor = [&](const Tile& t, uint32_t step, const char* place, const char* out) {
      return fmt::format("add.u32 %r20, {}, {};\nshr.u32 %r20, %r20, 4;\ncvt.u64.u32 {}, %r20;\nor.b64 {}, {}, {};\n",
                         place, t.offset(step), out, out, out, t.descriptor());
    };
    body += "//before\nwgmma.fence.sync.aligned;\n";
    for (uint32_t step = 0; step < 4; ++step) {
      if (!registers) body += descriptor(a, step, "%r2", "%rd20");
      body += descriptor(b, step, "%r3", "%rd21") + instruction(step);
    }
    body += "//issued\nwgmma.commit_group.sync.aligned;\n//committed\nwgmma.wait_group.sync.aligned 0;\n//done\n";
    for (uint32_t i = 0; i < sums(); ++i) body += fmt::format("st.global.b32 [%rd5+{}], %d{};\n", 4 * i, i);
    std::string out = kernel_text(5, body, ".extern .shared .align 1024 .b8 tile[];");
    out.replace(out.find(".target sm_90\n"), 14, ".target sm_90a\n");
    return out;
  }
};

struct ProductResult {
  RunResult run;
  std::vector<uint32_t> sums;    ///< by thread and register
  std::vector<double> expected;  ///< the same
};

/// Runs a text of the product (its own, or one that was changed) on pseudo-random tiles.
inline ProductResult run_product(const Product& p, const std::string& text, uint32_t seed = 1, uint32_t threads = 128,
                                 bool go_on = false) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  const auto next = [&](int low, int high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int>((state >> 33) % static_cast<uint64_t>(high - low + 1));
  };
  Bench b;
  if (const std::string error = b.load(text); !error.empty()) {
    ProductResult r;
    r.run.findings.push_back({});
    r.run.findings[0].kind = "refused", r.run.findings[0].message = error;
    return r;
  }
  std::vector<int> values[2];
  DevicePtr data[2], maps[2];
  for (int i = 0; i < 2; ++i) {
    const Tile& t = i ? p.b : p.a;
    values[i].resize(size_t{t.width()} * t.height());
    std::vector<std::byte> bytes(values[i].size() * t.bytes());
    for (size_t e = 0; e < values[i].size(); ++e) {
      values[i][e] = next(t.type == "u8" ? 0 : -3, 3);
      const uint32_t bits = encoded(t.type, values[i][e]);
      std::memcpy(bytes.data() + e * t.bytes(), &bits, t.bytes());
    }
    data[i] = b.buffer(bytes, i ? "b" : "a");
    std::vector<std::byte> map(sim::kTensorMapBytes);
    t.map(data[i].address).encode(map.data());
    maps[i] = b.buffer(map, i ? "map b" : "map a");
  }
  ProductResult r;
  const uint32_t sums = p.sums();
  std::vector<uint32_t> before(size_t{threads} * sums);
  r.expected.resize(size_t{128} * sums * (p.sum == "f16" ? 2 : 1));
  std::vector<int> old(r.expected.size());
  for (int& v : old) v = next(-3, 3);
  for (size_t i = 0; p.saturates && i < old.size(); ++i) old[i] += i % 2 ? INT32_MIN + 3 : INT32_MAX - 3;
  for (size_t i = 0; i < old.size(); ++i) {
    if (p.sum == "f16")
      before[i / 2] |= encoded("f16", old[i]) << 16 * (i % 2);
    else
      before[i] = p.integer() ? static_cast<uint32_t>(old[i]) : encoded("tf32", old[i]);
  }
  const DevicePtr start = b.buffer(before, "before"), out = b.poisoned(before.size() * 4);
  for (const DevicePtr& x : {maps[0], maps[1], data[0], start, out}) b.arg(x);
  RunOptions options;
  options.go_on = go_on;
  r.run = b.run({1, 1, 1}, {threads, 1, 1}, Product::kShared, options);
  r.sums = b.read<uint32_t>(out, before.size());
  // Rows of both along k.
  const uint32_t k = p.a.k(), step = p.a.k_step();
  std::vector<int> rows[2];
  for (int i = 0; i < 2; ++i) {
    const Tile& t = i ? p.b : p.a;
    rows[i].resize(size_t{t.rows} * k);
    for (uint32_t e = 0; e < rows[i].size(); ++e) rows[i][e] = values[i][t.at(e / k, e % k)];
  }
  // PTX ISA: thread 4 g + t of warp w has rows 16 w + g and the one 8 further, columns 8 j + 2 t and the next.
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t v = 0; v < p.n() / 2; ++v) {
      const uint32_t w = thread / 32, g = thread % 32 / 4, t = thread % 4;
      const uint32_t row = 16 * w + g + 8 * (v >> 1 & 1), column = 8 * (v >> 2) + 2 * t + (v & 1);
      const size_t i = size_t{thread} * (p.n() / 2) + v;
      int64_t sum = p.keeps ? old[i] : 0;
      for (uint32_t first = 0; first < k; first += step) {
        for (uint32_t e = first; e < first + step; ++e)
          sum += p.scale_a * p.scale_b * rows[0][row * k + e] * rows[1][column * k + e];
        if (p.saturates) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      }
      r.expected[i] = static_cast<double>(sum);
    }
  return r;
}

/// The sum at place i of `expected`.
inline double sum_at(const Product& p, const ProductResult& r, size_t i) {
  if (p.integer()) return static_cast<int32_t>(r.sums[i]);
  if (p.sum == "f32") return std::bit_cast<float>(r.sums[i]);
  const uint32_t half = r.sums[i / 2] >> 16 * (i % 2) & 0xffff, body = half & 0x7fff;
  const double value =
      body < 1024 ? body * 0x1p-24 : std::ldexp(1024 + (body & 1023), static_cast<int>(body >> 10) - 25);
  return half >> 15 ? -value : value;
}

}  // namespace roofgen::sim_test
