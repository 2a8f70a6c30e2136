// One instruction and its operands.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/sim/decoder.h"
#include "runtime/sim/undefined_bits.h"

namespace roofgen::sim {
namespace {

const char* slot_name(Slot slot) {
  switch (slot) {
    case Slot::kPred: return "predicate";
    case Slot::kB64: return "64-bit";
    case Slot::kB32: return "32-bit";
    case Slot::kB16: return "16-bit";
    case Slot::kNone: break;
  }
  return "no";
}

}  // namespace

Where Decoder::source() const {
  const PtxLoc& l = module_.locs[loc_];
  for (const auto& [id, name] : module_.files)
    if (loc_ && id == l.file) return {name, static_cast<int>(l.line), static_cast<int>(l.col)};
  return {};
}

Inst& Decoder::emit(Kind kind, Class cls) {
  if (kernel_.code.size() >= kMaxInstructions) fail(fmt::format("more than {} instructions", kMaxInstructions));
  Inst& in = kernel_.code.emplace_back();
  in.kind = kind;
  in.cls = cls;
  in.line = static_cast<uint32_t>(line_);
  in.list = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.sources.push_back(source());
  if (guarded_ && !guarded_->guard.empty()) {
    const Symbol& p = resolve(guarded_->guard);
    if (p.kind != Symbol::Kind::kPredicate) fail(fmt::format("'{}' is not a predicate", guarded_->guard));
    Inst& now = kernel_.code.back();
    now.guard = p.id;
    now.guard_flip = guarded_->guard_negated ? ~0u : 0;
    reference(&Inst::guard, p.id, false, true);
  }
  return kernel_.code.back();
}

Inst& Decoder::emit_lane(const LaneEntry& entry, std::string_view opcode) {
  Inst& in = emit(Kind::kLane, entry.cls);
  in.lane = entry.fn;
  set_rule(in, opcode, entry.signature);
  return in;
}

void Decoder::reference(uint32_t Inst::*field, uint32_t reg, bool is_def, bool is_pred) {
  if (is_pred && reg == 0) return;
  refs_.push_back({static_cast<uint32_t>(kernel_.code.size() - 1), field, 0, reg, is_def, is_pred});
}

uint32_t Decoder::list_entry(uint32_t reg, bool is_def) {
  auto index = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.lists.push_back(reg);
  refs_.push_back({static_cast<uint32_t>(kernel_.code.size() - 1), nullptr, index, reg, is_def, false});
  return index;
}

uint32_t Decoder::constant(uint64_t value, bool wide, uint32_t variable) {
  auto [it, added] = constants_.try_emplace({value, wide, variable}, static_cast<uint32_t>(registers_.size()));
  if (added) {
    if (variable) variable_of_constant_[it->second] = variable;
    registers_.push_back({wide ? Slot::kB64 : Slot::kB32, true, fmt::format("{}", value)});
    kernel_.constants.push_back({it->second, value, wide});
  }
  return it->second;
}

uint32_t Decoder::special(Special which) {
  for (const SpecialRow& s : kernel_.specials)
    if (s.special == which) return s.row;
  auto id = static_cast<uint32_t>(registers_.size());
  registers_.push_back({Slot::kB32, true, "special"});
  kernel_.specials.push_back({id, which});
  return id;
}

uint32_t Decoder::scratch(Slot slot) {
  registers_.push_back({slot, false, "_"});
  return static_cast<uint32_t>(registers_.size() - 1);
}

uint64_t Decoder::immediate_bits(const PtxOperand& o, Slot slot) const {
  if (o.kind == PtxOperand::Kind::kInteger)
    return slot == Slot::kB64 ? o.bits : slot == Slot::kB32 ? uint32_t(o.bits) : uint16_t(o.bits);
  if (slot == Slot::kB64)
    return o.float_bits == 64 ? o.bits : std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(o.bits))));
  if (slot == Slot::kB32)
    return o.float_bits == 32 ? o.bits : std::bit_cast<uint32_t>(float(std::bit_cast<double>(o.bits)));
  fail("a floating-point constant does not fit a 16-bit operand");
}

bool Decoder::is_register(const PtxOperand& o, Slot slot) {
  if (o.kind != PtxOperand::Kind::kName || o.bits || !o.second.empty() || o.negated) return false;
  const Symbol& s = resolve(o.name);
  return s.kind == Symbol::Kind::kRegister && s.slot == slot;
}

