// Arguments that a mutant does the same as its kernel. Each is a proof for all contents of the tensors, but only for
// the launch that was tested: its sizes decide which predicates are always true.
#include <fmt/format.h>

#include <map>
#include <regex>

#include "bench/mutants/mutant.h"

namespace roofgen::mutants {
namespace {

using Edits = std::map<const PtxStmt*, std::string>;

/// The kernel with traps where the mutant would differ in effect passes on every CTA.
bool never_traps(const Mutant& m, const Edits& edits) {
  const auto evaluation = m.kernel->verify_whole_launch(m.kernel->code().with(edits));
  return evaluation && evaluation->verification.passed;
}

std::string guard_text(const PtxStmt& s, bool negated) {
  return fmt::format("@{}{} ", s.guard_negated != negated ? "!" : "", s.guard);
}

/// Runs the kernel and its mutant side by side: each register that the changed value reaches has a twin with the
/// original's value. Where such a value decides anything, the two must agree.
class SideBySide {
 public:
  SideBySide(const Mutant& m) : m_(m), code_(m.kernel->code()) {
    reached_.insert(m.statement->operands[0].name);
    for (bool more = true; more;) {
      more = false;
      for (const PtxStmt& s : code_.body())
        if (reads_reached(s) && is_copyable(s)) more |= reached_.insert(s.operands[0].name).second;
    }
  }

  Edits edits() const {
    Edits out;
    std::string declared = ".reg .pred %mutant_differs; ";
    for (const std::string_view name : reached_)
      declared += fmt::format(".reg {} {}; ", type_text(code_.type_of(name)), twin(name));
    for (const PtxStmt& s : code_.body()) {
      if (s.kind != PtxStmt::Kind::kInstruction) continue;
      const bool writes = has_result(s) && reached_.count(s.operands[0].name) != 0;
      std::string text = std::exchange(declared, "");
      if (&s == m_.statement) {
        text += with_twins(s) + " " + m_.after;
      } else if (writes && is_copyable(s)) {
        text += with_twins(s) + " " + to_text(s);
      } else {
        for (const std::string_view name : reached_in(s)) text += compare(name);
        text += to_text(s);
        if (writes)
          text += fmt::format(" {}mov{} {}, {};", s.guard.empty() ? "" : guard_text(s, false),
                              mov_type(s.operands[0].name), twin(s.operands[0].name), s.operands[0].name);
      }
      out[&s] = text;
    }
    return out;
  }

 private:
  static std::string twin(std::string_view name) { return fmt::format("%mutant_{}", name.substr(1)); }
  static std::string type_text(sim::PtxType type) {
    return type.bits == 1 ? ".pred" : fmt::format(".{}{}", type.kind, type.bits);
  }
  std::string mov_type(std::string_view name) const {
    const unsigned bits = code_.type_of(name).bits;
    return bits == 1 ? ".pred" : fmt::format(".b{}", bits);
  }

  std::vector<std::string_view> reached_in(const PtxStmt& s) const {
    std::vector<std::string_view> out;
    if (s.kind != PtxStmt::Kind::kInstruction) return out;
    if (reached_.count(s.guard)) out.push_back(s.guard);
    for (size_t i = has_result(s) ? 1 : 0; i < s.operands.size(); ++i)
      for (const std::string_view name : registers_in(s.operands[i]))
        if (reached_.count(name)) out.push_back(name);
    return out;
  }
  bool reads_reached(const PtxStmt& s) const { return !reached_in(s).empty(); }

  /// An operation of one lane on values that no tensor decides.
  bool is_copyable(const PtxStmt& s) const {
    if (!has_result(s) || !s.guard.empty() || s.operands[0].kind != PtxOperand::Kind::kName ||
        !s.operands[0].second.empty() || code_.type_of(s.operands[0].name).bits == 0)
      return false;
    for (const char* other : {"ld", "shfl", "vote", "match", "atom", "mma", "wmma", "ldmatrix", "cvta"})
      if (s.name.starts_with(std::string(other) + ".") && !s.name.starts_with("ld.param.")) return false;
    for (size_t i = 1; i < s.operands.size(); ++i)
      for (const std::string_view name : registers_in(s.operands[i]))
        if (code_.depends_on_data(name)) return false;
    return true;
  }

  PtxOperand with_twin(PtxOperand o) const {
    if (reached_.count(o.name)) o.name = keep(twin(o.name));
    for (PtxOperand& item : o.items) item = with_twin(item);
    return o;
  }
  std::string with_twins(const PtxStmt& s) const {
    PtxStmt copy = s;
    for (PtxOperand& o : copy.operands) o = with_twin(o);
    return to_text(copy);
  }
  std::string compare(std::string_view name) const {
    const std::string test = code_.type_of(name).bits == 1 ? "xor.pred" : "setp.ne" + mov_type(name);
    return fmt::format("{} %mutant_differs, {}, {}; @%mutant_differs trap; ", test, name, twin(name));
  }

  const Mutant& m_;
  const Code& code_;
  std::set<std::string_view> reached_;
};

/// Neither the instruction nor its replacement reads a register that depends on data.
bool is_free_of_data(const Mutant& m) {
  static const std::regex kRegister("%[a-z]+[0-9]+");
  const Code& code = m.kernel->code();
  const std::string text = to_text(*m.statement) + m.after;
  for (std::sregex_iterator at(text.begin(), text.end(), kRegister), end; at != end; ++at)
    if (at->str() != m.statement->operands[0].name && code.depends_on_data(keep(at->str()))) return false;
  return true;
}

}  // namespace

std::string equivalence(const Mutant& m) {
  const PtxStmt& s = *m.statement;
  const Code& code = m.kernel->code();
  const bool one_result =
      has_result(s) && s.operands[0].kind == PtxOperand::Kind::kName && s.operands[0].second.empty();
  if (one_result && code.is_dead(s.operands[0].name)) return "no instruction reads the result";
  if (code.is_under_data(s)) return "";
  // What follows depends on sizes, thread and CTA only.
  const bool guarded = !s.guard.empty();
  if (!guarded || !code.depends_on_data(s.guard)) {
    if (never_traps(m, {{&s, (guarded ? guard_text(s, false) : "") + "trap; " + to_text(s)}}))
      return "the launch never executes it";
    if (guarded && m.rule == "guard dropped" && never_traps(m, {{&s, guard_text(s, true) + "trap; " + to_text(s)}}))
      return "the guard is always true in the launch";
  }
  if (m.rule == "zero fill ignored" && !code.depends_on_data(s.operands[3].name) &&
      never_traps(m, {{&s, fmt::format("{{ .reg .pred %mutant_differs; setp.ne.b32 %mutant_differs, {}, {}; "
                                       "@%mutant_differs trap; }} {}",
                                       s.operands[3].name, s.operands[2].bits, to_text(s))}}))
    return "the copy is always complete in the launch";
  if (!one_result || guarded || !is_free_of_data(m)) return "";
  return never_traps(m, SideBySide(m).edits()) ? "the same effect in every thread of the launch" : "";
}

}  // namespace roofgen::mutants
