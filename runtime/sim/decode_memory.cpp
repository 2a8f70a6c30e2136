// Decoding of instructions that touch memory.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/target.h"
#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

struct MemoryType {
  const char* name;
  uint8_t size;
  bool is_signed;
};
constexpr MemoryType kMemoryTypes[] = {{"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false},
                                       {"u16", 2, false}, {"s16", 2, true},  {"f16", 2, false}, {"bf16", 2, false},
                                       {"b32", 4, false}, {"u32", 4, false}, {"s32", 4, true},  {"f32", 4, false},
                                       {"b64", 8, false}, {"u64", 8, false}, {"s64", 8, true},  {"f64", 8, false}};

const MemoryType* memory_type(std::string_view name) {
  for (const MemoryType& t : kMemoryTypes)
    if (name == t.name) return &t;
  return nullptr;
}

bool take_space(Modifiers& m, Space& space) {
  if (m.take("global")) return space = Space::kGlobal, true;
  if (m.take("shared") || m.take("shared::cta") || m.take("shared::cluster")) return space = Space::kShared, true;
  if (m.take("local")) return space = Space::kLocal, true;
  if (m.take("param") || m.take("param::entry") || m.take("param::func")) return space = Space::kParam, true;
  if (m.take("const")) return space = Space::kConst, true;
  return false;
}

/// Cache hints change no value and no count here.
void take_cache_hints(Modifiers& m, bool& policy_operand) {
  for (;;) {
    std::string_view p = m.peek();
    if (p == "ca" || p == "cg" || p == "cs" || p == "lu" || p == "cv" || p == "wb" || p == "wt" ||
        p.starts_with("L1::evict_") || p == "L1::no_allocate" || p.starts_with("L2::evict_") || p == "L2::64B" ||
        p == "L2::128B" || p == "L2::256B") {
      m.next();
    } else if (p == "L2::cache_hint") {
      policy_operand = true;
      m.next();
    } else {
      return;
    }
  }
}

bool take_scope(Modifiers& m, MemoryScope& scope) {
  if (m.take("cta")) return scope = MemoryScope::kCta, true;
  if (m.take("cluster")) return scope = MemoryScope::kCluster, true;
  if (m.take("gpu")) return scope = MemoryScope::kGpu, true;
  if (m.take("sys")) return scope = MemoryScope::kSys, true;
  return false;
}

/// A volatile access is a relaxed one of the whole system (PTX ISA, "Operation types").
bool take_order(Modifiers& m, MemoryScope& scope) {
  const bool is_volatile = m.take("volatile");
  const bool strong =
      is_volatile || m.take("relaxed") || m.take("acquire") || m.take("release") || m.take("acq_rel") || m.take("mmio");
  if (!strong)
    m.take("weak");
  else if (!take_scope(m, scope) && is_volatile)
    scope = MemoryScope::kSys;
  return strong;
}

bool has(std::string_view opcode, const char* order) {
  return opcode.find(order) != opcode.npos || opcode.find(".acq_rel") != opcode.npos;
}

Class access_class(Space space, bool is_load) {
  switch (space) {
    case Space::kShared: return is_load ? Class::kSharedLoad : Class::kSharedStore;
    case Space::kLocal: return Class::kLocal;
    case Space::kParam:
    case Space::kConst: return Class::kMove;
    case Space::kGlobal:
    case Space::kGeneric: break;
  }
  return is_load ? Class::kGlobalLoad : Class::kGlobalStore;
}

}  // namespace

