#include "runtime/sim/undefined_bits.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "runtime/sim/code.h"

namespace roofgen::sim {
namespace {

constexpr int64_t kTableInE = -1;

/// `number`: the sources whose bits move, or the table of a logic operation.
struct Rule {
  std::string_view opcode;
  MadeOf made_of;
  int64_t number = 0;
};
/// Whatever the type and the mode.
constexpr Rule kRules[] = {
    {"mov", MadeOf::kLogic, kTableA},    {"cvta", MadeOf::kLogic, kTableA},  {"and", MadeOf::kLogic, kTableAnd},
    {"or", MadeOf::kLogic, kTableOr},    {"xor", MadeOf::kLogic, kTableXor}, {"not", MadeOf::kLogic, kTableNot},
    {"lop3", MadeOf::kLogic, kTableInE}, {"selp", MadeOf::kSelected},        {"pack", MadeOf::kMoved, 4},
    {"unpack", MadeOf::kMoved, 1},       {"shl", MadeOf::kMoved, 1},         {"shr", MadeOf::kMoved, 1},
    {"shf", MadeOf::kMoved, 2},          {"prmt", MadeOf::kMoved, 2},        {"bfe", MadeOf::kMoved, 1},
    {"bfi", MadeOf::kMoved, 2},          {"brev", MadeOf::kMoved, 1}};
/// With an integer type after, and nothing else.
constexpr Rule kIntegerRules[] = {
    {"add", MadeOf::kSum},          {"sub", MadeOf::kDifference},    {"mul.lo", MadeOf::kProduct},
    {"mul.wide", MadeOf::kProduct}, {"mad.lo", MadeOf::kProductSum}, {"mad.wide", MadeOf::kProductSum},
    {"setp.eq", MadeOf::kEqual},    {"setp.ne", MadeOf::kEqual},     {"setp.lt", MadeOf::kLess},
    {"setp.lo", MadeOf::kLess},     {"setp.ge", MadeOf::kLess},      {"setp.hs", MadeOf::kLess},
    {"setp.gt", MadeOf::kGreater},  {"setp.hi", MadeOf::kGreater},   {"setp.le", MadeOf::kGreater},
    {"setp.ls", MadeOf::kGreater}};
/// On both halves of a register, each of its own.
constexpr std::string_view kPaired[] = {"add", "sub", "mul", "fma", "min", "max", "neg", "abs"};

/// Bytes of "u32" and the like; none for other types.
std::optional<uint8_t> integer_bytes(std::string_view type) {
  if (type.empty() || std::string_view("usb").find(type[0]) == type.npos) return std::nullopt;
  const std::string_view bits = type.substr(1);
  if (bits == "8") return 1;
  if (bits == "16") return 2;
  if (bits == "32") return 4;
  if (bits == "64") return 8;
  return std::nullopt;
}

uint64_t cut(uint64_t bits, const Inst& in) { return in.size ? bits & low_bytes(in.size) : bits; }
PartlyDefined cut(PartlyDefined x, const Inst& in) { return {cut(x.value, in), cut(x.undefined, in)}; }
PartlyDefined extended(PartlyDefined x, const Inst& in) { return {extended(x.value, in), extended(x.undefined, in)}; }
/// Signed numbers in the order of unsigned ones.
PartlyDefined ordered(PartlyDefined x, const Inst& in) {
  if (in.flags & kFlagSigned) x.value ^= uint64_t{1} << (8 * in.size - 1);
  return cut(x, in);
}

/// A bit of a sum is defined where its operands' bits and the carry into it are. Carries grow with the operands.
uint64_t undefined_sum(PartlyDefined a, PartlyDefined b) {
  return a.undefined | b.undefined | ((a.lowest() + b.lowest()) ^ (a.highest() + b.highest()));
}
uint64_t undefined_difference(PartlyDefined a, PartlyDefined b) {
  return a.undefined | b.undefined | ((a.lowest() - b.highest()) ^ (a.highest() - b.lowest()));
}
/// The lowest undefined bit of a factor counts as often as the other says, of which zeros at the end are known.
uint64_t undefined_product(PartlyDefined a, PartlyDefined b) {
  const int from = std::min(std::countr_zero(a.undefined) + std::countr_zero(b.highest()),
                            std::countr_zero(b.undefined) + std::countr_zero(a.highest()));
  return from >= 64 ? 0 : kAllBits << from;
}
/// Whether a < b is open.
bool less(PartlyDefined a, PartlyDefined b) { return (a.lowest() < b.highest()) != (a.highest() < b.lowest()); }

/// Runs an instruction on other registers than its own.
struct Trial {
  alignas(64) uint64_t rows[5][kWarpSize] = {};  ///< of the sources, and of the result
  uint32_t predicate = 0;                        ///< the result, if it is one

