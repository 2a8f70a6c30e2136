// Follows the bits that a mutant may compute differently: loads that nobody uses, halves that nobody stores.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lab/mutants/mutant.h"

namespace roofgen::mutants {
namespace {

using Kind = PtxOperand::Kind;

bool starts_with_any(std::string_view name, std::initializer_list<const char*> opcodes) {
  return std::any_of(opcodes.begin(), opcodes.end(), [&](const char* opcode) { return name.starts_with(opcode); });
}

/// Each register that the change may reach has a mask: the bits whose value may differ from the kernel's, whatever the
/// tensors hold. The mutant runs, and traps where such a bit decides an address, a branch or what other lanes see, or
/// is stored. A branch that may go the other way may skip or add computations only; their results differ where it
/// joins.
class DifferingBits {
 public:
  explicit DifferingBits(const Mutant& m) : m_(m), code_(m.kernel->code()) {
    for (size_t i = 0; i < code_.body().size(); ++i) {
      const PtxStmt& s = code_.body()[i];
      if (s.kind == PtxStmt::Kind::kLabel) labels_[s.name] = i;
      if (&s == m.statement) changed_ = i;
    }
  }

  /// Nothing: the change cannot be followed.
  std::optional<Edits> edits() {
    const PtxStmt& change = *m_.statement;
    if (is_branch(change) ? !part(changed_) : !is_pure(change) || !change.guard.empty()) return std::nullopt;
    for (const std::string_view name : written(changed_, is_branch(change))) reached_.insert(name);
    if (reached_.empty()) return std::nullopt;
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < code_.body().size(); ++i) {
        const PtxStmt& s = code_.body()[i];
        if (reads(s).empty()) continue;
        const bool joins = is_branch(s) && reached_.count(s.guard) && part(i);
        if (!joins && !is_pure(s)) continue;
        for (const std::string_view name : written(i, joins)) more |= reached_.insert(name).second;
      }
    }
    Edits out;
    for (size_t i = 0; i < code_.body().size(); ++i) {
      const PtxStmt& s = code_.body()[i];
      if (s.kind != PtxStmt::Kind::kInstruction) continue;
      const auto to = results(s);
      const bool touches = !reads(s).empty() || std::any_of(to.begin(), to.end(), [&](std::string_view name) {
        return reached_.count(name) != 0;
      });
      // Other data might take another way.
      if (touches && (code_.is_under_data(s) || (!s.guard.empty() && code_.depends_on_data(s.guard))))
        return std::nullopt;
      const std::string text = i == changed_ ? changed() : touches ? followed(i) : "";
      if (!text.empty()) out[&s] = text;
    }
    for (const auto& [first, joined] : joined_) {
      auto [at, fresh] = out.try_emplace(first, "");
      if (fresh) at->second = to_text(*first);
      at->second = joined + at->second;
    }
    const auto first = std::find_if(code_.body().begin(), code_.body().end(),
                                    [](const PtxStmt& s) { return s.kind == PtxStmt::Kind::kInstruction; });
    auto [at, fresh] = out.try_emplace(&*first, "");
    if (fresh) at->second = to_text(*first);
    at->second = declarations() + at->second;
    return out;
  }

 private:
  /// The statements that a branch may skip.
  struct Part {
    std::set<std::string_view> written;
    const PtxStmt* after;  ///< the first one behind
  };

  static bool is_branch(const PtxStmt& s) { return s.name == "bra" || s.name.starts_with("bra."); }
  /// Computes its results in one lane, from its operands or from memory.
  static bool is_pure(const PtxStmt& s) {
    return has_result(s) && !starts_with_any(s.name, {"shfl", "vote", "match", "atom", "mma", "wmma", "ldmatrix",
                                                      "activemask", "elect", "mbarrier"});
  }
  static std::vector<std::string_view> results(const PtxStmt& s) {
    return s.kind == PtxStmt::Kind::kInstruction && has_result(s) ? registers_in(s.operands[0])
                                                                  : std::vector<std::string_view>();
  }
  /// The reached registers that a statement reads.
  std::vector<std::string_view> reads(const PtxStmt& s) const { return read_of(reached_, s); }

