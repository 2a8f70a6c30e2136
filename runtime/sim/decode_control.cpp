// Decoding of control flow, barriers and instructions across lanes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

/// Instructions that only advise the caches.
bool is_hint(std::string_view name) {
  for (const char* hint :
       {"prefetch.L1", "prefetch.L2", "prefetch.global.L1", "prefetch.global.L2", "prefetch.local.L1",
        "prefetch.local.L2", "prefetch.global.L2::evict_last", "prefetch.global.L2::evict_normal", "prefetchu.L1",
        "prefetch.L1::32B.valid_addr", "prefetch.global.L1::32B.valid_addr", "prefetch.tensormap",
        "prefetch.param.tensormap", "prefetch.const.tensormap", "discard.L2", "discard.global.L2",
        "applypriority.L2::evict_normal", "applypriority.global.L2::evict_normal"})
    if (name == hint) return true;
  return false;
}

struct FenceOrder {
  MemoryScope scope = MemoryScope::kCta;
  uint8_t flags = 0;
};

/// Fences between proxies, and of the initialisation of mbarriers, order nothing between CTAs here.
std::optional<FenceOrder> fence_of(std::string_view name) {
  if (!name.starts_with("fence") && !name.starts_with("membar")) return std::nullopt;
  constexpr uint8_t kBoth = kFlagAcquire | kFlagRelease;
  constexpr std::pair<const char*, MemoryScope> kScopes[] = {{"cta", MemoryScope::kCta},
                                                             {"cluster", MemoryScope::kCluster},
                                                             {"gpu", MemoryScope::kGpu},
                                                             {"sys", MemoryScope::kSys}};
  constexpr std::pair<const char*, uint8_t> kOrders[] = {
      {"sc", kBoth}, {"acq_rel", kBoth}, {"acquire", kFlagAcquire}, {"release", kFlagRelease}};
  for (const auto& [scope, is] : kScopes) {
    if (name == fmt::format("fence.{}", scope)) return FenceOrder{is, kBoth};
    for (const auto& [order, flags] : kOrders)
      if (name == fmt::format("fence.{}.{}", order, scope)) return FenceOrder{is, flags};
  }
  if (name == "membar.cta") return FenceOrder{MemoryScope::kCta, kBoth};
  if (name == "membar.gl") return FenceOrder{MemoryScope::kGpu, kBoth};
  if (name == "membar.sys") return FenceOrder{MemoryScope::kSys, kBoth};
  if (name == "fence.mbarrier_init.release.cluster" || name == "fence.proxy.async" ||
      name.starts_with("fence.proxy.async.") || name == "fence.proxy.alias")
    return FenceOrder{};
  return std::nullopt;
}

}  // namespace

void Decoder::branch(const PtxStmt& stmt, Modifiers& m) {
  m.take("uni");
  if (!m.done()) unknown_opcode();
  operands_are(stmt, 1, 1);
  Inst& in = emit(Kind::kBranch, Class::kControl);
  in.target = label(stmt.operands[0].name);
}

void Decoder::branch_indexed(const PtxStmt& stmt, Modifiers& m) {
  if (!m.take("idx")) unknown_opcode();
  m.take("uni");
  if (!m.done()) unknown_opcode();
  operands_are(stmt, 2, 2);
  const PtxStmt* targets = nullptr;
  for (size_t i = scopes_.size(); i-- > 0 && !targets;)
    if (auto it = scopes_[i].targets.find(stmt.operands[1].name); it != scopes_[i].targets.end()) targets = it->second;
  if (!targets) fail(fmt::format("'{}' is not a list of branch targets", stmt.operands[1].name));
  emit(Kind::kBranchIndexed, Class::kControl);
  use(&Inst::a, stmt.operands[0], Slot::kB32);
  kernel_.code.back().e = static_cast<uint32_t>(targets->operands.size());
  for (const PtxOperand& t : targets->operands) kernel_.lists.push_back(label(t.name));
}

