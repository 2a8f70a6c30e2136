#include "runtime/sim/tcgen05.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace roofgen::sim {
namespace {

/// A floating-point format: bits of exponent and mantissa; what the greatest exponent means.
struct Format {
  int exponent, mantissa;
  enum { kIeee, kNan, kFinite } top;  ///< infinities and NaNs; the greatest magnitude is NaN; numbers
};
Format format_of(TensorElement e) {
  switch (e) {
    case TensorElement::kF16: return {5, 10, Format::kIeee};
    case TensorElement::kBf16: return {8, 7, Format::kIeee};
    case TensorElement::kE5m2: return {5, 2, Format::kIeee};
    case TensorElement::kE2m3: return {2, 3, Format::kFinite};
    case TensorElement::kE3m2: return {3, 2, Format::kFinite};
    case TensorElement::kE2m1: return {2, 1, Format::kFinite};
    default: return {4, 3, Format::kNan};
  }
}

float value_of(TensorElement e, uint32_t bits) {
  if (e == TensorElement::kU8) return static_cast<float>(bits);
  if (e == TensorElement::kS8) return static_cast<float>(static_cast<int8_t>(bits));
  if (e == TensorElement::kUe8m0)
    return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
  const Format f = format_of(e);
  const int bias = (1 << (f.exponent - 1)) - 1, greatest = (1 << f.exponent) - 1;
  const int exponent = static_cast<int>(bits >> f.mantissa) & greatest;
  const int mantissa = static_cast<int>(bits) & ((1 << f.mantissa) - 1);
  const float sign = bits >> (f.exponent + f.mantissa) & 1 ? -1.0f : 1.0f;
  const bool nan = f.top == Format::kIeee ? mantissa != 0 : mantissa == (1 << f.mantissa) - 1;
  if (exponent == greatest && f.top != Format::kFinite) {
    if (nan) return std::numeric_limits<float>::quiet_NaN();
    if (f.top == Format::kIeee) return sign * std::numeric_limits<float>::infinity();
  }
  return sign * (exponent ? std::ldexp(static_cast<float>((1 << f.mantissa) + mantissa), exponent - bias - f.mantissa)
                          : std::ldexp(static_cast<float>(mantissa), 1 - bias - f.mantissa));
}

std::vector<float> all_values(TensorElement e) {
  // The bits above an element in its byte say nothing.
  const uint32_t bits = bits_of(e), patterns = bits == 16 ? 1u << 16 : 256;
  std::vector<float> out(patterns);
  for (uint32_t i = 0; i < patterns; ++i) out[i] = value_of(e, i & ((1u << bits) - 1));
  return out;
}

/// The element that a field of three bits names; false: none.
bool element_of(TensorKind kind, uint32_t field, TensorElement& out) {
  using enum TensorElement;
  switch (kind) {
    case TensorKind::kF16: return out = field ? kBf16 : kF16, field < 2;
    case TensorKind::kTf32: return out = kTf32, field == 2;
    case TensorKind::kI8: return out = field ? kS8 : kU8, field < 2;
    case TensorKind::kF8f6f4:
    case TensorKind::kMxf8f6f4: {
      constexpr TensorElement kElements[] = {kE4m3, kE5m2, kE4m3, kE2m3, kE3m2, kE2m1};
      return field < 6 && field != 2 && (out = kElements[field], true);
    }
    case TensorKind::kMxf4:
    case TensorKind::kMxf4nvf4: return out = kE2m1, field == 1;
  }
  return false;
}

/// PTX ISA, "Matrix Shape", table of kinds and shapes.
std::string shape_fault(const TensorProduct& p) {
  const bool pair = p.group == 2;
  const auto refused = [&](const char* what, uint32_t value, const char* expected) {
    return fmt::format("{} = {} of kind::{} with cta_group::{}{}: expected {}", what, value, name_of(p.kind), p.group,
                       p.stationary ? " and .ws" : "", expected);
  };
  if (p.stationary) {
    if (p.m != 32 && p.m != 64 && p.m != 128) return refused("M", p.m, "32, 64 or 128");
    return p.n == 64 || p.n == 128 || p.n == 256 ? "" : refused("N", p.n, "64, 128 or 256");
  }
  if (pair && p.m != 128 && p.m != 256) return refused("M", p.m, "128 or 256");
  if (!pair && p.m != 128 && (p.m != 64 || is_scaled(p.kind)))
    return refused("M", p.m, is_scaled(p.kind) ? "128" : "64 or 128");
  if (p.n == 0 || p.n > kMostMmaColumns) return refused("N", p.n, "at most 256");
  if (p.kind == TensorKind::kI8)
    return pair ? (p.n % 32 ? refused("N", p.n, "a multiple of 32") : "")
                : (p.n % 16 && p.n != 8 && p.n != 24 ? refused("N", p.n, "8, 24 or a multiple of 16") : "");
  if (pair) return p.n % 16 ? refused("N", p.n, "a multiple of 16") : "";
  return "";  // the field has multiples of 8
}

}  // namespace

