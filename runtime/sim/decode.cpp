#include "runtime/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {

bool Modifiers::take(std::string_view word) {
  if (peek() != word || done()) return false;
  ++at_;
  return true;
}
std::string_view Modifiers::next() { return done() ? std::string_view() : parts_[at_++]; }

namespace {

/// Parts of opcodes of the PTX ISA that are left out: the first word, or, with a dot, words or their beginning after
/// it.
constexpr const char* kLeftOut[][2] = {{"sured", "reductions of surfaces"},
                                       {"istypep", "textures and surfaces"},
                                       {"alloca", "stacks of any size"},
                                       {"stacksave", "stacks of any size"},
                                       {"stackrestore", "stacks of any size"},
                                       {"multimem", "accesses to memory of several GPUs"},
                                       {"fabric", "copies over the fabric"},
                                       {"applypriority", "priorities of asynchronous copies"},
                                       {"ldu", "loads of uniform addresses"},
                                       {"szext", "extensions of any width"},
                                       {"clmad", "products without carries"},
                                       {"spcompress", "compressions to sparse vectors"},
                                       {"spdecompress", "expansions of sparse vectors"},
                                       {"mad24", "products of 24 bits with a sum"},
                                       {"mul24", "products of 24 bits of this form"},
                                       {"st.bulk", "fills of shared memory"},
                                       {"red.async", "asynchronous reductions"},
                                       {"st.async", "asynchronous stores of this form"},
                                       {"cp.async.bulk.relaxed", "relaxed bulk copies"},
                                       {"mbarrier.check_layout", "layouts of mbarriers"},
                                       {".proxy::readonly", "loads of the read-only proxy"},
                                       {".multicast::cluster::16b", "multicasts with a stated width of the mask"},
                                       {".multicast::cluster::32b", "multicasts to more than 16 CTAs"},
                                       {".mbarrier::report", "reports of mbarriers"},
                                       {".phase_type::", "typed phases of mbarriers"},
                                       {".layout::", "layouts of mbarriers"},
                                       {".override::", "tensor copies that override the map"},
                                       {".ignore_oob", "copies that ignore bytes out of bounds"},
                                       {".cp_mask", "copies with a mask of bytes"},
                                       {".mmio", "accesses to devices"},
                                       {".valid_addr", "checks of addresses"},
                                       {".exclusive", "exclusive allocations of tensor memory"},
                                       {".sync_restrict::", "commits of part of the work"},
                                       {".spcompress", "compressions to sparse vectors"},
                                       {".kind::ti16", "products of 16-bit integers"},
                                       {".decompress::", "tables of values for B"},
                                       {".collector::b::", "buffers of B"},
                                       {".b8x16", "expansions of 4- and 6-bit elements"},
                                       {".m16n16", "transposed matrices of 4- and 6-bit elements"},
                                       {".s8.s4", "expansions of 4-bit integers"},
                                       {".b1.b1", "products of bits"},
                                       {".scaled::", "conversions with a scale"},
                                       {".pzo", "conversions without a negative zero"},
                                       {".rs.", "stochastic roundings"},
                                       {".ue5m3x2", "numbers of format ue5m3"},
                                       {".s2f6x2", "numbers of format s2f6"},
                                       {".xorsign", "signs that are combined"},
                                       {".oob", "products that replace NaN out of bounds"},
                                       {".b128", "atomics of 128 bits"},
                                       {"lop3.or", "results of lop3 that are combined"},
                                       {"lop3.and", "results of lop3 that are combined"},
                                       {"fence.proxy", "fences of this proxy"},
                                       {".m8n8k4", "products of this shape"},
                                       {".f64.f64.f64", "products in this rounding"},
                                       {".u8x4", "packed comparisons"},
                                       {".s8x4", "packed comparisons"},
                                       {".u16x2", "packed comparisons"},
                                       {".s16x2", "packed comparisons"},
                                       {".f16x2", "pairs in this form"},
                                       {".bf16x2", "pairs in this form"},
                                       {".f32x2", "pairs in this form"},
                                       {".sat", "saturations in this form"},
                                       {".relu", "results without negative values in this form"},
                                       {".rz", "roundings towards zero in this form"},
                                       {".rm", "roundings down in this form"},
                                       {".rp", "roundings up in this form"},
                                       {".ftz", "flushes of subnormals in this form"},
                                       {".abs", "magnitudes in this form"}};

/// A modifier says nothing of a word that PTX lacks.
bool is_left_out(std::string_view opcode, std::string_view part) {
  if (part[0] == '.') return is_ptx_instruction(opcode) && opcode.find(part) != opcode.npos;
  return opcode.starts_with(part) && (opcode.size() == part.size() || opcode[part.size()] == '.');
}

}  // namespace