void Decoder::barrier(const PtxStmt& stmt, Modifiers& m, bool aligned) {
  m.take("cta");
  if (m.take("warp")) {
    if (!m.take("sync") || !m.done()) unknown_opcode();
    operands_are(stmt, 1, 1);
    emit(Kind::kWarpBarrier, Class::kBarrier);
    return use(&Inst::a, stmt.operands[0], Slot::kB32);
  }
  BarrierOp op = BarrierOp::kSync;
  if (m.take("arrive"))
    op = BarrierOp::kArrive;
  else if (m.take("red")) {
    if (m.take("popc"))
      op = BarrierOp::kPopc;
    else if (m.take("and"))
      op = BarrierOp::kAnd;
    else if (m.take("or"))
      op = BarrierOp::kOr;
    else
      unknown_opcode();
  } else if (!m.take("sync")) {
    unknown_opcode();
  }
  if (!aligned) aligned = m.take("aligned");
  bool reduces = op >= BarrierOp::kPopc;
  if (op == BarrierOp::kPopc) m.take("aligned"), m.take("u32");
  if (op > BarrierOp::kPopc) m.take("aligned"), m.take("pred");
  if (!m.done()) unknown_opcode();
  size_t first = reduces ? 1 : 0, extra = reduces ? 2 : 0;
  operands_are(stmt, op == BarrierOp::kArrive ? 2 : 1 + extra, 2 + extra);
  Inst& in = emit(Kind::kBarrier, Class::kBarrier);
  in.sub = static_cast<uint8_t>(op);
  in.flags |= aligned ? kFlagAligned : 0;
  use(&Inst::a, stmt.operands[first], Slot::kB32);
  if (stmt.operands.size() == 2 + extra) {
    kernel_.code.back().count = 2;  // the thread count is given
    use(&Inst::b, stmt.operands[first + 1], Slot::kB32);
  }
  if (reduces) {
    PtxOperand p = stmt.operands.back();
    kernel_.code.back().imm = p.negated ? 0xffffffff : 0;
    p.negated = false;
    use(&Inst::c, p, Slot::kPred);
    def(&Inst::d, stmt.operands[0].name, op == BarrierOp::kPopc ? Slot::kB32 : Slot::kPred);
  }
}

void Decoder::shuffle(const PtxStmt& stmt, Modifiers& m) {
  if (!m.take("sync")) unknown_opcode();
  static constexpr const char* kModes[] = {"up", "down", "bfly", "idx"};
  std::string_view name = m.next();
  int mode = -1;
  for (int i = 0; i < 4; ++i)
    if (name == kModes[i]) mode = i;
  if (mode < 0 || !m.take("b32") || !m.done()) unknown_opcode();
  operands_are(stmt, 5, 5);
  Inst& in = emit(Kind::kShuffle, Class::kShuffle);
  in.sub = static_cast<uint8_t>(mode);
  use(&Inst::a, stmt.operands[1], Slot::kB32);
  use(&Inst::b, stmt.operands[2], Slot::kB32);
  use(&Inst::c, stmt.operands[3], Slot::kB32);
  use_list(stmt.operands[4], Slot::kB32);
  def(&Inst::d, stmt.operands[0].name, Slot::kB32);
  if (!stmt.operands[0].second.empty()) def(&Inst::e, stmt.operands[0].second, Slot::kPred);
}

void Decoder::vote(const PtxStmt& stmt, Modifiers& m) {
  // CUB writes `vote.ballot.sync.b32`, which ptxas takes too.
  const bool ballot_first = m.peek() == "ballot" && m.take("ballot");
  if (!m.take("sync")) unknown_opcode();
  VoteMode mode = ballot_first    ? VoteMode::kBallot
                  : m.take("all") ? VoteMode::kAll
                  : m.take("any") ? VoteMode::kAny
                  : m.take("uni") ? VoteMode::kUni
                                  : VoteMode::kBallot;
  bool ballot = mode == VoteMode::kBallot;
  if ((ballot && !ballot_first && !m.take("ballot")) || !m.take(ballot ? "b32" : "pred") || !m.done()) unknown_opcode();
  operands_are(stmt, 3, 3);
  Inst& in = emit(Kind::kVote, Class::kShuffle);
  in.sub = static_cast<uint8_t>(mode);
  PtxOperand p = stmt.operands[1];
  in.imm = p.negated ? 0xffffffff : 0;
  p.negated = false;
  use(&Inst::a, p, Slot::kPred);
  use(&Inst::b, stmt.operands[2], Slot::kB32);
  def(&Inst::d, stmt.operands[0].name, ballot ? Slot::kB32 : Slot::kPred);
}