  /// What the branch at `from` may skip, if that is one way through and only computes.
  std::optional<Part> part(size_t from) const {
    const PtxStmt& branch = code_.body()[from];
    const auto label = labels_.find(branch.operands[0].name);
    if (label == labels_.end() || label->second <= from) return std::nullopt;
    Part out;
    for (size_t i = from + 1; i < label->second; ++i) {
      const PtxStmt& s = code_.body()[i];
      if (s.kind != PtxStmt::Kind::kInstruction || !is_pure(s)) return std::nullopt;
      for (const std::string_view name : results(s)) out.written.insert(name);
    }
    size_t after = label->second;
    while (after < code_.body().size() && code_.body()[after].kind != PtxStmt::Kind::kInstruction) ++after;
    if (after == code_.body().size()) return std::nullopt;
    out.after = &code_.body()[after];
    return out;
  }

  std::set<std::string_view> written(size_t i, bool skips) const {
    if (skips) return part(i)->written;
    const auto to = results(code_.body()[i]);
    return {to.begin(), to.end()};
  }

  unsigned bits(std::string_view name) const { return code_.type_of(name).bits; }
  static std::string mask(std::string_view name) { return fmt::format("%mutant_{}", name.substr(1)); }
  std::string move(std::string_view name) const {
    return bits(name) == 1 ? "mov.pred" : fmt::format("mov.b{}", bits(name));
  }
  std::string set(std::string_view name, bool all) const {
    if (bits(name) == 1) return fmt::format("setp.{}.b32 {}, 0, 0; ", all ? "eq" : "ne", mask(name));
    return fmt::format("mov.b{} {}, {}; ", bits(name), mask(name), all ? -1 : 0);
  }
  /// %mutant_any: whether a bit of one of the registers may differ.
  std::string any(const std::vector<std::string_view>& names) const {
    std::string out = "setp.ne.b32 %mutant_any, 0, 0; ";
    for (const std::string_view name : names)
      out += bits(name) == 1 ? fmt::format("or.pred %mutant_any, %mutant_any, {}; ", mask(name))
                             : fmt::format(
                                   "setp.ne.b{} %mutant_one, {}, 0; or.pred %mutant_any, %mutant_any, "
                                   "%mutant_one; ",
                                   bits(name), mask(name));
    return out;
  }
  std::string set_if_any(std::string_view name) const {
    if (bits(name) == 1) return fmt::format("mov.pred {}, %mutant_any; ", mask(name));
    return fmt::format("selp.b{} {}, -1, 0, %mutant_any; ", bits(name), mask(name));
  }
  std::string declarations() const {
    std::string out = ".reg .pred %mutant_any; .reg .pred %mutant_one; .reg .b16 %mutant_zero; .reg .b32 %mutant_low; ",
                start = "mov.b16 %mutant_zero, 0; ";
    for (const std::string_view name : reached_) {
      out += bits(name) == 1 ? fmt::format(".reg .pred {}; ", mask(name))
                             : fmt::format(".reg .b{} {}; ", bits(name), mask(name));
      start += set(name, false);
    }
    for (size_t i = 0; i < ways_; ++i) {
      out += fmt::format(".reg .pred %mutant_way{}; ", i);
      start += fmt::format("setp.ne.b32 %mutant_way{}, 0, 0; ", i);
    }
    return out + start;
  }