void Decoder::unknown_opcode() const {
  std::string_view opcode = guarded_->name;
  for (const auto& [part, what] : kLeftOut)
    if (is_left_out(opcode, part)) not_modelled(fmt::format("'{}': {} are not supported", opcode.substr(0, 120), what));
  DecodeError e{
      line_, fmt::format("unknown instruction '{}'", opcode.substr(0, 120)), {}, source(), is_ptx_instruction(opcode)};
  std::string near = opcodes_.nearest(opcode);
  if (!near.empty() && near != opcode) e.notes.push_back(fmt::format("the nearest known one is '{}'", near));
  throw e;
}

/// A conversion may name a register that is wider than its type; it takes the low bits (PTX ISA, "Operand Size
/// Exceeding Instruction-Type Size").
std::optional<uint32_t> Decoder::low_half(const PtxOperand& o, Slot slot) {
  if ((slot != Slot::kB32 && slot != Slot::kB16) || o.kind != PtxOperand::Kind::kName || o.name == "WARP_SZ" ||
      o.bits || o.negated || !o.second.empty())
    return std::nullopt;
  const Symbol& s = resolve(o.name);
  if (s.kind != Symbol::Kind::kRegister || s.slot != Slot::kB64) return std::nullopt;
  constexpr const char* kCut = "cvt.u32.u64";
  emit_lane(*opcodes_.find(kCut), kCut);
  use(&Inst::a, o, Slot::kB64);
  const uint32_t reg = scratch(Slot::kB32);
  kernel_.code.back().d = reg;
  reference(&Inst::d, reg, true, false);
  return reg;
}

bool Decoder::lane_instruction(const PtxStmt& stmt) {
  const bool three = stmt.operands.size() == 4 && (stmt.name.starts_with("min.") || stmt.name.starts_with("max."));
  const LaneEntry* entry = opcodes_.find(three ? fmt::format("{} of three", stmt.name) : std::string(stmt.name));
  if (!entry) return false;
  if (entry->cls == Class::kMma) {
    mma(stmt, *entry);
    return true;
  }
  constexpr uint32_t Inst::*kFields[] = {&Inst::a, &Inst::b, &Inst::c, &Inst::e};
  size_t sources = 0;
  while (sources < 4 && entry->signature.src[sources] != Slot::kNone) ++sources;
  operands_are(stmt, sources + 1, sources + 1);
  bool integer_in_float = (stmt.name.ends_with(".f32") || stmt.name.ends_with(".f64")) &&
                          (entry->cls == Class::kFp32 || entry->cls == Class::kFp64);
  const std::optional<uint32_t> narrowed =
      stmt.name.starts_with("cvt.") ? low_half(stmt.operands[1], entry->signature.src[0]) : std::nullopt;
  Inst& in = emit_lane(*entry, stmt.name);
  if (stmt.name.starts_with("mov.")) in.flags |= kFlagCopy;
  derives_.resize(kernel_.code.size());
  derives_.back() = derivation(stmt.name);
  if (narrowed) {
    in.a = *narrowed;
    reference(&Inst::a, *narrowed, false, false);
    sources = 0;
  }
  for (size_t i = 0; i < sources; ++i) {
    if (integer_in_float && stmt.operands[i + 1].kind == PtxOperand::Kind::kInteger)
      fail(fmt::format("'{}' needs a floating-point constant", stmt.name));
    use(kFields[i], stmt.operands[i + 1], entry->signature.src[i]);
  }
  if (stmt.operands[0].kind != PtxOperand::Kind::kName || stmt.operands[0].bits || !stmt.operands[0].second.empty())
    fail(fmt::format("'{}' needs one destination register", stmt.name));
  def(&Inst::d, stmt.operands[0].name, entry->signature.dst);
  return true;
}

