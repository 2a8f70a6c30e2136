// Decoding of bulk and tensor copies.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "runtime/sim/decoder.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sim {
namespace {

constexpr const char* kReductions[] = {"add", "min", "max", "and", "or", "xor", "", "", "inc", "dec"};  // by AtomicOp

}  // namespace

/// A 32-bit address of shared memory: its register in `field`, and its displacement.
uint32_t Decoder::shared_place(const PtxOperand& operand, uint32_t Inst::*field) {
  if (operand.kind != PtxOperand::Kind::kAddress)
    fail(fmt::format("'{}' needs an address in brackets", guarded_->name));
  uint64_t at = operand.bits;
  uint32_t reg = constant(0, false);
  if (!operand.name.empty()) {
    const Symbol& s = resolve(operand.name);
    if (s.kind == Symbol::Kind::kAddress)
      at += s.address;
    else if (s.kind == Symbol::Kind::kRegister && s.slot == Slot::kB32)
      reg = s.id;
    else if (s.kind == Symbol::Kind::kRegister && s.slot == Slot::kB64)
      not_modelled(fmt::format("'{}': generic addresses of shared memory, as '{}', are not supported", guarded_->name,
                               operand.name));
    else
      fail(fmt::format("'{}': expected 32-bit addresses of shared memory, but '{}' has other ones", guarded_->name,
                       operand.name));
  }
  kernel_.code.back().*field = reg;
  reference(field, reg, false, false);
  return static_cast<uint32_t>(at);
}

/// st.async: the value arrives, with its bytes, at an mbarrier of the same CTA. a is the place, c the barrier; the list
/// has the registers and the displacement of c.
void Decoder::store_async(const PtxStmt& stmt, Modifiers& m) {
  m.take("weak");
  if (!m.take("shared::cluster") || !m.take("mbarrier::complete_tx::bytes")) unknown_opcode();
  const uint8_t count = m.take("v2") ? 2 : m.take("v4") ? 4 : 1;
  const std::string_view type = m.next();
  const bool wide = type == "b64" || type == "u64" || type == "s64" || type == "f64";
  const bool known = wide || type == "b32" || type == "u32" || type == "s32" || type == "f32";
  if (!known || !m.done() || (wide && count == 4)) unknown_opcode();
  operands_are(stmt, 3, 3);
  const PtxOperand& value = stmt.operands[1];
  if ((value.kind == PtxOperand::Kind::kVector) != (count > 1) || (count > 1 && value.items.size() != count))
    fail(fmt::format("'{}' needs {} value operand(s)", stmt.name, count));
  emit(Kind::kStoreAsync, Class::kSharedStore);
  address(stmt.operands[0], &Inst::a, &Inst::imm);
  for (uint8_t i = 0; i < count; ++i) use_list(count > 1 ? value.items[i] : value, wide ? Slot::kB64 : Slot::kB32);
  kernel_.lists.push_back(shared_place(stmt.operands[2], &Inst::c));
  Inst& in = kernel_.code.back();
  in.count = count;
  in.size = wide ? 8 : 4;
}

/// Advice to the caches.
void Decoder::bulk_prefetch(const PtxStmt& stmt, Modifiers& m) {
  const bool tensor = m.take("tensor");
  uint32_t rank = 0;
  if (tensor) {
    const std::string_view spelled = m.next();
    if (spelled.size() != 2 || spelled[0] < '1' || spelled[0] > '5' || spelled[1] != 'd') unknown_opcode();
    rank = static_cast<uint32_t>(spelled[0] - '0');
  }
  if (!m.take("L2") || !m.take("global")) unknown_opcode();
  const bool column = tensor && rank > 2 && (m.take("im2col") || m.take("im2col::w") || m.take("im2col::w::128"));
  const bool rows = tensor && !column && rank == 2 && m.take("tile::gather4");
  if (tensor && !column && !rows) m.take("tile");
  const bool policy = m.take("L2::cache_hint");
  if (!policy) m.take("L2::evict_last");
  if (!m.done()) unknown_opcode();
  const size_t n = (tensor ? 1 : 2) + column + policy;
  operands_are(stmt, n, n);
  emit(Kind::kNop, Class::kCpAsync);
}

