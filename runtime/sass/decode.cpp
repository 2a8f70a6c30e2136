#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "runtime/sass/instruction.h"

namespace roofgen::sass {
namespace {

#define OPCODE(name, pipe, action, results) {name, Pipe::pipe, Action::action, results},
constexpr Opcode kOpcodes[] = {
#include "runtime/sass/opcodes.def"
};
#undef OPCODE

/// An instruction that is not in the table: it takes a slot of the integer unit, and its results are unknown.
constexpr Opcode kUnknownOpcode = {"?", Pipe::kAlu, Action::kOpaque, 1};

constexpr const char* kPipeNames[] = {"FMA",    "FMA heavy",     "half",    "ALU",        "FP64",
                                      "tensor", "tensor memory", "XU",      "uniform",    "LSU",
                                      "TEX",    "branch",        "barrier", "dependency", "none"};

const std::unordered_map<std::string_view, uint64_t>& modifier_bits() {
  static const std::unordered_map<std::string_view, uint64_t> bits = {{"X", kX},
                                                                      {"HI", kHi},
                                                                      {"WIDE", kWide},
                                                                      {"U32", kU32},
                                                                      {"SX32", kSx32},
                                                                      {"L", kLeft},
                                                                      {"R", kRight},
                                                                      {"U64", kU64},
                                                                      {"S64", kS64},
                                                                      {"W", kW},
                                                                      {"AND", kAnd},
                                                                      {"OR", kOr},
                                                                      {"XOR", kXor},
                                                                      {"EX", kEx},
                                                                      {"LT", kLt},
                                                                      {"EQ", kEq},
                                                                      {"LE", kLe},
                                                                      {"GT", kGt},
                                                                      {"NE", kNe},
                                                                      {"GE", kGe},
                                                                      {"NUM", kNum},
                                                                      {"NAN", kNan},
                                                                      {"LTU", kLt | kUnordered},
                                                                      {"EQU", kEq | kUnordered},
                                                                      {"LEU", kLe | kUnordered},
                                                                      {"GTU", kGt | kUnordered},
                                                                      {"NEU", kNe | kUnordered},
                                                                      {"GEU", kGe | kUnordered},
                                                                      {"ALL", kAll},
                                                                      {"ANY", kAny},
                                                                      {"IDX", kIdx},
                                                                      {"UP", kUp},
                                                                      {"DOWN", kDown},
                                                                      {"BFLY", kBfly},
                                                                      {"RELU", kRelu},
                                                                      {"S32", kS32},
                                                                      {"SH", kSh},
                                                                      {"RCP", kRcp},
                                                                      {"RSQ", kRsq},
                                                                      {"SQRT", kSqrt},
                                                                      {"EX2", kEx2},
                                                                      {"LG2", kLg2},
                                                                      {"SIN", kSin},
                                                                      {"COS", kCos},
                                                                      {"BYPASS", kBypass},
                                                                      {"MT88", kTranspose},
                                                                      {"T", kTranspose},
                                                                      {"S8", kSigned},
                                                                      {"S16", kSigned | kS16},
                                                                      {"B32", kB32},
                                                                      {"32", kB32},
                                                                      {"ARV", kArrive},
                                                                      {"RP", kRp},
                                                                      {"PAND", kPand},
                                                                      {"E", kExtended},
                                                                      {"CONV", kConverged},
                                                                      {"DIV", kDiverged},
                                                                      {"COLLECTIVE", kCollective},
                                                                      {"SUM", kSum},
                                                                      {"MIN", kMin},
                                                                      {"MAX", kMax},
                                                                      {"U16", kU16},
                                                                      {"F64", kF64},
                                                                      {"F16", kF16},
                                                                      {"BF16", kF16},
                                                                      {"TRUNC", kTrunc},
                                                                      {"U", kUnanimous}};
  return bits;
}

/// m x n x k of the shapes in tensor mnemonics ("HMMA.16816"), as multiply-adds.
uint32_t matrix_shape(std::string_view word) {
  static const std::unordered_map<std::string_view, uint32_t> shapes = {
      {"884", 8 * 8 * 4},     {"1684", 16 * 8 * 4},     {"1688", 16 * 8 * 8},    {"16816", 16 * 8 * 16},
      {"16832", 16 * 8 * 32}, {"16864", 16 * 8 * 64},   {"8816", 8 * 8 * 16},    {"8832", 8 * 8 * 32},
      {"88128", 8 * 8 * 128}, {"168128", 16 * 8 * 128}, {"168256", 16 * 8 * 256}};
  const auto it = shapes.find(word);
  return it == shapes.end() ? 0 : it->second;
}

/// The words of "64x256x16", the shape of a warpgroup's product; false: another text.
bool read_product_shape(std::string_view word, std::array<uint32_t, 3>& shape) {
  const char *at = word.data(), *const end = at + word.size();
  for (size_t k = 0; k < shape.size(); ++k) {
    if (k && (at == end || *at++ != 'x')) return false;
    const auto [next, error] = std::from_chars(at, end, shape[k]);
    if (error != std::errc() || shape[k] > 256) return false;
    at = next;
  }
  return at == end;
}

Special special_of(std::string_view name) {
  static const std::unordered_map<std::string_view, Special> names = {{"SR_TID.X", Special::kTidX},
                                                                      {"SR_TID.Y", Special::kTidY},
                                                                      {"SR_TID.Z", Special::kTidZ},
                                                                      {"SR_CTAID.X", Special::kCtaidX},
                                                                      {"SR_CTAID.Y", Special::kCtaidY},
                                                                      {"SR_CTAID.Z", Special::kCtaidZ},
                                                                      {"SR_LANEID", Special::kLaneId},
                                                                      {"SRZ", Special::kZero},
                                                                      {"SR_EQMASK", Special::kLaneMask},
                                                                      {"SR_LTMASK", Special::kLtMask},
                                                                      {"SR_LEMASK", Special::kLeMask},
                                                                      {"SR_GTMASK", Special::kGtMask},
                                                                      {"SR_GEMASK", Special::kGeMask},
                                                                      {"SR_CgaCtaId", Special::kClusterCta},
                                                                      {"SR_CLOCKLO", Special::kClock},
                                                                      {"SR_CgaSize", Special::kClusterSize},
                                                                      {"SR_SWINHI", Special::kSharedWindowHigh}};
  const auto it = names.find(name);
  return it == names.end() ? Special::kOther : it->second;
}

/// "R12", "RZ", "UR4", "P3", "UPT" and the like; false: another text.
bool read_register(std::string_view text, Operand& out) {
  struct Form {
    std::string_view prefix;
    Operand::Kind kind;
    char zero;
    uint8_t zero_index;
  };
  static constexpr Form kForms[] = {{"UR", Operand::Kind::kUniform, 'Z', kUniformZero},
                                    {"UP", Operand::Kind::kUniformPredicate, 'T', kTruePredicate},
                                    {"R", Operand::Kind::kRegister, 'Z', kZeroRegister},
                                    {"P", Operand::Kind::kPredicate, 'T', kTruePredicate}};
  for (const Form& f : kForms) {
    if (!text.starts_with(f.prefix)) continue;
    const std::string_view rest = text.substr(f.prefix.size());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const bool is_zero = rest.size() == 1 && rest[0] == f.zero;
    if (!is_zero && (error != std::errc() || end != rest.data() + rest.size() || number > 255)) continue;
    out.kind = f.kind;
    out.index = is_zero ? f.zero_index : static_cast<uint8_t>(number);
    return true;
  }
  return false;
}

/// "0x10", "-0x10"
bool read_hex(std::string_view text, uint64_t& out) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (!text.starts_with("0x")) return false;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out = negative ? 0 - value : value;
  return true;
}
bool read_hex(std::string_view text, int32_t& out) {
  uint64_t value = 0;
  if (!read_hex(text, value)) return false;
  out = static_cast<int32_t>(static_cast<uint32_t>(value));
  return true;
}

/// The terms of "R4.64+UR6+-0x10" or "R4.X4+0x10".
bool read_address(std::string_view text, Operand& out) {
  out.index = kZeroRegister;
  while (!text.empty()) {
    const size_t plus = text.find('+');
    std::string_view term = text.substr(0, plus);
    text.remove_prefix(plus == std::string_view::npos ? text.size() : plus + 1);
    if (int32_t value = 0; read_hex(term, value)) {
      out.value += value;
      continue;
    }
    const size_t dot = term.find('.');
    Operand part;
    if (!read_register(term.substr(0, dot), part)) return false;
    if (part.kind == Operand::Kind::kUniform) {
      out.uniform = part.index;
      continue;
    }
    out.index = part.index;
    const std::string_view suffix = dot == std::string_view::npos ? "" : term.substr(dot);
    if (suffix.find(".64") != suffix.npos) out.wide = out.wide_uniform = true;
    out.is_word |= suffix.find(".U32") != suffix.npos;
    if (suffix.find(".X16") != suffix.npos)
      out.scale = 16;
    else if (suffix.find(".X8") != suffix.npos)
      out.scale = 8;
    else if (suffix.find(".X4") != suffix.npos)
      out.scale = 4;
  }
  return true;
}

/// c[0x0][0x160], c[0x2][R4+0x10]
bool read_constant(std::string_view text, Operand& out) {
  const size_t close = text.find(']');
  if (!text.starts_with("c[") || close == std::string_view::npos || text.size() < close + 3) return false;
  int32_t bank = 0;
  if (!read_hex(text.substr(2, close - 2), bank) || bank < 0 || bank > 31) return false;
  out.bank = static_cast<uint8_t>(bank);
  out.kind = Operand::Kind::kConstant;
  const size_t end = text.find(']', close + 1);
  return end != std::string_view::npos && read_address(text.substr(close + 2, end - close - 2), out);
}

Operand read_operand(std::string_view text, uint32_t immediate) {
  Operand out;
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('!') || text.starts_with('~')) out.inverted = true, text.remove_prefix(1);
  if (uint64_t value = 0; read_hex(text, value)) {
    out.kind = Operand::Kind::kImmediate;
    out.value = static_cast<int32_t>(static_cast<uint32_t>(value));
    out.upper = static_cast<uint32_t>(value >> 32);
    return out;
  }
  const std::string_view whole = text;
  if (text.starts_with('-')) out.negative = true, text.remove_prefix(1);
  if (text.starts_with('|')) {
    out.absolute = true;
    text.remove_prefix(1);
    if (const size_t bar = text.find('|'); bar != std::string_view::npos) text = text.substr(0, bar);
  }
  if (text.starts_with("c[")) {
    if (read_constant(text, out)) return out;
  } else if (text.starts_with('[') || text.find("desc[") < 2 || text.starts_with("tmem[")) {
    out.in_tensor_memory = text[0] == 't';
    const size_t open = text.rfind('['), close = text.rfind(']');
    if (close != std::string_view::npos && open < close && read_address(text.substr(open + 1, close - open - 1), out)) {
      out.kind = Operand::Kind::kMemory;
      return out;
    }
  } else if (text.starts_with("SR")) {
    out.kind = Operand::Kind::kSpecial;
    out.value = static_cast<int32_t>(special_of(text));
    return out;
  } else if (text.starts_with("SB")) {
    out.kind = Operand::Kind::kScoreboard;
    out.index = text.size() > 2 ? static_cast<uint8_t>(text[2] - '0') : 0;
    return out;
  } else {
    const size_t dot = text.find('.');
    if (read_register(text.substr(0, dot), out)) {
      if (dot != std::string_view::npos) {
        const std::string_view suffix = text.substr(dot);
        if (suffix.find(".H1") != suffix.npos)
          out.half = 2;
        else if (suffix.find(".H0") != suffix.npos)
          out.half = 1;
        if (suffix.find(".64") != suffix.npos) out.wide = true;
      }
      return out;
    }
    const char first = whole.size() > 1 && (whole[0] == '-' || whole[0] == '+') ? whole[1]
                       : whole.empty()                                          ? ' '
                                                                                : whole[0];
    if ((first >= '0' && first <= '9') || first == 'I' || first == 'Q' || first == 'S') {
      // A decimal number; the encoding has its bits.
      out = Operand{};
      out.kind = Operand::Kind::kImmediate;
      out.value = static_cast<int32_t>(immediate);
      out.is_float = true;
      return out;
    }
  }
  out = Operand{};
  out.kind = Operand::Kind::kOther;
  // B3: a convergence barrier
  if (whole.size() > 1 && whole[0] == 'B') std::from_chars(whole.data() + 1, whole.data() + whole.size(), out.value);
  return out;
}