/// [reg], [reg+imm], [symbol+imm] or [imm]: a base row and a displacement.
void Decoder::address(const PtxOperand& o, uint32_t Inst::*base_field, int64_t Inst::*displacement) {
  if (o.kind != PtxOperand::Kind::kAddress || !o.items.empty())
    fail(fmt::format("'{}' needs an address in brackets", guarded_->name));
  Inst& in = kernel_.code.back();
  uint8_t wide_flag = base_field == &Inst::a ? kFlagAddr64 : kFlagDst64;
  uint64_t at = o.bits;
  uint32_t reg;
  if (o.name.empty()) {
    reg = constant(0, true);
    in.flags |= wide_flag;
  } else {
    const Symbol& s = resolve(o.name);
    if (s.kind == Symbol::Kind::kAddress) {
      at += s.address;
      reg = constant(0, true, s.variable);
      in.flags |= wide_flag;
    } else {
      if (s.kind != Symbol::Kind::kRegister || (s.slot != Slot::kB32 && s.slot != Slot::kB64))
        fail(fmt::format("'{}' cannot hold an address", o.name));
      if (s.slot == Slot::kB64) in.flags |= wide_flag;
      reg = s.id;
    }
  }
  kernel_.code.back().*base_field = reg;
  kernel_.code.back().*displacement = static_cast<int64_t>(at);
  reference(base_field, reg, false, false);
}

/// The register width of a loaded or stored value: at least as wide as the element.
Slot Decoder::register_slot(const PtxOperand& o, uint32_t bytes) {
  if (o.kind != PtxOperand::Kind::kName || o.name == "_")
    return bytes == 8 ? Slot::kB64 : bytes == 4 ? Slot::kB32 : Slot::kB16;
  const Symbol& s = resolve(o.name);
  uint32_t have = s.slot == Slot::kB64 ? 8 : s.slot == Slot::kB32 ? 4 : 2;
  if (s.kind != Symbol::Kind::kRegister || have < bytes)
    fail(fmt::format("'{}' is too narrow for '{}'", o.name, guarded_->name));
  return s.slot;
}

/// An access of 128 bits to one register, as two elements; one of 256 bits, as two accesses.
bool Decoder::halved_load_store(const PtxStmt& stmt) {
  const bool is_load = stmt.name.starts_with("ld");
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string name(stmt.name);
    if (const size_t at = name.rfind(from); at != name.npos) name.replace(at, from.size(), to);
    return std::string_view(aliases_.emplace_back(std::move(name)));
  };
  if (stmt.operands.size() < 2) return false;
  const size_t value_at = is_load ? 0 : 1, place_at = 1 - value_at;
  if (stmt.name.ends_with(".b128")) {
    PtxStmt pair = stmt;
    const auto low = half_of(stmt.operands[value_at], 0), high = half_of(stmt.operands[value_at], 1);
    if (!low || !high) return false;
    pair.name = replaced("b128", "v2.b64");
    pair.operands[value_at].kind = PtxOperand::Kind::kVector;
    pair.operands[value_at].items = {*low, *high};
    modelled_instruction(pair);
    return true;
  }
  const bool eight = stmt.name.find(".v8.") != stmt.name.npos;
  const bool wide = stmt.name.ends_with("64") && stmt.name.find(".v4.") != stmt.name.npos;
  const std::vector<PtxOperand>& items = stmt.operands[value_at].items;
  const auto in = [&](const char* space) { return stmt.name.find(space) != stmt.name.npos; };
  if ((!eight && !wide) || in(".shared") || in(".local") || in(".param") || in(".const") ||
      (eight && !stmt.name.ends_with("32")) || items.size() != (eight ? 8u : 4u))
    return false;
  // The half that overwrites the address comes last.
  const auto half = static_cast<ptrdiff_t>(items.size() / 2);
  const bool first_last = is_load && std::any_of(items.begin(), items.begin() + half, [&](const PtxOperand& o) {
                            return o.name == stmt.operands[place_at].name;
                          });
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t part = i ^ uint32_t { first_last };
    PtxStmt one = stmt;
    one.name = eight ? replaced(".v8.", ".v4.") : replaced(".v4.", ".v2.");
    one.operands[value_at].items.assign(items.begin() + (part ? half : 0), part ? items.end() : items.begin() + half);
    one.operands[place_at].bits += 16 * part;
    modelled_instruction(one);
    if (i) kernel_.code.back().flags |= kFlagPart;
  }
  return true;
}

