#include "lab/mutants/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>

#include "lab/mutants/replace.h"

namespace roofgen::mutants {
namespace {

using Kind = PtxOperand::Kind;

/// Bytes of one access: 8 of `ld.global.v2.f32`.
uint64_t access_bytes(std::string_view opcode) {
  std::match_results<std::string_view::const_iterator> match;
  static const std::regex kType(R"((?:\.v([24]))?\.[busf](8|16|32|64)$)");
  if (opcode.starts_with("cp.") || opcode.starts_with("ldmatrix") ||
      !std::regex_search(opcode.begin(), opcode.end(), match, kType))
    return 16;
  return (match[1].matched ? std::stoull(match[1]) : 1) * std::stoull(match[2]) / 8;
}

// ---- Constants and addresses -------------------------------------------------------------------

void shift_constants(const Code&, const PtxStmt& s, Replacements& out) {
  for (size_t i = 0; i < s.operands.size(); ++i)
    for (const uint64_t step : {uint64_t{1}, ~uint64_t{0}})
      if (s.operands[i].kind == Kind::kInteger) add(out, s, [&](PtxStmt& c) { c.operands[i].bits += step; });
}

/// Twice a number; 1 for 0, 0 for infinity.
void scale_constants(const Code&, const PtxStmt& s, Replacements& out) {
  for (size_t i = 0; i < s.operands.size(); ++i) {
    if (s.operands[i].kind != Kind::kFloat || s.operands[i].float_bits != 32) continue;
    add(out, s, [&](PtxStmt& c) {
      uint64_t& bits = c.operands[i].bits;
      const uint64_t exponent = bits >> 23 & 0xff;
      bits = exponent == 0 ? 0x3f800000 : exponent == 0xff ? 0 : bits + (1 << 23);
    });
  }
}

void displace(const Code&, const PtxStmt& s, Replacements& out) {
  const uint64_t bytes = access_bytes(s.name);
  for (size_t i = 0; i < s.operands.size(); ++i)
    for (const uint64_t step : {bytes, ~bytes + 1})
      if (s.operands[i].kind == Kind::kAddress) add(out, s, [&](PtxStmt& c) { c.operands[i].bits += step; });
}

/// The next argument of the same type.
void next_argument(const Code& code, const PtxStmt& s, Replacements& out) {
  const auto& params = code.params();
  const auto own =
      std::find_if(params.begin(), params.end(), [&](const sim::PtxVar& p) { return p.name == s.operands[1].name; });
  if (own == params.end()) return;
  for (size_t i = 1; i < params.size(); ++i) {
    const sim::PtxVar& other = params[(static_cast<size_t>(own - params.begin()) + i) % params.size()];
    if (other.type.kind != own->type.kind || other.bytes() != own->bytes()) continue;
    return add(out, s, [&](PtxStmt& c) { c.operands[1].name = other.name; });
  }
}

void other_axis(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() < 2 || s.operands[1].name.size() < 3) return;
  const std::string_view from = s.operands[1].name;
  for (const char* name : {"%tid.x", "%tid.y", "%ctaid.x", "%ctaid.y", "%ctaid.z"}) {
    const std::string_view to = name;
    if (from != to && from.substr(0, from.size() - 1) == to.substr(0, to.size() - 1))
      add(out, s, [&](PtxStmt& c) { c.operands[1].name = to; });
  }
}

// ---- Operands ----------------------------------------------------------------------------------

template <size_t kFirst>
void exchange(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() > kFirst + 1)
    add(out, s, [](PtxStmt& c) { std::swap(c.operands[kFirst], c.operands[kFirst + 1]); });
}

/// Neighbours in a vector: the registers of a fragment, of a wide access, of a packed pair.
void exchange_in_vectors(const Code&, const PtxStmt& s, Replacements& out) {
  for (size_t i = 0; i < s.operands.size(); ++i)
    for (size_t j = 0; j + 1 < s.operands[i].items.size() && s.operands[i].kind == Kind::kVector; ++j)
      add(out, s, [&](PtxStmt& c) { std::swap(c.operands[i].items[j], c.operands[i].items[j + 1]); });
}