  void set(uint32_t i, const SourceBits& source, const uint64_t* from) {
    if (source.wide)
      std::copy_n(from, kWarpSize, rows[i]);
    else
      std::copy_n(from, kWarpSize, reinterpret_cast<uint32_t*>(rows[i]));
  }
  void run(Inst in) {
    in.a = 0, in.b = 2, in.c = 4, in.e = 6, in.d = 8;  // a row has 32 bits per lane
    if (in.sub) in.sub = 0, in.d = 0, in.e = 0;
    in.lane({reinterpret_cast<uint32_t*>(rows[0]), &predicate}, in, nullptr, ~0u);
  }
};

/// The instruction moves the undefined bits as it does the values; sources that say where keep their values.
void move_undefined(const Inst& in, const SourceBits (&sources)[4], uint64_t (&undefined)[kWarpSize]) {
  Trial trial;
  for (uint32_t i = 0; i < 4; ++i) trial.set(i, sources[i], i < in.imm ? sources[i].undefined : sources[i].value);
  trial.run(in);
  for (uint32_t l = 0; l < kWarpSize; ++l) {
    uint32_t narrow;
    std::memcpy(&narrow, reinterpret_cast<const std::byte*>(trial.rows[4]) + 4 * l, 4);
    undefined[l] = in.flags & kFlagWide ? trial.rows[4][l] : narrow;
    for (auto i = static_cast<uint32_t>(in.imm); i < 4; ++i)
      if (sources[i].undefined[l]) undefined[l] = kAllBits;
  }
}

/// setp's `(a cmp b) op c`, and `!(a cmp b) op c`.
void combine(const Inst& in, const SourceBits (&sources)[4], UndefinedResult& result) {
  Trial comparison;
  for (uint32_t i = 0; i < 2; ++i) comparison.set(i, sources[i], sources[i].value);
  comparison.run(in);
  const uint64_t table = in.sub == 1 ? kTableAnd : in.sub == 2 ? kTableOr : kTableXor;
  for (uint32_t l = 0; l < kWarpSize; ++l) {
    const uint64_t is = comparison.predicate >> l & 1, open = result.first[l];
    const PartlyDefined c{(sources[2].value[l] ^ static_cast<uint64_t>(in.imm)) & 1, sources[2].undefined[l]};
    result.first[l] = undefined_logic(table, {is, open}, c) & 1;
    result.second[l] = undefined_logic(table, {is ^ 1, open}, c) & 1;
  }
}

uint64_t undefined_in_lane(const Inst& in, PartlyDefined a, PartlyDefined b, PartlyDefined c, PartlyDefined e) {
  const uint64_t any = a.undefined | b.undefined | c.undefined | e.undefined;
  switch (static_cast<MadeOf>(in.type)) {
    case MadeOf::kHalves: {
      const uint64_t lower = in.flags & kFlagWide ? 0xffffffff : 0xffff;
      return (any & lower ? lower : 0) | (any & ~lower ? ~lower : 0);
    }
    case MadeOf::kLogic:
      return in.imm != kTableInE ? undefined_logic(static_cast<uint64_t>(in.imm), a, b, c)
             : e.undefined       ? kAllBits
                                 : undefined_logic(e.value, a, b, c);
    case MadeOf::kSelected:
      return c.undefined ? a.undefined | b.undefined | (a.value ^ b.value) : c.value ? a.undefined : b.undefined;
    case MadeOf::kSum: return undefined_sum(a, b);
    case MadeOf::kDifference: return undefined_difference(a, b);
    case MadeOf::kProduct: return undefined_product(extended(a, in), extended(b, in));
    case MadeOf::kProductSum: {
      const PartlyDefined x = extended(a, in), y = extended(b, in);
      return undefined_sum({x.value * y.value, undefined_product(x, y)}, c);
    }
    case MadeOf::kEqual: {
      const uint64_t open = cut(any, in);
      return open && !(cut(a.value ^ b.value, in) & ~open) ? kAllBits : 0;
    }
    case MadeOf::kLess: return less(ordered(a, in), ordered(b, in)) ? kAllBits : 0;
    case MadeOf::kGreater: return less(ordered(b, in), ordered(a, in)) ? kAllBits : 0;
    case MadeOf::kDot: return a.undefined | c.undefined | (b.undefined & static_cast<uint64_t>(in.imm)) ? kAllBits : 0;
    case MadeOf::kAll:
    case MadeOf::kMoved: break;
  }
  return cut(any, in) ? kAllBits : 0;
}

}  // namespace

void set_rule(Inst& in, std::string_view opcode, const Signature& signature) {
  const auto set = [&](const Rule& rule) {
    in.type = static_cast<uint8_t>(rule.made_of);
    if (rule.number) in.imm = rule.number;
    if (signature.dst == Slot::kB64) in.flags |= kFlagWide;
  };
  const auto set_size = [&](std::string_view type) {
    in.size = integer_bytes(type).value_or(0);
    if (type[0] == 's') in.flags |= kFlagSigned;
  };
  const std::string_view base = opcode.substr(0, opcode.find('.')), type = opcode.substr(opcode.rfind('.') + 1);
  // Of b, dp2a takes the bytes of one half.
  if (base == "dp2a") return set({{}, MadeOf::kDot, opcode.starts_with("dp2a.lo") ? 0xffff : 0xffff0000});
  for (const Rule& r : kRules)
    if (base == r.opcode) return set(r);
  for (const Rule& r : kIntegerRules)
    if (integer_bytes(type) && opcode.size() == r.opcode.size() + 1 + type.size() && opcode.starts_with(r.opcode)) {
      set_size(type);
      return set(r);
    }
  if (opcode.ends_with("x2") && std::ranges::count(kPaired, base)) return set({{}, MadeOf::kHalves});
  if (base == "cvt" && integer_bytes(type)) {
    set_size(type);
    const std::string_view to = opcode.substr(4, opcode.size() - 5 - type.size());
    if (integer_bytes(to)) set({{}, MadeOf::kMoved, 1});
  }
}

uint64_t undefined_logic(uint64_t table, PartlyDefined a, PartlyDefined b, PartlyDefined c) {
  uint64_t may_be[2] = {0, 0};
  for (uint32_t row = 0; row < 8; ++row) {
    const auto fits = [&](const PartlyDefined& x, uint32_t bit) {
      return x.undefined | (row & bit ? x.value : ~x.value);
    };
    may_be[table >> row & 1] |= fits(a, 4) & fits(b, 2) & fits(c, 1);
  }
  return may_be[0] & may_be[1];
}

void undefined_result(const Inst& in, const SourceBits (&sources)[4], UndefinedResult& result) {
  const auto at = [&](uint32_t i, uint32_t l) { return PartlyDefined{sources[i].value[l], sources[i].undefined[l]}; };
  if (static_cast<MadeOf>(in.type) == MadeOf::kMoved)
    move_undefined(in, sources, result.first);
  else
    for (uint32_t l = 0; l < kWarpSize; ++l)
      result.first[l] = undefined_in_lane(in, at(0, l), at(1, l), in.sub ? PartlyDefined{} : at(2, l), at(3, l));
  if (in.sub) return combine(in, sources, result);
  std::copy_n(result.first, kWarpSize, result.second);
}

}  // namespace roofgen::sim