void Decoder::redux(const PtxStmt& stmt, Modifiers& m) {
  if (!m.take("sync")) unknown_opcode();
  static constexpr const char* kOps[] = {"add", "min", "max", "and", "or", "xor"};
  std::string_view name = m.next();
  int op = -1;
  for (int i = 0; i < 6; ++i)
    if (name == kOps[i]) op = i;
  const bool magnitudes = m.take("abs"), passes_nan = m.take("NaN");
  const bool floats = (op == 1 || op == 2) && m.take("f32");
  bool is_signed = m.take("s32");
  bool bits = !is_signed && m.take("b32");
  if ((magnitudes || passes_nan) && !floats) unknown_opcode();
  if (floats ? !m.done() : op < 0 || (!is_signed && !bits && !m.take("u32")) || bits != (op >= 3) || !m.done())
    unknown_opcode();
  operands_are(stmt, 3, 3);
  Inst& in = emit(Kind::kRedux, Class::kShuffle);
  in.sub = static_cast<uint8_t>(op);
  in.flags |= is_signed ? kFlagSigned : 0;
  in.type = static_cast<uint8_t>(floats ? 1 + 2 * magnitudes + 4 * passes_nan : 0);
  use(&Inst::a, stmt.operands[1], Slot::kB32);
  use(&Inst::b, stmt.operands[2], Slot::kB32);
  def(&Inst::d, stmt.operands[0].name, Slot::kB32);
}

void Decoder::match(const PtxStmt& stmt, Modifiers& m) {
  bool all = m.take("all");
  if ((!all && !m.take("any")) || !m.take("sync")) unknown_opcode();
  bool wide = m.take("b64");
  if ((!wide && !m.take("b32")) || !m.done()) unknown_opcode();
  operands_are(stmt, 3, 3);
  Inst& in = emit(Kind::kMatch, Class::kShuffle);
  in.sub = all;
  in.size = wide ? 8 : 4;
  use(&Inst::a, stmt.operands[1], wide ? Slot::kB64 : Slot::kB32);
  use(&Inst::b, stmt.operands[2], Slot::kB32);
  def(&Inst::d, stmt.operands[0].name, Slot::kB32);
  if (!stmt.operands[0].second.empty()) def(&Inst::e, stmt.operands[0].second, Slot::kPred);
}

void Decoder::mma(const PtxStmt& stmt, const LaneEntry& entry) {
  operands_are(stmt, 4, 4);
  // mma.sync.aligned.m16n8k<K>.row.col.<D>.<A>.<B>.<C>: a word of A holds one tf32, two 16-bit or four 8-bit elements.
  const std::vector<std::string_view> parts = split_opcode(stmt.name);
  const std::string_view type = parts[7];
  size_t k = 0;
  for (char digit : parts[3].substr(std::string_view("m16n8k").size())) k = 10 * k + static_cast<size_t>(digit - '0');
  const size_t per_word = type == "tf32" ? 1 : type == "bf16" || type == "f16" ? 2 : 4;
  const size_t sums = parts[6] == "f16" ? 2 : 4, sizes[] = {sums, k / per_word / 2, k / per_word / 4, sums};
  const LaneEntry* of_target = opcodes_.find(fmt::format("{} of {}", stmt.name, module_.target));
  Inst& in = emit(Kind::kMma, Class::kMma);
  in.lane = (of_target ? *of_target : entry).fn;
  in.sub = static_cast<uint8_t>(k);
  in.flags |= kFlagAligned;
  for (size_t i = 0; i < 4; ++i) {
    const PtxOperand& o = stmt.operands[i];
    bool braces = o.kind == PtxOperand::Kind::kVector;
    if ((braces ? o.items.size() : 1) != sizes[i])
      fail(fmt::format("operand {} of '{}' needs {} registers", i + 1, stmt.name, sizes[i]));
    for (size_t j = 0; j < sizes[i]; ++j) {
      const PtxOperand& r = braces ? o.items[j] : o;
      if (i == 0)
        def_list(r, Slot::kB32);
      else
        use_list(r, Slot::kB32);
    }
  }
}