/// Into the memory of the CTA or others of its cluster, completing a barrier there; or out of it, in groups. The
/// operands: a the tensor map or the source or target in device memory, b the place in shared memory, c the barrier;
/// the list has the coordinates, or the size, and then the displacements of b and c as they are.
void Decoder::bulk_copy(const PtxStmt& stmt, Modifiers& m, bool reduces) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const auto refused = [&](const char* what) {
    not_modelled(fmt::format("'{}': {} are not supported", stmt.name, what));
  };
  if (m.take("commit_group")) {
    operands_are(stmt, 0, 0);
    emit(Kind::kNop, Class::kCpAsync).sub = kNopBulkCommit;
    return;
  }
  if (m.take("wait_group")) {
    const bool read = m.take("read");
    operands_are(stmt, 1, 1);
    if (o[0].kind != PtxOperand::Kind::kInteger) fail("cp.async.bulk.wait_group needs a constant");
    Inst& in = emit(Kind::kNop, Class::kCpAsync);
    in.sub = kNopBulkWait;
    in.type = read ? kBulkWaitRead : 0;
    in.imm = static_cast<int64_t>(std::min<uint64_t>(o[0].bits, 1u << 30));
    return;
  }
  if (!reduces && m.take("prefetch")) return bulk_prefetch(stmt, m);
  // PTX writes the mode after the spaces, and takes it after the rank, too.
  std::string_view mode;
  const auto take_mode = [&] {
    for (const char* known : {"tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs"})
      if (mode.empty() && m.take(known)) mode = known;
    if (m.peek().starts_with("im2col::")) refused("im2col copies along W");
  };
  const bool tensor = m.take("tensor");
  uint32_t rank = 0;
  if (tensor) {
    static constexpr const char* kRanks[] = {"1d", "2d", "3d", "4d", "5d"};
    const std::string_view spelled = m.next();
    for (uint32_t i = 0; i < 5; ++i)
      if (spelled == kRanks[i]) rank = i + 1;
    if (!rank) unknown_opcode();
    take_mode();
  }
  if (!tensor && m.take("relaxed")) {
    if (!reduces) refused("relaxed bulk copies");
    if (!m.take("gpu") && !m.take("sys")) refused("reductions that only a CTA or a cluster sees");
  } else if (!tensor && !reduces) {
    m.take("weak");
  }
  AtomicOp op{};
  ElementType type{};
  const bool in = m.take("shared::cluster") || m.take("shared::cta"), shared = in && !tensor && m.take("shared::cta");
  if (!shared && !m.take("global")) unknown_opcode();
  if (!in && !m.take("shared::cta")) unknown_opcode();
  if (in && reduces) refused("reductions into shared memory");
  if (tensor && !reduces) take_mode();
  if (reduces && tensor) {
    const std::string_view name = m.next();
    const auto found = std::find(std::begin(kReductions), std::end(kReductions), name);
    if (found == std::end(kReductions)) unknown_opcode();
    op = static_cast<AtomicOp>(found - std::begin(kReductions));
    take_mode();
  }
  // Rows are gathered by loads and scattered by stores; only loads have offsets of im2col.
  const bool rows = rank == 2 && !reduces && mode == (in ? "tile::gather4" : "tile::scatter4"),
             column = rank > 2 && mode == (in ? "im2col" : "im2col_no_offs");
  if (!mode.empty() && mode != "tile" && !rows && !column) unknown_opcode();
  const TensorWalk walk = rows ? TensorWalk::kFourRows : column ? TensorWalk::kColumn : TensorWalk{};
  const uint32_t coordinates = rows ? 5 : rank;
  if (in ? !m.take("mbarrier::complete_tx::bytes") : !m.take("bulk_group")) unknown_opcode();
  const bool multicast = in && !shared && m.take("multicast::cluster");
  const bool pair = tensor && in && m.take("cta_group::2");
  if (tensor && in && !pair) m.take("cta_group::1");
  const bool policy = m.take("L2::cache_hint");
  if (reduces && !tensor) {
    const std::string_view name = m.next();
    const auto found = std::find(std::begin(kReductions), std::end(kReductions), name);
    if (found == std::end(kReductions)) unknown_opcode();
    op = static_cast<AtomicOp>(found - std::begin(kReductions));
    if (op == AtomicOp::kAdd) m.take("noftz");
    static constexpr std::pair<const char*, ElementType> kTypes[] = {
        {"u32", ElementType::kU32}, {"s32", ElementType::kS32}, {"u64", ElementType::kU64},
        {"s64", ElementType::kS64}, {"f16", ElementType::kF16}, {"bf16", ElementType::kBf16},
        {"f32", ElementType::kF32}, {"f64", ElementType::kF64}, {"b32", ElementType::kB32},
        {"b64", ElementType::kB64}};
    const std::string_view of = m.next();
    const auto* t = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& k) { return of == k.first; });
    if (t == std::end(kTypes)) unknown_opcode();
    type = t->second;
    const bool bits = type <= ElementType::kB64,
               bitwise = op == AtomicOp::kAnd || op == AtomicOp::kOr || op == AtomicOp::kXor;
    const bool wraps = op == AtomicOp::kInc || op == AtomicOp::kDec;
    if (bits != bitwise || (type >= ElementType::kF16 && op != AtomicOp::kAdd) || (wraps && type != ElementType::kU32))
      refused("such reductions");
  }
  if (!m.done()) unknown_opcode();
  const bool offsets = column && in;
  const size_t n = (in ? (tensor ? 3 : 4) : (tensor ? 2 : 3)) + offsets + multicast + policy;
  operands_are(stmt, n, n);
  // [dst], [map, {..}], [mbar] | [map, {..}], [src] | [dst], [src], size, [mbar] | [dst], [src], size
  const PtxOperand& far = o[in ? 1 : 0];
  const PtxOperand& near = o[in ? 0 : 1];
  emit(Kind::kBulkCopy, in ? Class::kCpAsync : Class::kGlobalStore);
  if (multicast) {
    use(&Inst::e, o[tensor ? 3 + offsets : 4], Slot::kB16);
  } else {
    const uint32_t none = constant(0, false);
    kernel_.code.back().e = none;
    reference(&Inst::e, none, false, false);
  }
  PtxOperand alone = far;  // [map, {coordinates}]: the map's address
  alone.items.clear();
  address(alone, &Inst::a, &Inst::imm);
  const uint32_t near_at = shared_place(near, &Inst::b);
  const uint32_t barrier_at = in ? shared_place(o[tensor ? 2 : 3], &Inst::c) : 0;
  if (!in) {
    kernel_.code.back().c = constant(0, false);
    reference(&Inst::c, kernel_.code.back().c, false, false);
  }
  if (tensor) {
    if (far.items.size() != 1 || far.items[0].items.size() != coordinates)
      fail(fmt::format("'{}' needs [map, {{{} coordinates}}]", stmt.name, coordinates));
    for (const PtxOperand& coordinate : far.items[0].items) use_list(coordinate, Slot::kB32);
  } else {
    use_list(o[2], Slot::kB32);
  }
  kernel_.lists.push_back(near_at);
  kernel_.lists.push_back(barrier_at);
  if (offsets) {
    if (o[3].kind != PtxOperand::Kind::kVector || o[3].items.size() != rank - 2)
      fail(fmt::format("'{}' needs {{{} offsets}} after the mbarrier", stmt.name, rank - 2));
    for (const PtxOperand& offset : o[3].items) use_list(offset, Slot::kB16);
  }
  Inst& made = kernel_.code.back();
  made.sub = static_cast<uint8_t>((in ? kBulkIn : 0) | (tensor ? kBulkTensor : 0) | (multicast ? kBulkMulticast : 0) |
                                  (shared ? kBulkShared : 0) | (reduces ? kBulkReduces : 0) | (pair ? kBulkPair : 0) |
                                  (pair && is_masked_to_even(o[2]) ? kBulkEven : 0));
  made.size = static_cast<uint8_t>(op);
  made.type = static_cast<uint8_t>(type);
  made.count = static_cast<uint8_t>(tensor ? coordinates : 1);
  made.space = static_cast<uint8_t>(walk);
}

