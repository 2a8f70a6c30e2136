// Operands of the interpreter: what instructions read and write, and the lines that their addresses ask for.
#include <bit>
#include <cmath>
#include <span>

#include "runtime/sass/interpreter_state.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

void Interpreter::State::constant(const Operand& o, const Lanes& index, uint32_t bytes, unsigned word,
                                  Lanes& out) const {
  const std::string* bank = &bank0;
  out.axes = index.axes;
  if (o.bank != 0) {
    const auto it = banks.find(o.bank);
    if (it == banks.end()) {
      out.known = 0;
      return;
    }
    bank = &it->second;
  }
  out.known = index.known;
  const uint32_t size = std::min(bytes, 4u);
  const auto word_at = [&](uint32_t offset, uint32_t& value) {
    const uint64_t at = uint64_t{offset} + static_cast<uint32_t>(o.value) + 4 * word;
    value = 0;
    if (at + size > bank->size()) return false;
    std::memcpy(&value, bank->data() + at, size);
    return true;
  };
  // Nearly always all lanes read the same word.
  if (const uint32_t first = index.v[0]; std::all_of(index.v, index.v + 32, [=](uint32_t v) { return v == first; })) {
    uint32_t value = 0;
    if (!word_at(first, value)) out.known = 0;
    std::fill(out.v, out.v + 32, value);
  } else {
    for (unsigned lane = 0; lane < 32; ++lane)
      if (!word_at(index.v[lane], out.v[lane])) out.known &= ~(1u << lane);
  }
  if (o.bank == 0 && !is_set(static_cast<uint32_t>(o.value) + 4 * word)) out.known = 0;
  if (o.bank == 4)
    for (const uint32_t slot : unknown_slots)
      if (static_cast<uint32_t>(o.value) / 8 * 8 == slot) out.known = 0;
}

void Interpreter::State::read(const WarpState& w, const Operand& o, Lanes& out, bool is_float) const {
  switch (o.kind) {
    case Kind::kRegister:
      if (o.index == kZeroRegister)
        out.fill(0);
      else
        out = w.registers[o.index];
      break;
    case Kind::kUniform:
      if (o.index >= kUniformZero)
        out.fill(0);
      else
        out = w.uniform[o.index];
      break;
    case Kind::kImmediate: out.fill(static_cast<uint32_t>(o.value)); return;
    case Kind::kConstant: {
      Lanes index;
      index.fill(0);
      if (o.index != kZeroRegister) index = w.registers[o.index];
      if (o.uniform < kUniformZero) add_lanes(index, w.uniform[o.uniform]);
      constant(o, index, 4, 0, out);
      break;
    }
    default: out.fill(0), out.known = 0; return;
  }
  operand_axes |= out.axes;
  if (is_float) {
    if (o.absolute)
      for (uint32_t& v : out.v) v &= 0x7fffffffu;
    if (o.negative)
      for (uint32_t& v : out.v) v ^= 0x80000000u;
  } else {
    if (o.negative)
      for (uint32_t& v : out.v) v = 0 - v;
    if (o.inverted)
      for (uint32_t& v : out.v) v = ~v;
  }
}

/// A pair of registers, or of words of a constant. Immediates are extended by their sign.
void Interpreter::State::read_pair(const WarpState& w, const Operand& o, Lanes& low, Lanes& high) const {
  Operand upper = o;
  if (o.kind == Kind::kRegister) {
    read(w, o, low);
    if (o.index == kZeroRegister) {
      high.fill(0);
      return;
    }
    upper.index = static_cast<uint8_t>(o.index + 1);
  } else if (o.kind == Kind::kUniform) {
    read(w, o, low);
    if (o.index == kUniformZero) {
      high.fill(0);
      return;
    }
    upper.index = static_cast<uint8_t>(o.index + 1);
  } else if (o.kind == Kind::kConstant) {
    read(w, o, low);
    upper.value += 4;
  } else {
    read(w, o, low);
    high.fill(o.kind == Kind::kImmediate && o.value < 0 ? ~0u : 0);
    high.known = low.known;
    return;
  }
  read(w, upper, high);
}

