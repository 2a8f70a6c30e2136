#include "runtime/sim/atomics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace roofgen::sim {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
template <class To, class From>
inline To bits_to(From x) {
  return std::bit_cast<To>(x);
}
[[maybe_unused]] constexpr u64 low_of_width(unsigned n) { return n >= 64 ? ~u64{0} : (u64{1} << n) - 1; }
namespace math {
#define FN __attribute__((unused)) inline
#include "runtime/sim/math.h"
#include "runtime/sim/math_half.h"
#undef FN
}  // namespace math

}  // namespace

float from_half(uint16_t bits) { return math::half_to_float(bits); }

uint32_t extremum(bool least, uint8_t how, uint32_t a, uint32_t b) {
  constexpr uint32_t kNan = 0x7fffffff;
  if (how & kOfMagnitudes) a &= kNan, b &= kNan;
  const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (std::isnan(x) || std::isnan(y)) {
    const bool both = std::isnan(x) && std::isnan(y);
    return how & kOfNans || both ? kNan : std::isnan(x) ? b : a;
  }
  const bool first = x < y || (x == y && std::signbit(x));
  return first == least ? a : b;
}

uint64_t apply_atomic(AtomicOp op, ElementType type, uint64_t old, uint64_t b, uint64_t c) {
  auto o32 = static_cast<u32>(old), b32 = static_cast<u32>(b);
  bool is_signed = type == ElementType::kS32 || type == ElementType::kS64;
  bool wide = type == ElementType::kB64 || type == ElementType::kU64 || type == ElementType::kS64;
  auto less = [&](u64 x, u64 y) {
    if (wide) return is_signed ? static_cast<s64>(x) < static_cast<s64>(y) : x < y;
    return is_signed ? static_cast<s32>(x) < static_cast<s32>(y) : static_cast<u32>(x) < static_cast<u32>(y);
  };
  switch (op) {
    case AtomicOp::kAdd:
      switch (type) {
        case ElementType::kF32: return math::bits_of(math::fadd(math::f32_of(o32), math::f32_of(b32)));
        case ElementType::kF64: return math::bits_of(math::fadd(math::f64_of(old), math::f64_of(b)));
        case ElementType::kF16: return math::hadd<math::Half>(u16(old), u16(b));
        case ElementType::kBf16: return math::hadd<math::Bf16>(u16(old), u16(b));
        case ElementType::kF16x2: return math::pair2<math::hadd<math::Half>>(o32, b32);
        case ElementType::kBf16x2: return math::pair2<math::hadd<math::Bf16>>(o32, b32);
        default: return wide ? old + b : u32(o32 + b32);
      }
    case AtomicOp::kMin: return less(b, old) ? b : old;
    case AtomicOp::kMax: return less(old, b) ? b : old;
    case AtomicOp::kAnd: return old & b;
    case AtomicOp::kOr: return old | b;
    case AtomicOp::kXor: return old ^ b;
    case AtomicOp::kExch: return b;
    case AtomicOp::kCas: return old == b ? c : old;
    case AtomicOp::kInc: return o32 >= b32 ? 0 : o32 + 1;
    case AtomicOp::kDec: return o32 == 0 || o32 > b32 ? b32 : o32 - 1;
  }
  return old;
}

}  // namespace roofgen::sim
