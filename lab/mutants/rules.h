// The rules that make mutants of PTX: each changes one instruction.
//
// Group kData changes what a thread computes and where it is stored; group kOrder how accesses are ordered: semantics,
// scopes, fences, proxies, barriers and phases. Rules that drop a barrier, a wait, a commit or a fence are in both.
#pragma once

#include <string>
#include <vector>

#include "lab/mutants/instruction.h"

namespace roofgen::mutants {

/// The texts that may replace an instruction.
using Replacements = std::vector<std::string>;

enum class Group { kData, kOrder };

struct Rule {
  const char* name;
  const char* applies;  ///< to opcodes that contain a match of this expression
  const char* opcode;   ///< replaces the match; nullptr: `change` makes the replacements
  void (*change)(const Code& code, const PtxStmt& instruction, Replacements& out) = nullptr;
  bool orders = false;     ///< drops a barrier, wait, fence, commit or store: each must be rejected
  bool precision = false;  ///< only rounds an intermediate result: it may stay within the tolerance
  const char* line = "";   ///< a part of the template line, as a regular expression
};

std::vector<const Rule*> rules(Group group);
const std::vector<Rule>& dropping_rules();  ///< of both groups
const std::vector<Rule>& order_rules();

/// The replacements of an instruction by a rule, without those that leave it as it is. Not thread-safe.
Replacements replacements(const Rule& rule, const Code& code, const PtxStmt& instruction);

/// The wait for an mbarrier whose result the guard of the branch is computed from; or null.
const PtxStmt* wait_before(const Code& code, const PtxStmt& branch);

}  // namespace roofgen::mutants