void next_register(PtxOperand& operand, const std::function<void(PtxOperand&, std::string_view)>& each) {
  for (PtxOperand& item : operand.items) next_register(item, each);
  const size_t digits = operand.name.find_last_not_of("0123456789") + 1;
  if (operand.name.starts_with('%') && digits > 0 && digits < operand.name.size())
    each(operand, keep(fmt::format("{}{}", operand.name.substr(0, digits),
                                   std::stoull(std::string(operand.name.substr(digits))) + 1)));
}

void neighbour_register(const Code& code, const PtxStmt& s, Replacements& out) {
  PtxStmt copy = s;
  for (size_t i = has_result(s) ? 1 : 0; i < s.operands.size(); ++i)
    next_register(copy.operands[i], [&](PtxOperand& operand, std::string_view other) {
      if (code.type_of(other).bits == 0) return;
      const std::string_view own = std::exchange(operand.name, other);
      out.push_back(to_text(copy));
      operand.name = own;
    });
}

// ---- Predicates --------------------------------------------------------------------------------

void negate_guard(const Code&, const PtxStmt& s, Replacements& out) {
  if (!s.guard.empty()) add(out, s, [](PtxStmt& c) { c.guard_negated = !c.guard_negated; });
}
void drop_guard(const Code&, const PtxStmt& s, Replacements& out) {
  if (!s.guard.empty()) add(out, s, [](PtxStmt& c) { c.guard = {}; });
}
void drop_branch(const Code&, const PtxStmt& s, Replacements& out) {
  if (!s.guard.empty()) out.push_back(";");
}

// ---- Types -------------------------------------------------------------------------------------

void lose_sign(const Code&, const PtxStmt& s, Replacements& out) {
  add(out, s,
      [&](PtxStmt& c) { c.name = keep(std::regex_replace(std::string(s.name), std::regex(R"(\.s(\d))"), ".u$1")); });
}

/// The result keeps the lower half of its bits.
void narrow(const Code& code, const PtxStmt& s, Replacements& out) {
  const unsigned bits = code.type_of(s.operands[0].name).bits;
  if (bits < 32) return;
  out.push_back(fmt::format("{0} {1}shl.b{2} {3}, {3}, {4}; {1}shr.s{2} {3}, {3}, {4};", to_text(s), guard_of(s), bits,
                            s.operands[0].name, bits / 2));
}

/// The result is rounded to 16 bits.
void round_result(const Code& code, const PtxStmt& s, Replacements& out) {
  const char* format = code.ptx().find("bf16") != std::string::npos ? "bf16" : "f16";
  out.push_back(
      fmt::format("{0} {{ .reg .b16 %mutant_half; {1}cvt.rn.{2}.f32 %mutant_half, {3}; "
                  "{1}cvt.f32.{2} {3}, %mutant_half; }}",
                  to_text(s), guard_of(s), format, s.operands[0].name));
}

/// The first half of a vector.
void halve_vector(const Code&, const PtxStmt& s, Replacements& out) {
  add(out, s, [](PtxStmt& c) {
    const bool four = c.name.find(".v4") != std::string_view::npos;
    c.name = keep(four ? replaced(c.name, R"(\.v4)", ".v2") : replaced(c.name, R"(\.v2)", ""));
    for (PtxOperand& o : c.operands) {
      if (o.kind != Kind::kVector) continue;
      o.items.resize(o.items.size() / 2);
      if (!four) o = PtxOperand(o.items[0]);
    }
  });
}

void halve_matrices(const Code&, const PtxStmt& s, Replacements& out) {
  add(out, s, [](PtxStmt& c) {
    c.name = keep(replaced(c.name, R"(\.x4)", ".x2"));
    for (PtxOperand& o : c.operands)
      if (o.kind == Kind::kVector) o.items.resize(2);
  });
}

void transpose(const Code&, const PtxStmt& s, Replacements& out) {
  const bool transposed = s.name.find(".trans") != std::string_view::npos;
  add(out, s, [&](PtxStmt& c) {
    c.name = keep(transposed ? replaced(s.name, R"(\.trans)", "") : replaced(s.name, R"((\.x[124]))", "$1.trans"));
  });
}