/// `setp.lt.and.s32 p|q, a, b, !c`: the comparison is a table row, the rest is handled here.
void Decoder::setp(const PtxStmt& stmt) {
  std::string spelling;
  uint8_t combine = 0;
  for (std::string_view part : split_opcode(stmt.name)) {
    uint8_t op = part == "and" ? 1 : part == "or" ? 2 : part == "xor" ? 3 : 0;
    if (op && combine) unknown_opcode();
    if (op)
      combine = op;
    else
      spelling += spelling.empty() ? std::string(part) : "." + std::string(part);
  }
  const LaneEntry* entry = opcodes_.find(spelling);
  if (!entry || entry->signature.dst != Slot::kPred) unknown_opcode();
  operands_are(stmt, combine ? 4 : 3, combine ? 4 : 3);
  emit_lane(*entry, spelling).sub = combine;
  use(&Inst::a, stmt.operands[1], entry->signature.src[0]);
  use(&Inst::b, stmt.operands[2], entry->signature.src[1]);
  if (combine) {
    PtxOperand c = stmt.operands[3];
    kernel_.code.back().imm = c.negated ? 0xffffffff : 0;
    c.negated = false;
    use(&Inst::c, c, Slot::kPred);
  }
  def(&Inst::d, stmt.operands[0].name, Slot::kPred);
  if (!stmt.operands[0].second.empty()) def(&Inst::e, stmt.operands[0].second, Slot::kPred);
}

/// set, as setp and a choice between its values of true and of false.
bool Decoder::set_register(const PtxStmt& stmt) {
  static constexpr struct {
    const char *type, *choice;
    uint64_t is_true;
  } kResults[] = {{"u32", "selp.b32", 0xffffffff}, {"s32", "selp.b32", 0xffffffff}, {"f32", "selp.b32", 0x3f800000},
                  {"u16", "selp.b16", 0xffff},     {"s16", "selp.b16", 0xffff},     {"f16", "selp.b16", 0x3c00},
                  {"bf16", "selp.b16", 0x3f80}};
  const std::vector<std::string_view> parts = split_opcode(stmt.name);
  if (parts[0] != "set" || parts.size() < 4 || opcodes_.find(stmt.name)) return false;
  const auto* const result =
      std::ranges::find(kResults, parts[parts.size() - 2], [](const auto& r) { return std::string_view(r.type); });
  if (result == std::end(kResults)) return false;
  std::string compare = "setp";
  for (size_t i = 1; i < parts.size(); ++i)
    if (i + 2 != parts.size()) compare += fmt::format(".{}", parts[i]);
  PtxStmt compared = stmt, chosen = stmt;
  compared.name = aliases_.emplace_back(std::move(compare));
  chosen.name = result->choice;
  const size_t n = stmt.operands.size();
  operands_are(stmt, std::clamp<size_t>(n, 3, 4), std::clamp<size_t>(n, 3, 4));
  PtxOperand decides, yes, no;
  decides.kind = PtxOperand::Kind::kName;
  decides.name = aliases_.emplace_back(fmt::format("set {}", kernel_.code.size()));
  scopes_.back().symbols[decides.name] = new_register({'p', 1}, decides.name);
  yes.kind = no.kind = PtxOperand::Kind::kInteger;
  yes.bits = result->is_true;
  compared.operands[0] = decides;
  setp(compared);
  chosen.operands = {stmt.operands[0], yes, no, decides};
  if (!lane_instruction(chosen)) unknown_opcode();
  kernel_.code.back().flags |= kFlagPart;
  return true;
}