uint32_t Interpreter::State::read_wide(const WarpState& w, Operand o, std::array<uint64_t, 32>& out) const {
  const bool negative = std::exchange(o.negative, false);
  Lanes low, high;
  read_pair(w, o, low, high);
  if (o.kind == Kind::kImmediate) high.fill(o.upper);
  for (unsigned l = 0; l < 32; ++l) {
    out[l] = low.v[l] | uint64_t{high.v[l]} << 32;
    if (negative) out[l] = 0 - out[l];
  }
  return low.known & high.known;
}

void Interpreter::State::predicate(const WarpState& w, const Operand& o, uint32_t& value, uint32_t& known) const {
  value = 0, known = kEveryLane;
  if (o.kind == Kind::kPredicate || o.kind == Kind::kUniformPredicate) {
    const bool uniform = o.kind == Kind::kUniformPredicate;
    if (o.index == kTruePredicate)
      value = kEveryLane;
    else
      value = (uniform ? w.uniform_predicates : w.predicates)[o.index & 7],
      known = (uniform ? w.uniform_predicate_known : w.predicate_known)[o.index & 7],
      operand_axes |= (uniform ? w.uniform_predicate_axes : w.predicate_axes)[o.index & 7];
  } else {
    known = 0;
  }
  if (o.inverted) value = ~value;
}

void Interpreter::State::write(WarpState& w, const Operand& o, const Lanes& value, uint32_t mask, unsigned plus) {
  if (o.kind == Kind::kRegister) {
    if (o.index == kZeroRegister || o.index + plus >= kZeroRegister) return;
    Lanes& to = w.registers[o.index + plus];
    const uint8_t kept = mask == kEveryLane ? uint8_t{0} : to.axes;
    merge(to, value, mask);
    to.axes = kept | operand_axes;
    w.known_registers[o.index + plus] = to.known != 0;
  } else if (o.kind == Kind::kUniform && o.index + plus < kUniformZero) {
    // The first active lane has the value of all.
    Lanes& to = w.uniform[o.index + plus];
    const int lane = mask ? std::countr_zero(mask) : 0;
    to.fill(value.v[lane]);
    to.known = value.known >> lane & 1 ? kEveryLane : 0;
    to.axes = operand_axes;
  }
}

void Interpreter::State::write_predicate(WarpState& w, const Operand& o, uint32_t value, uint32_t known,
                                         uint32_t mask) {
  if (o.index >= kTruePredicate) return;
  if (o.kind == Kind::kPredicate) {
    w.predicates[o.index] = (w.predicates[o.index] & ~mask) | (value & mask);
    w.predicate_known[o.index] = (w.predicate_known[o.index] & ~mask) | (known & mask);
    w.predicate_axes[o.index] = (mask == kEveryLane ? uint8_t{0} : w.predicate_axes[o.index]) | operand_axes;
  } else if (o.kind == Kind::kUniformPredicate) {
    const int lane = mask ? std::countr_zero(mask) : 0;
    w.uniform_predicates[o.index] = value >> lane & 1 ? kEveryLane : 0;
    w.uniform_predicate_known[o.index] = known >> lane & 1 ? kEveryLane : 0;
    w.uniform_predicate_axes[o.index] = operand_axes;
  }
}

uint32_t Interpreter::State::guarded(const WarpState& w, const Instruction& i, uint32_t mask) const {
  if (i.guard.kind == Kind::kNone) return mask;
  uint32_t value = 0, known = 0;
  predicate(w, i.guard, value, known);
  return mask & (value | ~known);
}

