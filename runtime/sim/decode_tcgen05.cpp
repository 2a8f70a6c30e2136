// Decoding of tcgen05, the instructions of the tensor cores of sm_100.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/target.h"
#include "runtime/sim/atomics.h"
#include "runtime/sim/decoder.h"
#include "runtime/sim/tcgen05.h"

namespace roofgen::sim {
namespace {

bool is_tensor_load(const Inst& in) {
  return in.kind == Kind::kTensor && in.sub == static_cast<uint8_t>(TensorOp::kLoad);
}

/// The index of the next modifier among the names, which it removes; nothing: it is none of them.
template <size_t kCount>
std::optional<uint32_t> take_name(Modifiers& m, const char* const (&names)[kCount]) {
  for (uint32_t i = 0; i < kCount; ++i)
    if (m.take(names[i])) return i;
  return std::nullopt;
}

constexpr const char* kTensorShapes[] = {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"};  // by TensorShape
constexpr const char* kTensorCounts[] = {"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"};
constexpr const char* kTensorKinds[] = {"kind::f16",      "kind::tf32", "kind::f8f6f4",  "kind::i8",
                                        "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"};  // by TensorKind

}  // namespace

/// PTX ISA, "Target ISA Notes" of tcgen05: sm_100a, sm_103a, sm_110a and others of these families.
void Decoder::need_tensor_memory(const PtxStmt& stmt) {
  const std::string_view target = module_.target;
  const bool has = (target.starts_with("sm_10") || target.starts_with("sm_11")) && target.size() == 7 &&
                   (target.ends_with("a") || target.ends_with("f"));
  need_target(stmt, has, "sm_100a");
  kernel_.has_tensor_memory = true;
}

/// An address in brackets: its register in `field`, and its displacement. A 32-bit one of tensor memory.
uint32_t Decoder::tensor_place(const PtxOperand& operand, uint32_t Inst::*field) {
  const uint32_t entry = tensor_entry(operand);
  const uint32_t reg = kernel_.lists[entry], displacement = kernel_.lists[entry + 1];
  kernel_.lists.resize(entry);
  refs_.back().field = field;
  kernel_.code.back().*field = reg;
  return displacement;
}

/// The same in the list, with the displacement after it.
uint32_t Decoder::tensor_entry(const PtxOperand& operand) {
  if (operand.kind != PtxOperand::Kind::kAddress)
    fail(fmt::format("'{}' needs an address of tensor memory in brackets", guarded_->name));
  uint32_t reg = constant(0, false);
  if (!operand.name.empty()) {
    const Symbol& s = resolve(operand.name);
    if (s.kind != Symbol::Kind::kRegister || s.slot != Slot::kB32)
      fail(fmt::format("'{}': '{}' is no 32-bit register with an address of tensor memory", guarded_->name,
                       operand.name));
    reg = s.id;
  }
  const uint32_t entry = list_entry(reg, false);
  kernel_.lists.push_back(static_cast<uint32_t>(operand.bits));
  return entry;
}

bool Decoder::tensor_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base != "tcgen05") return false;
  need_tensor_memory(stmt);
  const std::vector<PtxOperand>& o = stmt.operands;
  const auto make = [&](TensorOp op, Class cls) -> Inst& {
    Inst& in = emit(Kind::kTensor, cls);
    in.sub = static_cast<uint8_t>(op);
    in.count = 0;
    return in;
  };
  const auto group = [&]() -> uint8_t {
    if (m.take("cta_group::1")) return 1;
    if (m.take("cta_group::2")) return 2;
    unknown_opcode();
  };
  const auto aligned = [&] {
    if (!m.take("sync") || !m.take("aligned")) unknown_opcode();
  };
  if (m.take("alloc")) {
    const uint8_t ctas = group();
    aligned();
    m.take("shared::cta");
    if (!m.take("b32") || !m.done()) unknown_opcode();
    operands_are(stmt, 2, 2);
    make(TensorOp::kAlloc, Class::kSharedStore).count = ctas;
    address(o[0], &Inst::a, &Inst::imm);
    use(&Inst::b, o[1], Slot::kB32);
  } else if (m.take("dealloc")) {
    const uint8_t ctas = group();
    aligned();
    if (!m.take("b32") || !m.done()) unknown_opcode();
    operands_are(stmt, 2, 2);
    make(TensorOp::kDealloc, Class::kControl).count = ctas;
    use(&Inst::a, o[0], Slot::kB32);
    use(&Inst::b, o[1], Slot::kB32);
  } else if (m.take("relinquish_alloc_permit")) {
    const uint8_t ctas = group();
    aligned();
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 0, 0);
    make(TensorOp::kRelinquish, Class::kControl).count = ctas;
  } else if (m.peek() == "ld" || m.peek() == "st") {
    tensor_move(stmt, m, m.next() == "ld");
  } else if (m.peek() == "wait::ld" || m.peek() == "wait::st") {
    const bool loads = m.next() == "wait::ld";
    aligned();
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 0, 0);
    make(loads ? TensorOp::kWaitLoad : TensorOp::kWaitStore, Class::kBarrier);
  } else if (m.peek() == "fence::before_thread_sync" || m.peek() == "fence::after_thread_sync") {
    const bool after = m.next() == "fence::after_thread_sync";
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 0, 0);
    make(after ? TensorOp::kFenceAfter : TensorOp::kFenceBefore, Class::kBarrier);
  } else if (m.take("commit")) {
    const uint8_t ctas = group();
    if (!m.take("mbarrier::arrive::one")) unknown_opcode();
    m.take("shared::cluster");
    const bool multicast = m.take("multicast::cluster");
    if (!m.take("b64") || !m.done()) unknown_opcode();
    operands_are(stmt, 1 + multicast, 1 + multicast);
    Inst& in = make(TensorOp::kCommit, Class::kBarrier);
    in.count = ctas;
    in.type = static_cast<uint8_t>(multicast | (ctas == 2 && is_masked_to_even(o[0]) ? 2 : 0));
    address(o[0], &Inst::a, &Inst::imm);
    if (multicast) use(&Inst::b, o[1], Slot::kB16);
  } else if (m.take("cp")) {
    const uint8_t ctas = group();
    static constexpr const char* kCopies[] = {"128x256b", "128x128b", "64x128b", "32x128b", "4x256b"};
    const auto shape = take_name(m, kCopies);
    if (!shape) unknown_opcode();
    if (*shape == 4) not_modelled(fmt::format("'{}': copies to 4 lanes are not supported", stmt.name));
    TensorCopy copy = *shape == 0 ? TensorCopy::k128x256b : TensorCopy::k128x128b;
    if (*shape == 2) {
      const bool crossed = m.take("warpx2::02_13");
      if (!crossed && !m.take("warpx2::01_23")) unknown_opcode();
      copy = crossed ? TensorCopy::k64x128b_02_13 : TensorCopy::k64x128b_01_23;
    } else if (*shape == 3) {
      if (!m.take("warpx4")) unknown_opcode();
      copy = TensorCopy::k32x128b;
    }
    if (m.peek().starts_with("b8x16"))
      not_modelled(fmt::format("'{}': copies that widen elements are not supported", stmt.name));
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 2, 2);
    Inst& in = make(TensorOp::kCopy, Class::kCpAsync);
    in.count = ctas;
    in.type = static_cast<uint8_t>(copy);
    kernel_.code.back().imm = tensor_place(o[0], &Inst::a);
    use(&Inst::b, o[1], Slot::kB64);
  } else if (m.take("mma")) {
    tensor_mma(stmt, m);
  } else if (m.peek() == "shift") {
    not_modelled(fmt::format("'{}': shifts of tensor memory are not supported", stmt.name));
  } else {
    unknown_opcode();
  }
  return true;
}