namespace {

struct MmaName {
  const char* name;
  MmaType type;
};
constexpr MmaName kMmaTypes[] = {{"e4m3", MmaType::kE4m3}, {"e5m2", MmaType::kE5m2}, {"e2m3", MmaType::kE2m3},
                                 {"e3m2", MmaType::kE3m2}, {"e2m1", MmaType::kE2m1}, {"f16", MmaType::kF16},
                                 {"bf16", MmaType::kBf16}, {"tf32", MmaType::kTf32}, {"s8", MmaType::kS8},
                                 {"u8", MmaType::kU8},     {"s4", MmaType::kS4},     {"u4", MmaType::kU4}};

bool is_integer(MmaType t) { return t >= MmaType::kS8; }

/// Depths of dense products with multiplicands of so many bits, those of 8 rows apart.
bool has_depth(const MmaForm& f, bool kinds) {
  const uint32_t bits = bits_of(f.a), k = f.sparse ? f.k / 2 : f.k;
  if (f.rows == 8) return is_integer(f.a) && !f.sparse && k == 128 / bits;
  if (kinds) return k == 256 / bits;
  if (f.sparse && bits == 8 && !is_integer(f.a)) return k == 32;
  return k == 128 / bits || k == 256 / bits;
}

}  // namespace

/// mma of what mma.h has no function for: any types, the kinds of sm_120 with or without scales of blocks, and a sparse
/// A. CUTLASS writes the kind before the shape, and .satfinite at the end. False: it is none.
bool Decoder::any_mma(const PtxStmt& stmt) {
  std::vector<std::string_view> parts = split_opcode(stmt.name);
  const auto take = [&](std::string_view part) { return std::erase(parts, part) > 0; };
  const bool eight = take("kind::f8f6f4"), scaled = take("kind::mxf8f6f4"), four = take("kind::mxf4"),
             four_nv = take("kind::mxf4nvf4"), blocks = scaled || four || four_nv;
  MmaForm form;
  form.ordered = take("sp::ordered_metadata");
  form.sparse = take("sp") || form.ordered;
  form.saturates = take("satfinite");
  uint8_t scales = blocks ? (scaled ? 1 : 2) : 0;
  if (blocks && !take("block_scale")) unknown_opcode();
  if (blocks && take("scale_vec::1X")) scales = 1;
  if (blocks && take("scale_vec::2X")) scales = 2;
  if (blocks && take("scale_vec::4X")) scales = 4;
  // mma sync aligned shape row col d a b c [scale]
  if (parts.size() != (blocks ? 11u : 10u) || parts[1] != "sync" || parts[2] != "aligned" || parts[4] != "row" ||
      parts[5] != "col" || parts[6] != parts[9])
    return false;
  const auto type = [&](std::string_view name, MmaType& to) {
    const auto found = std::ranges::find(kMmaTypes, name, &MmaName::name);
    if (found == std::end(kMmaTypes)) return false;
    to = four || four_nv ? MmaType::kE2m1Half : found->type;
    return !(four || four_nv) || name == "e2m1";
  };
  if (!type(parts[7], form.a) || !type(parts[8], form.b)) return false;
  form.rows = parts[3].starts_with("m8n8k") ? 8 : 16;
  const std::string_view depth = parts[3].substr(std::min(parts[3].size(), form.rows == 8 ? size_t{5} : size_t{6}));
  if (form.rows == 16 && !parts[3].starts_with("m16n8k")) return false;
  const auto [end, error] = std::from_chars(depth.data(), depth.data() + depth.size(), form.k);
  if (error != std::errc() || end != depth.data() + depth.size() || form.k > 128) return false;
  const bool integers = is_integer(form.a);
  form.sum = parts[6] == "s32" ? WgmmaSum::kS32 : parts[6] == "f16" ? WgmmaSum::kF16 : WgmmaSum::kF32;
  form.powers = blocks && parts[10] == "ue8m0";
  // Types that go together: integers of one width, floats of 8 bits, or the same.
  const bool small = bits_of(form.a) == 8 && !integers;
  const bool together =
      bits_of(form.a) == bits_of(form.b) && integers == is_integer(form.b) && (integers || small || form.a == form.b);
  const bool plain_eight = small && !eight && !scaled && (form.a > MmaType::kE5m2 || form.b > MmaType::kE5m2);
  const bool sums = integers
                        ? parts[6] == "s32"
                        : parts[6] == "f32" || (parts[6] == "f16" && !blocks && (small || form.a == MmaType::kF16));
  if (!together || plain_eight || !sums || (form.saturates && !integers) || ((eight || scaled) && !small) ||
      !has_depth(form, eight || blocks) || (blocks && !form.powers && !(four_nv && parts[10] == "ue4m3")) ||
      (scaled && scales != 1) || (four && scales != 2) || (four_nv && scales == 1) ||
      (form.sparse && (eight || blocks) && !form.ordered))
    return false;
  if (form.sparse && bits_of(form.a) <= 8 && form.chunks() == 8)
    not_modelled(
        fmt::format("'{}': the place of the metadata of this shape is in no text, so it is not supported", stmt.name));
  const size_t registers = form.sum_registers(), per_word = 32 / bits_of(form.a),
               stored = form.k / (form.sparse ? 2 : 1);
  std::vector<size_t> sizes{registers, stored / per_word / 4 * (form.rows / 8), form.k / per_word / 4, registers};
  if (form.sparse) sizes.insert(sizes.end(), {1, 0});
  if (blocks) sizes.insert(sizes.end(), {1, 2, 1, 2});
  operands_are(stmt, sizes.size(), sizes.size());
  if (form.sparse) {
    const uint64_t most = form.chunks() == 4 ? 3 : form.chunks() == 8 ? 1 : 0;
    if (stmt.operands[5].kind != PtxOperand::Kind::kInteger || stmt.operands[5].bits > most)
      fail(fmt::format("the sparsity selector of '{}' must be a constant from 0 to {}", stmt.name, most));
    form.selector = static_cast<uint32_t>(stmt.operands[5].bits);
  }
  Inst& in = emit(form.sparse ? Kind::kSparseMma : Kind::kMma, Class::kMma);
  in.lane = opcodes_.find("mma of any types")->fn;
  in.sub = static_cast<uint8_t>(form.k);
  in.type = static_cast<uint8_t>(static_cast<uint32_t>(form.a) | static_cast<uint32_t>(form.b) << 4);
  in.size = scales;
  in.imm = form.packed();
  in.flags |= kFlagAligned;
  in.target = static_cast<uint32_t>(sizes[0] + sizes[1] + sizes[2] + sizes[3]);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const PtxOperand& o = stmt.operands[i];
    if (!sizes[i]) continue;
    const bool braces = o.kind == PtxOperand::Kind::kVector;
    if ((braces ? o.items.size() : 1) != sizes[i])
      fail(fmt::format("operand {} of '{}' needs {} registers", i + 1, stmt.name, sizes[i]));
    for (size_t j = 0; j < sizes[i]; ++j) {
      const PtxOperand& r = braces ? o.items[j] : o;
      const Slot slot = sizes[i] == 2 && i > 3 ? Slot::kB16 : Slot::kB32;
      i == 0 ? def_list(r, slot) : use_list(r, slot);
    }
  }
  return true;
}