/// Calls `use` with each operand: commas within brackets do not separate. Two addresses may follow each other without a
/// comma, "[R5][R2.64]".
template <class Use>
void split_operands(std::string_view text, Use use) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    const bool next_address = i > begin && i < text.size() && text[i] == '[' && text[begin] == '[' && depth == 1;
    if (i < text.size() && !next_address && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) use(text.substr(begin, i - begin));
    begin = next_address ? i : i + 1;
  }
}

bool is_predicate(const Operand& o) {
  return o.kind == Operand::Kind::kPredicate || o.kind == Operand::Kind::kUniformPredicate;
}
bool is_register(const Operand& o) { return o.kind == Operand::Kind::kRegister || o.kind == Operand::Kind::kUniform; }

uint8_t results_of(const Instruction& i) {
  if (i.opcode->results != kLeading) return std::min(i.count, static_cast<uint8_t>(i.opcode->results));
  uint8_t n = 0;
  if (i.opcode->action == Action::kVote)
    return i.count > 1 && is_register(i.operands[0]) ? 2 : std::min<uint8_t>(i.count, 1);
  while (n < i.count && is_predicate(i.operands[n])) ++n;
  if (n < i.count && is_register(i.operands[n])) {
    ++n;
    while (n < i.count && is_predicate(i.operands[n])) ++n;
  }
  return n;
}