/// A half of a register of 128 bits, or of a vector of two; for a move, of four, too.
std::optional<PtxOperand> Decoder::half_of(const PtxOperand& o, uint32_t part) {
  if (o.kind == PtxOperand::Kind::kVector && o.items.size() == 2) return o.items[part];
  if (o.kind == PtxOperand::Kind::kVector && o.items.size() == 4 && guarded_->name == "mov.b128") {
    PtxOperand pair = o;
    pair.items.assign(o.items.begin() + 2 * part, o.items.begin() + 2 * part + 2);
    return pair;
  }
  if (o.kind != PtxOperand::Kind::kName || o.bits || !o.second.empty()) return std::nullopt;
  Symbol s = resolve(o.name);
  if (!s.is_double) return std::nullopt;
  PtxOperand half = o;
  if (part == 0) return half;
  half.name = aliases_.emplace_back(std::string(o.name) + " upper");
  s.id += 1;
  scopes_.back().symbols[half.name] = s;
  return half;
}

/// mov.b128, as two of 64 bits.
bool Decoder::wide_move(const PtxStmt& stmt) {
  if (stmt.name != "mov.b128") return false;
  operands_are(stmt, 2, 2);
  for (uint32_t part = 0; part < 2; ++part) {
    const auto to = half_of(stmt.operands[0], part), from = half_of(stmt.operands[1], part);
    if (!to || !from) fail("'mov.b128' needs registers of 128 bits, or vectors of two of 64 or four of 32");
    PtxStmt half = stmt;
    half.name = "mov.b64";
    half.operands = {*to, *from};
    move(half);
    if (part) kernel_.code.back().flags |= kFlagPart;
  }
  return true;
}

/// Moves with vectors pack or unpack; `mov` from a clock is no lane-wise move.
void Decoder::move(const PtxStmt& stmt) {
  operands_are(stmt, 2, 2);
  if (wide_move(stmt)) return;
  const PtxOperand &dst = stmt.operands[0], &src = stmt.operands[1];
  if (src.kind == PtxOperand::Kind::kName &&
      (src.name == "%clock" || src.name == "%clock64" || src.name == "%globaltimer" || src.name == "%clock_hi" ||
       src.name == "%globaltimer_lo" || src.name == "%globaltimer_hi")) {
    bool wide = src.name == "%clock64" || src.name == "%globaltimer";
    Inst& in = emit(Kind::kClock, Class::kMove);
    in.size = wide ? 8 : 4;
    in.imm = (src.name.starts_with("%globaltimer") ? kClockIsTimer : 0) | (src.name.ends_with("_hi") ? kClockHigh : 0);
    return def(&Inst::d, dst.name, wide ? Slot::kB64 : Slot::kB32);
  }
  if (stmt.name == "mov.pred" && src.kind == PtxOperand::Kind::kInteger) {
    // Predicates have no constants but true, which is row 0: 0 becomes a comparison that fails.
    PtxStmt compare = stmt;
    PtxOperand zero = src;
    zero.bits = 0;
    compare.name = "setp.ne.s32";
    compare.operands = {dst, src, zero};
    return setp(compare);
  }
  bool pack = src.kind == PtxOperand::Kind::kVector, unpack = dst.kind == PtxOperand::Kind::kVector;
  if (!pack && !unpack) {
    if (!lane_instruction(stmt)) unknown_opcode();
    return;
  }
  const PtxOperand& vector = pack ? src : dst;
  bool wide = stmt.name == "mov.b64";
  const bool half = stmt.name == "mov.b16";
  if ((!wide && !half && stmt.name != "mov.b32") || pack == unpack) unknown_opcode();
  size_t n = vector.items.size();
  const bool bytes = half || (!wide && n == 4);
  Slot part = wide ? (n == 2 ? Slot::kB32 : Slot::kB16) : Slot::kB16;
  if (n != 2 && !(n == 4 && !half)) fail(fmt::format("'{}' cannot take a vector of {}", stmt.name, n));
  Slot whole = wide ? Slot::kB64 : half ? Slot::kB16 : Slot::kB32;
  auto lane = [&](const char* spelling) -> Inst& { return emit_lane(*opcodes_.find(spelling), spelling); };
  if (unpack) {
    bool first = true;
    for (size_t i = 0; i < n; ++i) {
      if (dst.items[i].name == "_") continue;
      Inst& in = lane(wide    ? (n == 2 ? "unpack.b64.b32" : "unpack.b64.b16")
                      : half  ? "unpack.b16.b8"
                      : bytes ? "unpack.b32.b8"
                              : "unpack.b32.b16");
      if (!first) in.flags |= kFlagPart;
      first = false;
      use(&Inst::a, src, whole);
      PtxOperand index;
      index.kind = PtxOperand::Kind::kInteger;
      index.bits = i;
      use(&Inst::b, index, Slot::kB32);
      def(&Inst::d, dst.items[i].name, part);
    }
    return;
  }
  lane(half ? "pack.b16.b8" : bytes ? "pack.b32.b8" : n == 4 ? "pack.b64.b16" : wide ? "pack.b64.b32" : "pack.b32.b16");
  constexpr uint32_t Inst::*kFields[] = {&Inst::a, &Inst::b, &Inst::c, &Inst::e};
  for (size_t i = 0; i < n; ++i) use(kFields[i], src.items[i], part);
  def(&Inst::d, dst.name, whole);
}