// ---- Asynchronous copies -----------------------------------------------------------------------

void halve_copy(const Code&, const PtxStmt& s, Replacements& out) {
  add(out, s, [](PtxStmt& c) {
    c.name = keep(replaced(c.name, R"(\.cg)", ".ca"));
    c.operands[2].bits /= 2;
    c.operands.resize(3);
  });
}
void copy_everything(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() > 3) add(out, s, [](PtxStmt& c) { c.operands.resize(3); });
}

// ---- Lanes -------------------------------------------------------------------------------------

/// Twice or half the distance, or no exchange: lanes at the end receive their own value.
void other_lane(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands[2].kind == Kind::kInteger)
    for (const uint64_t lane : {s.operands[2].bits * 2 % 32, s.operands[2].bits / 2})
      add(out, s, [&](PtxStmt& c) { c.operands[2].bits = lane; });
  add(out, s, [&](PtxStmt& c) { c.name = keep(replaced(s.name, R"(\.bfly)", ".up")); });
}

// ---- Dropped -----------------------------------------------------------------------------------

/// The result is one of the sources of its type.
template <size_t kSource>
void pass(const Code& code, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() <= kSource) return;
  const PtxOperand &to = s.operands[0], &from = s.operands[kSource];
  const unsigned bits = code.type_of(to.name).bits;
  if (from.kind != Kind::kName || from.negated || bits == 0 || bits != code.type_of(from.name).bits) return;
  out.push_back(
      fmt::format("{}mov.{} {}, {};", guard_of(s), bits == 1 ? "pred" : fmt::format("b{}", bits), to.name, from.name));
}

/// D = C.
void drop_product(const Code&, const PtxStmt& s, Replacements& out) {
  const std::vector<PtxOperand>&d = s.operands[0].items, &c = s.operands[3].items;
  std::string moves;
  for (size_t i = 0; i < d.size() && i < c.size(); ++i)
    moves += fmt::format("mov.b32 {}, {}; ", to_text(d[i]), to_text(c[i]));
  out.push_back(moves + ";");
}