/// "x32", "16dp256bit": the registers of a tensor memory access are the repetitions times those of one shape.
void read_tensor_memory_word(std::string_view word, Instruction& out) {
  unsigned number = 0;
  const auto read_number = [&](std::string_view digits) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc();
  };
  if (word.starts_with('x') && read_number(word.substr(1))) out.bytes = static_cast<uint16_t>(out.bytes * number);
  const size_t lanes = word.find("dp"), bits = word.find("bit");
  if (lanes == word.npos || bits == word.npos || !read_number(word.substr(lanes + 2))) return;
  unsigned rows = 32;
  std::from_chars(word.data(), word.data() + lanes, rows);
  out.bytes = static_cast<uint16_t>(out.bytes * std::max(1u, rows * number / (32 * 32)));
}

/// The data width in the modifiers of a memory access, and the shape of a matrix instruction.
void read_modifiers(std::string_view spelling, Instruction& out) {
  const auto& bits = modifier_bits();
  bool first = true, result_known = false;
  uint16_t result_bytes = 4;
  while (!spelling.empty()) {
    const size_t dot = spelling.find('.');
    const std::string_view word = spelling.substr(0, dot);
    spelling.remove_prefix(dot == std::string_view::npos ? spelling.size() : dot + 1);
    if (std::exchange(first, false)) continue;
    if (const auto it = bits.find(word); it != bits.end()) out.modifiers |= it->second;
    if (word == "U8" || word == "S8") out.bytes = 1;
    if (word == "U16" || word == "S16") out.bytes = 2;
    if (word == "64" || word == "F64" || word == "TRANS64") out.bytes = 8;
    if (word == "128") out.bytes = 16;
    // The first type of floats of a conversion is that of its result: F2F.F32.F64; I2F.U64 has a word as its result.
    const bool is_type = word.size() == 3 && word[0] == 'F';
    if (is_type && !std::exchange(result_known, true)) result_bytes = word.substr(1) == "64" ? 8 : 4;
    if (word == "2" && out.opcode->action == Action::kLdsm) out.matrices = 2;
    if (word == "4" && (out.opcode->action == Action::kLdsm || out.opcode->action == Action::kStsm)) out.matrices = 4;
    if (word == "2" && out.opcode->action == Action::kStsm) out.matrices = 2;
    if (out.opcode->pipe == Pipe::kTensor && out.matrix_flops == 0) out.matrix_flops = 2 * matrix_shape(word);
    if (std::array<uint32_t, 3> shape{}; out.opcode->action == Action::kProduct && read_product_shape(word, shape)) {
      out.matrix_flops = 2 * shape[0] * shape[1] * shape[2] / 4;
      out.matrix_n = static_cast<uint16_t>(shape[1]);
    }
    if (out.opcode->pipe == Pipe::kTensorMemory) read_tensor_memory_word(word, out);
    if (word.size() == 2 && word[1] == 'D' && word[0] >= '1' && word[0] <= '5')
      out.matrix_rank = static_cast<uint8_t>(word[0] - '0');
  }
  if (out.opcode->name == "F2F" || out.opcode->name == "I2F") out.bytes = result_bytes;
  if (out.opcode->name == "F2I") out.bytes = out.has(kU64 | kS64) ? 8 : 4;
}

}  // namespace