/// An instruction that is not modelled ends the CTAs that come to it, if the caller asks for that.
void Decoder::instruction(const PtxStmt& stmt) {
  guarded_ = &stmt;
  loc_ = stmt.loc;
  const size_t code = kernel_.code.size(), lists = kernel_.lists.size(), refs = refs_.size();
  try {
    modelled_instruction(stmt);
  } catch (const DecodeError& e) {
    if (!e.is_valid || not_modelled_ == NotModelled::kRefused) throw;
    kernel_.code.resize(code);
    kernel_.sources.resize(code);
    kernel_.lists.resize(lists);
    refs_.resize(refs);
    derives_.resize(std::min(derives_.size(), code));
    guarded_ = &stmt;
    Inst& in = emit(Kind::kTrap, Class::kControl);
    in.sub = kTrapNotModelled;
    in.imm = static_cast<int64_t>(kernel_.not_modelled.size());
    kernel_.not_modelled.push_back(fmt::format("{}{}", e.message, e.notes.empty() ? "" : "; " + e.notes[0]));
  }
  guarded_ = nullptr;
}

void Decoder::modelled_instruction(const PtxStmt& stmt) {
  std::vector<std::string_view> parts = split_opcode(stmt.name);
  std::string_view base = parts[0];
  parts.erase(parts.begin());
  Modifiers m(std::move(parts));
  if (base == "mov")
    move(stmt);
  else if (base == "pack" || base == "unpack")
    unknown_opcode();
  else if (base == "setp")
    setp(stmt);
  else if (base == "set" && set_register(stmt))
    ;
  else if ((base == "add" || base == "addc" || base == "sub" || base == "subc" || base == "mad" || base == "madc") &&
           carry_instruction(stmt, base))
    ;
  else if (!memory_instruction(stmt, base, m) && !control_instruction(stmt, base, m) &&
           !cluster_instruction(stmt, base, m) && !warpgroup_instruction(stmt, base, m) &&
           !tensor_instruction(stmt, base, m) && !tensor_map_instruction(stmt, base, m) &&
           !launch_instruction(stmt, base, m) && !image_instruction(stmt, base, m) && !lane_instruction(stmt))
    unknown_opcode();
}

void Decoder::resolve_branches() {
  auto at = [&](uint32_t id) { return label_at_[id]; };
  for (Inst& in : kernel_.code) {
    if (in.kind == Kind::kBranch) in.target = at(in.target);
    if (in.kind == Kind::kBranchIndexed)
      for (uint32_t k = 0; k < in.e; ++k) kernel_.lists[in.list + k] = at(kernel_.lists[in.list + k]);
  }
}

/// Structs are copied in words that hold their unused bytes too: registers that only ever go from loads to stores may.
void Decoder::mark_copies() {
  std::vector<bool> loaded(registers_.size()), stored(registers_.size()), other(registers_.size());
  const auto passes = [&](const RegisterRef& r, Kind kind) { return !r.field && kernel_.code[r.inst].kind == kind; };
  for (const RegisterRef& r : refs_) {
    if (r.is_pred) continue;
    if (r.is_def && passes(r, Kind::kLoad))
      loaded[r.reg] = true;
    else if (!r.is_def && passes(r, Kind::kStore))
      stored[r.reg] = true;
    else
      other[r.reg] = true;
  }
  for (const RegisterRef& r : refs_) {
    Inst& in = kernel_.code[r.inst];
    if (!r.is_pred && loaded[r.reg] && stored[r.reg] && !other[r.reg])
      in.sub |= static_cast<uint8_t>(1u << (r.list_index - in.list));
  }
}

