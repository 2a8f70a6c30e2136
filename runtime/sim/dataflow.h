// Definite assignment of registers, and the allocation of registers to rows.
#pragma once

#include <string>
#include <vector>

#include "runtime/sim/code.h"

namespace roofgen::sim {

/// A virtual register of the PTX.
struct VirtualRegister {
  Slot slot = Slot::kB32;
  bool fixed = false;  ///< constant or special: assigned from the start, keeps its row
  std::string name;
};

/// One mention of a register in an instruction: a field of Inst or an entry of Kernel::lists.
struct RegisterRef {
  uint32_t inst;
  uint32_t Inst::*field;  ///< nullptr: `list_index` says where
  uint32_t list_index;
  uint32_t reg;  ///< virtual register, or predicate index
  bool is_def;
  bool is_pred;
};

/// Replaces virtual registers by rows (registers that are never live together share rows; a thread
/// only ever follows one path through the code, so this holds for divergent warps too) and fills
/// Kernel::unassigned for registers not assigned on every path to a use. False: too large to analyse.
[[nodiscard]] bool assign_rows(Kernel& kernel, const std::vector<VirtualRegister>& registers,
                               const std::vector<std::string>& predicate_names, std::vector<RegisterRef>& refs);

}  // namespace roofgen::sim
