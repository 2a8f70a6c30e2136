#include "runtime/sim/doubles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace roofgen::sim {

// ---- formats -------------------------------------------------------------------------------------------

double decoded_half(uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> 10 & 31);
  const auto digits = static_cast<double>(bits & 1023);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double size = exponent == 31  ? (digits != 0 ? std::numeric_limits<double>::quiet_NaN() : kInfinity)
                      : exponent == 0 ? std::ldexp(digits, -24)
                                      : std::ldexp(digits + 1024, exponent - 25);
  return bits >> 15 & 1 ? -size : size;
}

double smallest_normal(Format format) {
  return format == Format::kF16 ? 0x1p-14 : format == Format::kF64 ? 0x1p-1022 : 0x1p-126;
}

namespace {

/// Of the significand, the first one included.
int digits_of(Format format) {
  switch (format) {
    case Format::kF16:
    case Format::kTf32: return 11;
    case Format::kBf16: return 8;
    case Format::kF32: return 24;
    default: return 53;
  }
}

// ---- rules ---------------------------------------------------------------------------------------------

constexpr std::pair<std::string_view, DoubleOp> kArithmetic[] = {
    {"add", DoubleOp::kAdd},          {"sub", DoubleOp::kSubtract}, {"mul", DoubleOp::kMultiply},
    {"fma", DoubleOp::kFused},        {"mad", DoubleOp::kFused},    {"div", DoubleOp::kDivide},
    {"rcp", DoubleOp::kReciprocal},   {"sqrt", DoubleOp::kRoot},    {"lg2", DoubleOp::kLog2},
    {"ex2", DoubleOp::kExp2},         {"sin", DoubleOp::kSine},     {"cos", DoubleOp::kCosine},
    {"tanh", DoubleOp::kTanh},        {"min", DoubleOp::kMinimum},  {"max", DoubleOp::kMaximum},
    {"neg", DoubleOp::kNegate},       {"abs", DoubleOp::kAbsolute}, {"rsqrt", DoubleOp::kReciprocalRoot},
    {"copysign", DoubleOp::kCopySign}};

/// Instructions that move bits, and how many of their sources hold them.
constexpr std::pair<std::string_view, uint8_t> kMoves[] = {
    {"mov", 1}, {"cvta", 1}, {"selp", 2}, {"slct", 2}, {"pack", 4}, {"unpack", 1}, {"shl", 1}, {"shr", 1},
    {"shf", 2}, {"prmt", 2}, {"bfe", 1},  {"bfi", 2},  {"and", 2},  {"or", 2},     {"xor", 2}, {"lop3", 3}};

constexpr uint8_t kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8;
constexpr std::pair<std::string_view, uint8_t> kRelations[] = {{"eq", kEqual},
                                                               {"ne", kLess | kGreater},
                                                               {"lt", kLess},
                                                               {"le", kLess | kEqual},
                                                               {"gt", kGreater},
                                                               {"ge", kGreater | kEqual},
                                                               {"equ", kEqual | kUnordered},
                                                               {"neu", kLess | kGreater | kUnordered},
                                                               {"ltu", kLess | kUnordered},
                                                               {"leu", kLess | kEqual | kUnordered},
                                                               {"gtu", kGreater | kUnordered},
                                                               {"geu", kGreater | kEqual | kUnordered},
                                                               {"num", kLess | kEqual | kGreater},
                                                               {"nan", kUnordered}};

template <class Table>
auto found_in(const Table& table, std::string_view name) {
  const auto at = std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.first == name; });
  return at == std::end(table) ? decltype(at->second){} : at->second;
}

/// "f16x2" is F16, and a pair.
Format format_of(std::string_view name, bool* paired = nullptr) {
  const bool two = name.ends_with("x2");
  if (two) name.remove_suffix(2);
  constexpr std::pair<std::string_view, Format> kNames[] = {{"f16", Format::kF16},
                                                            {"bf16", Format::kBf16},
                                                            {"tf32", Format::kTf32},
                                                            {"f32", Format::kF32},
                                                            {"f64", Format::kF64}};
  const Format format = found_in(kNames, name);
  if (paired) *paired = two && format != Format::kNone;
  return format;
}

