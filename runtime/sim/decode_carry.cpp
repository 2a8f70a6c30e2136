// The chains that add and subtract numbers of many words (add.cc, addc, madc, ...). The condition code's carry is a
// predicate; each instruction becomes a few lane-wise ones, of which only the first counts.
//
// A subtraction adds the complement and one: its carry says that nothing was borrowed. The ISA's text calls the flag
// the borrow, but the compiler's own 128-bit division reads it with addc after subc.cc, and is right only so.
#include <fmt/format.h>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {

/// One lane-wise instruction on registers; the new register (or predicate) that it defines.
uint32_t Decoder::step(const char* spelling, Slot slot, std::initializer_list<uint32_t> sources) {
  const LaneEntry* entry = opcodes_.find(spelling);
  const uint32_t to = slot == Slot::kPred ? new_register({'p', 1}, "carry").id : scratch(slot);
  emit_lane(*entry, spelling);
  constexpr uint32_t Inst::*kFields[] = {&Inst::a, &Inst::b, &Inst::c, &Inst::e};
  size_t i = 0;
  for (const uint32_t source : sources) {
    kernel_.code.back().*kFields[i] = source;
    reference(kFields[i], source, false, entry->signature.src[i] == Slot::kPred);
    ++i;
  }
  kernel_.code.back().d = to;
  reference(&Inst::d, to, true, slot == Slot::kPred);
  return to;
}

uint32_t Decoder::operand_register(const PtxOperand& o, Slot slot) {
  if (o.kind == PtxOperand::Kind::kInteger) return constant(immediate_bits(o, slot), slot == Slot::kB64);
  if (!is_register(o, slot)) fail(fmt::format("'{}' needs registers of its own width", guarded_->name));
  return resolve(o.name).id;
}

bool Decoder::carry_instruction(const PtxStmt& stmt, std::string_view base) {
  const std::vector<std::string_view> parts = split_opcode(stmt.name);
  const bool takes = base == "addc" || base == "subc" || base == "madc", subtracts = base.starts_with("sub"),
             multiplies = base.starts_with("mad");
  size_t at = 1;
  std::string_view half;
  if (multiplies) half = at < parts.size() ? parts[at++] : "";
  const bool gives = at < parts.size() && parts[at] == "cc";
  if (!takes && !gives) return false;
  at += gives;
  const std::string_view type = at < parts.size() ? parts[at] : "";
  const bool wide = type == "u64" || type == "s64";
  if (at + 1 != parts.size() || (type != "u32" && type != "s32" && !wide) ||
      (multiplies && half != "lo" && half != "hi"))
    unknown_opcode();
  operands_are(stmt, multiplies ? 4 : 3, multiplies ? 4 : 3);

  const Slot slot = wide ? Slot::kB64 : Slot::kB32;
  const size_t first = kernel_.code.size();
  uint32_t a = operand_register(stmt.operands[1], slot), b = operand_register(stmt.operands[2], slot);
  if (multiplies) {
    a = step(fmt::format("mul.{}.{}", half, type).c_str(), slot, {a, b});
    b = operand_register(stmt.operands[3], slot);
  }
  const char *add = wide ? "add.u64" : "add.u32", *sub = wide ? "sub.u64" : "sub.u32",
             *less = wide ? "setp.lt.u64" : "setp.lt.u32", *not_less = wide ? "setp.ge.u64" : "setp.ge.u32";
  uint32_t sum = step(subtracts ? sub : add, slot, {a, b});
  // A carry out of a sum: it is less than what went in. Of a difference: no more was taken than there is.
  uint32_t out = subtracts ? step(not_less, Slot::kPred, {a, b}) : step(less, Slot::kPred, {sum, a});
  if (takes) {
    if (!carry_) carry_ = new_register({'p', 1}, "the carry").id;
    const uint32_t one = step(wide ? "selp.b64" : "selp.b32", slot,
                              {constant(subtracts ? 0 : 1, wide), constant(subtracts ? 1 : 0, wide), *carry_});
    const uint32_t before = sum;
    sum = step(subtracts ? sub : add, slot, {before, one});
    const uint32_t again =
        subtracts ? step(not_less, Slot::kPred, {before, one}) : step(less, Slot::kPred, {sum, before});
    if (gives) out = step(subtracts ? "and.pred" : "or.pred", Slot::kPred, {out, again});
  }
  const auto define = [&](const char* spelling, uint32_t from, bool is_pred) -> void {
    emit_lane(*opcodes_.find(spelling), spelling).a = from;
    reference(&Inst::a, from, false, is_pred);
  };
  if (gives) {
    if (!carry_) carry_ = new_register({'p', 1}, "the carry").id;
    define("mov.pred", out, true);
    kernel_.code.back().d = *carry_;
    reference(&Inst::d, *carry_, true, true);
  }
  define(wide ? "mov.b64" : "mov.b32", sum, false);
  def(&Inst::d, stmt.operands[0].name, slot);
  for (size_t i = first + 1; i < kernel_.code.size(); ++i) kernel_.code[i].flags |= kFlagPart;
  return true;
}

}  // namespace roofgen::sim
