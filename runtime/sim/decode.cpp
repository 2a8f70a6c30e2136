#include "runtime/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_set>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

Slot slot_of(PtxType type) {
  switch (type.bits) {
    case 1:
      return Slot::kPred;
    case 64:
      return Slot::kB64;
    case 32:
      return Slot::kB32;
    default:
      return Slot::kB16;
  }
}
const char* slot_name(Slot slot) {
  switch (slot) {
    case Slot::kPred:
      return "predicate";
    case Slot::kB64:
      return "64-bit";
    case Slot::kB32:
      return "32-bit";
    case Slot::kB16:
      return "16-bit";
    case Slot::kNone:
      break;
  }
  return "no";
}
constexpr int kMaxPointerDepth = 64;  ///< of variables that hold each other's addresses

uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }
uint32_t alignment(const PtxVar& var) { return std::max(var.align, var.type.bytes()); }

struct SpecialName {
  const char* name;
  Special special;
};
constexpr SpecialName kSpecials[] = {{"%tid.x", Special::kTidX},
                                     {"%tid.y", Special::kTidY},
                                     {"%tid.z", Special::kTidZ},
                                     {"%ntid.x", Special::kNtidX},
                                     {"%ntid.y", Special::kNtidY},
                                     {"%ntid.z", Special::kNtidZ},
                                     {"%ctaid.x", Special::kCtaidX},
                                     {"%ctaid.y", Special::kCtaidY},
                                     {"%ctaid.z", Special::kCtaidZ},
                                     {"%nctaid.x", Special::kNctaidX},
                                     {"%nctaid.y", Special::kNctaidY},
                                     {"%nctaid.z", Special::kNctaidZ},
                                     {"%laneid", Special::kLaneid},
                                     {"%warpid", Special::kWarpid},
                                     {"%nwarpid", Special::kNwarpid},
                                     {"%smid", Special::kSmid},
                                     {"%nsmid", Special::kNsmid},
                                     {"%gridid", Special::kGridid},
                                     {"%lanemask_eq", Special::kLanemaskEq},
                                     {"%lanemask_le", Special::kLanemaskLe},
                                     {"%lanemask_lt", Special::kLanemaskLt},
                                     {"%lanemask_ge", Special::kLanemaskGe},
                                     {"%lanemask_gt", Special::kLanemaskGt},
                                     {"%dynamic_smem_size", Special::kDynamicSmem},
                                     {"%total_smem_size", Special::kTotalSmem},
                                     {"%envreg1", Special::kEnvreg1},
                                     {"%envreg2", Special::kEnvreg2},
                                     {"%cluster_ctaid.x", Special::kClusterCtaidX},
                                     {"%cluster_ctaid.y", Special::kClusterCtaidY},
                                     {"%cluster_ctaid.z", Special::kClusterCtaidZ},
                                     {"%cluster_nctaid.x", Special::kClusterNctaidX},
                                     {"%cluster_nctaid.y", Special::kClusterNctaidY},
                                     {"%cluster_nctaid.z", Special::kClusterNctaidZ},
                                     {"%cluster_ctarank", Special::kClusterCtarank},
                                     {"%reserved_smem_offset_1", Special::kReservedSmem},
                                     {"%cluster_nctarank", Special::kClusterNctarank},
                                     {"%clusterid.x", Special::kClusteridX},
                                     {"%clusterid.y", Special::kClusteridY},
                                     {"%clusterid.z", Special::kClusteridZ},
                                     {"%nclusterid.x", Special::kNclusteridX},
                                     {"%nclusterid.y", Special::kNclusteridY},
                                     {"%nclusterid.z", Special::kNclusteridZ}};

}  // namespace

bool Modifiers::take(std::string_view word) {
  if (peek() != word || done()) return false;
  ++at_;
  return true;
}
std::string_view Modifiers::next() { return done() ? std::string_view() : parts_[at_++]; }