  /// The branch at `from` goes the other way where %mutant_any is set.
  std::string other_way(size_t from) {
    const Part skipped = *part(from);
    const size_t way = ways_++;
    std::string& joined = joined_[skipped.after];
    for (const std::string_view name : skipped.written)
      joined += bits(name) == 1 ? fmt::format("or.pred {0}, {0}, %mutant_way{1}; ", mask(name), way)
                                : fmt::format("@%mutant_way{} {}", way, set(name, true));
    joined += fmt::format("setp.ne.b32 %mutant_way{}, 0, 0; ", way);
    return fmt::format("mov.pred %mutant_way{}, %mutant_any; ", way);
  }

  std::string changed() {
    const PtxStmt& s = *m_.statement;
    if (is_branch(s)) {
      std::string goes = "setp.eq.b32 %mutant_any, 0, 0; ";  // negated: everywhere
      if (m_.rule != "predicate negated" && !s.guard.empty())
        goes = fmt::format("{} %mutant_any, {}; ",
                           (m_.rule == "guard dropped") != s.guard_negated ? "not.pred" : "mov.pred", s.guard);
      return goes + other_way(changed_) + m_.after;
    }
    const auto to = results(s);
    const bool loads = s.name.starts_with("ld.") && !s.name.starts_with("ld.param.");
    std::string text = m_.after;
    if (to.size() == 1 && s.operands[0].kind == Kind::kName && !loads && !code_.depends_on_data(to[0])) {
      // The bits that do differ.
      PtxStmt own = s;
      own.operands[0].name = keep(mask(to[0]));
      const std::string type = bits(to[0]) == 1 ? "pred" : fmt::format("b{}", bits(to[0]));
      return to_text(own) + " " + text + fmt::format(" xor.{0} {1}, {1}, {2}; ", type, mask(to[0]), to[0]);
    }
    for (const std::string_view name : to) text += " " + set(name, true);
    return text;
  }

  std::string followed(size_t i) {
    const PtxStmt& s = code_.body()[i];
    const auto from = reads(s), to = results(s);
    if (is_branch(s) && part(i)) return any({s.guard}) + other_way(i) + to_text(s);
    std::string text;
    // The bits of a guard or of an address decide.
    std::vector<std::string_view> deciding;
    if (reached_.count(s.guard)) deciding.push_back(s.guard);
    for (const PtxOperand& o : s.operands)
      for (const std::string_view name :
           o.kind == Kind::kAddress || !is_pure(s) ? registers_in(o) : std::vector<std::string_view>())
        if (reached_.count(name) && std::find(to.begin(), to.end(), name) == to.end()) deciding.push_back(name);
    // A narrow store leaves the upper bits of a register.
    const bool narrow = s.name.starts_with("st.") && (s.name.ends_with("16") || s.name.ends_with("8")) &&
                        deciding.size() == 1 && s.operands[1].kind == Kind::kName &&
                        s.operands[1].name == deciding[0] && bits(deciding[0]) == 32;
    if (narrow)
      text += fmt::format(
          "and.b32 %mutant_low, {}, {}; setp.ne.b32 %mutant_any, "
          "%mutant_low, 0; @%mutant_any trap; ",
          mask(deciding[0]), s.name.ends_with("16") ? "0xffff" : "0xff");
    else if (!deciding.empty())
      text += any(deciding) + "@%mutant_any trap; ";
    // Operands that were read and then written in the same statement still have their old masks here.
    text += of_results(s, from, to);
    return text + to_text(s);
  }