void Decoder::load_store(const PtxStmt& stmt, Modifiers& m, bool is_load) {
  if (halved_load_store(stmt)) return;
  MemoryScope scope = MemoryScope::kSys;
  bool strong = take_order(m, scope);
  Space space = Space::kGeneric;
  take_space(m, space);
  strong = strong || take_order(m, scope);  // where CUTLASS has it: ld.global.acquire.gpu
  bool policy = false;
  take_cache_hints(m, policy);
  const bool read_only = is_load && m.take("nc");
  take_cache_hints(m, policy);
  uint8_t count = m.take("v2") ? 2 : m.take("v4") ? 4 : 1;
  const MemoryType* type = memory_type(m.next());
  if (!type || !m.done() || count * type->size > 16) unknown_opcode();
  operands_are(stmt, policy ? 3 : 2, policy ? 3 : 2);
  const PtxOperand& value = stmt.operands[is_load ? 0 : 1];
  const PtxOperand& where = stmt.operands[is_load ? 1 : 0];
  // A parameter of a function, or one on its way to it, lies in local memory; those of the kernel do not.
  Space lies_in = space;
  if (space == Space::kParam && where.kind == PtxOperand::Kind::kAddress && !where.name.empty()) {
    const Symbol& s = resolve(where.name);
    if (s.kind == Symbol::Kind::kAddress && s.space == Space::kLocal) lies_in = Space::kLocal;
  }
  if (!is_load && (lies_in == Space::kParam || space == Space::kConst)) unknown_opcode();
  if ((value.kind == PtxOperand::Kind::kVector) != (count > 1) || (count > 1 && value.items.size() != count))
    fail(fmt::format("'{}' needs {} value operand(s)", stmt.name, count));

  emit(is_load ? Kind::kLoad : Kind::kStore, access_class(space, is_load));
  address(where, &Inst::a, &Inst::imm);
  const PtxOperand* values = count > 1 ? value.items.data() : &value;
  Slot slot = register_slot(values[0], type->size);
  for (int i = 0; i < count; ++i) {
    if (register_slot(values[i], type->size) != slot && values[i].name != "_")
      fail("vector elements of different widths");
    if (is_load)
      def_list(values[i], slot);
    else
      use_list(values[i], slot);
  }
  Inst& in = kernel_.code.back();
  in.space = static_cast<uint8_t>(lies_in);
  in.size = type->size;
  in.count = count;
  if (slot == Slot::kB64 && type->size != 8) in.flags |= kFlagWide;
  if (is_load && type->is_signed) in.flags |= kFlagSigned;
  if (strong) in.flags |= kFlagStrong;
  if (read_only) in.flags |= kFlagReadOnly;
  if (!is_load && has(stmt.name, ".release")) in.flags |= kFlagRelease;
  if (is_load && has(stmt.name, ".acquire")) in.flags |= kFlagAcquire;
  in.scope = scope;
  // A kernel parameter at a fixed place is the same for every thread of the launch.
  bool fixed = !where.name.empty() && resolve(where.name).kind == Symbol::Kind::kAddress;
  if (is_load && lies_in == Space::kParam && fixed) {
    uint64_t offset = static_cast<uint64_t>(in.imm) - kParamBase;
    if (offset > kernel_.param_bytes || offset + in.size * in.count > kernel_.param_bytes)
      fail("parameter access past the parameters");
    in.kind = Kind::kLoadParam;
    in.imm = static_cast<int64_t>(offset);
  }
}

/// A vector of atomics is one atomic for each element (PTX ISA: their order and the whole are not guaranteed).
bool Decoder::vector_atomic(const PtxStmt& stmt, bool returns) {
  for (const auto& [vector, count] : {std::pair{".v2.", 2u}, {".v4.", 4u}, {".v8.", 8u}}) {
    const size_t at = stmt.name.find(vector), value_at = returns ? 2 : 1;
    if (at == stmt.name.npos) continue;
    const std::string_view type = stmt.name.substr(at + 4);
    const uint32_t bytes = type == "f16" || type == "bf16" ? 2 : 4;
    if ((type != "f32" && type != "f16x2" && type != "bf16x2" && bytes == 4) || count * bytes > 16) unknown_opcode();
    std::string name(stmt.name);
    name.erase(at, 3);
    aliases_.push_back(std::move(name));
    const bool sink = returns && !stmt.operands.empty() && stmt.operands[0].name == "_";
    const auto is_vector = [&](size_t i) {
      return stmt.operands.size() > i && stmt.operands[i].kind == PtxOperand::Kind::kVector &&
             stmt.operands[i].items.size() == count;
    };
    if (!is_vector(value_at) || (returns && !sink && !is_vector(0)))
      fail(fmt::format("'{}' needs vectors of {}", stmt.name, count));
    const std::vector<PtxOperand>& values = stmt.operands[value_at].items;
    PtxStmt one = stmt;
    one.name = aliases_.back();
    for (uint32_t i = 0; i < count; ++i) {
      if (returns && !sink) one.operands[0] = stmt.operands[0].items[i];
      for (uint32_t later = i + 1; later < count && returns && !sink; ++later)
        if (values[later].name == one.operands[0].name)
          not_modelled(fmt::format("'{}': results in registers of later values are not supported", stmt.name));
      one.operands[value_at] = values[i];
      modelled_instruction(one);
      if (i)
        kernel_.code.back().flags |= kFlagPart;
      else
        kernel_.code.back().count = static_cast<uint8_t>(count);
      one.operands[value_at - 1].bits += bytes;
    }
    return true;
  }
  return false;
}