namespace {

constexpr std::pair<const char*, MemoryScope> kFenceScopes[] = {{"cta", MemoryScope::kCta},
                                                                {"cluster", MemoryScope::kCluster},
                                                                {"gpu", MemoryScope::kGpu},
                                                                {"sys", MemoryScope::kSys}};

}  // namespace

/// tensormap.replace and .cp_fenceproxy, fence.proxy.tensormap.
bool Decoder::tensor_map_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const bool fence = base == "fence" && stmt.name.starts_with("fence.proxy.tensormap");
  if (base != "tensormap" && !fence) return false;
  const auto scope = [&] {
    const std::string_view name = m.next();
    for (const auto& [spelled, is] : kFenceScopes)
      if (name == spelled) return is;
    unknown_opcode();
  };
  const auto is_whole = [&](const PtxOperand& size) {
    if (size.kind != PtxOperand::Kind::kInteger || size.bits != 128)
      fail(fmt::format("the size of '{}' must be 128", stmt.name));
  };
  if (fence) {
    m.next(), m.next();
    const bool acquires = m.take("acquire");
    if (!acquires && !m.take("release")) unknown_opcode();
    const MemoryScope of = scope();
    if (!m.done()) unknown_opcode();
    operands_are(stmt, acquires ? 2 : 0, acquires ? 2 : 0);
    Inst& in = emit(acquires ? Kind::kTensorMap : Kind::kNop, Class::kControl);
    in.sub = acquires ? static_cast<uint8_t>(TensorMapOp::kAcquire) : kNopFence;
    in.scope = of;
    in.flags |= acquires ? kFlagAcquire : kFlagRelease;
    if (!acquires) return true;
    is_whole(o[1]);
    address(o[0], &Inst::a, &Inst::imm);
  } else if (m.take("cp_fenceproxy")) {
    if (!m.take("global") || !m.take("shared::cta") || !m.take("tensormap::generic") || !m.take("release"))
      unknown_opcode();
    const MemoryScope of = scope();
    if (!m.take("sync") || !m.take("aligned") || !m.done()) unknown_opcode();
    operands_are(stmt, 3, 3);
    is_whole(o[2]);
    Inst& in = emit(Kind::kTensorMap, Class::kGlobalStore);
    in.sub = static_cast<uint8_t>(TensorMapOp::kPublish);
    in.scope = of;
    in.flags |= kFlagRelease | kFlagAligned;
    address(o[0], &Inst::a, &Inst::imm);
    kernel_.code.back().target = shared_place(o[1], &Inst::c);
  } else {
    if (!m.take("replace") || !m.take("tile")) unknown_opcode();
    const auto found = std::ranges::find(kTensorMapFields, m.next());
    if (found == std::end(kTensorMapFields)) unknown_opcode();
    const auto op = static_cast<TensorMapOp>(found - std::begin(kTensorMapFields));
    const bool wide = op == TensorMapOp::kAddress || op == TensorMapOp::kStride,
               ordinal = op >= TensorMapOp::kBox && op <= TensorMapOp::kStep;
    if (!m.take("global")) m.take("shared::cta");
    if (!m.take("b1024") || !m.take(wide ? "b64" : "b32") || !m.done()) unknown_opcode();
    operands_are(stmt, ordinal ? 3 : 2, ordinal ? 3 : 2);
    if (ordinal && (o[1].kind != PtxOperand::Kind::kInteger || o[1].bits > 4))
      fail(fmt::format("the ordinal of '{}' must be a constant from 0 to 4", stmt.name));
    emit(Kind::kTensorMap, Class::kGlobalStore);
    address(o[0], &Inst::a, &Inst::imm);
    use(&Inst::b, o.back(), wide ? Slot::kB64 : Slot::kB32);
    Inst& in = kernel_.code.back();
    in.sub = static_cast<uint8_t>(op);
    in.size = wide ? 8 : 4;
    in.count = ordinal ? static_cast<uint8_t>(o[1].bits) : 0;
  }
  return true;
}

}  // namespace roofgen::sim