void Decoder::use(uint32_t Inst::*field, const PtxOperand& o, Slot slot) {
  uint32_t reg;
  if (slot == Slot::kPred) {
    reg = predicate(o);
    kernel_.code.back().*field = reg;
    return reference(field, reg, false, true);
  }
  if (o.kind == PtxOperand::Kind::kInteger || o.kind == PtxOperand::Kind::kFloat) {
    reg = constant(immediate_bits(o, slot), slot == Slot::kB64);
  } else if (o.kind == PtxOperand::Kind::kName && !o.negated && o.second.empty()) {
    if (o.name == "WARP_SZ") {
      reg = constant(32, slot == Slot::kB64);
    } else {
      const Symbol& s = resolve(o.name);
      if (s.kind == Symbol::Kind::kAddress) {
        reg = constant(s.address + o.bits, slot == Slot::kB64, s.variable);
      } else {
        if (o.bits) fail("a register operand cannot have a displacement");
        bool narrow_ok = slot == Slot::kB16 && s.slot == Slot::kB32;  // the low half of a wider register
        if (s.kind != Symbol::Kind::kRegister || (s.slot != slot && !narrow_ok))
          fail(fmt::format("'{}' is a {} register where '{}' needs a {} one", o.name, slot_name(s.slot), guarded_->name,
                           slot_name(slot)));
        reg = s.id;
      }
    }
  } else {
    fail(fmt::format("'{}' does not take this kind of operand", guarded_->name));
  }
  kernel_.code.back().*field = reg;
  reference(field, reg, false, false);
}

void Decoder::def(uint32_t Inst::*field, std::string_view name, Slot slot) {
  if (name == "_") {
    uint32_t reg = slot == Slot::kPred ? 0 : scratch(slot);
    if (slot == Slot::kPred) reg = new_register({'p', 1}, "_").id;
    kernel_.code.back().*field = reg;
    return reference(field, reg, true, slot == Slot::kPred);
  }
  Symbol s = resolve(name);
  // A 16-bit result is stored zero-extended, so a 32-bit register may hold it when it is unsigned.
  bool wide_ok = slot == Slot::kB16 && s.slot == Slot::kB32 && guarded_->name.find(".s8.") == std::string_view::npos &&
                 guarded_->name.find(".s16.") == std::string_view::npos;
  if ((s.slot != slot && !wide_ok) || s.kind == Symbol::Kind::kAddress ||
      (s.kind == Symbol::Kind::kRegister && registers_[s.id].fixed))
    fail(fmt::format("'{}' cannot take the {} result of '{}'", name, slot_name(slot), guarded_->name));
  kernel_.code.back().*field = s.id;
  reference(field, s.id, true, slot == Slot::kPred);
}

uint32_t Decoder::predicate(const PtxOperand& o) {
  // Of integers, all but zero are true.
  if (o.kind == PtxOperand::Kind::kInteger && o.bits != 0) return 0;
  if (o.kind != PtxOperand::Kind::kName || o.bits || o.negated)
    fail(fmt::format("'{}' needs a predicate here", guarded_->name));
  const Symbol& s = resolve(o.name);
  if (s.kind != Symbol::Kind::kPredicate) fail(fmt::format("'{}' is not a predicate", o.name));
  return s.id;
}

void Decoder::use_list(const PtxOperand& o, Slot slot) {
  uint32_t reg;
  if (o.kind == PtxOperand::Kind::kInteger || o.kind == PtxOperand::Kind::kFloat) {
    reg = constant(immediate_bits(o, slot), slot == Slot::kB64);
  } else {
    if (!is_register(o, slot))
      fail(fmt::format("'{}' needs {} registers in its vector", guarded_->name, slot_name(slot)));
    reg = resolve(o.name).id;
  }
  list_entry(reg, false);
}

void Decoder::def_list(const PtxOperand& o, Slot slot) {
  if (o.name == "_") {
    list_entry(scratch(slot), true);
    return;
  }
  if (!is_register(o, slot) || registers_[resolve(o.name).id].fixed)
    fail(fmt::format("'{}' needs {} registers in its vector", guarded_->name, slot_name(slot)));
  list_entry(resolve(o.name).id, true);
}

void Decoder::operands_are(const PtxStmt& stmt, size_t low, size_t high) const {
  if (stmt.operands.size() < low || stmt.operands.size() > high)
    fail(fmt::format("'{}' takes {} operands, found {}", stmt.name,
                     low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high), stmt.operands.size()));
}

}  // namespace roofgen::sim