const std::vector<Rule> kDataRules = {
    {"constant off by one", R"(^(?!bar|shfl|cp\.|mbarrier|ld\.param|vote))", nullptr, shift_constants},
    {"float constant doubled", "", nullptr, scale_constants},
    {"address off by one", R"(^((ld|st|red|atom)\.(global|shared|local)|cp\.async\.c|ldmatrix))", nullptr, displace},
    {"wrong argument", R"(^ld\.param)", nullptr, next_argument},
    {"wrong axis", R"(^mov)", nullptr, other_axis},
    {"neighbouring register", "", nullptr, neighbour_register},
    {"operands exchanged", R"(^(sub|div|rem|shl|shr|setp\.[lg][te]|selp|cvt.*x2)\b)", nullptr, exchange<1>},
    {"operands exchanged", R"(^(fma|mad\.lo))", nullptr, exchange<2>},
    {"vector elements exchanged", "", nullptr, exchange_in_vectors},
    {"add for sub", R"(^sub\b)", "add"},
    {"add for sub", R"(^add\b)", "sub"},
    {"add for multiply", R"(^mul(\.rn)?\.f32)", "add.f32"},
    {"min for max", R"(^min\b)", "max"},
    {"min for max", R"(^max\b)", "min"},
    {"other bit operation", R"(^and\b)", "or"},
    {"other bit operation", R"(^or\b)", "and"},
    {"other bit operation", R"(^xor\b)", "or"},
    {"shift the other way", R"(^shl\.b)", "shr.u"},
    {"shift the other way", R"(^shr\.[su])", "shl.b"},
    {"comparison off by one", R"(^setp\.lt)", "setp.le"},
    {"comparison off by one", R"(^setp\.le)", "setp.lt"},
    {"comparison off by one", R"(^setp\.gt)", "setp.ge"},
    {"comparison off by one", R"(^setp\.ge)", "setp.gt"},
    {"comparison negated", R"(^setp\.lt)", "setp.ge"},
    {"comparison negated", R"(^setp\.le)", "setp.gt"},
    {"comparison negated", R"(^setp\.gt)", "setp.le"},
    {"comparison negated", R"(^setp\.ge)", "setp.lt"},
    {"comparison negated", R"(^setp\.eq)", "setp.ne"},
    {"comparison negated", R"(^setp\.ne)", "setp.eq"},
    {"comparison negated", R"(^setp\.neu)", "setp.equ"},
    {"comparison negated", R"(^not\.pred)", "mov.pred"},
    {"predicate negated", "", nullptr, negate_guard},
    {"guard dropped", "", nullptr, drop_guard},
    {"branch dropped", R"(^bra\b)", nullptr, drop_branch},
    {"any for all", R"(^vote\.sync\.any)", "vote.sync.all"},
    {"any for all", R"(^vote\.sync\.all)", "vote.sync.any"},
    {"sign lost", R"(^(cvt|mul\.wide|mul\.hi|mad\.wide|setp|shr|div|rem|min|max|ld)\..*\.?s(8|16|32))", nullptr,
     lose_sign},
    {"narrower integer", R"(^(add|sub|mul\.lo|mad\.lo|shl|mul\.wide)\.[bsu](32|64))", nullptr, narrow},
    {"result rounded to 16 bits", R"(^(add|sub|mul|fma|max|ex2|rcp|rsqrt|neg)\..*f32$)", nullptr, round_result, false,
     true},
    {"rounding towards zero", R"(^cvt\.rn(?=\.(satfinite\.)?(relu\.)?(bf16|f16|e4m3)))", "cvt.rz", nullptr, false,
     true},
    {"rounding towards zero", R"(^cvt\.rni)", "cvt.rzi"},
    {"smaller vector", R"(\.v[24]\.)", nullptr, halve_vector},
    {"smaller vector", R"(^ldmatrix.*x4)", nullptr, halve_matrices},
    {"smaller vector", R"(^cp\.async\.cg)", nullptr, halve_copy},
    {"matrix transposed", R"(^ldmatrix)", nullptr, transpose},
    {"zero fill ignored", R"(^cp\.async\.c)", nullptr, copy_everything},
    {"wrong lane", R"(^shfl)", nullptr, other_lane},
    {"operation dropped", R"(^(add|sub|mul|div|rem|and|or|xor|not|min|max|shl|shr|neg|abs|selp|shfl)\b)", nullptr,
     pass<1>},
    {"operation dropped", R"(^(ex2|lg2|rcp|rsqrt|sqrt|tanh|sin|cos)\b)", nullptr, pass<1>},
    {"operation dropped", R"(^(fma|mad)\b)", nullptr, pass<3>},
    {"operation dropped", R"(^mma)", nullptr, drop_product},
    {"copy dropped", R"(^cp\.async\.c[ag])", nullptr, drop},
    {"store dropped", R"(^(st|red)\.)", nullptr, drop, true},
};

}  // namespace

void drop(const Code&, const PtxStmt&, Replacements& out) { out.push_back(";"); }

std::vector<const Rule*> rules(Group group) {
  std::vector<const Rule*> out;
  if (group == Group::kData)
    for (const Rule& rule : kDataRules) out.push_back(&rule);
  for (const Rule& rule : dropping_rules()) out.push_back(&rule);
  if (group == Group::kOrder)
    for (const Rule& rule : order_rules()) out.push_back(&rule);
  return out;
}

Replacements replacements(const Rule& rule, const Code& code, const PtxStmt& s) {
  // A kernel has thousands of instructions and some fifty opcodes.
  static std::map<std::pair<const Rule*, std::string>, bool> known;
  Replacements out;
  if (s.kind != PtxStmt::Kind::kInstruction) return out;
  const auto [applies, fresh] = known.try_emplace({&rule, std::string(s.name)});
  if (fresh) applies->second = std::regex_search(applies->first.second, std::regex(rule.applies));
  if (!applies->second) return out;
  if (rule.opcode)
    add(out, s, [&](PtxStmt& c) { c.name = keep(replaced(s.name, rule.applies, rule.opcode)); });
  else
    rule.change(code, s, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase(out, to_text(s));
  return out;
}

}  // namespace roofgen::mutants
