// The meaning of names: parameters, variables, registers, labels, special registers.
#include <fmt/format.h>
#include <llvm/Demangle/Demangle.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

Slot slot_of(PtxType type) {
  switch (type.bits) {
    case 1: return Slot::kPred;
    case 64: return Slot::kB64;
    case 32: return Slot::kB32;
    default: return Slot::kB16;
  }
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
/// then the dynamic array after them.
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
    place_shared(*v, at, at + v->bytes());
    at += v->bytes();
    line_ = v->line;
    if (at > kSharedWindowEnd / 2) fail("shared variables are too large");
  }
  for (const PtxVar* v : dynamic) at = align_up(at, alignment(*v));
  // All are the same array.
  for (const PtxVar* v : dynamic) {
    if (v == dynamic[0])
      place_shared(*v, at, kSharedWindowEnd);
    else
      shared_[v->name] = shared_[dynamic[0]->name];
  }
  kernel_.static_shared = static_cast<uint32_t>(at - kSharedBase);
}

void Decoder::place_shared(const PtxVar& var, uint64_t begin, uint64_t end) {
  // "k(float*)::tile": the variable of a function.
  std::string name = llvm::demangle(std::string(var.name));
  if (const size_t at = name.rfind("::"); at != std::string::npos) name.erase(0, at + 2);
  kernel_.shared_variables.push_back(
      {std::move(name), static_cast<uint32_t>(begin - kSharedBase), static_cast<uint32_t>(end - kSharedBase)});
  Symbol symbol{Symbol::Kind::kAddress};
  symbol.address = begin;
  symbol.space = Space::kShared;
  symbol.variable = static_cast<uint32_t>(kernel_.shared_variables.size());
  shared_[var.name] = symbol;
}

uint64_t Decoder::local_address(const PtxVar& var) {
  uint64_t at = align_up(kernel_.local_bytes, alignment(var));
  if (at + var.bytes() > (1u << 19)) fail("local variables are larger than 512 KiB per thread");
  kernel_.local_bytes = static_cast<uint32_t>(at + var.bytes());
  return kLocalBase + at;
}

/// Allocates a variable, after the variables whose addresses it holds.
uint64_t Decoder::global_address(const PtxVar& var) {
  if (var.is_extern) fail(fmt::format("variable '{}' is defined elsewhere", var.name));
  const auto [place, fresh] = globals_.try_emplace(var.name, 0);
  if (!fresh && place->second) return place->second;
  if (!fresh) fail(fmt::format("circular initial value of '{}'; this is not supported", var.name));
  if (++pointer_depth_ > kMaxPointerDepth) fail("variables hold each other's addresses deeper than 64");
  PtxVar own = var;
  for (const PtxVar::Pointer& p : var.pointers) {
    const auto to = globals_by_name_.find(p.to);
    const PtxFunction* const function = find_function(p.to);
    if (!function && (to == globals_by_name_.end() || to->second->space == Space::kShared))
      fail(fmt::format("'{}' holds the address of '{}', which is not a variable of the module's memory", var.name,
                       p.to));
    const uint64_t address = (function ? address_of(*function) : global_address(*to->second)) + p.displacement;
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
  } else if (var.space == Space::kShared) {
    symbol.address = kSharedBase;  // of one that is not mentioned
    if (const auto at = shared_.find(var.name); at != shared_.end()) symbol = at->second;
  } else
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
    if (type.bits == 128) symbol.slot = Slot::kB64;  // the lower half; the upper one is the next register
    for (uint32_t part = 0; part < (type.bits == 128 ? 2u : 1u); ++part)
      registers_.push_back({symbol.slot, false, std::string(name)});
    symbol.is_double = type.bits == 128;
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
  bool numbered = digits < name.size() &&
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
    if (v.space == Space::kShared) return scopes_[0].symbols[name] = shared_[name];
    Symbol symbol{Symbol::Kind::kAddress};
    symbol.space = v.space;
    symbol.address = global_address(v);
    return scopes_[0].symbols[name] = symbol;
  }
  if (const PtxFunction* f = find_function(name)) {
    Symbol symbol{Symbol::Kind::kAddress};
    symbol.address = address_of(*f);
    return scopes_[0].symbols[name] = symbol;
  }
  if (name.size() > 1 && name[0] == '%' && name.find('.') != std::string_view::npos)
    fail(fmt::format("unknown special register '{}'", name));
  fail(fmt::format("'{}' is not declared", name));
}

}  // namespace roofgen::sim