/// A loop of compare-and-swap may begin with a plain read: the first swap fails if the value is old (CUDA C++
/// Programming Guide, "Atomic Functions"). Such a read of the address register of a swap counts as a relaxed one.
void Decoder::first_reads_of_cas() {
  const auto address = [&](uint32_t i) {
    for (uint32_t k = kernel_.operand_begin[i]; k < kernel_.operand_begin[i + 1]; ++k)
      if (const Operand& o = kernel_.operands[k]; !o.is_def && !o.is_pred && o.field == Operand::kA) return o.reg;
    return ~0u;
  };
  std::map<std::tuple<uint32_t, int64_t, uint8_t>, MemoryScope> swapped;
  for (uint32_t i = 0; i < kernel_.code.size(); ++i)
    if (const Inst& in = kernel_.code[i]; in.kind == Kind::kAtomic && in.sub == static_cast<uint8_t>(AtomicOp::kCas))
      swapped.emplace(std::tuple(address(i), in.imm, in.size), in.scope);
  for (uint32_t i = 0; i < kernel_.code.size() && !swapped.empty(); ++i) {
    Inst& in = kernel_.code[i];
    if (in.kind != Kind::kLoad || in.count > 1 || in.flags & kFlagStrong) continue;
    const auto same = swapped.find({address(i), in.imm, in.size});
    if (same == swapped.end()) continue;
    in.flags |= kFlagStrong;
    in.scope = same->second;
  }
}

void Decoder::body(const PtxFunction& function) {
  current_ = &function;
  for (size_t i = 0; i < function.body.size(); ++i) {
    const PtxStmt& s = function.body[i];
    line_ = s.line;
    switch (s.kind) {
      case PtxStmt::Kind::kOpen: open_scope(i); break;
      case PtxStmt::Kind::kClose: scopes_.pop_back(); break;
      case PtxStmt::Kind::kReg: declare_register(s); break;
      case PtxStmt::Kind::kVar: declare_variable(s.var); break;
      case PtxStmt::Kind::kLabel: label_at_[label(s.name)] = static_cast<uint32_t>(kernel_.code.size()); break;
      case PtxStmt::Kind::kTargets: break;
      case PtxStmt::Kind::kInstruction: instruction(s); break;
    }
  }
}

void Decoder::run() {
  scopes_.emplace_back();
  lay_out_parameters();
  lay_out_shared();
  body(function_);
  emit(Kind::kExit, Class::kControl).flags |= kFlagPart;  // falling off the end returns
  resolve_branches();
  mark_copies();
  watch_products();
  watch_loads();
  if (!assign_rows(kernel_, registers_, predicate_names_, refs_)) fail("the control flow is too large to analyse");
  find_shared_variables(kernel_, derives_, variable_of_constant_);
  first_reads_of_cas();
  if (kernel_.rows > kMaxRows) fail(fmt::format("more than {} registers are live at once", kMaxRows));
}

Result<Kernel> decode_kernel(const PtxModule& module, const PtxFunction& function, const OpcodeTable& opcodes,
                             const GlobalAddress& global_address, const std::string& file, NotModelled not_modelled) {
  Kernel kernel;
  kernel.name = std::string(function.name);
  kernel.file = file;
  std::copy_n(function.maxntid, 3, kernel.max_threads);
  std::copy_n(function.reqntid, 3, kernel.required_threads);
  std::copy_n(function.reqnctapercluster, 3, kernel.required_cluster);
  kernel.counts_clusters = function.blocksareclusters && function.reqnctapercluster[0];
  kernel.registers_per_thread = function.registers_per_thread();
  try {
    Decoder(module, function, opcodes, global_address, kernel, not_modelled).run();
  } catch (const DecodeError& e) {
    Error error{Exit::kFailed, e.message, {file, e.line, 0}};
    error.notes = e.notes;
    if (e.source.line > 0) error.notes.push_back(fmt::format("which comes from {}:{}", e.source.file, e.source.line));
    return error;
  }
  return kernel;
}

}  // namespace roofgen::sim
