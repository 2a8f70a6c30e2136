// PTX instructions as text again, and the registers that they write and read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/ptx_ast.h"

namespace roofgen::mutants {

using sim::PtxOperand;
using sim::PtxStmt;

/// A view of the text that lives as long as the program: statements hold views.
std::string_view keep(std::string text);

std::string to_text(const PtxOperand& operand);
/// The whole statement with its guard and semicolon.
std::string to_text(const PtxStmt& statement);

/// Gives the registers that inline assembly declares the `%` of the others.
std::string with_percent(std::string ptx);

/// The registers that an operand names: one, those of a vector, or the base of an address.
std::vector<std::string_view> registers_in(const PtxOperand& operand);
/// The first operand is a destination.
bool has_result(const PtxStmt& statement);
/// Those of these registers that a statement reads.
std::vector<std::string_view> read_of(const std::set<std::string_view>& registers, const PtxStmt& statement);

/// A kernel's parsed text: its statements, and the flow of values between registers.
class Code {
 public:
  /// Parses the PTX, which must be valid. `sizes`: the parameters that point to lengths, which are no data. `kernel`:
  /// the mangled name; empty: the last function.
  Code(std::string ptx, const std::vector<size_t>& sizes, const std::string& kernel = "");
  Code(const Code&) = delete;

  const std::string& ptx() const { return ptx_; }
  const std::vector<PtxStmt>& body() const { return function().body; }
  const std::vector<sim::PtxVar>& params() const { return function().params; }
  /// Threads of a CTA by the directives .maxntid or .reqntid; 0: not said.
  uint64_t max_threads() const;
  /// The line of the source that the statement comes from (.loc); 0: unknown.
  uint32_t source_line(const PtxStmt& statement) const { return module_.locs[statement.loc].line; }
  /// The text with other statements in these places.
  std::string with(const std::map<const PtxStmt*, std::string>& replacements) const;
  /// The same text, with each instruction printed anew.
  std::string printed() const;

  /// `.f32`, `.b64`, `.pred`, ... of a declared register; kind 0: none of that name.
  sim::PtxType type_of(std::string_view name) const;
  /// No instruction reads the register.
  bool is_dead(std::string_view name) const { return !readers_.count(name); }
  /// The register's value may depend on the contents of tensors. False: it follows from thread, CTA, arguments and
  /// constants alone.
  bool depends_on_data(std::string_view name) const { return of_data_.count(name) != 0; }
  /// The numbers of the 64-bit parameters that an address is computed from, without those that reach it as 32 bits.
  std::set<size_t> parameters_in(std::string_view address) const;
  /// A branch that depends on data may skip the statement.
  bool is_under_data(const PtxStmt& statement) const { return under_data_.count(&statement) != 0; }

 private:
  const sim::PtxFunction& function() const { return module_.functions[function_]; }
  std::string ptx_;
  sim::PtxModule module_;
  size_t function_ = 0;
  void trace_data(const std::vector<size_t>& sizes);
  bool mark_branches();

  std::map<std::string_view, std::vector<const PtxStmt*>> writers_, readers_;
  std::set<std::string_view> of_data_;
  std::set<const PtxStmt*> under_data_;
};

}  // namespace roofgen::mutants
