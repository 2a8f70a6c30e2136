// Kernels around one tcgen05.mma: the whole tensor memory before and after, matrices in every layout.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "support.h"

namespace roofgen::sim_test {

inline constexpr uint32_t kLanes = 128, kColumns = 512;

/// Small numbers in a format of `exponent` and `mantissa` bits.
inline uint32_t small_float(float value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);  // in [1/2, 1)
  const int biased = exponent - 1 + (1 << (exponent_bits - 1)) - 1;
  const auto sign = static_cast<uint32_t>(value < 0) << (exponent_bits + mantissa_bits);
  if (biased <= 0)
    return sign | static_cast<uint32_t>(std::ldexp(std::fabs(value), (1 << (exponent_bits - 1)) - 2 + mantissa_bits));
  return sign | static_cast<uint32_t>(biased) << mantissa_bits |
         static_cast<uint32_t>(std::ldexp(fraction, mantissa_bits + 1) - std::ldexp(1.0f, mantissa_bits));
}

struct ElementType {
  const char* name;
  uint32_t bits, field;    ///< of the instruction descriptor
  int exponent, mantissa;  ///< 0: integers
};
inline constexpr ElementType kF16{"f16", 16, 0, 5, 10}, kBf16{"bf16", 16, 1, 8, 7}, kTf32{"tf32", 32, 2, 8, 23},
    kE4m3{"e4m3", 8, 0, 4, 3}, kE5m2{"e5m2", 8, 1, 5, 2}, kE2m3{"e2m3", 6, 3, 2, 3}, kE3m2{"e3m2", 6, 4, 3, 2},
    kE2m1{"e2m1", 4, 5, 2, 1}, kE2m1x2{"e2m1 packed", 4, 1, 2, 1}, kU8{"u8", 8, 0, 0, 0}, kS8{"s8", 8, 1, 0, 0};

inline uint32_t encode(const ElementType& t, float value) {
  if (t.exponent == 0) return static_cast<uint8_t>(static_cast<int>(value));
  return t.bits == 32 ? std::bit_cast<uint32_t>(value) : small_float(value, t.exponent, t.mantissa);
}

/// One of A and B in a CTA: rows (of A, or columns of B) by 32 bytes along k.
struct Matrix {
  ElementType type = kBf16;
  uint32_t rows = 128, span = 128;  ///< span 16: no swizzle
  bool turned = false;              ///< contiguous along m or n
  bool wide_atoms = false;          ///< swizzled by 32 bytes
  uint32_t container = 16;          ///< bits of an element in shared memory
  uint32_t step = 0;                ///< the product is this one of those along a row
  uint32_t rows_of_32 = 1;          ///< 32 bytes along k; 2 of B where A is sparse
  uint32_t k() const { return rows_of_32 * 256 / container; }
  uint32_t per_piece() const { return 128 / container; }
  uint32_t groups() const { return (rows * container / 8 + span - 1) / span; }  ///< turned: of rows of `span` bytes
  uint32_t bytes() const {
    if (turned) return span == 16 ? (rows + per_piece() - 1) / per_piece() * k() * 16 : groups() * k() * span;
    return span == 16 ? rows * 32 * rows_of_32 : (rows + 7) / 8 * 8 * span;
  }
  uint64_t layout() const { return wide_atoms ? 1 : span == 128 ? 2 : span == 64 ? 4 : span == 32 ? 6 : 0; }
  /// Bytes from one block to the next: along the rows for unswizzled ones, else as the PTX ISA's canonical layouts.
  uint32_t leading() const {
    if (turned) return span == 16 ? 128 : k() * span;
    return span == 16 ? (rows + 7) / 8 * 128 : 16;
  }
  uint32_t stride() const {
    if (turned) return span == 16 ? k() * 16 : (wide_atoms ? 4 : 8) * span;
    return span == 16 ? 128 : 8 * span;
  }
  uint64_t descriptor() const {
    return layout() << 61 | uint64_t{1} << 46 | uint64_t{stride() >> 4} << 32 | uint64_t{leading() >> 4} << 16;
  }
  /// The byte of 16 that hold an element, and its number there. Swizzles as tensor copies make them: pieces of a row
  /// change places by the number of the row of 128 bytes.
  std::pair<uint32_t, uint32_t> at(uint32_t row, uint32_t column) const {
    if (!turned) {
      const uint32_t piece = column / per_piece() + (span == 16 ? 0 : 2 * step);
      if (span == 16) return {row / 8 * 128 + row % 8 * 16 + piece * leading(), column % per_piece()};
      const uint32_t mixed = piece ^ (row * span / 128 % 8 & (span / 16 - 1));
      return {row * span + mixed * 16, column % per_piece()};
    }
    const uint32_t piece = row / per_piece(), wide = span / 16;
    if (span == 16) return {piece * stride() + column / 8 * 128 + column % 8 * 16, row % per_piece()};
    const uint32_t mixed =
        wide_atoms ? piece % wide ^ column % 4 * 2 : piece % wide ^ (column * span / 128 % 8 & (wide - 1));
    return {piece / wide * leading() + column * span + mixed * 16, row % per_piece()};
  }
  void put(std::vector<std::byte>& image, uint32_t base, uint32_t row, uint32_t column, uint32_t bits) const {
    const auto [byte, index] = at(row, column);
    const uint32_t first = index * type.bits;  // elements of less than 8 bits are packed in their 16 bytes
    for (uint32_t i = 0; i < type.bits; ++i)
      if (bits >> i & 1) image[base + byte + (first + i) / 8] |= std::byte{1} << (first + i) % 8;
  }
};