void Decoder::tensor_move(const PtxStmt& stmt, Modifiers& m, bool loads) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const bool reduces = loads && m.take("red");
  if (m.peek() == "spcompress") unknown_opcode();
  if (reduces) {
    const std::string_view target = module_.target;
    need_target(stmt,
                is_specific(target) &&
                    (target.starts_with("sm_103") || target.starts_with("sm_101") || target.starts_with("sm_110")),
                "sm_103a");
  }
  if (!m.take("sync") || !m.take("aligned")) unknown_opcode();
  const auto shape = take_name(m, kTensorShapes), exponent = take_name(m, kTensorCounts);
  if (!shape || !exponent) unknown_opcode();
  uint8_t reduction = 0;
  if (reduces) {  // the type may come before the operation
    const bool before = m.peek().ends_with("32");
    std::string_view type = before ? m.next() : std::string_view();
    const bool least = m.take("min");
    if (!least && !m.take("max")) unknown_opcode();
    if (m.take("abs")) reduction |= kOfMagnitudes;
    if (m.take("NaN")) reduction |= kOfNans;
    if (!before) type = m.next();
    if (type != "f32" && type != "u32" && type != "s32") unknown_opcode();
    if (type != "f32" && reduction) unknown_opcode();
    reduction |= (least ? kReducesToLeast : 0) | (type == "u32"   ? kReducesUnsigned
                                                  : type == "s32" ? kReducesSigned
                                                                  : 1);
    if (!m.done() || *exponent == 0 || (*shape != 0 && *shape != 4)) unknown_opcode();
    if (*shape) not_modelled(fmt::format("'{}': reductions of two halves of columns are not supported", stmt.name));
  }
  const bool packs = !reduces && m.take(loads ? "pack::16b" : "unpack::16b");
  if (!reduces && (!m.take("b32") || !m.done())) unknown_opcode();
  const auto form = static_cast<TensorShape>(*shape);
  const uint32_t count = registers_of(form) << *exponent;
  const bool split = form == TensorShape::k16x32bx2;
  if (count > 128) unknown_opcode();
  operands_are(stmt, 2 + split + reduces, 2 + split + reduces);
  // ld: registers{, reduction}, address{, offset}; st: address{, offset}, registers
  const PtxOperand& registers = loads ? o[0] : o.back();
  const PtxOperand& place = loads ? o[1 + reduces] : o[0];
  int64_t offset = 0;
  if (split) {
    const PtxOperand& half = loads ? o[2] : o[1];
    if (half.kind != PtxOperand::Kind::kInteger) fail(fmt::format("'{}' needs a constant offset", stmt.name));
    offset = static_cast<int64_t>(half.bits & 0xffff);
  }
  if (registers.kind == PtxOperand::Kind::kVector ? registers.items.size() != count : count != 1)
    fail(fmt::format("'{}' needs a vector of {} registers, found {}", stmt.name, count,
                     registers.kind == PtxOperand::Kind::kVector ? registers.items.size() : 1));
  Inst& in = emit(Kind::kTensor, loads ? Class::kSharedLoad : Class::kSharedStore);
  in.sub = static_cast<uint8_t>(loads ? TensorOp::kLoad : TensorOp::kStore);
  in.count = 0;
  in.type = static_cast<uint8_t>(form);
  in.size = packs ? 2 : 1;
  in.space = reduction;
  in.target = count;
  in.flags |= kFlagAligned;
  const uint32_t displacement = tensor_place(place, &Inst::a);
  kernel_.code.back().imm = static_cast<int64_t>(displacement) | offset << 32;
  kernel_.code.back().list = static_cast<uint32_t>(kernel_.lists.size());
  const bool vector = registers.kind == PtxOperand::Kind::kVector;
  for (uint32_t i = 0; i < count; ++i) {
    const PtxOperand& r = vector ? registers.items[i] : registers;
    loads ? def_list(r, Slot::kB32) : use_list(r, Slot::kB32);
  }
  if (reduces) def_list(o[1], Slot::kB32);
}

