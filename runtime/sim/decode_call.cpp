// Calls. A function is decoded anew in the place of each call, with registers and local memory of its own: the machine
// needs no stack, and every check knows which call it is in. A call through a pointer compares it with the address of
// each function that it may be. Recursion is not modelled.
#include <fmt/format.h>

#include <functional>
#include <unordered_set>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

/// Functions that call others twice each grow without bound, even when they are empty.
constexpr size_t kMaxCalls = 100'000;
constexpr size_t kMaxCallDepth = 64;

std::string_view callee(const PtxStmt& s) {
  if (s.kind != PtxStmt::Kind::kInstruction || (s.name != "call" && s.name != "call.uni")) return {};
  for (const PtxOperand& o : s.operands)
    if (o.kind == PtxOperand::Kind::kName) return o.name;
  return {};
}

}  // namespace

const PtxFunction* Decoder::find_function(std::string_view name) const {
  const auto at = functions_by_name_.find(name);
  return at == functions_by_name_.end() ? nullptr : at->second;
}

/// Functions whose address is an operand or an initial value, in the order of the module.
std::vector<const PtxFunction*> Decoder::functions_with_address() const {
  std::unordered_set<const PtxFunction*> taken;
  const std::function<void(const PtxOperand&)> look = [&](const PtxOperand& o) {
    if (const PtxFunction* f = find_function(o.name)) taken.insert(f);
    for (const PtxOperand& item : o.items) look(item);
  };
  for (const PtxFunction& f : module_.functions)
    for (const PtxStmt& s : f.body)
      if (s.kind == PtxStmt::Kind::kInstruction && !s.name.starts_with("call"))
        for (const PtxOperand& o : s.operands) look(o);
  for (const PtxVar& v : module_.globals)
    for (const PtxVar::Pointer& p : v.pointers)
      if (const PtxFunction* f = find_function(p.to)) taken.insert(f);
  std::vector<const PtxFunction*> out;
  for (const PtxFunction& f : module_.functions)
    if (taken.count(&f)) out.push_back(&f);
  return out;
}

/// In no window and no buffer, so an access there is out of bounds.
uint64_t Decoder::address_of(const PtxFunction& f) const {
  return address_of_function(static_cast<size_t>(&f - module_.functions.data()));
}

/// The kernel and all functions that may be called from it.
std::vector<const PtxFunction*> Decoder::called_functions() const {
  std::vector<const PtxFunction*> out{&function_};
  std::unordered_set<const PtxFunction*> seen;
  for (const PtxFunction* f : functions_with_address())
    if (seen.insert(f).second) out.push_back(f);
  for (size_t i = 0; i < out.size(); ++i)
    for (const PtxStmt& s : out[i]->body)
      if (const PtxFunction* f = find_function(callee(s)); f && seen.insert(f).second) out.push_back(f);
  return out;
}

uint32_t Decoder::new_label() {
  label_at_.push_back(~0u);
  return static_cast<uint32_t>(label_at_.size() - 1);
}

/// call (results), name, (arguments); both lists may be missing.
void Decoder::call(const PtxStmt& stmt, Modifiers& m) {
  m.take("uni");
  if (!m.done()) unknown_opcode();
  size_t at = 0;
  const auto list = [&]() -> const PtxOperand* {
    return at < stmt.operands.size() && stmt.operands[at].kind == PtxOperand::Kind::kList ? &stmt.operands[at++]
                                                                                          : nullptr;
  };
  const PtxOperand* results = list();
  if (at == stmt.operands.size() || stmt.operands[at].kind != PtxOperand::Kind::kName)
    fail("'call' needs the name of a function");
  const PtxOperand& callee = stmt.operands[at++];
  const std::string_view name = callee.name;
  const PtxOperand* arguments = list();
  if (++calls_made_ > kMaxCalls)
    fail(fmt::format("more than {} calls, counting a function again at each call of it", kMaxCalls));

  const bool guarded = !stmt.guard.empty();
  const uint32_t end = guarded ? new_label() : 0;
  if (guarded) {
    Inst& over = emit(Kind::kBranch, Class::kControl);
    over.guard_flip = ~over.guard_flip;
    over.target = end;
    guarded_ = nullptr;
  }
  if (name.starts_with('%'))
    call_through(callee, results, arguments);
  else if (const PtxFunction* f = find_function(name))
    call_defined(*f, results, arguments);
  else if (!call_built_in(name, results, arguments))
    not_modelled(name == "malloc" || name == "free" || name.starts_with("cudaMalloc")
                     ? fmt::format("'{}': memory of the device's own heap is not supported", name)
                     : fmt::format("function '{}' has no body here", name));
  if (guarded) label_at_[end] = static_cast<uint32_t>(kernel_.code.size());
}

