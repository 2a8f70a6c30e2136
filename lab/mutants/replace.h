// How rules write the text that replaces an instruction.
#pragma once

#include <fmt/format.h>

#include <regex>
#include <string>

#include "lab/mutants/rules.h"

namespace roofgen::mutants {

/// Adds the statement after `edit` changed a copy of it.
template <class Edit>
void add(Replacements& out, const PtxStmt& s, Edit edit) {
  PtxStmt copy = s;
  edit(copy);
  out.push_back(to_text(copy));
}

inline std::string guard_of(const PtxStmt& s) {
  return s.guard.empty() ? "" : fmt::format("@{}{} ", s.guard_negated ? "!" : "", s.guard);
}

inline std::string replaced(std::string_view text, const char* match, const char* by) {
  return std::regex_replace(std::string(text), std::regex(match), by, std::regex_constants::format_first_only);
}

/// The instruction with another opcode.
inline void rename(Replacements& out, const PtxStmt& s, std::string opcode) {
  add(out, s, [&](PtxStmt& c) { c.name = keep(std::move(opcode)); });
}

/// No instruction.
void drop(const Code& code, const PtxStmt& instruction, Replacements& out);

}  // namespace roofgen::mutants
