// The read-modify-write operations of atom and red.
#pragma once

#include <cstdint>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

/// The value of an fp16 number.
float from_half(uint16_t bits);

/// The value memory holds after `op` with operands b and c on the old value; all as raw bits.
uint64_t apply_atomic(AtomicOp op, ElementType type, uint64_t old, uint64_t b, uint64_t c);

/// Bits of how minima and maxima of fp32 are taken, beside 1: of magnitudes; NaN if one is NaN.
inline constexpr uint8_t kOfMagnitudes = 2, kOfNans = 4;
/// The bits of the lesser or the greater number; -0 is less than +0. Other NaNs do not count.
uint32_t extremum(bool least, uint8_t how, uint32_t a, uint32_t b);

}  // namespace roofgen::sim
