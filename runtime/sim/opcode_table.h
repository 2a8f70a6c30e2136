// The known instructions. Lane-wise ones come from opcodes.def, fully spelled; instructions that touch
// memory, other lanes or control flow have a decoder that reads their modifiers.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

/// The widest lane functions this machine can run.
const LaneTable& host_lanes();
/// Every table built in, for tests that compare them; entries the machine cannot run are left out.
std::vector<const LaneTable*> all_host_lanes();

/// Whether the opcode's first word is an instruction of PTX ISA 9.0, supported or not.
bool is_ptx_instruction(std::string_view opcode);

/// Splits an opcode at its dots: `add.rn.f32` -> add, rn, f32.
std::vector<std::string_view> split_opcode(std::string_view opcode);

class OpcodeTable {
 public:
  explicit OpcodeTable(const LaneTable& lanes);
  /// The table over host_lanes(), built once.
  static const OpcodeTable& host();
  /// nullptr when there is no such lane-wise instruction.
  const LaneEntry* find(std::string_view spelling) const;
  /// A known spelling near `opcode`, or "" when nothing is near.
  std::string nearest(std::string_view opcode) const;
  const LaneTable& lanes() const { return lanes_; }
  const std::unordered_map<std::string, const LaneEntry*>& spellings() const { return spellings_; }

 private:
  const LaneTable& lanes_;
  std::unordered_map<std::string, const LaneEntry*> spellings_;
};

}  // namespace roofgen::sim