const char* to_string(Pipe pipe) { return kPipeNames[static_cast<size_t>(pipe)]; }

const Opcode* find_opcode(std::string_view spelling) {
  static const std::unordered_map<std::string_view, const Opcode*> table = [] {
    std::unordered_map<std::string_view, const Opcode*> out;
    for (const Opcode& o : kOpcodes) out.emplace(o.name, &o);
    return out;
  }();
  const auto it = table.find(spelling.substr(0, spelling.find('.')));
  return it == table.end() ? nullptr : it->second;
}

Control control_of(uint64_t upper) {
  const auto field = [&](int at, int width) { return static_cast<uint8_t>(upper >> at & ((1u << width) - 1)); };
  Control c;
  c.stall = field(41, 4);
  c.yield = field(45, 1) != 0;
  c.write_barrier = field(46, 3);
  c.read_barrier = field(49, 3);
  c.wait_mask = field(52, 6);
  c.reuse = field(58, 4);
  return c;
}

Instruction decode(const Text& text, uint64_t lower_word, uint64_t upper_word) {
  Instruction out;
  out.spelling = text.opcode;
  out.opcode = find_opcode(text.opcode);
  out.known = out.opcode != nullptr;
  if (!out.opcode) out.opcode = &kUnknownOpcode;
  out.control = control_of(upper_word);
  read_modifiers(text.opcode, out);
  if (text.predicate.starts_with('@')) out.guard = read_operand(std::string_view(text.predicate).substr(1), 0);
  split_operands(text.operands, [&](std::string_view one) {
    if (out.count < kMostOperands)
      out.operands[out.count++] = read_operand(one, static_cast<uint32_t>(lower_word >> 32));
  });
  out.results = results_of(out);
  // Turing's [R2] is a pair of registers in accesses with .E, [R2.U32+UR4] a register and a pair of uniform ones.
  const Action a = out.opcode->action;
  if (out.has(kExtended) && (a == Action::kLdg || a == Action::kStg || a == Action::kAtomg || a == Action::kRed))
    for (Operand& o : out.operands)
      if (o.kind == Operand::Kind::kMemory) o.wide = !o.is_word, o.wide_uniform = true;
  if (out.opcode->pipe == Pipe::kBranch && out.count > 0) {
    const Operand& last = out.operands[out.count - 1u];
    if (last.kind == Operand::Kind::kImmediate) out.target = static_cast<uint32_t>(last.value) / 16;
  }
  return out;
}

}  // namespace roofgen::sass
