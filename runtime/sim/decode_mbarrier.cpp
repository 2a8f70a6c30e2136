// Decoding of mbarrier instructions and of cp.async.mbarrier.arrive.
#include <fmt/format.h>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

/// False: relaxed. The scope says nothing here.
bool take_order_and_scope(Modifiers& m) {
  const bool relaxed = m.take("relaxed");
  while (m.take("release") || m.take("acquire") || m.take("cta") || m.take("cluster")) {
  }
  return !relaxed;
}
bool take_shared(Modifiers& m) { return m.take("shared") || m.take("shared::cta"); }

}  // namespace

void Decoder::mbarrier(const PtxStmt& stmt, Modifiers& m) {
  const std::vector<PtxOperand>& o = stmt.operands;
  const auto begin = [&](MbarrierOp op, size_t low, size_t high, size_t address_at) {
    const bool orders = take_order_and_scope(m);
    const bool adds = op == MbarrierOp::kArrive || op == MbarrierOp::kArriveDrop || op == MbarrierOp::kExpectTx ||
                      op == MbarrierOp::kCompleteTx;
    const bool of_cluster = !take_shared(m) && m.take("shared::cluster");
    if (of_cluster && (!adds || (address_at && stmt.operands[0].name != "_")))
      fail(fmt::format("'{}': an mbarrier of another CTA allows only arrive (with the result '_') and expect_tx",
                       stmt.name));
    if (!m.take("b64") || !m.done()) unknown_opcode();
    operands_are(stmt, low, high);
    emit(Kind::kMbarrier, Class::kBarrier);
    address(o[address_at], &Inst::a, &Inst::imm);
    Inst& in = kernel_.code.back();
    in.sub = static_cast<uint8_t>(op);
    in.space = of_cluster && is_masked_to_even(o[address_at]);
    if (orders) in.flags |= op == MbarrierOp::kTest || op == MbarrierOp::kTry ? kFlagAcquire : kFlagRelease;
  };
  if (m.take("init")) {
    begin(MbarrierOp::kInit, 2, 2, 0);
    return use(&Inst::b, o[1], Slot::kB32);
  }
  if (m.take("inval")) return begin(MbarrierOp::kInval, 1, 1, 0);
  if (m.take("expect_tx") || m.peek() == "complete_tx") {
    const MbarrierOp op = m.take("complete_tx") ? MbarrierOp::kCompleteTx : MbarrierOp::kExpectTx;
    begin(op, 2, 2, 0);
    return use(&Inst::b, o[1], Slot::kB32);
  }
  if (m.peek() == "arrive" || m.peek() == "arrive_drop") {
    const MbarrierOp op = m.next() == "arrive" ? MbarrierOp::kArrive : MbarrierOp::kArriveDrop;
    const bool expects = m.take("expect_tx"), partial = m.take("noComplete");
    begin(op, expects || partial ? 3 : 2, 3, 1);
    if (expects) kernel_.code.back().type = kMbarrierExpects;
    PtxOperand one;
    one.kind = PtxOperand::Kind::kInteger;
    one.bits = 1;
    use(&Inst::b, o.size() == 3 ? o[2] : one, Slot::kB32);
    return def(&Inst::d, o[0].name, Slot::kB64);
  }
  if (m.peek() == "test_wait" || m.peek() == "try_wait") {
    const bool tries = m.next() == "try_wait", parity = m.take("parity");
    begin(tries ? MbarrierOp::kTry : MbarrierOp::kTest, 3, tries ? 4 : 3, 1);
    if (parity) kernel_.code.back().type = kMbarrierParity;
    use(&Inst::c, o[2], parity ? Slot::kB32 : Slot::kB64);
    return def(&Inst::e, o[0].name, Slot::kPred);
  }
  if (m.take("pending_count")) {
    if (!m.take("b64") || !m.done()) unknown_opcode();
    operands_are(stmt, 2, 2);
    emit(Kind::kMbarrier, Class::kBarrier).sub = static_cast<uint8_t>(MbarrierOp::kPending);
    use(&Inst::c, o[1], Slot::kB64);
    return def(&Inst::d, o[0].name, Slot::kB32);
  }
  unknown_opcode();
}

/// cp.async.mbarrier.arrive: the lane's copies so far arrive when they have landed.
void Decoder::mbarrier_copies(const PtxStmt& stmt, Modifiers& m) {
  if (!m.take("arrive")) unknown_opcode();
  const bool no_increase = m.take("noinc");
  take_shared(m);
  if (!m.take("b64") || !m.done()) unknown_opcode();
  operands_are(stmt, 1, 1);
  emit(Kind::kMbarrier, Class::kBarrier);
  address(stmt.operands[0], &Inst::a, &Inst::imm);
  Inst& in = kernel_.code.back();
  in.sub = static_cast<uint8_t>(MbarrierOp::kCopies);
  in.flags |= kFlagRelease;
  in.type = no_increase ? kMbarrierNoIncrease : 0;
}

/// elect.sync lane|p, members: the lowest of them.
void Decoder::elect(const PtxStmt& stmt, Modifiers& m) {
  if (!m.take("sync") || !m.done()) unknown_opcode();
  operands_are(stmt, 2, 2);
  if (stmt.operands[0].second.empty()) fail("'elect.sync' needs a register and a predicate, lane|p");
  emit(Kind::kVote, Class::kShuffle).sub = static_cast<uint8_t>(VoteMode::kElect);
  use(&Inst::b, stmt.operands[1], Slot::kB32);
  def(&Inst::d, stmt.operands[0].name, Slot::kB32);
  def(&Inst::e, stmt.operands[0].second, Slot::kPred);
}

}  // namespace roofgen::sim