void Decoder::unknown_opcode() const {
  std::string_view opcode = guarded_->name;
  static constexpr const char* kLeftOut[][2] = {{"tex", "textures"},       {"tld4", "textures"},     {"txq", "textures"},           {"suld", "surfaces"},        {"sust", "surfaces"},
                                                {"sured", "surfaces"},     {"suq", "surfaces"},      {"istypep", "textures and surfaces"}, {"wgmma", "warp group matrix instructions"},
                                                {"tcgen05", "the tensor cores of sm_100"}, {"alloca", "stacks of any size"}, {"stacksave", "stacks of any size"}, {"stackrestore", "stacks of any size"}};
  for (const auto& [base, what] : kLeftOut)
    if (opcode.substr(0, opcode.find('.')) == base) throw DecodeError{line_, fmt::format("'{}': {} are not supported", opcode.substr(0, 120), what), {}, source()};
  DecodeError e{line_, fmt::format("unknown instruction '{}'", opcode.substr(0, 120)), {}, source()};
  std::string near = opcodes_.nearest(opcode);
  if (!near.empty() && near != opcode) e.notes.push_back(fmt::format("the nearest known one is '{}'", near));
  throw e;
}

// ---- variables and scopes --------------------------------------------------------------------------

void Decoder::lay_out_parameters() {
  uint64_t at = 0;
  for (const PtxVar& p : function_.params) {
    at = align_up(at, alignment(p));
    line_ = p.line;
    if (at + p.bytes() > kParamWindowEnd - kParamBase) fail("parameters are larger than 64 KiB");
    kernel_.params.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(p.bytes())});
    Symbol symbol{Symbol::Kind::kAddress};
    symbol.address = kParamBase + at;
    symbol.space = Space::kParam;
    scopes_[0].symbols[p.name] = symbol;
    at += p.bytes();
  }
  kernel_.param_bytes = static_cast<uint32_t>(at);
}

/// Shared variables get their place up front: those this kernel mentions, in order of declaration,
/// then the dynamic array behind them.
void Decoder::lay_out_shared() {
  std::unordered_set<std::string_view> mentioned;
  auto mention = [&](auto& self, const PtxOperand& o) -> void {
    mentioned.insert(o.name);
    for (const PtxOperand& item : o.items) self(self, item);
  };
  std::vector<const PtxVar*> fixed, dynamic;
  const std::vector<const PtxFunction*> functions = called_functions();
  for (const PtxFunction* f : functions)
    for (const PtxStmt& s : f->body)
      for (const PtxOperand& o : s.operands) mention(mention, o);
  auto place = [&](const PtxVar& v) {
    if (v.space == Space::kShared && mentioned.count(v.name)) (v.count == 0 ? dynamic : fixed).push_back(&v);
  };
  for (const PtxVar& v : module_.globals) place(v);
  for (const PtxFunction* f : functions)
    for (const PtxStmt& s : f->body)
      if (s.kind == PtxStmt::Kind::kVar) place(s.var);
  uint64_t at = kSharedBase;
  for (const PtxVar* v : fixed) {
    at = align_up(at, alignment(*v));
    shared_[v->name] = at;
    at += v->bytes();
    line_ = v->line;
    if (at > kSharedWindowEnd / 2) fail("shared variables are too large");
  }
  for (const PtxVar* v : dynamic) at = align_up(at, alignment(*v));
  for (const PtxVar* v : dynamic) shared_[v->name] = at;
  kernel_.static_shared = static_cast<uint32_t>(at - kSharedBase);
}

uint64_t Decoder::local_address(const PtxVar& var) {
  uint64_t at = align_up(kernel_.local_bytes, alignment(var));
  if (at + var.bytes() > (1u << 19)) fail("local variables are larger than 512 KiB per thread");
  kernel_.local_bytes = static_cast<uint32_t>(at + var.bytes());
  return kLocalBase + at;
}

/// Gives a variable its place, and those first whose addresses it holds.
uint64_t Decoder::global_address(const PtxVar& var) {
  if (var.is_extern) fail(fmt::format("variable '{}' is defined elsewhere", var.name));
  const auto [place, fresh] = globals_.try_emplace(var.name, 0);
  if (!fresh && place->second) return place->second;
  if (!fresh) fail(fmt::format("the initial value of '{}' leads back to it, which is not supported", var.name));
  if (++pointer_depth_ > kMaxPointerDepth) fail("variables hold each other's addresses deeper than 64");
  PtxVar own = var;
  for (const PtxVar::Pointer& p : var.pointers) {
    if (find_function(p.to)) fail(fmt::format("'{}' holds the address of function '{}'; calls through pointers are not supported", var.name, p.to));
    const auto to = globals_by_name_.find(p.to);
    if (to == globals_by_name_.end() || to->second->space == Space::kShared) fail(fmt::format("'{}' holds the address of '{}', which is no variable of the module's memory", var.name, p.to));
    const uint64_t address = global_address(*to->second) + p.displacement;
    for (uint64_t i = 0; i < 8; ++i) own.init[p.at + i] = static_cast<uint8_t>(address >> (8 * i));
  }
  --pointer_depth_;
  auto address = global_address_(own);
  if (!address) fail(address.error().message);
  return globals_[var.name] = *address;
}