struct Mma {
  std::string kind = "f16";
  uint32_t m = 128, n = 64, group = 1;
  Matrix a, b;
  uint32_t sum = 1;  ///< of the descriptor: 0 f16, 1 f32, 2 s32
  bool keeps = false, stationary = false, a_in_tensor = false, negates_a = false, negates_b = false;
  uint32_t d_lane = 0;
  uint32_t scales = 0;  ///< of a row; 0: none
  bool ue8m0 = true;
  uint32_t scale_a = 0, scale_b = 0;  ///< ids
  std::string opcode_tail, operands_tail;
  std::vector<uint32_t> disabled;
  bool sparse = false, saturates = false;
  uint32_t selector = 0;
  int old_sums = 3;  ///< their greatest magnitude

  static constexpr uint32_t kPlaceB = 32768, kPlaceBarrier = 65536, kShared = kPlaceBarrier + 64;
  static constexpr uint32_t kD = 0, kA = 256, kScaleA = 300, kScaleB = 320, kMetadata = 340;  ///< columns

  uint32_t rows() const { return m / group; }
  uint32_t b_rows() const { return n / group; }
  uint32_t descriptor() const {
    uint32_t bits = a.type.field << 7 | b.type.field << 10 | uint32_t{negates_a} << 13 | uint32_t{negates_b} << 14 |
                    uint32_t{a.turned} << 15 | uint32_t{b.turned} << 16 | n / 8 << 17 | m / 16 << 24 | selector |
                    uint32_t{sparse} << 2 | uint32_t{saturates} << 3;
    if (scales)
      bits |= scale_b << 4 | uint32_t{ue8m0} << 23 | scale_a << 29;
    else
      bits |= sum << 4;
    return bits;
  }
  std::string instruction() const {
    std::string out =
        fmt::format("tcgen05.mma{}{}.cta_group::{}.kind::{}{}{} [%r30], {}, %rd21, {}%r31", stationary ? ".ws" : "",
                    sparse ? ".sp" : "", group, kind, scales ? ".block_scale" : "", opcode_tail,
                    a_in_tensor ? "[%r32]" : "%rd20", sparse ? "[%r35], " : "");
    if (scales) out += ", [%r33], [%r34]";
    if (!disabled.empty()) {
      out += ", {";
      for (size_t i = 0; i < disabled.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", disabled[i]);
      out += "}";
    }
    return out + ", %p3" + operands_tail + ";\n";
  }
  /// p0: images of shared memory; p1: tensor memory before; p2: after; each for both CTAs. The text has marks.
  std::string text() const {
    const bool pair = group == 2;
    std::string body = R"(
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
ld.param.u64 %rd3, [p2];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mov.u32 %r5, %cluster_ctarank;
shr.u32 %r6, %r1, 5;
)";
    body += fmt::format(
        "add.u32 %r4, %r2, {};\nmul.wide.u32 %rd4, %r5, {};\nadd.u64 %rd1, %rd1, %rd4;\nmul.wide.u32 %rd4, %r5, {};\n"
        "add.u64 %rd2, %rd2, %rd4;\nadd.u64 %rd3, %rd3, %rd4;\n",
        kPlaceBarrier, kPlaceBarrier, kLanes * kColumns * 4);
    body += fmt::format(R"(
mul.lo.u32 %r10, %r1, 16;
IMAGE:
cvt.u64.u32 %rd10, %r10;
add.u64 %rd10, %rd10, %rd1;
ld.global.v4.u32 {{%r11, %r12, %r13, %r14}}, [%rd10];
add.u32 %r15, %r10, %r2;
st.shared.v4.u32 [%r15], {{%r11, %r12, %r13, %r14}};
add.u32 %r10, %r10, 2048;
setp.lt.u32 %p1, %r10, {};
@%p1 bra IMAGE;
//stored
fence.proxy.async;
setp.ne.u32 %p1, %r6, 0;
@%p1 bra ALLOCATED;
//alloc
tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [%r4+16], 512;
//relinquish
tcgen05.relinquish_alloc_permit.cta_group::{}.sync.aligned;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
ALLOCATED:
bar.sync 0;
ld.shared.u32 %r20, [%r4+16];
shl.b32 %r21, %r6, 21;
add.u32 %r21, %r21, %r20;
mul.lo.u32 %r22, %r1, 4;
cvt.u64.u32 %rd11, %r22;
add.u64 %rd12, %rd11, %rd2;
mov.u32 %r23, 0;
BEFORE:
ld.global.u32 %r24, [%rd12];
add.u32 %r25, %r21, %r23;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r25], {{%r24}};
add.u64 %rd12, %rd12, 512;
add.u32 %r23, %r23, 1;
setp.lt.u32 %p1, %r23, 512;
@%p1 bra BEFORE;
//waitst
tcgen05.wait::st.sync.aligned;
//before
tcgen05.fence::before_thread_sync;
{}
tcgen05.fence::after_thread_sync;
)",
                        kPlaceBarrier, group, group,
                        pair ? "barrier.cluster.arrive;\nbarrier.cluster.wait;" : "bar.sync 0;");
    body += fmt::format("setp.ne.u32 %p1, %r1, 0;\n@%p1 bra ISSUED;\n{}",
                        pair ? "setp.ne.u32 %p1, %r5, 0;\n@%p1 bra ISSUED;\n" : "");
    const auto matrix = [&](const Matrix& x, uint32_t place, const char* out) {
      return fmt::format("add.u32 %r26, %r2, {};\nshr.u32 %r26, %r26, 4;\ncvt.u64.u32 {}, %r26;\nor.b64 {}, {}, {};\n",
                         place + (x.span == 16 ? 0 : 32 * x.step), out, out, out, x.descriptor());
    };
    body += matrix(a, 0, "%rd20") + matrix(b, kPlaceB, "%rd21");
    body += fmt::format(
        "add.u32 %r30, %r20, {};\nmov.u32 %r31, {};\nadd.u32 %r32, %r20, {};\nadd.u32 %r33, %r20, {};\n"
        "add.u32 %r34, %r20, {};\nadd.u32 %r35, %r20, {};\nsetp.ne.u32 %p3, {}, 0;\n",
        d_lane << 16 | kD, descriptor(), d_lane << 16 | kA, kScaleA, kScaleB, kMetadata, int{keeps});
    body += "//issue\n" + instruction() + "//issued\n";
    if (pair)
      body +=
          "mov.u16 %rs1, 3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
          "[%r4], %rs1;\n";
    else
      body += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n";
    body += R"(
