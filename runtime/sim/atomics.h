// The read-modify-write operations of atom and red.
#pragma once

#include <cstdint>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

/// The value of an fp16 number.
float from_half(uint16_t bits);

/// The value memory holds after `op` with operands b and c on the old value; all as raw bits.
uint64_t apply_atomic(AtomicOp op, ElementType type, uint64_t old, uint64_t b, uint64_t c);

}  // namespace roofgen::sim