void Interpreter::State::addresses(const WarpState& w, const Operand& o, uint64_t out[32], uint32_t& known) const {
  Lanes low, high;
  low.fill(0), high.fill(0);
  if (o.index != kZeroRegister) {
    low = w.registers[o.index];
    if (o.wide && o.index + 1 < kZeroRegister) high = w.registers[o.index + 1u];
  }
  known = low.known & high.known;
  operand_axes |= low.axes | high.axes;
  uint64_t plus = static_cast<uint64_t>(int64_t{o.value});
  if (o.uniform < kUniformZero) {
    const Lanes& u = w.uniform[o.uniform];
    const Lanes* up = o.wide_uniform && o.uniform + 1 < kUniformZero ? &w.uniform[o.uniform + 1u] : nullptr;
    known &= u.known & (up ? up->known : kEveryLane);
    operand_axes |= u.axes | (up ? up->axes : uint8_t{0});
    plus += u.v[0] | (up ? uint64_t{up->v[0]} << 32 : 0);
  }
  for (unsigned lane = 0; lane < 32; ++lane) out[lane] = (low.v[lane] | uint64_t{high.v[lane]} << 32) * o.scale + plus;
}

void Interpreter::State::load(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known,
                              uint32_t mask) {
  const Operand* to = nullptr;
  for (size_t k = 0; k < i.results; ++k) {
    const Operand& o = i.operands[k];
    if (o.kind == Kind::kRegister)
      to = &o;
    else if (o.kind == Kind::kPredicate)
      write_predicate(w, o, 0, 0, mask);
  }
  if (!to) return;
  operand_axes |= memory_axes;  // of device memory, only the address decides
  const uint32_t words = std::max(1u, i.bytes / 4u);
  const bool is_shared = i.opcode->action == Action::kLds, is_local = i.opcode->action == Action::kLdl;
  std::array<Lanes, 4> value;
  for (uint32_t word = 0; word < words; ++word) value[word].fill(0), value[word].known = 0;
  const auto first = static_cast<size_t>(std::countr_zero(mask));
  const std::optional<Answer> answered = is_shared && known >> first & 1 ? answer_at(w, at[first]) : std::nullopt;
  if (answered) operand_axes |= 7;
  for (uint32_t left = mask & known; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::array<std::byte, 16> bytes{};
    uint64_t a = at[lane];
    bool there = false;
    if (is_local) {
      for (uint32_t word = 0; word < words; ++word) {
        const auto it = w.local.find(static_cast<uint32_t>(a / 4 + word));
        if (it == w.local.end() || !(it->second[0].known >> lane & 1)) continue;
        value[word].v[lane] = it->second[0].v[lane];
        value[word].known |= 1u << lane;
      }
      continue;
    }
    const bool in_shared = is_shared || in_shared_window(a);
    if (in_shared) {
      if (!is_shared) a = (a - kSharedWindow) & kSharedOffset;
      if (a + i.bytes <= shared.size()) {
        there = true;
        for (uint32_t b = 0; b < i.bytes; ++b) there = there && shared_known[a + b];
        std::memcpy(bytes.data(), shared.data() + a, i.bytes);
        if (answered && (a & 15) + i.bytes <= 16) {
          there = true;
          std::memcpy(bytes.data(), reinterpret_cast<const std::byte*>(answered->data()) + (a & 15), i.bytes);
        }
      }
    } else {
      there = read_global(a, i.bytes, bytes.data());
    }
    if (!there) continue;
    for (uint32_t word = 0; word < words; ++word) {
      uint32_t x = 0;
      std::memcpy(&x, bytes.data() + 4 * word, 4);
      if (i.bytes == 1 && i.has(kSigned)) x = static_cast<uint32_t>(static_cast<int8_t>(x));
      if (i.bytes == 2 && i.has(kSigned)) x = static_cast<uint32_t>(static_cast<int16_t>(x));
      value[word].v[lane] = x;
      value[word].known |= 1u << lane;
    }
  }
  for (unsigned word = 0; word < words; ++word) write(w, *to, value[word], mask, word);
}

