#include "runtime/sim/shared_variables.h"

#include <span>

namespace roofgen::sim {
namespace {

// What a register holds: an address in the variable kNumber + its number, or one of these.
using Holds = uint32_t;
constexpr Holds kNothingYet = 0, kUnknown = ~0u, kNumber = 1;

bool is_variable(Holds h) { return h > kNumber && h != kUnknown; }
Holds join(Holds a, Holds b) { return a == kNothingYet ? b : b == kNothingYet || a == b ? a : kUnknown; }
/// An address moved by a number, in either order.
Holds sum(Holds a, Holds b) {
  if (a == kNothingYet || b == kNothingYet) return kNothingYet;
  return a == kNumber ? b : b == kNumber ? a : kUnknown;
}

class Values {
 public:
  Values(const Kernel& kernel, const std::vector<Derives>& derives,
         const std::unordered_map<uint32_t, uint32_t>& of_constant)
      : kernel_(kernel), derives_(derives) {
    for (const Operand& o : kernel.operands)
      if (!o.is_pred && o.reg >= holds_.size()) holds_.resize(o.reg + 1, kNothingYet);
    std::vector<bool> is_defined(holds_.size());
    for (const Operand& o : kernel.operands)
      if (!o.is_pred && o.is_def) is_defined[o.reg] = true;
    for (uint32_t reg = 0; reg < holds_.size(); ++reg) {
      const auto variable = of_constant.find(reg);
      holds_[reg] = variable != of_constant.end() ? kNumber + variable->second
                    : is_defined[reg]             ? kNothingYet
                                                  : kNumber;  // constants and special registers
    }
    while (pass()) {
    }
  }

  Holds of(uint32_t inst, Operand::Field field) const {
    for (const Operand& o : operands(inst))
      if (!o.is_def && !o.is_pred && o.field == field) return holds_[o.reg];
    return kNumber;
  }

 private:
  std::span<const Operand> operands(uint32_t inst) const {
    return {kernel_.operands.data() + kernel_.operand_begin[inst],
            kernel_.operands.data() + kernel_.operand_begin[inst + 1]};
  }

  Holds result(uint32_t inst) const {
    if (kernel_.code[inst].kind != Kind::kLane) return kNumber;
    const Holds a = of(inst, Operand::kA), b = of(inst, Operand::kB), c = of(inst, Operand::kC);
    switch (inst < derives_.size() ? derives_[inst] : Derives::kOther) {
      case Derives::kCopy: {
        Holds all = kNothingYet;
        for (const Operand& o : operands(inst))
          if (!o.is_def && !o.is_pred) all = join(all, holds_[o.reg]);
        return all;
      }
      case Derives::kSum: return sum(a, b);
      case Derives::kDifference: return is_variable(b) ? kUnknown : sum(a, b);
      case Derives::kProductSum: return is_variable(a) || is_variable(b) ? kUnknown : sum(sum(a, b), c);
      case Derives::kOther: break;
    }
    Holds all = kNumber;
    for (const Operand& o : operands(inst)) {
      if (o.is_def || o.is_pred) continue;
      if (holds_[o.reg] == kNothingYet) return kNothingYet;
      if (holds_[o.reg] != kNumber) all = kUnknown;
    }
    return all;
  }

  bool pass() {
    bool changed = false;
    for (uint32_t i = 0; i < kernel_.code.size(); ++i) {
      const Holds now = result(i);
      for (const Operand& o : operands(i)) {
        if (!o.is_def || o.is_pred) continue;
        const Holds all = join(holds_[o.reg], now);
        changed |= all != holds_[o.reg];
        holds_[o.reg] = all;
      }
    }
    return changed;
  }

  const Kernel& kernel_;
  const std::vector<Derives>& derives_;
  std::vector<Holds> holds_;
};

}  // namespace

Derives derivation(std::string_view opcode) {
  const auto is = [&](std::string_view start) { return opcode.starts_with(start); };
  if (is("mov.") || is("cvta.") || is("selp.")) return Derives::kCopy;
  for (const char* cvt : {"cvt.u64.u32", "cvt.s64.s32", "cvt.u32.u64", "cvt.s32.s64"})
    if (opcode == cvt) return Derives::kCopy;
  if (is("add.") || is("or.b")) return Derives::kSum;
  if (is("sub.")) return Derives::kDifference;
  if (is("mad.lo.") || is("mad.wide.")) return Derives::kProductSum;
  return Derives::kOther;
}

void find_shared_variables(Kernel& kernel, const std::vector<Derives>& derives,
                           const std::unordered_map<uint32_t, uint32_t>& of_constant) {
  if (kernel.shared_variables.size() < 2) return;  // an access that leaves the only variable leaves shared memory
  const Values values(kernel, derives, of_constant);
  kernel.variable_at.resize(kernel.code.size());
  for (uint32_t i = 0; i < kernel.code.size(); ++i) {
    switch (kernel.code[i].kind) {
      case Kind::kLoad:
      case Kind::kStore:
      case Kind::kAtomic:
      case Kind::kLdmatrix:
      case Kind::kStmatrix:
      case Kind::kWmmaLoad:
      case Kind::kWmmaStore:
      case Kind::kCpAsync: break;
      default: continue;
    }
    const Holds h = values.of(i, kernel.code[i].kind == Kind::kCpAsync ? Operand::kB : Operand::kA);
    if (is_variable(h)) kernel.variable_at[i] = h - kNumber;
  }
}

}  // namespace roofgen::sim