void Decoder::atomic(const PtxStmt& stmt, Modifiers& m, bool returns) {
  if (vector_atomic(stmt, returns)) return;
  MemoryScope scope = MemoryScope::kGpu;  // where none is given
  if (!take_order(m, scope)) take_scope(m, scope);
  Space space = Space::kGeneric;
  take_space(m, space);
  take_scope(m, scope);  // compilers have it after the space if there is no order
  if (space != Space::kGeneric && space != Space::kGlobal && space != Space::kShared) unknown_opcode();
  static constexpr const char* kOps[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};
  std::string_view op_name = m.next();
  int op = -1;
  for (int i = 0; i < 10; ++i)
    if (op_name == kOps[i]) op = i;
  if (op < 0) unknown_opcode();
  take_order(m, scope);  // where cooperative groups have it: atom.add.release.gpu
  m.take("noftz");
  bool policy = false;
  take_cache_hints(m, policy);
  static constexpr const char* kTypes[] = {"b32", "b64",  "u32",   "s32",    "u64", "s64",
                                           "f16", "bf16", "f16x2", "bf16x2", "f32", "f64"};
  static constexpr uint8_t kSizes[] = {4, 8, 4, 4, 8, 8, 2, 2, 4, 4, 4, 8};
  int type = -1;
  std::string_view type_name = m.next();
  for (int i = 0; i < 12; ++i)
    if (type_name == kTypes[i]) type = i;
  const bool cas16 = type_name == "b16" && op_name == "cas";  // of 16 bits that are compared, whatever they mean
  if (cas16) type = 6;
  if (type < 0 || !m.done()) unknown_opcode();
  auto atomic_op = static_cast<AtomicOp>(op);
  auto element = static_cast<ElementType>(type);
  bool floating = element >= ElementType::kF16, bits = element <= ElementType::kB64;
  bool bitwise = atomic_op == AtomicOp::kAnd || atomic_op == AtomicOp::kOr || atomic_op == AtomicOp::kXor ||
                 atomic_op == AtomicOp::kExch || atomic_op == AtomicOp::kCas;
  bool wrapping = atomic_op == AtomicOp::kInc || atomic_op == AtomicOp::kDec;
  const bool of_halves = element >= ElementType::kF16 && element <= ElementType::kBf16x2 &&
                         (atomic_op == AtomicOp::kMin || atomic_op == AtomicOp::kMax) &&
                         guarded_->name.find(".v") != guarded_->name.npos;  // only vectors have these
  if (cas16 ? !returns
            : bitwise != bits || (floating && atomic_op != AtomicOp::kAdd && !of_halves) ||
                  (wrapping && element != ElementType::kU32) ||
                  (!returns && (atomic_op == AtomicOp::kExch || atomic_op == AtomicOp::kCas)))
    unknown_opcode();
  size_t sources = atomic_op == AtomicOp::kCas ? 2 : 1, first = returns ? 1 : 0;
  operands_are(stmt, first + 1 + sources + policy, first + 1 + sources + policy);
  Slot slot = kSizes[type] == 8 ? Slot::kB64 : kSizes[type] == 4 ? Slot::kB32 : Slot::kB16;
  emit(Kind::kAtomic, Class::kAtomic);
  if (has(stmt.name, ".release")) kernel_.code.back().flags |= kFlagRelease;
  if (has(stmt.name, ".acquire")) kernel_.code.back().flags |= kFlagAcquire;
  if (!returns) kernel_.code.back().flags |= kFlagReduces;
  address(stmt.operands[first], &Inst::a, &Inst::imm);
  use(&Inst::b, stmt.operands[first + 1], slot);
  if (sources == 2) use(&Inst::c, stmt.operands[first + 2], slot);
  def(&Inst::d, returns ? stmt.operands[0].name : std::string_view("_"), slot);
  Inst& in = kernel_.code.back();
  in.space = static_cast<uint8_t>(space);
  in.size = kSizes[type];
  in.scope = scope;
  in.sub = static_cast<uint8_t>(op);
  in.type = static_cast<uint8_t>(type);
}