void Decoder::declare_variable(const PtxVar& var) {
  Symbol symbol{Symbol::Kind::kAddress};
  symbol.space = var.space;
  if (var.space == Space::kLocal || var.space == Space::kParam) {
    // What is passed to a function lies in local memory, where each lane has its own.
    symbol.address = local_address(var);
    symbol.space = Space::kLocal;
  } else if (var.space == Space::kShared)
    symbol.address = shared_.count(var.name) ? shared_[var.name] : kSharedBase;
  else
    fail("a .global variable cannot be declared in a function here");
  scopes_.back().symbols[var.name] = symbol;
}

Decoder::Symbol Decoder::new_register(PtxType type, std::string_view name) {
  Symbol symbol{type.kind == 'p' ? Symbol::Kind::kPredicate : Symbol::Kind::kRegister};
  symbol.slot = slot_of(type);
  if (symbol.kind == Symbol::Kind::kPredicate) {
    symbol.id = kernel_.preds++;
    predicate_names_.emplace_back(name);
  } else {
    symbol.id = static_cast<uint32_t>(registers_.size());
    registers_.push_back({symbol.slot, false, std::string(name)});
  }
  if (registers_.size() + predicate_names_.size() > (1u << 20)) fail("more than a million registers");
  return symbol;
}

void Decoder::declare_register(const PtxStmt& stmt) {
  if (stmt.count)
    scopes_.back().ranges.push_back({stmt.name, stmt.count, stmt.type});
  else
    scopes_.back().symbols[stmt.name] = new_register(stmt.type, stmt.name);
}

void Decoder::open_scope(size_t stmt) {
  Scope& scope = scopes_.emplace_back();
  int depth = 0;
  for (size_t i = stmt + 1; i < current_->body.size() && depth >= 0; ++i) {
    const PtxStmt& s = current_->body[i];
    if (s.kind == PtxStmt::Kind::kOpen) ++depth;
    if (s.kind == PtxStmt::Kind::kClose) --depth;
    if (depth) continue;
    if (s.kind == PtxStmt::Kind::kLabel) {
      line_ = s.line;
      if (!scope.labels.emplace(s.name, static_cast<uint32_t>(label_at_.size())).second)
        fail(fmt::format("label '{}' is defined twice in one block", s.name));
      label_at_.push_back(~0u);
    }
    if (s.kind == PtxStmt::Kind::kTargets) scope.targets[s.name] = &s;
  }
}

uint32_t Decoder::label(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].labels.find(name); it != scopes_[i].labels.end()) return it->second;
  fail(fmt::format("unknown label '{}'", name));
}

const Decoder::Symbol* Decoder::find_special(std::string_view name) {
  if (auto it = specials_.find(name); it != specials_.end()) return &it->second;
  for (const SpecialName& s : kSpecials) {
    if (name != s.name) continue;
    Symbol symbol{Symbol::Kind::kRegister};
    symbol.id = special(s.special);
    return &(specials_[name] = symbol);
  }
  return nullptr;
}

const Decoder::Symbol& Decoder::resolve(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  uint64_t number = 0;
  bool numbered =
      digits < name.size() &&
      std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc() &&
      (name[digits] != '0' || digits + 1 == name.size());
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (auto it = scope.symbols.find(name); it != scope.symbols.end()) return it->second;
    if (!numbered) continue;
    for (const Range& r : scope.ranges)
      if (r.prefix == name.substr(0, digits) && number < r.count)
        return scope.symbols[name] = new_register(r.type, name);
  }
  if (const Symbol* s = find_special(name)) return *s;
  if (const auto at = globals_by_name_.find(name); at != globals_by_name_.end()) {
    const PtxVar& v = *at->second;
    Symbol symbol{Symbol::Kind::kAddress};
    symbol.space = v.space;
    if (v.space == Space::kShared) {
      symbol.address = shared_[name];
    } else {
      symbol.address = global_address(v);
    }
    return scopes_[0].symbols[name] = symbol;
  }
  if (find_function(name)) fail(fmt::format("the address of function '{}' is taken; calls through pointers are not supported", name));
  if (name.size() > 1 && name[0] == '%' && name.find('.') != std::string_view::npos)
    fail(fmt::format("unknown special register '{}'", name));
  fail(fmt::format("'{}' is not declared", name));
}

