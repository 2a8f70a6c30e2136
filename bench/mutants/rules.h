// The rules that make mutants of PTX: each changes one instruction.
#pragma once

#include <string>
#include <vector>

#include "bench/mutants/instruction.h"

namespace roofgen::mutants {

/// The texts that may replace an instruction.
using Replacements = std::vector<std::string>;

struct Rule {
  const char* name;
  const char* applies;  ///< to opcodes that contain a match of this expression
  const char* opcode;   ///< replaces the match; nullptr: `change` makes the replacements
  void (*change)(const Code& code, const PtxStmt& instruction, Replacements& out) = nullptr;
  bool orders = false;     ///< drops a barrier, wait, fence, commit or store: each must be rejected
  bool precision = false;  ///< only rounds an intermediate result: it may stay within the tolerance
};

const std::vector<Rule>& rules();

/// The replacements of an instruction by a rule, without those that leave it as it is. Not thread-safe.
Replacements replacements(const Rule& rule, const Code& code, const PtxStmt& instruction);

}  // namespace roofgen::mutants