/// d, a, b{, metadata}, idesc{, scales of a, of b}{, disabled lanes}, enable-input-d{, scale-input-d}
void Decoder::tensor_mma(const PtxStmt& stmt, Modifiers& m) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const bool stationary = m.take("ws");
  const bool sparse = m.take("sp");
  const bool pair = m.take("cta_group::2");
  if ((!pair && !m.take("cta_group::1")) || (pair && stationary)) unknown_opcode();
  const auto found = take_name(m, kTensorKinds);
  if (!found) unknown_opcode();
  const auto kind = static_cast<TensorKind>(*found);
  uint32_t scales = 0;
  if (is_scaled(kind)) {
    if (!m.take("block_scale") || stationary) unknown_opcode();
    const bool four_bits = kind != TensorKind::kMxf8f6f4;
    if (m.take("scale_vec::1X"))
      scales = 1;
    else if (m.take("scale_vec::2X"))
      scales = 2;
    else if (m.take("scale_vec::4X"))
      scales = 4;
    else if (m.take("block32"))
      scales = four_bits ? 2 : 1;
    else if (m.take("block16"))
      scales = 4;
    const bool fits = kind == TensorKind::kMxf8f6f4 ? scales <= 1
                      : kind == TensorKind::kMxf4   ? scales == 0 || scales == 2
                                                    : scales == 2 || scales == 4;
    if (!fits) unknown_opcode();
  }
  if (m.peek() == "ashift") not_modelled(fmt::format("'{}': shifts of A are not supported", stmt.name));
  // Where the operands come from changes no value.
  if (m.peek().starts_with("collector::")) m.next();
  if (!m.done()) unknown_opcode();
  const bool in_tensor = o.size() > 1 && o[1].kind == PtxOperand::Kind::kAddress;
  size_t at = 4 + sparse;
  const size_t least = is_scaled(kind) ? 7 : 5;
  operands_are(stmt, least + sparse, (is_scaled(kind) || !stationary ? 7 : 6) + sparse);
  Inst& in = emit(Kind::kTensor, Class::kMma);
  in.sub = static_cast<uint8_t>(TensorOp::kMma);
  in.count = pair ? 2 : 1;
  int64_t how = static_cast<int64_t>(kind) | (stationary ? kTensorStationary : 0) | (in_tensor ? kTensorAInTensor : 0) |
                (sparse ? kTensorSparse : 0) | int64_t{scales} << kTensorScalesShift;
  const uint32_t d = tensor_place(o[0], &Inst::d);
  uint32_t a = 0;
  if (in_tensor)
    a = tensor_place(o[1], &Inst::a);
  else
    use(&Inst::a, o[1], Slot::kB64);
  use(&Inst::b, o[2], Slot::kB64);
  use(&Inst::e, o[3 + sparse], Slot::kB32);
  kernel_.code.back().list = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.lists.push_back(d);
  kernel_.lists.push_back(a);
  if (sparse) tensor_entry(o[3]);
  if (is_scaled(kind))
    for (const size_t end = at + 2; at < end; ++at) tensor_entry(o[at]);
  if (o.size() > at && o[at].kind == PtxOperand::Kind::kVector) {
    const size_t words = pair ? 8 : 4;
    if (is_scaled(kind) || stationary || o[at].items.size() != words)
      fail(fmt::format("'{}' takes a vector of {} registers with its disabled lanes", stmt.name, words));
    how |= kTensorDisables;
    for (const PtxOperand& word : o[at].items) use_list(word, Slot::kB32);
    ++at;
  }
  if (o.size() <= at) operands_are(stmt, at + 1, at + 1);
  use(&Inst::c, o[at++], Slot::kPred);
  if (at < o.size() && stationary) {
    use_list(o[at++], Slot::kB64);
    how |= kTensorMasks;
  } else if (at < o.size()) {
    if ((kind != TensorKind::kF16 && kind != TensorKind::kTf32) || o[at].kind != PtxOperand::Kind::kInteger ||
        o[at].bits > 15)
      fail(fmt::format("scale-input-d of '{}' must be a constant from 0 to 15, of kind::f16 or kind::tf32", stmt.name));
    how |= static_cast<int64_t>(o[at].bits + 1) << kTensorScaleDShift;
    ++at;
  }
  operands_are(stmt, at, at);
  kernel_.code.back().imm = how;
}

/// The registers that loads from tensor memory fill, and those that they are copied to.
void Decoder::watch_loads() {
  if (!kernel_.has_tensor_memory) return;
  std::vector<bool> loaded(registers_.size());
  for (const RegisterRef& r : refs_)
    if (!r.is_pred && r.is_def && !r.field && is_tensor_load(kernel_.code[r.inst])) loaded[r.reg] = true;
  // A copy of a copy: until nothing changes.
  for (bool more = true; more;) {
    more = false;
    std::vector<uint32_t> source(kernel_.code.size(), ~0u);
    for (const RegisterRef& r : refs_)
      if (!r.is_pred && !r.is_def && kernel_.code[r.inst].flags & kFlagCopy) source[r.inst] = r.reg;
    for (const RegisterRef& r : refs_)
      if (!r.is_pred && r.is_def && source[r.inst] != ~0u && loaded[source[r.inst]] && !loaded[r.reg])
        loaded[r.reg] = more = true;
  }
  watch_registers(loaded);
}

}  // namespace roofgen::sim