void Decoder::cp_async(const PtxStmt& stmt, Modifiers& m) {
  if (m.take("mbarrier")) return mbarrier_copies(stmt, m);
  if (m.take("bulk")) return bulk_copy(stmt, m, false);
  if (m.take("commit_group")) {
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 0, 0);
    emit(Kind::kCpCommit, Class::kCpAsync);
    return;
  }
  bool wait_all = m.take("wait_all");
  if (wait_all || m.take("wait_group")) {
    if (!m.done()) unknown_opcode();
    operands_are(stmt, wait_all ? 0 : 1, wait_all ? 0 : 1);
    Inst& in = emit(Kind::kCpWait, Class::kCpAsync);
    if (wait_all) {
      in.sub = 1;
      return;
    }
    if (stmt.operands[0].kind != PtxOperand::Kind::kInteger) fail("cp.async.wait_group needs a constant");
    in.imm = static_cast<int64_t>(std::min<uint64_t>(stmt.operands[0].bits, 1u << 30));
    return;
  }
  bool cg = m.take("cg");
  if (!cg && !m.take("ca")) unknown_opcode();
  if ((!m.take("shared") && !m.take("shared::cta")) || !m.take("global")) unknown_opcode();
  bool policy = false;
  take_cache_hints(m, policy);
  if (!m.done()) unknown_opcode();
  operands_are(stmt, 3, policy ? 5 : 4);
  if (stmt.operands[2].kind != PtxOperand::Kind::kInteger) fail("the copy size of cp.async must be a constant");
  uint64_t size = stmt.operands[2].bits;
  if (size != 16 && (cg || (size != 4 && size != 8)))
    fail(fmt::format("cp.async.{} cannot copy {} bytes", cg ? "cg" : "ca", size));
  Inst& in = emit(Kind::kCpAsync, Class::kCpAsync);
  in.size = static_cast<uint8_t>(size);
  address(stmt.operands[0], &Inst::b, &Inst::imm);
  int64_t to = kernel_.code.back().imm;
  if (to != static_cast<int32_t>(to)) fail("displacement out of range");
  kernel_.code.back().target = static_cast<uint32_t>(static_cast<int32_t>(to));
  address(stmt.operands[1], &Inst::a, &Inst::imm);
  if (stmt.operands.size() > 3 + (policy ? 1u : 0u)) {
    const PtxOperand& o = stmt.operands[3];
    bool ignore = o.kind == PtxOperand::Kind::kName && resolve(o.name).kind == Symbol::Kind::kPredicate;
    kernel_.code.back().sub = ignore ? 2 : 1;
    kernel_.code.back().flags |= ignore && o.negated ? kFlagSigned : 0;
    PtxOperand plain = o;
    plain.negated = false;
    use(&Inst::c, plain, ignore ? Slot::kPred : Slot::kB32);
  }
}