// ---- emitting ----------------------------------------------------------------------------------------

Where Decoder::source() const {
  const PtxLoc& l = module_.locs[loc_];
  for (const auto& [id, name] : module_.files)
    if (loc_ && id == l.file) return {name, static_cast<int>(l.line), static_cast<int>(l.col)};
  return {};
}

Inst& Decoder::emit(Kind kind, Class cls) {
  if (kernel_.code.size() >= kMaxInstructions)
    fail(fmt::format("more than {} instructions", kMaxInstructions));
  Inst& in = kernel_.code.emplace_back();
  in.kind = kind;
  in.cls = cls;
  in.line = static_cast<uint32_t>(line_);
  in.list = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.sources.push_back(source());
  if (guarded_ && !guarded_->guard.empty()) {
    const Symbol& p = resolve(guarded_->guard);
    if (p.kind != Symbol::Kind::kPredicate) fail(fmt::format("'{}' is not a predicate", guarded_->guard));
    Inst& now = kernel_.code.back();
    now.guard = p.id;
    now.guard_flip = guarded_->guard_negated ? ~0u : 0;
    reference(&Inst::guard, p.id, false, true);
  }
  return kernel_.code.back();
}

void Decoder::reference(uint32_t Inst::*field, uint32_t reg, bool is_def, bool is_pred) {
  if (is_pred && reg == 0) return;
  refs_.push_back({static_cast<uint32_t>(kernel_.code.size() - 1), field, 0, reg, is_def, is_pred});
}

uint32_t Decoder::list_entry(uint32_t reg, bool is_def) {
  auto index = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.lists.push_back(reg);
  refs_.push_back({static_cast<uint32_t>(kernel_.code.size() - 1), nullptr, index, reg, is_def, false});
  return index;
}

uint32_t Decoder::constant(uint64_t value, bool wide) {
  auto [it, added] = constants_.try_emplace({value, wide}, static_cast<uint32_t>(registers_.size()));
  if (added) {
    registers_.push_back({wide ? Slot::kB64 : Slot::kB32, true, fmt::format("{}", value)});
    kernel_.constants.push_back({it->second, value, wide});
  }
  return it->second;
}

uint32_t Decoder::special(Special which) {
  for (const SpecialRow& s : kernel_.specials)
    if (s.special == which) return s.row;
  auto id = static_cast<uint32_t>(registers_.size());
  registers_.push_back({Slot::kB32, true, "special"});
  kernel_.specials.push_back({id, which});
  return id;
}

uint32_t Decoder::scratch(Slot slot) {
  registers_.push_back({slot, false, "_"});
  return static_cast<uint32_t>(registers_.size() - 1);
}

uint64_t Decoder::immediate_bits(const PtxOperand& o, Slot slot) const {
  if (o.kind == PtxOperand::Kind::kInteger)
    return slot == Slot::kB64 ? o.bits : slot == Slot::kB32 ? uint32_t(o.bits) : uint16_t(o.bits);
  if (slot == Slot::kB64)
    return o.float_bits == 64 ? o.bits
                              : std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(o.bits))));
  if (slot == Slot::kB32)
    return o.float_bits == 32 ? o.bits : std::bit_cast<uint32_t>(float(std::bit_cast<double>(o.bits)));
  fail("a floating-point constant does not fit a 16-bit operand");
}

bool Decoder::is_register(const PtxOperand& o, Slot slot) {
  if (o.kind != PtxOperand::Kind::kName || o.bits || !o.second.empty() || o.negated) return false;
  const Symbol& s = resolve(o.name);
  return s.kind == Symbol::Kind::kRegister && s.slot == slot;
}