/// Stores to shared, local or device memory.
void Interpreter::State::store(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known,
                               uint32_t mask) {
  const Operand& from = i.operands[i.count - 1u];
  const uint32_t words = std::max(1u, i.bytes / 4u), size = std::min<uint32_t>(i.bytes, 4);
  for (uint32_t word = 0; word < words; ++word) {
    Operand part = from;
    if (from.kind == Kind::kRegister && from.index != kZeroRegister)
      part.index = static_cast<uint8_t>(from.index + word);
    Lanes value;
    read(w, part, value);
    memory_axes |= operand_axes;
    if (i.opcode->action == Action::kStl) {
      for (uint32_t left = mask & known; left; left &= left - 1) {
        const int lane = std::countr_zero(left);
        auto& slot = w.local[static_cast<uint32_t>(at[lane] / 4 + word)];
        if (slot.empty()) slot.resize(1), slot[0].fill(0), slot[0].known = 0;
        slot[0].v[lane] = value.v[lane];
        slot[0].known = (slot[0].known & ~(1u << lane)) | (value.known & (1u << lane));
      }
      continue;
    }
    for (uint32_t left = mask & known; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      uint64_t a = at[lane] + 4 * word;
      if (i.opcode->action == Action::kStg && !in_shared_window(a)) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value.v[lane]);
        write_global(a, size, value.known >> lane & 1 ? bytes : nullptr);
        continue;
      }
      if (i.opcode->action == Action::kStg) a = (a - kSharedWindow) & kSharedOffset;
      if (a + size > shared.size()) continue;
      std::memcpy(shared.data() + a, &value.v[lane], size);
      std::memset(shared_known.data() + a, value.known >> lane & 1, size);
    }
  }
}

/// The sectors that the lanes of one instruction request, line after line.
void Interpreter::State::request(WarpState& w, Access& a, const uint64_t at[32], uint32_t mask, uint32_t bytes) {
  std::vector<LineRequest>& lines_of = w.stream.lines;
  a.first_line = static_cast<uint32_t>(lines_of.size());
  // Lanes that are served together. Equal addresses of neighbours, as in shared memory, seem to change nothing here:
  // with them the recorded GEMM on the RTX 3090 is modelled worse.
  const int together = 128 / std::clamp<int>(static_cast<int>(bytes), 4, 16);
  std::array<uint8_t, 64> looked_up{};  // by line: the last group of lanes, from 1
  for (uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto group = static_cast<uint8_t>(1 + lane / together);
    for (uint64_t sector = at[lane] / 32; sector <= (at[lane] + bytes - 1) / 32; ++sector) {
      const uint64_t line = sector / 4;
      const auto bit = static_cast<uint8_t>(1u << sector % 4);
      size_t k = lines_of.size();
      while (k > a.first_line && lines_of[k - 1].line != line) --k;
      if (k == a.first_line) lines_of.push_back({line, 0}), k = lines_of.size();
      lines_of[k - 1].sectors |= bit;
      if (uint8_t& last = looked_up[k - 1 - a.first_line]; last != group) last = group, ++a.tags;
    }
  }
  a.lines = static_cast<uint16_t>(lines_of.size() - a.first_line);
}

/// Adds executed instructions that follow each other to the stream, as plain ones: who moves data or meets others says
/// so in own_step().
void Interpreter::State::record(WarpState& w, uint32_t index, uint32_t count, uint32_t active) {
  std::vector<Step>& steps = w.stream.steps;
  if (!steps.empty() && steps.back().is_plain() && steps.back().index + steps.back().count() == index)
    steps.back().access += count;
  else
    steps.push_back({index, Step::kPlain + count - 1});
  const auto lanes = static_cast<uint64_t>(std::popcount(active));
  const Fp32 &before = fp32_before[index], &behind = fp32_before[index + count];
  w.stream.lane_instructions += count * lanes;
  w.stream.fp32_lanes += (behind.all - before.all) * lanes;
  w.stream.fma_lanes += (behind.fused - before.fused) * lanes;
  w.executed += count;
  steps_left -= count;
}

Interpreter::Interpreter(const Code& code, StreamLaunch launch)
    : state_(std::make_unique<State>(code, std::move(launch))) {}
Interpreter::~Interpreter() = default;

}  // namespace roofgen::sass
