// Decoding of the instructions of clusters.
#include "runtime/sim/decoder.h"

namespace roofgen::sim {

bool Decoder::cluster_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base == "barrier" && m.take("cluster")) {
    const bool arrive = m.take("arrive");
    if (!arrive && !m.take("wait")) unknown_opcode();
    const bool relaxed = arrive && m.take("relaxed");
    if (!relaxed) m.take(arrive ? "release" : "acquire");
    const bool aligned = m.take("aligned");
    if (!m.done()) unknown_opcode();
    operands_are(stmt, 0, 0);
    Inst& in = emit(Kind::kClusterBarrier, Class::kBarrier);
    in.sub = arrive ? 0 : 1;
    in.imm = relaxed;
    if (aligned) in.flags |= kFlagAligned;
    return true;
  }
  const bool map = base == "mapa";
  if (map || base == "getctarank") {
    m.take("shared::cluster");
    const bool wide = m.take("u64");
    if ((!wide && !m.take("u32")) || !m.done()) unknown_opcode();
    operands_are(stmt, map ? 3 : 2, map ? 3 : 2);
    Inst& in = emit(Kind::kClusterRank, Class::kIntAlu);
    in.sub = map ? 0 : 1;
    in.size = wide ? 8 : 4;
    const Slot slot = wide ? Slot::kB64 : Slot::kB32;
    use(&Inst::a, stmt.operands[1], slot);
    if (map) use(&Inst::b, stmt.operands[2], Slot::kB32);
    def(&Inst::d, stmt.operands[0].name, map ? slot : Slot::kB32);
    return true;
  }
  return false;
}

}  // namespace roofgen::sim
