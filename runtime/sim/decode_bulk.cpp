// Decoding of bulk and tensor copies.
#include <fmt/format.h>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {

/// Into the CTA's own memory, completing a barrier there; or out of it, in groups. The operands: a the tensor map or
/// the source or target in device memory, b the place in shared memory, c the barrier; the list has the coordinates, or
/// the size, and then the displacements of b and c as they are.
void Decoder::bulk_copy(const PtxStmt& stmt, Modifiers& m) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const auto refused = [&](const char* what) { fail(fmt::format("'{}': {} are not supported", stmt.name, what)); };
  if (m.take("commit_group")) {
    operands_are(stmt, 0, 0);
    emit(Kind::kNop, Class::kCpAsync).sub = kNopBulkCommit;
    return;
  }
  if (m.take("wait_group")) {
    m.take("read");
    operands_are(stmt, 1, 1);
    if (o[0].kind != PtxOperand::Kind::kInteger) fail("cp.async.bulk.wait_group needs a constant");
    Inst& in = emit(Kind::kNop, Class::kCpAsync);
    in.sub = kNopBulkWait;
    in.imm = static_cast<int64_t>(std::min<uint64_t>(o[0].bits, 1u << 30));
    return;
  }
  if (m.peek() == "prefetch") refused("prefetches of bulk copies");
  const bool tensor = m.take("tensor");
  uint32_t rank = 0;
  if (tensor) {
    static constexpr const char* kRanks[] = {"1d", "2d", "3d", "4d", "5d"};
    const std::string_view spelled = m.next();
    for (uint32_t i = 0; i < 5; ++i)
      if (spelled == kRanks[i]) rank = i + 1;
    if (!rank) unknown_opcode();
  }
  const bool in = m.take("shared::cluster") || m.take("shared::cta");
  if (in ? !m.take("global") : !m.take("global") || !m.take("shared::cta")) refused("bulk copies between CTAs");
  if (tensor && !m.take("tile") && m.peek().starts_with("im2col")) refused("im2col copies");
  if (tensor && (m.peek() == "tile::gather4" || m.peek() == "tile::scatter4")) refused("gathering tensor copies");
  if (in ? !m.take("mbarrier::complete_tx::bytes") : !m.take("bulk_group")) unknown_opcode();
  if (m.peek() == "multicast::cluster") refused("multicasts");
  if (m.peek().starts_with("cta_group")) refused("copies of pairs of CTAs");
  const bool policy = m.take("L2::cache_hint");
  if (!m.done()) unknown_opcode();
  const size_t n = (in ? (tensor ? 3 : 4) : (tensor ? 2 : 3)) + policy;
  operands_are(stmt, n, n);
  // [dst], [map, {..}], [mbar] | [map, {..}], [src] | [dst], [src], size, [mbar] | [dst], [src], size
  const PtxOperand& far = o[in ? 1 : 0];
  const PtxOperand& near = o[in ? 0 : 1];
  emit(Kind::kBulkCopy, in ? Class::kCpAsync : Class::kGlobalStore);
  PtxOperand alone = far;  // [map, {coordinates}]: the map's address
  alone.items.clear();
  address(alone, &Inst::a, &Inst::imm);
  const auto shared_address = [&](const PtxOperand& operand, uint32_t Inst::*field) -> uint32_t {
    if (operand.kind != PtxOperand::Kind::kAddress) fail(fmt::format("'{}' needs an address in brackets", stmt.name));
    uint64_t at = operand.bits;
    uint32_t reg = constant(0, false);
    if (!operand.name.empty()) {
      const Symbol& s = resolve(operand.name);
      if (s.kind == Symbol::Kind::kAddress)
        at += s.address;
      else if (s.kind == Symbol::Kind::kRegister && s.slot == Slot::kB32)
        reg = s.id;
      else
        fail(fmt::format("'{}': expected 32-bit addresses of shared memory, but '{}' has other ones", stmt.name,
                         operand.name));
    }
    kernel_.code.back().*field = reg;
    reference(field, reg, false, false);
    return static_cast<uint32_t>(at);
  };
  const uint32_t near_at = shared_address(near, &Inst::b);
  const uint32_t barrier_at = in ? shared_address(o[tensor ? 2 : 3], &Inst::c) : 0;
  if (!in) {
    kernel_.code.back().c = constant(0, false);
    reference(&Inst::c, kernel_.code.back().c, false, false);
  }
  if (tensor) {
    if (far.items.size() != 1 || far.items[0].items.size() != rank)
      fail(fmt::format("'{}' needs [map, {{{} coordinates}}]", stmt.name, rank));
    for (const PtxOperand& coordinate : far.items[0].items) use_list(coordinate, Slot::kB32);
  } else {
    use_list(o[2], Slot::kB32);
  }
  kernel_.lists.push_back(near_at);
  kernel_.lists.push_back(barrier_at);
  Inst& made = kernel_.code.back();
  made.sub = static_cast<uint8_t>((in ? kBulkIn : 0) | (tensor ? kBulkTensor : 0));
  made.count = static_cast<uint8_t>(tensor ? rank : 1);
}

}  // namespace roofgen::sim