const char* name_of(TensorKind kind) {
  constexpr const char* kNames[] = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return kNames[static_cast<size_t>(kind)];
}

const float* values_of(TensorElement e) {
  static const std::array<std::vector<float>, 12> kAll = [] {
    std::array<std::vector<float>, 12> all;
    for (size_t i = 0; i < all.size(); ++i)
      if (static_cast<TensorElement>(i) != TensorElement::kTf32) all[i] = all_values(static_cast<TensorElement>(i));
    return all;
  }();
  return kAll[static_cast<size_t>(e)].data();
}

std::string TensorProduct::decode(uint32_t bits, const Inst& in, TensorProduct& p) {
  const auto field = [&](uint32_t from, uint32_t n) { return bits >> from & ((1u << n) - 1); };
  const auto reserved = [&](uint32_t from, uint32_t n) {
    return field(from, n) ? fmt::format("its reserved bits {:#x} are set", bits & (((1u << n) - 1) << from)) : "";
  };
  p = {};
  p.kind = static_cast<TensorKind>(in.imm & kTensorKindMask);
  p.group = in.count;
  p.stationary = in.imm & kTensorStationary;
  const bool scaled = is_scaled(p.kind), integer = p.kind == TensorKind::kI8;
  p.m = field(24, 5) << 4;
  p.n = field(17, 6) << 3;
  p.turned_a = field(15, 1), p.turned_b = field(16, 1);
  p.negates_a = field(13, 1), p.negates_b = field(14, 1);
  p.sparse = in.imm & kTensorSparse;
  p.k = 256 / p.container() * (p.sparse ? 2 : 1);
  p.selector = field(0, 2);
  if (!p.sparse && p.selector) return "its sparsity selector is set, but the product is dense";
  if (field(2, 1) != p.sparse)
    return p.sparse ? "it says dense, but the instruction has .sp" : "it says sparse, but the instruction has no .sp";
  if (p.sparse && p.selector > (p.container() >= 16 ? 1 : 0) && !scaled)
    return fmt::format("its sparsity selector is {}: expected {}", p.selector, p.container() >= 16 ? "0 or 1" : "0");
  if (std::string why = reserved(6, 1); !why.empty()) return why;
  if (!element_of(p.kind, field(7, 3), p.a))
    return fmt::format("{} is no type of A of kind::{}", field(7, 3), name_of(p.kind));
  if (!element_of(p.kind, field(10, 3), p.b))
    return fmt::format("{} is no type of B of kind::{}", field(10, 3), name_of(p.kind));
  if (integer && (p.negates_a || p.negates_b)) return "it negates integers";
  if (p.kind == TensorKind::kF16 && p.a != p.b && field(4, 2) == 0) return "sums of f16 need A and B of f16";
  if (bits_of(p.a) < 8 && p.turned_a) return "A has elements of less than 8 bits and is contiguous along m";
  if (bits_of(p.b) < 8 && p.turned_b) return "B has elements of less than 8 bits and is contiguous along n";
  if (std::string why = shape_fault(p); !why.empty()) return why;
  // The metadata of these lie as figures of the PTX ISA show, which no text says.
  if (p.sparse && p.rows() != 128) p.not_modelled = fmt::format("a sparse A with {} rows in a CTA", p.rows());
  if (!scaled) {
    for (const auto& [from, n] : {std::pair{23u, 1u}, {29u, 1u}})
      if (std::string why = reserved(from, n); !why.empty()) return why;
    const uint32_t sum = field(4, 2);
    const bool halves = p.kind == TensorKind::kF16 || p.kind == TensorKind::kF8f6f4;
    if (integer ? sum != 2 : sum != 1 && !(sum == 0 && halves))
      return fmt::format("{} is no type of D of kind::{}", sum, name_of(p.kind));
    if (sum == 0 && p.a == TensorElement::kBf16) return "sums of f16 need A and B of f16";
    p.sum = sum == 0 ? WgmmaSum::kF16 : sum == 1 ? WgmmaSum::kF32 : WgmmaSum::kS32;
    if (field(3, 1) && !integer) return "only sums of kind::i8 saturate";
    if (field(30, 2) && !p.stationary) return "only .ws shifts B";
    p.saturates = field(3, 1);
    if (field(30, 2)) p.not_modelled = "a shift of B";
    return "";
  }
  if (std::string why = reserved(3, 1); !why.empty()) return why;
  if (p.kind == TensorKind::kMxf8f6f4)
    if (std::string why = reserved(31, 1); !why.empty()) return why;
  if (field(31, 1)) p.not_modelled = fmt::format("K = 96 of {}", name_of(p.kind));
  p.sum = WgmmaSum::kF32;
  const auto named = static_cast<uint32_t>(in.imm >> kTensorScalesShift & 7);
  p.scales = named ? named : p.kind == TensorKind::kMxf8f6f4 ? 1 : 2;
  p.scale = field(23, 1) ? TensorElement::kUe8m0 : TensorElement::kUe4m3;
  p.scale_a = field(29, 2), p.scale_b = field(4, 2);
  if (p.kind != TensorKind::kMxf4nvf4 && p.scale != TensorElement::kUe8m0)
    return fmt::format("kind::{} has scales of ue8m0", name_of(p.kind));
  // PTX ISA, "Scale Factor ID": one scale is any byte, two begin at an even byte, four are the word.
  for (const auto& [id, name] : {std::pair{p.scale_a, 'A'}, {p.scale_b, 'B'}})
    if (id % p.scales)
      return fmt::format("the scale factor id {} of {}: {} scales begin at a multiple of {}", id, name, p.scales,
                         p.scales);
  return "";
}

