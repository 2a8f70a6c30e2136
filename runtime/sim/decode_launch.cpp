// Decoding of clusterlaunchcontrol, and of barrier addresses that name the first CTA of a pair.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {

/// Whether the register is an address with bit 24 cleared, or a sum with one: so CUTLASS names the barrier of the even
/// CTA of a pair, for bit 24 of an address in the window of the cluster is the lowest bit of a rank
/// (cluster_sm100.hpp).
bool Decoder::is_masked_to_even(const PtxOperand& o) {
  if (o.name.empty() || resolve(o.name).kind != Symbol::Kind::kRegister) return false;
  // Compilers clear low bits as well that are known to be 0.
  const auto clears = [&](uint32_t row) {
    const auto constant = std::ranges::find(kernel_.constants, row, &ConstantRow::row);
    return constant != kernel_.constants.end() && (constant->value | 0x3ff) == 0xfeffffff;
  };
  const auto mask = opcodes_.find("and.b32")->fn, sum = opcodes_.find("add.s32")->fn;
  const auto scaled_sum = opcodes_.find("mad.lo.s32")->fn;
  constexpr size_t kMost = 64;
  std::vector<uint32_t> sources = {resolve(o.name).id};
  for (size_t i = 0; i < sources.size() && i < kMost; ++i)
    for (const RegisterRef& made : refs_) {
      if (made.is_pred || !made.is_def || made.reg != sources[i]) continue;
      const Inst& in = kernel_.code[made.inst];
      const bool is_lane = in.kind == Kind::kLane, masks = is_lane && in.lane == mask;
      const bool sums = is_lane && (in.lane == sum || in.lane == scaled_sum);
      if (!masks && !sums && !(in.flags & kFlagCopy)) continue;
      for (const RegisterRef& r : refs_) {
        if (r.inst != made.inst || r.is_def || r.is_pred) continue;
        if (masks && clears(r.reg)) return true;
        if (!masks && std::ranges::find(sources, r.reg) == sources.end()) sources.push_back(r.reg);
      }
    }
  return false;
}

bool Decoder::launch_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base != "clusterlaunchcontrol") return false;
  const std::vector<PtxOperand>& o = stmt.operands;
  if (m.take("try_cancel")) {
    if (!m.take("async")) unknown_opcode();
    m.take("shared::cta");
    if (!m.take("mbarrier::complete_tx::bytes")) unknown_opcode();
    const bool multicast = m.take("multicast::cluster::all");
    if (!m.take("b128") || !m.done()) unknown_opcode();
    operands_are(stmt, 2, 2);
    emit(Kind::kLaunchControl, Class::kCpAsync).sub = static_cast<uint8_t>(LaunchOp::kCancel);
    const uint32_t to = shared_place(o[0], &Inst::a), barrier = shared_place(o[1], &Inst::b);
    kernel_.lists.push_back(to);
    kernel_.lists.push_back(barrier);
    kernel_.code.back().type = multicast;
    kernel_.has_cancel = true;
    return true;
  }
  if (!m.take("query_cancel")) unknown_opcode();
  operands_are(stmt, 2, 2);
  const auto query = [&](LaunchOp op, std::string_view to, bool is_part) {
    const auto low = half_of(o[1], 0), high = half_of(o[1], 1);
    if (!low || !high) fail(fmt::format("'{}' needs a register of 128 bits", stmt.name));
    emit(Kind::kLaunchControl, Class::kMove).sub = static_cast<uint8_t>(op);
    if (is_part) kernel_.code.back().flags |= kFlagPart;
    use(&Inst::a, *low, Slot::kB64);
    use(&Inst::b, *high, Slot::kB64);
    def(op == LaunchOp::kIsCanceled ? &Inst::e : &Inst::d, to, op == LaunchOp::kIsCanceled ? Slot::kPred : Slot::kB32);
  };
  if (m.take("is_canceled")) {
    if (!m.take("pred") || !m.take("b128") || !m.done()) unknown_opcode();
    query(LaunchOp::kIsCanceled, o[0].name, false);
    return true;
  }
  if (m.take("get_first_ctaid")) {
    if (!m.take("v4") || !m.take("b32") || !m.take("b128") || !m.done()) unknown_opcode();
    if (o[0].kind != PtxOperand::Kind::kVector || o[0].items.size() != 4)
      fail(fmt::format("'{}' needs a vector of 4 registers", stmt.name));
    for (uint32_t i = 0; i < 3; ++i)
      query(static_cast<LaunchOp>(static_cast<uint32_t>(LaunchOp::kFirstX) + i), o[0].items[i].name, i > 0);
    return true;
  }
  constexpr const char* kDimensions[] = {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"};
  for (uint32_t i = 0; i < 3; ++i) {
    if (!m.take(kDimensions[i])) continue;
    if (!m.take("b32") || !m.take("b128") || !m.done()) unknown_opcode();
    query(static_cast<LaunchOp>(static_cast<uint32_t>(LaunchOp::kFirstX) + i), o[0].name, false);
    return true;
  }
  unknown_opcode();
}

}  // namespace roofgen::sim