void Decoder::use(uint32_t Inst::*field, const PtxOperand& o, Slot slot) {
  uint32_t reg;
  if (slot == Slot::kPred) {
    reg = predicate(o);
    kernel_.code.back().*field = reg;
    return reference(field, reg, false, true);
  }
  if (o.kind == PtxOperand::Kind::kInteger || o.kind == PtxOperand::Kind::kFloat) {
    reg = constant(immediate_bits(o, slot), slot == Slot::kB64);
  } else if (o.kind == PtxOperand::Kind::kName && !o.negated && o.second.empty()) {
    if (o.name == "WARP_SZ") {
      reg = constant(32, slot == Slot::kB64);
    } else {
      const Symbol& s = resolve(o.name);
      if (s.kind == Symbol::Kind::kAddress) {
        reg = constant(s.address + o.bits, slot == Slot::kB64);
      } else {
        if (o.bits) fail("a register operand cannot have a displacement");
        bool narrow_ok = slot == Slot::kB16 && s.slot == Slot::kB32;  // the low half of a wider register
        if (s.kind != Symbol::Kind::kRegister || (s.slot != slot && !narrow_ok))
          fail(fmt::format("'{}' is a {} register where '{}' needs a {} one", o.name, slot_name(s.slot),
                           guarded_->name, slot_name(slot)));
        reg = s.id;
      }
    }
  } else {
    fail(fmt::format("'{}' does not take this kind of operand", guarded_->name));
  }
  kernel_.code.back().*field = reg;
  reference(field, reg, false, false);
}

void Decoder::def(uint32_t Inst::*field, std::string_view name, Slot slot) {
  if (name == "_") {
    uint32_t reg = slot == Slot::kPred ? 0 : scratch(slot);
    if (slot == Slot::kPred) reg = new_register({'p', 1}, "_").id;
    kernel_.code.back().*field = reg;
    return reference(field, reg, true, slot == Slot::kPred);
  }
  Symbol s = resolve(name);
  // A 16-bit result is stored zero-extended, so a 32-bit register may hold it when it is unsigned.
  bool wide_ok = slot == Slot::kB16 && s.slot == Slot::kB32 &&
                 guarded_->name.find(".s8.") == std::string_view::npos &&
                 guarded_->name.find(".s16.") == std::string_view::npos;
  if ((s.slot != slot && !wide_ok) || s.kind == Symbol::Kind::kAddress ||
      (s.kind == Symbol::Kind::kRegister && registers_[s.id].fixed))
    fail(fmt::format("'{}' cannot take the {} result of '{}'", name, slot_name(slot), guarded_->name));
  kernel_.code.back().*field = s.id;
  reference(field, s.id, true, slot == Slot::kPred);
}

uint32_t Decoder::predicate(const PtxOperand& o) {
  if (o.kind == PtxOperand::Kind::kInteger && o.bits == 1) return 0;
  if (o.kind != PtxOperand::Kind::kName || o.bits || o.negated)
    fail(fmt::format("'{}' needs a predicate here", guarded_->name));
  const Symbol& s = resolve(o.name);
  if (s.kind != Symbol::Kind::kPredicate) fail(fmt::format("'{}' is not a predicate", o.name));
  return s.id;
}

void Decoder::use_list(const PtxOperand& o, Slot slot) {
  uint32_t reg;
  if (o.kind == PtxOperand::Kind::kInteger || o.kind == PtxOperand::Kind::kFloat) {
    reg = constant(immediate_bits(o, slot), slot == Slot::kB64);
  } else {
    if (!is_register(o, slot))
      fail(fmt::format("'{}' needs {} registers in its vector", guarded_->name, slot_name(slot)));
    reg = resolve(o.name).id;
  }
  list_entry(reg, false);
}

void Decoder::def_list(const PtxOperand& o, Slot slot) {
  if (o.name == "_") {
    list_entry(scratch(slot), true);
    return;
  }
  if (!is_register(o, slot) || registers_[resolve(o.name).id].fixed)
    fail(fmt::format("'{}' needs {} registers in its vector", guarded_->name, slot_name(slot)));
  list_entry(resolve(o.name).id, true);
}

void Decoder::operands_are(const PtxStmt& stmt, size_t low, size_t high) const {
  if (stmt.operands.size() < low || stmt.operands.size() > high)
    fail(fmt::format("'{}' takes {} operands, found {}", stmt.name,
                     low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high),
                     stmt.operands.size()));
}