/// Bytes of "u32" and the like; 0: another type.
uint8_t integer_bytes(std::string_view name, bool* is_signed) {
  if (name.size() < 2 || (name[0] != 'u' && name[0] != 's')) return 0;
  *is_signed = name[0] == 's';
  constexpr std::pair<std::string_view, uint8_t> kSizes[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
  return found_in(kSizes, name.substr(1));
}

bool has(const std::vector<std::string_view>& parts, std::string_view part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

/// cvt: between floats, to an integer or from one.
void convert_rule(const std::vector<std::string_view>& parts, DoubleRule& rule) {
  if (parts.size() < 3 || parts[1] == "pack") return;
  const std::string_view to = parts[parts.size() - 2], from = parts.back();
  bool from_pair = false;
  rule.to = format_of(to, &rule.joins);
  rule.from = format_of(from, &from_pair);
  const uint8_t to_integer = integer_bytes(to, &rule.is_signed), from_integer = integer_bytes(from, &rule.is_signed);
  constexpr std::pair<std::string_view, DoubleRule::Toward> kWhole[] = {{"rni", DoubleRule::Toward::kNearest},
                                                                        {"rzi", DoubleRule::Toward::kZero},
                                                                        {"rmi", DoubleRule::Toward::kDown},
                                                                        {"rpi", DoubleRule::Toward::kUp}};
  rule.toward = found_in(kWhole, parts[1]);
  const bool rounds = parts[1].size() == 3 && parts[1][0] == 'r' && parts[1][2] == 'i';
  if (to_integer && from_integer) {
    rule.op = DoubleOp::kMove;
    rule.sources = 1;
  } else if (to_integer && rule.from != Format::kNone) {
    rule.op = DoubleOp::kToInteger;
  } else if (from_integer && rule.to != Format::kNone) {
    rule.op = DoubleOp::kFromInteger;
    rule.integer_bytes = from_integer;
  } else if (rule.to != Format::kNone && rule.from != Format::kNone && !from_pair) {
    rule.op = rounds ? DoubleOp::kRoundToWhole : DoubleOp::kConvert;
    rule.sources = rule.joins ? 2 : 1;
  }
}

/// mma: the types of D, A, B and C are last, or before " of sm_89".
void matrix_rule(std::string_view opcode, DoubleRule& rule) {
  opcode = opcode.substr(0, opcode.find(' '));
  const auto parts = split_opcode(opcode);
  if (parts.size() < 8) return;
  const std::string_view shape = parts[3];
  rule.to = format_of(parts[parts.size() - 4]);
  rule.from = format_of(parts[parts.size() - 3]);
  rule.e5m2 = parts[parts.size() - 3] == "e5m2";
  rule.k = static_cast<uint8_t>(std::atoi(std::string(shape.substr(shape.find('k') + 1)).c_str()));
  if (rule.to != Format::kNone) rule.op = DoubleOp::kMatrices;
}

}  // namespace

DoubleRule double_rule(const std::string& opcode, const Signature& signature) {
  DoubleRule rule;
  for (int i = 0; i < 4; ++i) rule.wide[i] = signature.src[i] == Slot::kB64;
  const auto parts = split_opcode(opcode);
  const std::string_view base = parts[0];
  if (base == "mma") {
    matrix_rule(opcode, rule);
    return rule;
  }
  rule.saturates = has(parts, "sat");
  rule.clips = has(parts, "relu");
  rule.nan_wins = has(parts, "NaN");
  if (base == "cvt") {
    convert_rule(parts, rule);
    return rule;
  }
  if (base == "setp" || base == "set") {
    rule.from = format_of(parts.back(), &rule.paired);
    rule.relation = found_in(kRelations, parts[1]);
    if (rule.from != Format::kNone && rule.relation) rule.op = DoubleOp::kCompare, rule.sources = 2;
    return rule;
  }
  if (const uint8_t sources = found_in(kMoves, base); sources && signature.dst != Slot::kPred) {
    rule.op = DoubleOp::kMove;
    rule.sources = sources;
    rule.by_predicate = signature.src[2] == Slot::kPred;
    return rule;
  }
  rule.to = rule.from = format_of(parts.back(), &rule.paired);
  if (rule.to != Format::kNone) rule.op = found_in(kArithmetic, base);
  while (rule.sources < 3 && signature.src[rule.sources] != Slot::kNone) ++rule.sources;
  return rule;
}

bool holds(uint8_t relation, double a, double b) {
  return relation & (a < b ? kLess : a > b ? kGreater : a == b ? kEqual : kUnordered);
}

double whole(DoubleRule::Toward toward, double x) {
  switch (toward) {
    case DoubleRule::Toward::kNearest: return std::nearbyint(x);
    case DoubleRule::Toward::kZero: return std::trunc(x);
    case DoubleRule::Toward::kDown: return std::floor(x);
    case DoubleRule::Toward::kUp: break;
  }
  return std::ceil(x);
}

double in_double(const DoubleRule& rule, const double (&x)[3], double* largest) {
  const auto larger = [](double a, double b) { return std::max(std::fabs(a), std::fabs(b)); };
  const auto extreme = [&](bool first) {
    if (std::isnan(x[0]) || std::isnan(x[1])) return rule.nan_wins == std::isnan(x[0]) ? x[0] : x[1];
    return first ? x[0] : x[1];
  };
  double r = x[0];
  *largest = 0;
  switch (rule.op) {
    case DoubleOp::kAdd: r = x[0] + x[1], *largest = larger(x[0], x[1]); break;
    case DoubleOp::kSubtract: r = x[0] - x[1], *largest = larger(x[0], x[1]); break;
    case DoubleOp::kMultiply: r = x[0] * x[1]; break;
    case DoubleOp::kFused:
      // Of two floats the product is exact, as their own one is.
      r = rule.from == Format::kF64 ? std::fma(x[0], x[1], x[2]) : x[0] * x[1] + x[2];
      *largest = larger(x[0] * x[1], x[2]);
      break;
    case DoubleOp::kDivide: r = x[0] / x[1]; break;
    case DoubleOp::kReciprocal: r = 1 / x[0]; break;
    case DoubleOp::kRoot: r = std::sqrt(x[0]); break;
    case DoubleOp::kReciprocalRoot: r = 1 / std::sqrt(x[0]); break;
    case DoubleOp::kLog2: r = std::log2(x[0]); break;
    case DoubleOp::kExp2: r = std::exp2(x[0]); break;
    case DoubleOp::kSine: r = std::sin(x[0]); break;
    case DoubleOp::kCosine: r = std::cos(x[0]); break;
    case DoubleOp::kTanh: r = std::tanh(x[0]); break;
    case DoubleOp::kMinimum: r = extreme(x[0] < x[1]); break;
    case DoubleOp::kMaximum: r = extreme(x[0] > x[1]); break;
    case DoubleOp::kCopySign: r = std::copysign(x[1], x[0]); break;
    default: break;
  }
  if (rule.saturates) r = r > 0 ? std::min(r, 1.0) : 0;
  if (rule.clips && r < 0) r = 0;
  return r;
}

// ---- the launch ----------------------------------------------------------------------------------------

void Doubles::begin(const Kernel& kernel, const OpcodeTable& opcodes) {
  // The function of an instruction tells its spelling: of several with one function any says the same.
  std::map<LaneFn, DoubleRule> by_function;
  for (const Inst& in : kernel.code)
    if (in.lane) by_function[in.lane] = {};
  std::map<LaneFn, std::pair<std::string, const LaneEntry*>> names;
  for (const auto& [spelling, entry] : opcodes.spellings()) {
    if (!by_function.count(entry->fn)) continue;
    auto& name = names[entry->fn];
    if (!name.second || spelling < name.first) name = {spelling, entry};
  }
  for (const auto& [function, name] : names) by_function[function] = double_rule(name.first, name.second->signature);

  rules_.assign(kernel.code.size(), {});
  departures_.assign(kernel.code.size(), {});
  int digits = 0;
  const auto rounds_to = [&](Format format) {
    any_floats_ = true;
    digits = digits ? std::min(digits, digits_of(format)) : digits_of(format);
  };
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    const Inst& in = kernel.code[i];
    if (in.lane) rules_[i] = by_function[in.lane];
    const DoubleRule& rule = rules_[i];
    departures_[i].ptx = {kernel.file, static_cast<int>(in.line), 0};
    departures_[i].source = kernel.sources[i];
    if (in.kind == Kind::kWgmma && (in.imm & kWgmmaSumMask) != static_cast<int64_t>(WgmmaSum::kS32))
      rounds_to((in.imm & kWgmmaSumMask) == static_cast<int64_t>(WgmmaSum::kF16) ? Format::kF16 : Format::kF32);
    const auto type = static_cast<ElementType>(in.type);
    if (in.kind == Kind::kAtomic && static_cast<AtomicOp>(in.sub) == AtomicOp::kAdd && type >= ElementType::kF16)
      rounds_to(type == ElementType::kF64                                  ? Format::kF64
                : type == ElementType::kF32                                ? Format::kF32
                : type == ElementType::kF16 || type == ElementType::kF16x2 ? Format::kF16
                                                                           : Format::kBf16);
    if (rule.op == DoubleOp::kNone || rule.op == DoubleOp::kMove) continue;
    any_floats_ = true;
    if (rule.to != Format::kNone) rounds_to(rule.to);
  }
  decisions_ = losses_ = departures_;
  bound_ = std::ldexp(1, -digits / 2);

  constant_.assign(kernel.rows, false);
  std::vector<bool> defined(kernel.rows, false);
  for (const ConstantRow& c : kernel.constants) constant_[c.row] = true;
  // PTX moves constants that an instruction cannot hold into a register of their own.
  std::vector<bool> copies = constant_;
  for (size_t i = 0; i < kernel.code.size(); ++i)
    for (uint32_t at = kernel.operand_begin[i]; at < kernel.operand_begin[i + 1]; ++at) {
      const Operand& o = kernel.operands[at];
      if (!o.is_def || o.is_pred) continue;
      const bool is_copy = kernel.code[i].flags & kFlagCopy && constant_[kernel.code[i].a];
      copies[o.place] = is_copy && (copies[o.place] || !defined[o.place]);
      defined[o.place] = true;
    }
  constant_ = copies;
}