std::vector<TensorPart> parts_of(const TensorProduct& p, uint32_t lane) {
  const uint32_t rows = p.rows();
  if (rows == 128) return {{0, p.n, 0, 8, 16}};
  if (rows == 64 && p.group == 1 && !p.stationary) return {{0, p.n, lane, 4, 32}};
  const uint32_t parts = kTensorLanes / rows;
  std::vector<TensorPart> out;
  for (uint32_t i = 0; i < parts; ++i) out.push_back({i * p.n / parts, p.n / parts, i * rows, rows / 16, 16});
  return out;
}

TensorMatrix TensorMatrix::of(uint64_t bits) {
  constexpr uint32_t kSpans[] = {16, 128, 128, 0, 64, 0, 32, 0};
  const auto field = [&](uint32_t from) { return static_cast<uint32_t>(bits >> from & 0x3fff) << 4; };
  const uint64_t layout = bits >> 61;
  return {field(0),
          field(16),
          field(32),
          static_cast<uint32_t>(bits >> 49 & 7),
          kSpans[layout],
          layout == 1,
          (bits >> 52 & 1) != 0};
}

/// `along`: bytes of the matrix along its rows of `span` bytes. A matrix may begin inside the swizzle's pattern: the
/// base offset is that of the pattern's start, which is a multiple of 1024 bytes in memory that tensor copies fill.
std::string TensorMatrix::fault(uint64_t bits, bool turned, uint32_t along) {
  constexpr uint64_t kReserved = 0x1fe0'0000'c000'c000;
  if (bits & kReserved) return fmt::format("its reserved bits {:#x} are set", bits & kReserved);
  if (const uint64_t version = bits >> 46 & 7; version != 1)
    return fmt::format("bits 46 to 48 are {}, and descriptors of tcgen05 have 1 there", version);
  const uint64_t layout = bits >> 61;
  if (layout == 3 || layout == 5 || layout == 7) return fmt::format("{} is no swizzling mode", layout);
  if (layout == 1 && !turned)
    return "128-byte swizzling by 32 bytes is only for matrices that are contiguous along m or n";
  const TensorMatrix at = of(bits);
  if (at.span == 16) return at.base ? "it has a base offset, but no swizzle" : "";
  const uint32_t column = at.address % at.span;
  if (!turned && column + std::min(along, at.span) > at.span)
    return fmt::format("{} bytes from byte {} of a row go past the {} bytes of the swizzle", std::min(along, at.span),
                       column, at.span);
  return "";
}

}  // namespace roofgen::sim