// ---- instructions ------------------------------------------------------------------------------------

/// A conversion may name a register that is wider than its type; it takes the low bits (PTX ISA, "Operand Size Exceeding
/// Instruction-Type Size").
std::optional<uint32_t> Decoder::low_half(const PtxOperand& o, Slot slot) {
  if ((slot != Slot::kB32 && slot != Slot::kB16) || o.kind != PtxOperand::Kind::kName || o.name == "WARP_SZ" || o.bits || o.negated || !o.second.empty()) return std::nullopt;
  const Symbol& s = resolve(o.name);
  if (s.kind != Symbol::Kind::kRegister || s.slot != Slot::kB64) return std::nullopt;
  const LaneEntry* cut = opcodes_.find("cvt.u32.u64");
  Inst& in = emit(Kind::kLane, cut->cls);
  in.lane = cut->fn;
  use(&Inst::a, o, Slot::kB64);
  const uint32_t reg = scratch(Slot::kB32);
  kernel_.code.back().d = reg;
  reference(&Inst::d, reg, true, false);
  return reg;
}

bool Decoder::lane_instruction(const PtxStmt& stmt) {
  const LaneEntry* entry = opcodes_.find(stmt.name);
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
  const std::optional<uint32_t> narrowed = stmt.name.starts_with("cvt.") ? low_half(stmt.operands[1], entry->signature.src[0]) : std::nullopt;
  Inst& in = emit(Kind::kLane, entry->cls);
  in.lane = entry->fn;
  in.type = static_cast<uint8_t>(stmt.name.starts_with("selp.") ? MadeOf::kSelected : stmt.name == "and.pred" ? MadeOf::kAnd : stmt.name == "or.pred" ? MadeOf::kOr : MadeOf::kAll);
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
  if (stmt.operands[0].kind != PtxOperand::Kind::kName || stmt.operands[0].bits ||
      !stmt.operands[0].second.empty())
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
  Inst& in = emit(Kind::kLane, entry->cls);
  in.lane = entry->fn;
  in.sub = combine;
  if (combine) in.type = static_cast<uint8_t>(MadeOf::kCombined);
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

/// Moves with vectors pack or unpack; `mov` from a clock is no lane-wise move.
void Decoder::move(const PtxStmt& stmt) {
  operands_are(stmt, 2, 2);
  const PtxOperand &dst = stmt.operands[0], &src = stmt.operands[1];
  if (src.kind == PtxOperand::Kind::kName &&
      (src.name == "%clock" || src.name == "%clock64" || src.name == "%globaltimer" ||
       src.name == "%clock_hi" || src.name == "%globaltimer_lo" || src.name == "%globaltimer_hi")) {
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
  if ((!wide && stmt.name != "mov.b32") || pack == unpack) unknown_opcode();
  size_t n = vector.items.size();
  Slot part = wide ? (n == 2 ? Slot::kB32 : Slot::kB16) : Slot::kB16;
  if (n != 2 && !(wide && n == 4)) fail(fmt::format("'{}' cannot take a vector of {}", stmt.name, n));
  Slot whole = wide ? Slot::kB64 : Slot::kB32;
  auto lane = [&](const char* spelling) -> Inst& {
    const LaneEntry* entry = opcodes_.find(spelling);
    Inst& in = emit(Kind::kLane, Class::kMove);
    in.lane = entry->fn;
    return in;
  };
  if (unpack) {
    bool first = true;
    for (size_t i = 0; i < n; ++i) {
      if (dst.items[i].name == "_") continue;
      Inst& in = lane(wide ? (n == 2 ? "unpack.b64.b32" : "unpack.b64.b16") : "unpack.b32.b16");
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
  lane(n == 4 ? "pack.b64.b16" : wide ? "pack.b64.b32" : "pack.b32.b16");
  constexpr uint32_t Inst::*kFields[] = {&Inst::a, &Inst::b, &Inst::c, &Inst::e};
  for (size_t i = 0; i < n; ++i) use(kFields[i], src.items[i], part);
  def(&Inst::d, dst.name, whole);
}

void Decoder::instruction(const PtxStmt& stmt) {
  guarded_ = &stmt;
  loc_ = stmt.loc;
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
  else if ((base == "add" || base == "addc" || base == "sub" || base == "subc" || base == "mad" || base == "madc") && carry_instruction(stmt, base))
    ;
  else if (!memory_instruction(stmt, base, m) && !control_instruction(stmt, base, m) && !cluster_instruction(stmt, base, m) &&
           !lane_instruction(stmt))
    unknown_opcode();
  guarded_ = nullptr;
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
    if (r.is_def && passes(r, Kind::kLoad)) loaded[r.reg] = true;
    else if (!r.is_def && passes(r, Kind::kStore)) stored[r.reg] = true;
    else other[r.reg] = true;
  }
  for (const RegisterRef& r : refs_) {
    Inst& in = kernel_.code[r.inst];
    if (!r.is_pred && loaded[r.reg] && stored[r.reg] && !other[r.reg]) in.sub |= static_cast<uint8_t>(1u << (r.list_index - in.list));
  }
}

/// Stores of constants: how flags are set.
void Decoder::mark_constant_stores() {
  std::unordered_set<uint32_t> constants;
  for (const ConstantRow& c : kernel_.constants) constants.insert(c.row);
  // A register is a constant when all that is ever moved to it is one and the same.
  constexpr uint32_t kNone = ~0u, kVaries = ~0u - 1;
  std::vector<uint32_t> value(registers_.size(), kNone), moved(kernel_.code.size(), kVaries);
  for (const RegisterRef& r : refs_)
    if (!r.is_pred && !r.is_def && r.field == &Inst::a && is_plain_move(kernel_.code[r.inst]) && constants.count(r.reg)) moved[r.inst] = r.reg;
  for (const RegisterRef& r : refs_)
    if (!r.is_pred && r.is_def) value[r.reg] = value[r.reg] == kNone || value[r.reg] == moved[r.inst] ? moved[r.inst] : kVaries;
  for (Inst& in : kernel_.code)
    if (in.kind == Kind::kStore) in.flags |= kFlagConstant;
  for (const RegisterRef& r : refs_)
    if (!r.is_pred && !r.is_def && !r.field && kernel_.code[r.inst].kind == Kind::kStore && !constants.count(r.reg) && value[r.reg] >= kVaries)
      kernel_.code[r.inst].flags &= static_cast<uint8_t>(~kFlagConstant);
}

void Decoder::body(const PtxFunction& function) {
  current_ = &function;
  for (size_t i = 0; i < function.body.size(); ++i) {
    const PtxStmt& s = function.body[i];
    line_ = s.line;
    switch (s.kind) {
      case PtxStmt::Kind::kOpen:
        open_scope(i);
        break;
      case PtxStmt::Kind::kClose:
        scopes_.pop_back();
        break;
      case PtxStmt::Kind::kReg:
        declare_register(s);
        break;
      case PtxStmt::Kind::kVar:
        declare_variable(s.var);
        break;
      case PtxStmt::Kind::kLabel:
        label_at_[label(s.name)] = static_cast<uint32_t>(kernel_.code.size());
        break;
      case PtxStmt::Kind::kTargets:
        break;
      case PtxStmt::Kind::kInstruction:
        instruction(s);
        break;
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
  mark_constant_stores();
  if (!assign_rows(kernel_, registers_, predicate_names_, refs_))
    fail("the control flow is too large to analyse");
  if (kernel_.rows > kMaxRows) fail(fmt::format("more than {} registers are live at once", kMaxRows));
}

Result<Kernel> decode_kernel(const PtxModule& module, const PtxFunction& function, const OpcodeTable& opcodes,
                             const GlobalAddress& global_address, const std::string& file) {
  Kernel kernel;
  kernel.name = std::string(function.name);
  kernel.file = file;
  std::copy_n(function.maxntid, 3, kernel.max_threads);
  std::copy_n(function.reqntid, 3, kernel.required_threads);
  std::copy_n(function.reqnctapercluster, 3, kernel.required_cluster);
  try {
    Decoder(module, function, opcodes, global_address, kernel).run();
  } catch (const DecodeError& e) {
    Error error{Exit::kFailed, e.message, {file, e.line, 0}};
    error.notes = e.notes;
    if (e.source.line > 0) error.notes.push_back(fmt::format("which comes from {}:{}", e.source.file, e.source.line));
    return error;
  }
  return kernel;
}

}  // namespace roofgen::sim