bool Decoder::control_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  auto plain = [&](Kind kind, size_t low, size_t high) {
    operands_are(stmt, low, high);
    emit(kind, Class::kControl);
  };
  if (base == "bra")
    branch(stmt, m);
  else if (base == "brx")
    branch_indexed(stmt, m);
  else if (base == "call")
    call(stmt, m);
  else if (base == "ret" && !calls_.empty())
    m.take("uni"), m.done() ? plain(Kind::kBranch, 0, 0) : unknown_opcode(),
        kernel_.code.back().target = calls_.back().return_label;
  else if (base == "ret" || base == "exit")
    m.take("uni"), m.done() ? plain(Kind::kExit, 0, 0) : unknown_opcode();
  else if (base == "trap" && m.done())
    plain(Kind::kTrap, 0, 0);
  else if (base == "bar")
    barrier(stmt, m, true);
  else if (base == "barrier" && m.peek() != "cluster")
    barrier(stmt, m, false);
  else if (base == "mbarrier")
    mbarrier(stmt, m);
  else if (base == "elect")
    elect(stmt, m);
  else if (base == "shfl")
    shuffle(stmt, m);
  else if (base == "vote")
    vote(stmt, m);
  else if (base == "redux")
    redux(stmt, m);
  else if (base == "mma" && !opcodes_.find(stmt.name) && any_mma(stmt))
    ;
  else if (stmt.name == "movmatrix.sync.aligned.m8n8.trans.b16") {
    operands_are(stmt, 2, 2);
    Inst& in = emit(Kind::kMma, Class::kShuffle);
    in.lane = opcodes_.find("movmatrix")->fn;
    in.flags |= kFlagAligned;
    use(&Inst::a, stmt.operands[1], Slot::kB32);
    def(&Inst::d, stmt.operands[0].name, Slot::kB32);
  } else if (base == "match")
    match(stmt, m);
  else if (stmt.name == "activemask.b32") {
    operands_are(stmt, 1, 1);
    emit(Kind::kActiveMask, Class::kShuffle);
    def(&Inst::d, stmt.operands[0].name, Slot::kB32);
  } else if (base == "isspacep") {
    operands_are(stmt, 2, 2);
    std::string_view space = m.next();
    Space which = space == "global"                                                           ? Space::kGlobal
                  : space == "local"                                                          ? Space::kLocal
                  : space == "const"                                                          ? Space::kConst
                  : space.starts_with("param")                                                ? Space::kParam
                  : space == "shared" || space == "shared::cta" || space == "shared::cluster" ? Space::kShared
                                                                                              : Space::kGeneric;
    if (which == Space::kGeneric || !m.done()) unknown_opcode();
    Inst& in = emit(Kind::kIsSpace, Class::kPredicate);
    in.space = static_cast<uint8_t>(which);
    use(&Inst::a, stmt.operands[1], Slot::kB64);
    def(&Inst::d, stmt.operands[0].name, Slot::kPred);
  } else if (const std::optional<FenceOrder> fence = fence_of(stmt.name)) {
    plain(Kind::kNop, 0, 0);
    Inst& in = kernel_.code.back();
    in.sub = stmt.name.starts_with("fence.proxy.async") ? kNopProxyFence : kNopFence;
    in.imm = stmt.name.starts_with("fence.mbarrier_init") ? kFencesMbarriers : 0;
    if (stmt.name == "fence.proxy.async.global") in.space = static_cast<uint8_t>(Space::kGlobal);
    if (stmt.name.starts_with("fence.proxy.async.shared")) in.space = static_cast<uint8_t>(Space::kShared);
    in.scope = fence->scope;
    in.flags |= fence->flags;
  } else if (base == "brkpt" && m.done()) {
    plain(Kind::kTrap, 0, 0);  // what it is without a debugger
  } else if (stmt.name == "pmevent" || stmt.name == "pmevent.mask") {
    plain(Kind::kNop, 1, 1);
  } else if (stmt.name == "nanosleep.u32") {
    plain(Kind::kNop, 1, 1);
  } else if (stmt.name == "griddepcontrol.wait" || stmt.name == "griddepcontrol.launch_dependents") {
    plain(Kind::kNop, 0, 0);
    kernel_.code.back().sub = stmt.name.ends_with("wait") ? kNopGridWait : kNopGridTrigger;
  } else if (is_hint(stmt.name)) {
    plain(Kind::kNop, 1, 2);  // no value changes and no sector is counted
  } else {
    return false;
  }
  return true;
}

}  // namespace roofgen::sim
