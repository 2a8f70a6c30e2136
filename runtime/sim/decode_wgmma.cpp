// Decoding of wgmma and setmaxnreg.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/sim/decoder.h"
#include "runtime/sim/wgmma.h"

namespace roofgen::sim {
namespace {

struct MultiplicandType {
  std::string_view name;
  Multiplicand type;
  uint32_t bytes;
};
constexpr MultiplicandType kMultiplicands[] = {{"f16", Multiplicand::kF16, 2},   {"bf16", Multiplicand::kBf16, 2},
                                               {"tf32", Multiplicand::kTf32, 4}, {"e4m3", Multiplicand::kE4m3, 1},
                                               {"e5m2", Multiplicand::kE5m2, 1}, {"s8", Multiplicand::kS8, 1},
                                               {"u8", Multiplicand::kU8, 1}};

bool is_integer(Multiplicand t) { return t == Multiplicand::kS8 || t == Multiplicand::kU8; }

/// "m64n<n>k<k>"; {0, 0}: something else.
std::pair<uint32_t, uint32_t> shape_of(std::string_view name) {
  uint32_t n = 0, k = 0;
  if (!name.starts_with("m64n") || name.size() > 11) return {};
  name.remove_prefix(4);
  const auto number = [&](uint32_t& out) {
    while (!name.empty() && name[0] >= '0' && name[0] <= '9')
      out = 10 * out + static_cast<uint32_t>(name[0] - '0'), name.remove_prefix(1);
  };
  number(n);
  if (!name.starts_with("k")) return {};
  name.remove_prefix(1);
  number(k);
  return name.empty() ? std::pair(n, k) : std::pair(0u, 0u);
}

}  // namespace

void Decoder::need_target(const PtxStmt& stmt, bool has, const char* what) const {
  if (!has) fail(fmt::format("'{}' needs '.target {}', the module has '.target {}'", stmt.name, what, module_.target));
}

bool Decoder::warpgroup_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base == "setmaxnreg") {
    const bool more = m.take("inc");
    if ((!more && !m.take("dec")) || !m.take("sync") || !m.take("aligned") || !m.take("u32") || !m.done())
      unknown_opcode();
    need_target(stmt, module_.target.ends_with("a") || module_.target.ends_with("f"), "sm_90a");
    operands_are(stmt, 1, 1);
    const PtxOperand& o = stmt.operands[0];
    if (o.kind != PtxOperand::Kind::kInteger || o.bits < 24 || o.bits > 256 || o.bits % 8)
      fail(fmt::format("'{}' needs a constant that is a multiple of 8 from 24 to 256", stmt.name));
    Inst& in = emit(Kind::kSetRegisters, Class::kControl);
    in.sub = more;
    in.imm = static_cast<int64_t>(o.bits);
    in.flags |= kFlagAligned;
    return true;
  }
  if (base != "wgmma") return false;
  need_target(stmt, module_.target == "sm_90a", "sm_90a");
  if (m.take("mma_async")) {
    wgmma(stmt, m);
    return true;
  }
  const bool fence = m.take("fence"), commits = !fence && m.take("commit_group"), waits = m.take("wait_group");
  if ((!fence && !commits && !waits) || !m.take("sync") || !m.take("aligned") || !m.done()) unknown_opcode();
  operands_are(stmt, waits, waits);
  if (waits && stmt.operands[0].kind != PtxOperand::Kind::kInteger) fail("wgmma.wait_group needs a constant");
  Inst& in = emit(fence ? Kind::kWgmmaFence : commits ? Kind::kWgmmaCommit : Kind::kWgmmaWait, Class::kBarrier);
  in.imm = waits ? static_cast<int64_t>(std::min<uint64_t>(stmt.operands[0].bits, 1u << 30)) : 0;
  in.flags |= kFlagAligned;
  return true;
}