ISSUED:
bar.warp.sync -1;
//wait
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
//after
tcgen05.fence::after_thread_sync;
//read
add.u64 %rd12, %rd11, %rd3;
mov.u32 %r23, 0;
AFTER:
add.u32 %r25, %r21, %r23;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r24}, [%r25];
//waitld
tcgen05.wait::ld.sync.aligned;
st.global.u32 [%rd12], %r24;
add.u64 %rd12, %rd12, 512;
add.u32 %r23, %r23, 1;
setp.lt.u32 %p1, %r23, 512;
@%p1 bra AFTER;
//end
)";
    body += pair ? "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : "bar.sync 0;\n";
    body += fmt::format(
        "setp.ne.u32 %p1, %r6, 0;\n@%p1 bra END;\n//dealloc\ntcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r20, "
        "512;\nEND:\nret;\n",
        group);
    std::string out = kernel_text(3, body, ".extern .shared .align 1024 .b8 tile[];");
    out.replace(out.find(".target sm_90\n"), 14, ".target sm_100a\n");
    return out;
  }
};

struct MmaResult {
  RunResult run;
  std::string refused;
  std::vector<uint32_t> before, after, expected;  ///< by CTA, column and lane
};

/// Where row r and column n of D lie in the CTA (PTX ISA, "Data Path Layout Organization"): {lane, column}.
inline std::pair<uint32_t, uint32_t> place_of_sum(const Mma& p, uint32_t r, uint32_t n) {
  if (p.rows() == 128) return {r, n};
  if (p.rows() == 64 && p.group == 1 && !p.stationary) return {r / 16 * 32 + r % 16 + p.d_lane, n};
  const uint32_t part = p.n * p.rows() / kLanes;  // columns in one set of lanes
  return {n / part * p.rows() + r, n % part};
}

