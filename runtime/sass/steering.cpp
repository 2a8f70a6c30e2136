// A backward data-flow analysis: the instructions whose results reach a branch, the guard of a memory access, or an
// address.
#include <bitset>

#include "runtime/sass/interpreter_state.h"

namespace roofgen::sass {
namespace {

// Registers, uniform registers, predicates, uniform predicates, convergence barriers.
constexpr size_t kUniformAt = 256, kPredicateAt = kUniformAt + kUniformZero + 1, kUniformPredicateAt = kPredicateAt + 8,
                 kBits = kUniformPredicateAt + 8;
using Registers = std::bitset<kBits>;
/// Of a tensor copy: addresses in shared memory, and at most five coordinates.
constexpr int kTensorRegisters = 7;

/// Number of 32-bit registers that an operand of the instruction covers.
int width(const Instruction& i, size_t operand) {
  const Action a = i.opcode->action;
  const bool is_result = operand < i.results;
  if (i.opcode->pipe == Pipe::kTensor) return 4;
  if (i.opcode->pipe == Pipe::kFp64) return 2;
  if (a == Action::kLdsm || a == Action::kStsm) return i.matrices;
  // IMAD.WIDE multiplies words, and adds a pair; IMAD.HI has a word as its result.
  if (a == Action::kImad && i.has(kWide | kHi))
    return (is_result && i.has(kWide)) || operand == size_t{i.results} + 2 ? 2 : 1;
  if (a == Action::kCs2r) return i.has(kB32) ? 1 : 2;
  if (a == Action::kMatch || a == Action::kI2f || a == Action::kF2i) {
    const uint64_t wide_source = a == Action::kF2i ? kF64 : kU64 | kS64;
    return is_result ? (a == Action::kMatch ? 1 : i.bytes / 4) : i.has(wide_source) ? 2 : 1;
  }
  if (i.bytes > 4) return i.bytes / 4;
  return 1;
}

void add(Registers& set, size_t base, unsigned first, int count, unsigned zero) {
  for (int k = 0; k < count; ++k)
    if (first + static_cast<unsigned>(k) < zero) set.set(base + first + static_cast<unsigned>(k));
}

void add(Registers& set, const Operand& o, int count) {
  switch (o.kind) {
    case Operand::Kind::kRegister: return add(set, 0, o.index, o.wide ? std::max(2, count) : count, kZeroRegister);
    case Operand::Kind::kUniform:
      return add(set, kUniformAt, o.index, o.wide ? std::max(2, count) : count, kUniformZero);
    case Operand::Kind::kPredicate: return add(set, kPredicateAt, o.index, 1, kTruePredicate);
    case Operand::Kind::kUniformPredicate: return add(set, kUniformPredicateAt, o.index, 1, kTruePredicate);
    case Operand::Kind::kMemory:
    case Operand::Kind::kConstant:
      add(set, 0, o.index, o.wide ? 2 : 1, kZeroRegister);
      return add(set, kUniformAt, o.uniform, 2, kUniformZero);
    default: return;
  }
}

struct Effects {
  Registers results;      ///< of unguarded instructions: overwritten
  Registers may_results;  ///< written
  Registers sources;      ///< all operands that are read, and the guard
  Registers roots;        ///< those that steer
  std::vector<uint32_t> next;
  bool anywhere = false;  ///< may go to any instruction
  bool always = false;    ///< needed, whether or not its result is
  bool loads_shared = false, loads_local = false, loads_device = false;
  bool stores_shared = false, stores_local = false, stores_device = false;
};

Effects effects_of(const Instruction& i, uint32_t at, uint32_t count) {
  Effects e;
  for (size_t k = 0; k < i.count; ++k)
    if (k < i.results)
      add(e.may_results, i.operands[k], width(i, k));
    else
      add(e.sources, i.operands[k], width(i, k));
  const Action a = i.opcode->action;
  if (a == Action::kR2p)
    for (size_t p = 0; p < kTruePredicate; ++p) e.may_results.set(kPredicateAt + p);
  if (a == Action::kP2r)
    for (size_t p = 0; p < kTruePredicate; ++p) e.sources.set(kPredicateAt + p);
  add(e.sources, i.guard, 1);
  if (i.guard.kind == Operand::Kind::kNone && a != Action::kR2p) e.results = e.may_results;
  if (is_memory(a)) {
    add(e.roots, i.guard, 1);
    for (size_t k = 0; k < i.count; ++k) {
      if (i.operands[k].kind == Operand::Kind::kMemory) add(e.roots, i.operands[k], 1);
      if (a == Action::kLdgsts && i.operands[k].kind == Operand::Kind::kPredicate) add(e.roots, i.operands[k], 1);
    }
  }
  if (i.opcode->pipe == Pipe::kBranch || i.opcode->pipe == Pipe::kBarrier) e.roots |= e.sources;
  // Counts, bytes and parities; of a tensor copy also the registers after its first one: barrier and coordinates.
  if (a == Action::kSyncs || a == Action::kBulkCopy || a == Action::kTensorLoad || a == Action::kMatrixCommit)
    e.roots |= e.sources;
  e.always = a == Action::kTensorMemoryAlloc;
  if ((a == Action::kTensorLoad || a == Action::kTensorStore) && i.count > 0)
    add(e.roots, kUniformAt, i.operands[0].uniform, kTensorRegisters, kUniformZero);
  // LD and ST have generic addresses.
  e.loads_shared = a == Action::kLds || a == Action::kAtoms || i.opcode->name == "LD";
  e.loads_device = a == Action::kLdg;
  e.loads_local = a == Action::kLdl;
  e.stores_shared = a == Action::kSts || a == Action::kAtoms || i.opcode->name == "ST";
  e.stores_device = a == Action::kStg;
  e.stores_local = a == Action::kStl;
  const bool always = i.guard.kind == Operand::Kind::kNone && i.count <= 1;
  if (a == Action::kBra || a == Action::kCall) {
    if (i.target < count)
      e.next.push_back(i.target);
    else
      e.anywhere = true;
  }
  if (a == Action::kWarpsync && i.has(kCollective) && i.target < count) e.next.push_back(i.target);
  if (a == Action::kBrx || a == Action::kRet) e.anywhere = true;
  const bool ends = (a == Action::kBra && always) || (a == Action::kExit && i.guard.kind == Operand::Kind::kNone) ||
                    (a == Action::kBrx && i.guard.kind == Operand::Kind::kNone);
  if (!ends && at + 1 < count) e.next.push_back(at + 1);
  return e;
}

}  // namespace

bool is_float_arithmetic(Action action) {
  return action == Action::kFadd || action == Action::kFmul || action == Action::kFfma || action == Action::kMufu ||
         action == Action::kFmnmx || action == Action::kFsel;
}

bool takes_pairs(const Instruction& i) {
  const Action a = i.opcode->action;
  return i.bytes == 8 && (a == Action::kIadd3 || a == Action::kMov || a == Action::kSel);
}

unsigned result_words(const Instruction& i) {
  return i.matrix_n                          ? i.matrix_n / 2u
         : i.opcode->pipe == Pipe::kTensor   ? 4
         : i.opcode->pipe == Pipe::kFp64     ? 2
         : i.opcode->action == Action::kLdsm ? i.matrices
                                             : std::max(1u, i.bytes / 4u);
}

bool is_memory(Action a) {
  switch (a) {
    case Action::kLdg:
    case Action::kLds:
    case Action::kLdl:
    case Action::kLdsm:
    case Action::kLdgsts:
    case Action::kStg:
    case Action::kSts:
    case Action::kStas:
    case Action::kStl:
    case Action::kStsm:
    case Action::kAtomg:
    case Action::kAtoms:
    case Action::kRed:
    case Action::kSyncs:
    case Action::kArrives:
    case Action::kTensorLoad:
    case Action::kTensorStore:
    case Action::kMatrix:
    case Action::kMatrixCopy:
    case Action::kMatrixCommit:
    case Action::kNextWork:
    case Action::kBulkCopy: return true;
    default: return false;
  }
}

std::vector<bool> steering(const Code& code, bool stores) {
  const auto count = static_cast<uint32_t>(code.instructions.size());
  std::vector<Effects> effects;
  effects.reserve(count);
  for (uint32_t i = 0; i < count; ++i) effects.push_back(effects_of(code.instructions[i], i, count));
  std::vector<Registers> live(count);
  std::vector<bool> steers(count);
  Registers everywhere;                                // live at the target of a branch that may go anywhere
  bool shared = false, local = false, device = false;  // loaded values steer
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = count; i-- > 0;) {
      const Effects& e = effects[i];
      Registers out;
      if (e.anywhere) out |= everywhere;
      for (const uint32_t n : e.next) out |= live[n];
      const bool needed = e.always || (e.may_results & out).any() || (shared && e.stores_shared) ||
                          (local && e.stores_local) || (device && stores && e.stores_device);
      Registers in = (out & ~e.results) | e.roots;
      if (needed) in |= e.sources;
      if (needed && !steers[i]) steers[i] = changed = true;
      if (needed && e.loads_shared && !shared) shared = changed = true;
      if (needed && e.loads_local && !local) local = changed = true;
      if (needed && e.loads_device && !device) device = changed = true;
      if (in != live[i]) live[i] = in, changed = true;
      everywhere |= in;
    }
  }
  return steers;
}

}  // namespace roofgen::sass