  std::string of_results(const PtxStmt& s, const std::vector<std::string_view>& from,
                         const std::vector<std::string_view>& to) const {
    std::string text;
    const std::string guard = s.guard.empty() ? "" : fmt::format("@{}{} ", s.guard_negated ? "!" : "", s.guard);
    std::vector<std::string_view> kept;
    for (const std::string_view name : to)
      if (reached_.count(name)) kept.push_back(name);
    if (kept.empty()) return "";
    if (from.empty() || !is_pure(s)) {
      for (const std::string_view name : kept) text += guard + set(name, false);
      return text;
    }
    const auto mask_of = [&](const PtxOperand& o) {
      return o.kind == Kind::kName && reached_.count(o.name) ? mask(o.name) : std::string("0");
    };
    const auto one = [&] { return kept.size() == 1 && s.operands[0].kind == Kind::kName; };
    const auto bitwise = [&](std::string_view opcode) { return s.name.starts_with(opcode) && one(); };
    const auto number = [&](size_t i) { return s.operands[i].kind == Kind::kInteger; };
    if ((bitwise("mov.b") || bitwise("mov.u") || bitwise("mov.f")) && s.operands[1].kind == Kind::kName)
      return fmt::format("{}{} {}, {}; ", guard, move(kept[0]), mask(kept[0]), mask_of(s.operands[1]));
    if (s.name.starts_with("mov.b32") && (s.operands[0].kind == Kind::kVector || s.operands[1].kind == Kind::kVector)) {
      // Halves of a word.
      PtxStmt same = s;
      for (PtxOperand& o : same.operands) {
        if (o.kind == Kind::kName) o = with_name(o, mask(o.name));
        for (PtxOperand& item : o.items)
          item = with_name(item, reached_.count(item.name) ? mask(item.name) : "%mutant_zero");
      }
      return to_text(same) + " ";
    }
    if (bitwise("and.b") && number(2))
      return fmt::format("{}{} {}, {}, {}; ", guard, s.name, mask(kept[0]), mask_of(s.operands[1]),
                         to_text(s.operands[2]));
    if (bitwise("or.b") || bitwise("xor.b"))
      return fmt::format("{}or.b{} {}, {}, {}; ", guard, bits(kept[0]), mask(kept[0]), mask_of(s.operands[1]),
                         mask_of(s.operands[2]));
    if ((bitwise("shl.b") || bitwise("shr.u")) && number(2))
      return fmt::format("{}{} {}, {}, {}; ", guard, s.name, mask(kept[0]), mask_of(s.operands[1]),
                         to_text(s.operands[2]));
    if ((bitwise("cvt.u32.u16") || bitwise("cvt.u16.u32")) && s.operands[1].kind == Kind::kName)
      return fmt::format("{}{} {}, {}; ", guard, s.name, mask(kept[0]), mask_of(s.operands[1]));
    if (bitwise("selp") && !code_.depends_on_data(s.operands[3].name) && !reached_.count(s.operands[3].name))
      return fmt::format("{}selp.b{} {}, {}, {}, {}; ", guard, bits(kept[0]), mask(kept[0]), mask_of(s.operands[1]),
                         mask_of(s.operands[2]), to_text(s.operands[3]));
    if (s.name.find("x2.f32") != std::string_view::npos && bitwise("cvt.")) {
      // The first source is the upper half.
      std::string halves = set(kept[0], false);
      for (const auto& [source, half] : {std::pair{1, "0xffff0000"}, std::pair{2, "0xffff"}})
        if (const PtxOperand& o = s.operands[static_cast<size_t>(source)]; reached_.count(o.name))
          halves += any({o.name}) + fmt::format("@%mutant_any or.b32 {0}, {0}, {1}; ", mask(kept[0]), half);
      return guard.empty() ? halves : any(from) + set_if_any(kept[0]);
    }
    text = any(from);
    for (const std::string_view name : kept) text += guard + set_if_any(name);
    return text;
  }

  static PtxOperand with_name(PtxOperand o, std::string name) {
    o.name = keep(std::move(name));
    return o;
  }

  const Mutant& m_;
  const Code& code_;
  size_t changed_ = 0, ways_ = 0;
  std::map<std::string_view, size_t> labels_;
  std::set<std::string_view> reached_;
  std::map<const PtxStmt*, std::string> joined_;
};

}  // namespace

bool differs_in_unused_bits(const Mutant& m) {
  const auto edits = DifferingBits(m).edits();
  return edits && never_traps(m, *edits);
}

}  // namespace roofgen::mutants