/// The functions that the pointer may be have as many parameters and results as the call. `callee`: its register.
void Decoder::call_through(const PtxOperand& callee, const PtxOperand* results, const PtxOperand* arguments) {
  const uint32_t pointer = resolve(callee.name).id, end = new_label();
  const auto count = [](const PtxOperand* list) { return list ? list->items.size() : 0; };
  for (const PtxFunction* f : functions_with_address()) {
    const bool calls_itself = std::ranges::any_of(calls_, [&](const Call& c) { return c.function == f; });
    if (calls_itself || f->params.size() != count(arguments) || f->returns.size() != count(results)) continue;
    const uint32_t other = new_register({'p', 1}, "another function").id, next = new_label();
    constexpr const char* kCompare = "setp.ne.u64";
    Inst& compare = emit_lane(*opcodes_.find(kCompare), kCompare);
    const uint32_t address = constant(address_of(*f), true);
    compare.a = pointer, compare.b = address, compare.d = other;
    reference(&Inst::a, pointer, false, false);
    reference(&Inst::b, address, false, false);
    reference(&Inst::d, other, true, true);
    Inst& over = emit(Kind::kBranch, Class::kControl);
    over.guard = other, over.target = next;
    reference(&Inst::guard, other, false, true);
    call_defined(*f, results, arguments);
    emit(Kind::kBranch, Class::kControl).target = end;
    label_at_[next] = static_cast<uint32_t>(kernel_.code.size());
  }
  emit(Kind::kTrap, Class::kControl).sub = kTrapNoFunction;
  label_at_[end] = static_cast<uint32_t>(kernel_.code.size());
}

/// The variable that an operand of a call names.
Decoder::Symbol Decoder::passed(const PtxOperand& o) {
  if (o.kind == PtxOperand::Kind::kName) {
    const Symbol& s = resolve(o.name);
    if (s.kind == Symbol::Kind::kAddress && s.space == Space::kLocal) return s;
  }
  fail("arguments and results of a call must be .param variables");
}

void Decoder::call_defined(const PtxFunction& f, const PtxOperand* results, const PtxOperand* arguments) {
  for (const Call& c : calls_)
    if (c.function == &f) not_modelled(fmt::format("'{}' calls itself; recursion is not supported", f.name));
  if (calls_.size() == kMaxCallDepth) fail(fmt::format("calls are nested deeper than {}", kMaxCallDepth));
  Scope outermost;
  const auto bind = [&](const std::vector<PtxVar>& names, const PtxOperand* list, const char* what) {
    const size_t given = list ? list->items.size() : 0;
    if (given != names.size()) fail(fmt::format("'{}' has {} {}, the call {}", f.name, names.size(), what, given));
    for (size_t i = 0; i < given; ++i) outermost.symbols[names[i].name] = passed(list->items[i]);
  };
  bind(f.returns, results, "results");
  bind(f.params, arguments, "parameters");

  std::vector<Scope> caller;
  caller.swap(scopes_);
  scopes_.push_back(std::move(outermost));
  const PtxFunction* outer = current_;
  const int line = line_;
  const uint32_t loc = loc_;
  calls_.push_back({&f, new_label()});
  const uint32_t local_begin = kernel_.local_bytes;
  body(f);
  label_at_[calls_.back().return_label] = static_cast<uint32_t>(kernel_.code.size());
  calls_.pop_back();
  current_ = outer;
  line_ = line;
  loc_ = loc;
  scopes_ = std::move(caller);
  if (local_begin == kernel_.local_bytes) return;
  Inst& in = emit(Kind::kNop, Class::kControl);
  in.flags |= kFlagPart;
  in.sub = kNopReturn;
  in.imm = local_begin;
  in.target = kernel_.local_bytes;
}

/// A register that holds the argument at this position.
uint32_t Decoder::load_passed(const PtxOperand* list, size_t index, uint8_t bytes) {
  const Symbol from = passed(list->items[index]);
  const uint32_t reg = scratch(bytes == 8 ? Slot::kB64 : Slot::kB32), zero = constant(0, true);
  Inst& in = emit(Kind::kLoad, Class::kMove);
  in.flags |= kFlagAddr64 | kFlagPart;
  in.a = zero;
  in.imm = static_cast<int64_t>(from.address);
  in.space = static_cast<uint8_t>(Space::kLocal);
  in.size = bytes;
  reference(&Inst::a, zero, false, false);
  list_entry(reg, true);
  return reg;
}

/// What the device's library would do.
bool Decoder::call_built_in(std::string_view name, const PtxOperand* results, const PtxOperand* arguments) {
  const auto operand = [&](uint32_t Inst::*field, uint32_t reg, bool is_def) {
    kernel_.code.back().*field = reg;
    reference(field, reg, is_def, false);
  };
  const size_t given = arguments ? arguments->items.size() : 0;
  if (name == "vprintf") {
    if (given != 2) fail("'vprintf' takes a format and a list of values");
    const uint32_t format = load_passed(arguments, 0, 8), values = load_passed(arguments, 1, 8),
                   count = scratch(Slot::kB32);
    emit(Kind::kPrint, Class::kControl);
    operand(&Inst::a, format, false);
    operand(&Inst::b, values, false);
    operand(&Inst::d, count, true);
    if (!results || results->items.size() != 1) return true;
    const Symbol to = passed(results->items[0]);
    const uint32_t zero = constant(0, true);
    Inst& in = emit(Kind::kStore, Class::kMove);
    in.flags |= kFlagAddr64 | kFlagPart;
    in.imm = static_cast<int64_t>(to.address);
    in.space = static_cast<uint8_t>(Space::kLocal);
    in.size = 4;
    operand(&Inst::a, zero, false);
    list_entry(count, false);
    return true;
  }
  if (name == "__assertfail") {
    if (given != 5) fail("'__assertfail' takes five arguments");
    const uint32_t text = load_passed(arguments, 0, 8), file = load_passed(arguments, 1, 8),
                   line = load_passed(arguments, 2, 4);
    emit(Kind::kAssert, Class::kControl);
    operand(&Inst::a, text, false);
    operand(&Inst::b, file, false);
    operand(&Inst::c, line, false);
    return true;
  }
  return false;
}

}  // namespace roofgen::sim