void Decoder::matrix_move(const PtxStmt& stmt, Modifiers& m, bool is_load) {
  if (!m.take("sync") || !m.take("aligned")) unknown_opcode();
  const bool expands = is_load && m.take("m8n16"), bytes = !expands && m.take(is_load ? "m16n16" : "m16n8");
  if (!expands && !bytes && !m.take("m8n8")) unknown_opcode();
  uint8_t count = m.take("x1") ? 1 : m.take("x2") ? 2 : m.take("x4") ? 4 : 0;
  if (bytes && is_load) count = count < 4 ? 2 * count : 0;  // registers
  const bool trans = !expands && m.take("trans");
  if (!m.take("shared")) m.take("shared::cta");
  MatrixElement element{};
  if (expands)
    element = m.take("b8x16") && m.take("b4x16_p64") ? MatrixElement::kFourBits
              : m.take("b6x16_p32")                  ? MatrixElement::kSixBits
                                                     : MatrixElement::kHalf;
  else if (bytes && trans && m.take("b8"))
    element = MatrixElement::kByte;
  const bool is_new = element != MatrixElement::kHalf;
  if (!count || is_new != (expands || bytes) || (!is_new && !m.take("b16")) || !m.done()) unknown_opcode();
  if (is_new) {
    const std::string_view target = module_.target;
    need_target(stmt, target.size() >= 7 && target.starts_with("sm_1") && is_specific(target), "sm_100a or sm_120a");
  }
  operands_are(stmt, 2, 2);
  const PtxOperand& regs = stmt.operands[is_load ? 0 : 1];
  emit(is_load ? Kind::kLdmatrix : Kind::kStmatrix, is_load ? Class::kLdmatrix : Class::kSharedStore);
  address(stmt.operands[is_load ? 1 : 0], &Inst::a, &Inst::imm);
  bool braces = regs.kind == PtxOperand::Kind::kVector;
  if ((braces ? regs.items.size() : 1) != count) fail(fmt::format("'{}' needs {} registers", stmt.name, count));
  for (int i = 0; i < count; ++i) {
    const PtxOperand& r = braces ? regs.items[static_cast<size_t>(i)] : regs;
    if (is_load)
      def_list(r, Slot::kB32);
    else
      use_list(r, Slot::kB32);
  }
  Inst& in = kernel_.code.back();
  in.count = count;
  in.sub = trans;
  in.type = static_cast<uint8_t>(element);
  in.size = 16;
  in.flags |= kFlagAligned;
}

/// createpolicy: no value that a kernel computes depends on the policy of a cache.
void Decoder::cache_policy(const PtxStmt& stmt, Modifiers& m) {
  const bool fractional = m.take("fractional"), range = !fractional && m.take("range");
  if (range) m.take("global");
  if (!fractional && !range && (!m.take("cvt") || !m.take("L2"))) unknown_opcode();
  if (fractional || range) {
    const auto one_of = [&](std::initializer_list<const char*> names) {
      return std::any_of(names.begin(), names.end(), [&](const char* name) { return m.take(name); });
    };
    if (!one_of({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"})) unknown_opcode();
    one_of({"L2::evict_first", "L2::evict_unchanged"});
  }
  if (!m.take("b64") || !m.done()) unknown_opcode();
  operands_are(stmt, range ? 4 : fractional ? 1 : 2, range ? 4 : 2);
  PtxStmt zero = stmt;
  zero.name = "mov.b64";
  PtxOperand value;
  value.kind = PtxOperand::Kind::kInteger;
  zero.operands = {stmt.operands[0], value};
  modelled_instruction(zero);
}

bool Decoder::memory_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base == "ld")
    load_store(stmt, m, true);
  else if (base == "st" && m.take("async"))
    store_async(stmt, m);
  else if (base == "st")
    load_store(stmt, m, false);
  else if (base == "atom")
    atomic(stmt, m, true);
  else if (base == "red" && m.peek() != "async")
    atomic(stmt, m, false);
  else if (base == "cp" && m.take("async"))
    cp_async(stmt, m);
  else if (base == "cp" && m.take("reduce"))
    m.take("async") && m.take("bulk") ? bulk_copy(stmt, m, true) : unknown_opcode();
  else if (base == "ldmatrix")
    matrix_move(stmt, m, true);
  else if (base == "stmatrix")
    matrix_move(stmt, m, false);
  else if (base == "createpolicy")
    cache_policy(stmt, m);
  else if (base == "wmma")
    wmma(stmt, m);
  else
    return false;
  return true;
}

}  // namespace roofgen::sim