/// Which elements of a chunk of a sparse row are stored, and the code that says so: each choice somewhere.
struct StoredElements {
  std::vector<uint32_t> places;
  uint32_t code;
};
inline StoredElements stored_elements(uint32_t bits, uint32_t row, uint32_t chunk) {
  static constexpr uint32_t kCodes[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110};
  if (bits == 32) return {{(row + chunk) % 2}, (row + chunk) % 2 ? 0b1110u : 0b0100u};
  const uint32_t code = kCodes[(5 * row + chunk) % 7], first = code & 3, second = code >> 2;
  if (bits != 4) return {{first, second}, code};
  return {{2 * first, 2 * first + 1, 2 * second, 2 * second + 1}, code};
}
/// The lane and the bit, from the first column on, of the code for dense element k: the layouts of CUTLASS
/// (tmem_e_frg).
inline std::pair<uint32_t, uint32_t> place_of_code(uint32_t bits, uint32_t row, uint32_t k) {
  if (bits == 8) return {row, k};
  if (bits == 4) return {row, k / 2};
  const uint32_t half = bits == 16 ? 16 : 8, lane = row % 8 + row / 16 * 16 + k / half * 8;
  return {lane, (half * (row / 8 % 2) + k % half) * (bits / 16)};
}

inline MmaResult run_mma(const Mma& p, const std::string& text, uint32_t seed = 1, bool go_on = false) {
  MmaResult result;
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  const auto next = [&](int low, int high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int>((state >> 33) % static_cast<uint64_t>(high - low + 1));
  };
  Bench bench;
  if (result.refused = bench.load(text); !result.refused.empty()) return result;
  const uint32_t k = p.b.k();
  const auto numbers = [&](uint32_t count, const ElementType& t) {
    std::vector<float> out(count);
    for (float& x : out) x = static_cast<float>(next(t.name == std::string("u8") ? 0 : -3, 3));
    return out;
  };
  const uint32_t stored = p.sparse ? k / 2 : k, container = p.a.container,
                 chunk = container == 32  ? 2
                         : container == 4 ? 8
                                          : 4;
  const std::vector<float> packed = numbers(p.m * stored, p.a.type), b = numbers(p.n * k, p.b.type);
  std::vector<float> a = packed;
  if (p.sparse) {
    a.assign(size_t{p.m} * k, 0);
    for (uint32_t row = 0; row < p.m; ++row)
      for (uint32_t i = 0; i < k / chunk; ++i) {
        const std::vector<uint32_t> places = stored_elements(container, row, i).places;
        for (size_t j = 0; j < places.size(); ++j)
          a[row * k + i * chunk + places[j]] = packed[row * stored + i * places.size() + j];
      }
  }
  std::vector<std::byte> image(size_t{p.group} * Mma::kPlaceBarrier);
  result.before.resize(size_t{p.group} * kLanes * kColumns);
  for (uint32_t& x : result.before) x = static_cast<uint32_t>(next(0, 1 << 30));
  const auto cell = [&](uint32_t cta, uint32_t lane, uint32_t column) -> uint32_t& {
    return result.before[(size_t{cta} * kColumns + column) * kLanes + lane];
  };
  std::vector<float> of_a(p.m * std::max(p.scales, 1u), 1.0f), of_b(p.n * std::max(p.scales, 1u), 1.0f);
  const auto scale_bits = [&](float& value) {
    const int which = next(0, 2);
    value = p.ue8m0 ? std::ldexp(1.0f, which - 1) : 1.0f + 0.5f * static_cast<float>(which);
    return p.ue8m0 ? static_cast<uint32_t>(126 + which) : small_float(value, 4, 3);
  };
  std::vector<uint32_t> bits_a(of_a.size()), bits_b(of_b.size());
  for (size_t i = 0; i < of_a.size() && p.scales; ++i) bits_a[i] = scale_bits(of_a[i]);
  for (size_t i = 0; i < of_b.size() && p.scales; ++i) bits_b[i] = scale_bits(of_b[i]);
  std::vector<int> old(size_t{p.m} * p.n);
  for (int& x : old) x = next(-p.old_sums, p.old_sums);
  const auto put_byte = [](uint32_t& word, uint32_t byte, uint32_t value) {
    word = (word & ~(255u << 8 * byte)) | value << 8 * byte;
  };
  for (uint32_t cta = 0; cta < p.group; ++cta) {
    const uint32_t base = cta * Mma::kPlaceBarrier;
    for (uint32_t r = 0; r < p.rows(); ++r)
      for (uint32_t c = 0; c < stored; ++c) {
        const uint32_t bits = encode(p.a.type, packed[(cta * p.rows() + r) * stored + c]);
        p.a.put(image, base, r, c, bits);
        const uint32_t per_word = 32 / p.a.type.bits;
        for (uint32_t copy = 0;
             copy < (p.rows() < kLanes && (p.group == 2 || p.stationary) ? kLanes / p.rows() : 1) && p.a_in_tensor;
             ++copy) {
          const uint32_t lane = p.rows() == 128                ? r
                                : p.group == 2 || p.stationary ? copy * p.rows() + r
                                                               : r / 16 * 32 + r % 16 + p.d_lane;
          uint32_t& word = cell(cta, lane, Mma::kA + c / per_word);
          const uint32_t shift = c % per_word * p.a.type.bits,
                         mask = p.a.type.bits == 32 ? ~0u : ((1u << p.a.type.bits) - 1) << shift;
          word = (word & ~mask) | bits << shift;
        }
      }
    for (uint32_t r = 0; r < p.b_rows(); ++r)
      for (uint32_t c = 0; c < k; ++c)
        p.b.put(image, base + Mma::kPlaceB, r, c, encode(p.b.type, b[(cta * p.b_rows() + r) * k + c]));
    for (uint32_t r = 0; r < p.rows() && p.sparse; ++r)
      for (uint32_t c = 0; c < k; c += chunk) {
        const auto [lane, bit] = place_of_code(container, r, c);
        const uint32_t column = Mma::kMetadata + (container >= 16 ? p.selector : 0) + bit / 32;
        uint32_t& word = cell(cta, lane, column);
        word = (word & ~(15u << bit % 32)) | stored_elements(container, cta * p.rows() + r, c / chunk).code << bit % 32;
      }
    // Scales: row r in lane r % 32 of each warp's lanes, column r / 32. Of B with 64 rows of A a half of the columns
    // for the lower and the upper lanes.
    for (uint32_t s = 0; s < p.scales; ++s) {
      for (uint32_t r = 0; r < p.rows(); ++r)
        for (uint32_t copy = 0; copy < 4; ++copy)
          put_byte(cell(cta, 32 * copy + r % 32, Mma::kScaleA + r / 32), p.scale_a + s,
                   bits_a[(cta * p.rows() + r) * p.scales + s]);
      for (uint32_t r = 0; r < p.n; ++r)
        for (uint32_t copy = 0; copy < 4; ++copy) {
          const uint32_t half = p.rows() == 64 ? p.n / 2 : p.n;
          if (p.rows() == 64 && r / half != copy / 2) continue;
          put_byte(cell(cta, 32 * copy + r % half % 32, Mma::kScaleB + r % half / 32), p.scale_b + s,
                   bits_b[r * p.scales + s]);
        }
    }
    for (uint32_t r = 0; r < p.rows() && p.keeps; ++r)
      for (uint32_t c = 0; c < p.n; ++c) {
        const auto [lane, column] = place_of_sum(p, r, c);
        const auto value = static_cast<float>(old[(cta * p.rows() + r) * p.n + c]);
        cell(cta, lane, Mma::kD + column) = p.sum == 2   ? static_cast<uint32_t>(old[(cta * p.rows() + r) * p.n + c])
                                            : p.sum == 1 ? std::bit_cast<uint32_t>(value)
                                                         : small_float(value, 5, 10);
      }
  }
  result.expected = result.before;
  for (uint32_t row = 0; row < p.m; ++row)
    for (uint32_t c = 0; c < p.n; ++c) {
      double sum = 0;
      for (uint32_t e = 0; e < k; ++e) {
        const uint32_t block = p.scales ? e * p.scales / k : 0, scales = std::max(p.scales, 1u);
        sum += double{a[row * k + e]} * of_a[row * scales + block] * double{b[c * k + e]} * of_b[c * scales + block];
      }
      if (p.negates_a != p.negates_b) sum = 0 - sum;
      const double scaled = p.operands_tail.empty() ? 1 : std::ldexp(1.0, -std::stoi(p.operands_tail.substr(2)));
      if (p.keeps) sum += scaled * old[size_t{row} * p.n + c];
      if (p.saturates) sum = std::clamp(sum, -0x1p31, 0x1p31 - 1);
      const uint32_t cta = row / p.rows();
      const auto [lane, column] = place_of_sum(p, row % p.rows(), c);
      if (!p.disabled.empty() && p.disabled[cta * 4 + lane / 32] >> lane % 32 & 1) continue;
      result.expected[(size_t{cta} * kColumns + Mma::kD + column) * kLanes + lane] =
          p.sum == 2   ? static_cast<uint32_t>(static_cast<int64_t>(sum))
          : p.sum == 1 ? std::bit_cast<uint32_t>(static_cast<float>(sum))
                       : small_float(static_cast<float>(sum), 5, 10);
    }
  const DevicePtr memory = bench.buffer(image, "image"), before = bench.buffer(result.before, "before");
  const DevicePtr after = bench.poisoned(result.before.size() * 4);
  for (const DevicePtr& x : {memory, before, after}) bench.arg(x);
  RunOptions options;
  options.go_on = go_on;
  if (p.group == 2) bench.clusters({2, 1, 1});
  result.run = bench.run({p.group, 1, 1}, {128, 1, 1}, Mma::kShared, options);
  if (result.run.findings.empty()) result.after = bench.read<uint32_t>(after, result.before.size());
  return result;
}

}  // namespace roofgen::sim_test