/// d, a, b, scale-d{, scale-a, scale-b{, turned-a}{, turned-b}}
void Decoder::wgmma(const PtxStmt& stmt, Modifiers& m) {
  const std::vector<PtxOperand>& o = stmt.operands;
  if (!m.take("sync") || !m.take("aligned")) unknown_opcode();
  if (m.peek() == "sp") not_modelled(fmt::format("'{}': sparse matrices are not supported", stmt.name));
  const auto [n, k] = shape_of(m.next());
  const bool saturates = m.take("satfinite");
  const std::string_view d_type = m.next();
  const auto type_of = [&](std::string_view name) -> const MultiplicandType& {
    for (const MultiplicandType& t : kMultiplicands)
      if (t.name == name) return t;
    if (name == "b1") not_modelled(fmt::format("'{}': products of bits are not supported", stmt.name));
    unknown_opcode();
  };
  const MultiplicandType &a = type_of(m.next()), &b = type_of(m.next());
  if (!m.done()) unknown_opcode();
  const bool integer = is_integer(a.type), wide = a.bytes == 2;
  const bool pair = a.type == b.type || (integer && is_integer(b.type)) || (is_fp8(a.type) && is_fp8(b.type));
  const bool sum =
      integer ? d_type == "s32"
              : d_type == "f32" || (d_type == "f16" && a.type != Multiplicand::kBf16 && a.type != Multiplicand::kTf32);
  const bool columns = n >= 8 && n <= 256 && n % 8 == 0 && (!integer || n <= 24 || n % 16 == 0);
  if (!pair || !sum || !columns || k != 32 / a.bytes || (saturates && !integer)) unknown_opcode();
  if (o.size() < 4) operands_are(stmt, 4, 4);
  const bool from_registers = o[1].kind == PtxOperand::Kind::kVector;
  const size_t scales = integer ? 0 : 2, turns = wide ? (from_registers ? 1 : 2) : 0;
  operands_are(stmt, 4 + scales + turns, 4 + scales + turns);

  const uint32_t sums = d_type == "f16" ? n / 4 : n / 2;
  const auto vector = [&](const PtxOperand& v, size_t registers) -> const std::vector<PtxOperand>& {
    if (v.kind != PtxOperand::Kind::kVector || v.items.size() != registers)
      fail(fmt::format("'{}' needs a vector of {} registers, found {}", stmt.name, registers,
                       v.kind == PtxOperand::Kind::kVector ? v.items.size() : 1));
    return v.items;
  };
  const auto constant_of = [&](size_t i, std::initializer_list<int64_t> allowed) {
    const auto value = static_cast<int64_t>(o[i].bits);
    if (o[i].kind != PtxOperand::Kind::kInteger || std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      fail(fmt::format("operand {} of '{}' must be the constant {} or {}", i + 1, stmt.name, *allowed.begin(),
                       *(allowed.begin() + 1)));
    return value;
  };
  emit(Kind::kWgmma, Class::kMma);
  const size_t first = refs_.size();
  for (const PtxOperand& r : vector(o[0], sums)) {
    def_list(r, Slot::kB32);
    RegisterRef read = refs_.back();
    read.is_def = false;
    refs_.push_back(read);
  }
  if (from_registers)
    for (const PtxOperand& r : vector(o[1], 4)) use_list(r, Slot::kB32);
  std::vector<uint32_t> written;
  for (size_t i = first; i < refs_.size(); ++i)
    if (refs_[i].is_def) written.push_back(refs_[i].reg);
  std::sort(written.begin(), written.end());
  if (std::adjacent_find(written.begin(), written.end()) != written.end())
    fail(fmt::format("a register is twice in the sums of '{}'", stmt.name));
  for (size_t i = first + 2 * sums; i < refs_.size(); ++i)
    if (std::binary_search(written.begin(), written.end(), refs_[i].reg))
      fail(fmt::format("a register is in the sums and in A of '{}'", stmt.name));
  int64_t how = static_cast<int64_t>(integer ? WgmmaSum::kS32 : d_type == "f16" ? WgmmaSum::kF16 : WgmmaSum::kF32);
  if (saturates) how |= kWgmmaSaturates;
  if (from_registers)
    how |= kWgmmaRegistersA;
  else
    use(&Inst::a, o[1], Slot::kB64);
  use(&Inst::b, o[2], Slot::kB64);
  if (o[3].kind == PtxOperand::Kind::kInteger && o[3].bits == 0)
    how |= kWgmmaReplaces;
  else
    use(&Inst::c, o[3], Slot::kPred);
  if (scales && constant_of(4, {1, -1}) != constant_of(5, {1, -1})) how |= kWgmmaNegative;
  if (turns == 2 && constant_of(6, {0, 1})) how |= kWgmmaTurnedA;
  if (turns && constant_of(5 + turns, {0, 1})) how |= kWgmmaTurnedB;
  Inst& in = kernel_.code.back();
  in.imm = how;
  in.count = static_cast<uint8_t>(n / 8);
  in.sub = static_cast<uint8_t>(k);
  in.size = static_cast<uint8_t>(a.bytes);
  in.type = static_cast<uint8_t>(static_cast<uint32_t>(a.type) | static_cast<uint32_t>(b.type) << 4);
  in.flags |= kFlagAligned;
  kernel_.has_wgmma = true;
}

/// Numbers the registers, and marks the instructions that use them.
void Decoder::watch_registers(const std::vector<bool>& watched) {
  kernel_.watched.assign(registers_.size(), 0);
  kernel_.watched_names.emplace_back();
  for (uint32_t r = 0; r < registers_.size(); ++r)
    if (watched[r]) {
      kernel_.watched[r] = static_cast<uint32_t>(kernel_.watched_names.size());
      kernel_.watched_names.push_back(registers_[r].name);
    }
  kernel_.watched_lists.resize(kernel_.lists.size());
  for (const RegisterRef& r : refs_) {
    if (r.is_pred || !kernel_.watched[r.reg]) continue;
    kernel_.code[r.inst].flags |= kFlagWatched;
    if (!r.field) kernel_.watched_lists[r.list_index] = kernel_.watched[r.reg];
  }
}

/// The registers of products, and those that they are copied to or from: compilers copy sums between a product and the
/// wait for it, and ptxas makes one register of both.
void Decoder::watch_products() {
  if (!kernel_.has_wgmma) return;
  std::vector<uint32_t> parent(registers_.size());
  std::iota(parent.begin(), parent.end(), 0u);
  const auto find = [&](uint32_t r) {
    while (parent[r] != r) r = parent[r] = parent[parent[r]];
    return r;
  };
  std::vector<bool> of_product(registers_.size());
  std::vector<uint32_t> source(kernel_.code.size(), ~0u);
  for (const RegisterRef& r : refs_) {
    const Inst& in = kernel_.code[r.inst];
    if (r.is_pred) continue;
    if (in.kind == Kind::kWgmma && !r.field) of_product[r.reg] = true;
    if (in.flags & kFlagCopy && !registers_[r.reg].fixed) {
      if (source[r.inst] == ~0u)
        source[r.inst] = r.reg;
      else
        parent[find(r.reg)] = find(source[r.inst]);
    }
  }
  std::vector<bool> watched(registers_.size());
  for (uint32_t r = 0; r < registers_.size(); ++r)
    if (of_product[r]) watched[find(r)] = true;
  for (uint32_t r = 0; r < registers_.size(); ++r) watched[r] = watched[find(r)];
  watch_registers(watched);
  // Inst::target: where a list of the same sums begins, one for all such products.
  std::map<std::vector<uint32_t>, uint32_t> lists;
  for (Inst& in : kernel_.code)
    if (in.kind == Kind::kWgmma) {
      const auto sums = kernel_.watched_lists.begin() + in.list;
      in.target = lists.try_emplace({sums, sums + sums_of(in)}, in.list).first->second;
    }
}

}  // namespace roofgen::sim
