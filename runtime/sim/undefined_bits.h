// Which bits of a lane-wise instruction's result are undefined where bits of its sources are, as valgrind's memcheck
// does it (Seward and Nethercote, "Using Valgrind to detect undefined value errors with bit-precision", USENIX 2005).
// A bit that could have another value if the undefined bits had others is always undefined; the reverse holds but for
// what several bits have in common.
#pragma once

#include <string_view>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

inline constexpr uint64_t kAllBits = ~uint64_t{0};

/// A value whose undefined bits may be anything.
struct PartlyDefined {
  uint64_t value = 0, undefined = 0;
  uint64_t lowest() const { return value & ~undefined; }
  uint64_t highest() const { return value | undefined; }
};

/// A source by lane. A predicate is one bit; the predicate "true" is not named in an instruction's operands.
struct SourceBits {
  uint64_t value[kWarpSize], undefined[kWarpSize] = {};
  bool wide = false;  ///< its rows are 64-bit
  SourceBits() {
    for (uint64_t& v : value) v = 1;
  }
};

/// Sets the rule of a lane-wise instruction: Inst::type, and `size`, `imm` and flags, as far as the rule needs them.
void set_rule(Inst& in, std::string_view opcode, const Signature& signature);

/// By lane; bits beyond the result's width mean nothing. `second`: of setp's second predicate.
struct UndefinedResult {
  uint64_t first[kWarpSize], second[kWarpSize];
};
void undefined_result(const Inst& in, const SourceBits (&sources)[4], UndefinedResult& result);

/// Of a bitwise operation by a table of a, b and c, as lop3 has it.
uint64_t undefined_logic(uint64_t table, PartlyDefined a, PartlyDefined b, PartlyDefined c = {});
inline constexpr uint64_t kTableA = 0xf0, kTableNot = 0x0f, kTableAnd = 0xc0, kTableOr = 0xfc, kTableXor = 0x3c;

}  // namespace roofgen::sim