const DoubleMemory::Cell* Doubles::at(uint64_t address, Format format, uint64_t bits) const {
  const DoubleMemory::Cell* cell = device_.find(address, bits);
  if (cell && bytes_of(cell->format) == bytes_of(format)) return cell;
  // A bf16 is the upper half of a float.
  if (format != Format::kF32 || (bits & 0xffff)) return nullptr;
  cell = device_.find(address + 2, bits >> 16);
  return cell && cell->format == Format::kBf16 ? cell : nullptr;
}

bool Doubles::apart(double own, double value, Format format) const {
  if (own == value || (std::isnan(own) && std::isnan(value))) return false;
  if (!std::isfinite(own) || !std::isfinite(value)) return true;
  const double size = std::max({std::fabs(own), std::fabs(value), smallest_normal(format)});
  return std::fabs(own - value) > bound_ * size;
}

std::vector<DoubleSite> Doubles::in_order(const std::vector<DoubleSite>& sites) {
  std::vector<DoubleSite> out;
  std::copy_if(sites.begin(), sites.end(), std::back_inserter(out), [](const DoubleSite& s) { return s.count > 0; });
  std::sort(out.begin(), out.end(), [](const DoubleSite& a, const DoubleSite& b) { return a.order < b.order; });
  return out;
}

}  // namespace roofgen::sim
