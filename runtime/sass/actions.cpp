// The actions of instructions on values: integers, predicates and the few float operations that steer branches, and the
// memory requests of loads and stores.
#include <bit>
#include <cmath>

#include "runtime/sass/interpreter_state.h"
#include "runtime/sass/lane_math.h"
#include "runtime/sim/counts.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

bool is_float_arithmetic(Action action) {
  return action == Action::kFadd || action == Action::kFmul || action == Action::kFfma || action == Action::kMufu ||
         action == Action::kFmnmx || action == Action::kFsel;
}

unsigned result_words(const Instruction& i) {
  return i.matrix_n                          ? i.matrix_n / 2u
         : i.opcode->pipe == Pipe::kTensor   ? 4
         : i.opcode->pipe == Pipe::kFp64     ? 2
         : i.opcode->action == Action::kLdsm ? i.matrices
                                             : std::max(1u, i.bytes / 4u);
}

void Interpreter::State::execute(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  const Action action = i.opcode->action;
  if (!mask) return;
  uint64_t at[32];
  uint32_t known = kEveryLane;
  const auto new_access = [&]() -> Access& {
    w.own_step().access = static_cast<uint32_t>(w.stream.accesses.size());
    w.stream.accesses.push_back({});
    Access& a = w.stream.accesses.back();
    a.lanes = static_cast<uint8_t>(std::popcount(mask));
    return a;
  };
  const auto memory_operand = [&](unsigned which) -> const Operand* {
    for (size_t k = 0; k < i.count; ++k)
      if (i.operands[k].kind == Kind::kMemory && which-- == 0) return &i.operands[k];
    return nullptr;
  };
  // Lanes of unknown address count as neighbours of each other.
  const auto make_up = [&](uint32_t lanes) {
    if (!(lanes & ~known)) return;
    doubt(index, false);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (!(known >> lane & 1)) at[lane] = (kLocalLines << 6) + (uint64_t{index} << 20) + lane * i.bytes;
  };
  // The memory of another CTA of the cluster stands for this one's.
  const auto shared_addresses = [&](const Operand& m) {
    addresses(w, m, at, known);
    for (uint64_t& a : at) a &= kSharedOffset;
  };
  const auto shared_access = [&](Access& a, uint32_t lanes, uint32_t bytes) {
    Pattern& p = patterns[index];
    std::array<uint32_t, 32> offsets;
    const auto first = static_cast<uint32_t>(at[std::countr_zero(lanes)]);
    for (unsigned lane = 0; lane < 32; ++lane)
      offsets[lane] = lanes >> lane & 1 ? static_cast<uint32_t>(at[lane]) - first : 0;
    if (p.mask != lanes || p.offsets != offsets) {
      p.mask = lanes;
      p.offsets = offsets;
      for (uint32_t& o : offsets) o += first;
      p.wavefronts = sim::shared_wavefronts(offsets.data(), lanes, bytes).needed;
    }
    a.wavefronts = static_cast<uint16_t>(p.wavefronts);
  };
  switch (action) {
    case Action::kLds:
    case Action::kSts:
    case Action::kAtoms: {
      const Operand* m = memory_operand(0);
      if (!m) return;
      Access& a = new_access();
      shared_addresses(*m);
      make_up(mask);
      shared_access(a, mask, i.bytes);
      if (action == Action::kAtoms) {
        a.same = most_at_one_address(at, mask);
        forget_shared(at, mask & known, i.bytes);
      }
      if (!steers[index]) return;
      if (action == Action::kLds) return load(w, i, at, known, mask);
      if (action == Action::kSts) return store(w, i, at, known, mask);
      break;  // the value that an atomic operation returns is unknown
    }
    case Action::kLdsm:
    case Action::kStsm: {
      const Operand* m = memory_operand(0);
      if (!m) return;
      Access& a = new_access();
      shared_addresses(*m);
      const uint32_t rows = i.matrices >= 4 ? kEveryLane : (1u << 8 * i.matrices) - 1;
      make_up(rows);
      shared_access(a, rows, 16);
      if (action == Action::kStsm) forget_shared(at, rows & known, 16);
      break;
    }
    case Action::kLdgsts: {
      const Operand *to = memory_operand(0), *from = memory_operand(1);
      if (!to || !from) return;
      Access& a = new_access();
      shared_addresses(*to);
      make_up(mask);
      shared_access(a, mask, i.bytes);
      uint32_t reads = mask;
      const uint8_t of_address = std::exchange(operand_axes, uint8_t{0});
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == Kind::kPredicate) {
          uint32_t value = 0, is_known = 0;
          predicate(w, i.operands[k], value, is_known);
          reads &= value | ~is_known;
        }
      deciding_axes |= operand_axes;
      operand_axes |= of_address;
      const uint32_t to_known = known;
      uint64_t to_at[32];
      std::copy(at, at + 32, to_at);
      addresses(w, *from, at, known);
      make_up(reads);
      request(w, a, at, reads, i.bytes);
      memory_axes |= operand_axes;
      if (shared_steers) copy(to_at, at, mask & to_known, reads, i.bytes);
      return;
    }
    case Action::kLdg:
    case Action::kStg:
    case Action::kAtomg:
    case Action::kRed: {
      const Operand* m = memory_operand(0);
      if (!m) return;
      Access& a = new_access();
      addresses(w, *m, at, known);
      make_up(mask);
      uint32_t in_shared = 0;
      for (unsigned lane = 0; lane < 32; ++lane)
        if (in_shared_window(at[lane])) in_shared |= 1u << lane;
      if (in_shared & mask) shared_access(a, in_shared & mask, i.bytes);
      request(w, a, at, mask & ~in_shared, i.bytes);
      if (action == Action::kAtomg || action == Action::kRed) a.same = most_at_one_address(at, mask & ~in_shared);
      if (action == Action::kStg && steers[index]) return store(w, i, at, known, mask);
      if (action != Action::kLdg) {
        // What comes out of an atomic operation is unknown, as is what a store writes that does not steer.
        uint64_t shared_at[32];
        for (size_t lane = 0; lane < 32; ++lane) shared_at[lane] = at[lane] - kSharedWindow;
        if (in_shared & mask & known) forget_shared(shared_at, in_shared & mask & known, i.bytes);
        for (uint32_t left = device_steers ? mask & known & ~in_shared : 0; left; left &= left - 1)
          write_global(at[std::countr_zero(left)], i.bytes, nullptr);
      }
      if (!steers[index]) return;
      if (action == Action::kLdg) return load(w, i, at, known, mask);
      break;
    }
    case Action::kLdl:
    case Action::kStl: {
      const Operand* m = memory_operand(0);
      if (!m) return;
      Access& a = new_access();
      addresses(w, *m, at, known);
      make_up(mask);
      // The words of a frame are interleaved, so that a word of all lanes is one line.
      uint64_t words[32];
      const uint64_t first = kLocalLines + ((cta_number * 64 + w.number) << 16);
      a.first_line = static_cast<uint32_t>(w.stream.lines.size());
      for (uint32_t word = 0; word < std::max(1u, i.bytes / 4u); ++word) {
        for (unsigned lane = 0; lane < 32; ++lane) words[lane] = (first + at[lane] / 4 % 65536 + word) * 128 + 4 * lane;
        Access part;
        request(w, part, words, mask, 4);
        a.lines = static_cast<uint16_t>(a.lines + part.lines);
        a.tags = static_cast<uint8_t>(a.tags + part.tags);
      }
      if (!steers[index]) return;
      if (action == Action::kLdl) return load(w, i, at, known, mask);
      return store(w, i, at, known, mask);
    }
    case Action::kStas: {
      const Operand* m = memory_operand(0);
      if (!m) return;
      shared_addresses(*m);
      // The other CTAs send alike: values of the same places come from there.
      forget_shared(at, mask & known, i.bytes);
      synchronize(w, i, index, mask);
      break;
    }
    case Action::kSyncs:
    case Action::kArrives:
    case Action::kTensorLoad:
    case Action::kTensorStore:
    case Action::kBulkCopy: synchronize(w, i, index, mask); break;
    default: break;
  }
  if (!steers[index]) return;

  // The values of unknown lanes are never used.
  const auto forget_results = [&] {
    const unsigned words = result_words(i);
    for (size_t k = 0; k < i.results; ++k) {
      const Operand& o = i.operands[k];
      if (o.kind == Kind::kPredicate || o.kind == Kind::kUniformPredicate)
        write_predicate(w, o, 0, 0, mask);
      else if (o.kind == Kind::kRegister)
        for (unsigned r = o.index; r < std::min<unsigned>(o.index + words, kZeroRegister); ++r) forget(w, r, mask);
      else if (o.kind == Kind::kUniform)
        for (unsigned r = o.index; r < std::min<unsigned>(o.index + words, kUniformZero); ++r) w.uniform[r].known = 0;
    }
  };
  // Most floating-point values come from memory, tensor instructions or both: they are unknown in all lanes.
  if (is_float_arithmetic(action))
    for (size_t k = 0; k < i.sources(); ++k) {
      const Operand& o = i.source(k);
      if (o.kind == Kind::kRegister && o.index != kZeroRegister && !(w.registers[o.index].known & mask))
        return forget_results();
    }

  Lanes a, b, c, d;
  const auto get = [&](Lanes& to, size_t k, bool is_float = false) {
    if (k < i.sources())
      read(w, i.source(k), to, is_float);
    else
      to.fill(0);
  };
  const auto put = [&](const Lanes& value) {
    for (size_t k = 0; k < i.results; ++k)
      if (i.operands[k].kind == Kind::kRegister || i.operands[k].kind == Kind::kUniform)
        return write(w, i.operands[k], value, mask);
  };
  const auto put_flag = [&](size_t which, uint32_t value, uint32_t is_known) {
    for (size_t k = 0; k < i.results; ++k)
      if (i.operands[k].kind == Kind::kPredicate || i.operands[k].kind == Kind::kUniformPredicate)
        if (which-- == 0) return write_predicate(w, i.operands[k], value, is_known, mask);
  };
  // The predicates among the sources, in order; absent ones are false.
  const auto flag = [&](size_t which, uint32_t& value, uint32_t& is_known) {
    value = 0, is_known = kEveryLane;
    for (size_t k = 0; k < i.sources(); ++k) {
      const Kind kind = i.source(k).kind;
      if (kind != Kind::kPredicate && kind != Kind::kUniformPredicate) continue;
      if (which-- == 0) return predicate(w, i.source(k), value, is_known);
    }
  };
  uint32_t flag_value = 0, flag_known = kEveryLane, flag2 = 0, flag2_known = kEveryLane;
  const auto one = [&](auto f) {
    get(a, 0);
    for (unsigned l = 0; l < 32; ++l) d.v[l] = f(a.v[l]);
    d.known = a.known;
    put(d);
  };
  const auto floats = [&](size_t n, auto f) {
    get(a, 0, true), get(b, 1, true), get(c, 2, true);
    for (unsigned l = 0; l < 32; ++l) d.v[l] = as_bits(f(as_float(a.v[l]), as_float(b.v[l]), as_float(c.v[l])));
    d.known = a.known & (n > 1 ? b.known : ~0u) & (n > 2 ? c.known : ~0u);
    put(d);
  };
  switch (action) {
    case Action::kMov: return one([](uint32_t x) { return x; });
    case Action::kR2ur: {
      // Its predicate: all active lanes have the value.
      get(a, 0);
      uint32_t equal = ~0u;
      for (uint32_t left = mask; left; left &= left - 1)
        if (a.v[std::countr_zero(left)] != a.v[std::countr_zero(mask)]) equal = 0;
      put(a);
      return put_flag(0, equal, mask & ~a.known ? 0 : ~0u);
    }
    case Action::kIabs: return one([](uint32_t x) { return static_cast<int32_t>(x) < 0 ? 0 - x : x; });
    case Action::kPopc: return one([](uint32_t x) { return static_cast<uint32_t>(std::popcount(x)); });
    case Action::kBrev:
      return one([](uint32_t x) {
        uint32_t r = 0;
        for (unsigned k = 0; k < 32; ++k) r |= (x >> k & 1) << (31 - k);
        return r;
      });
    case Action::kFlo:
      return one([&](uint32_t x) -> uint32_t {
        if (!i.has(kU32) && static_cast<int32_t>(x) < 0) x = ~x;
        if (!x) return ~0u;
        const auto bit = static_cast<uint32_t>(31 - std::countl_zero(x));
        return i.has(kSh) ? 31 - bit : bit;
      });
    case Action::kFadd: return floats(2, [](float x, float y, float) { return x + y; });
    case Action::kFmul: return floats(2, [](float x, float y, float) { return x * y; });
    case Action::kFfma: return floats(3, [](float x, float y, float z) { return std::fma(x, y, z); });
    case Action::kMufu: return floats(1, [&](float x, float, float) { return special_function(i, x); });
    case Action::kHfma2: {
      // HFMA2.MMA R, -RZ, RZ, x, y moves two constants.
      if (i.sources() >= 4 && i.source(0).index == kZeroRegister && i.source(1).index == kZeroRegister &&
          i.source(2).kind == Kind::kImmediate) {
        get(d, 2);
        return put(d);
      }
      break;
    }
    case Action::kFmnmx:
    case Action::kFsel: {
      get(a, 0, true), get(b, 1, true);
      flag(0, flag_value, flag_known);
      for (unsigned l = 0; l < 32; ++l) {
        const bool first = flag_value >> l & 1;
        if (action == Action::kFsel)
          d.v[l] = first ? a.v[l] : b.v[l];
        else
          d.v[l] = as_bits(first ? std::fmin(as_float(a.v[l]), as_float(b.v[l]))
                                 : std::fmax(as_float(a.v[l]), as_float(b.v[l])));
      }
      d.known = a.known & b.known & flag_known;
      return put(d);
    }
    case Action::kSel: {
      get(a, 0), get(b, 1);
      flag(0, flag_value, flag_known);
      for (unsigned l = 0; l < 32; ++l) d.v[l] = flag_value >> l & 1 ? a.v[l] : b.v[l];
      d.known = flag_known & (a.known | ~flag_value) & (b.known | flag_value);
      return put(d);
    }
    case Action::kFchk: {
      get(a, 0, true), get(b, 1, true);
      uint32_t slow = 0;
      for (unsigned l = 0; l < 32; ++l)
        if (needs_slow_division(as_float(a.v[l]), as_float(b.v[l]))) slow |= 1u << l;
      return put_flag(0, slow, a.known & b.known);
    }
    case Action::kFsetp:
    case Action::kIsetp: {
      const bool is_float = action == Action::kFsetp;
      get(a, 0, is_float), get(b, 1, is_float);
      flag(0, flag_value, flag_known);
      const bool extended = i.has(kEx);
      if (extended) flag(1, flag2, flag2_known);
      uint32_t result = 0;
      for (unsigned l = 0; l < 32; ++l) {
        bool r = false;
        if (is_float)
          r = compare_floats(i, as_float(a.v[l]), as_float(b.v[l]));
        else if (i.has(kU32))
          r = compare(i, a.v[l], b.v[l]);
        else
          r = compare(i, static_cast<int32_t>(a.v[l]), static_cast<int32_t>(b.v[l]));
        if (extended) {
          // The upper words decide; if they are equal, the result of the lower words does.
          const bool same = a.v[l] == b.v[l], lower = flag2 >> l & 1;
          if (same)
            r = lower;
          else if (i.has(kEq))
            r = false;
          else if (i.has(kNe))
            r = true;
        }
        result |= r ? 1u << l : 0;
      }
      uint32_t is_known = a.known & b.known & flag2_known;
      // An operand that settles the result makes the other one irrelevant.
      const uint32_t settled = i.has(kOr) ? flag_value : i.has(kXor) ? 0 : ~flag_value;
      is_known = (is_known & flag_known) | (flag_known & settled);
      put_flag(0, combine(i, result, flag_value), is_known);
      return put_flag(1, combine(i, ~result, flag_value), is_known);
    }
    case Action::kPlop3: {
      uint32_t third = 0, third_known = 0;
      flag(0, flag_value, flag_known), flag(1, flag2, flag2_known), flag(2, third, third_known);
      uint32_t tables[2] = {0, 0};
      size_t n = 0;
      for (size_t k = 0; k < i.sources(); ++k)
        if (i.source(k).kind == Kind::kImmediate && n < 2) tables[n++] = static_cast<uint32_t>(i.source(k).value);
      const uint32_t is_known = flag_known & flag2_known & third_known;
      put_flag(0, logic3(flag_value, flag2, third, tables[0]), is_known);
      return put_flag(1, logic3(flag_value, flag2, third, tables[1]), is_known);
    }
    case Action::kLop3: {
      get(a, 0), get(b, 1), get(c, 2);
      const uint32_t table = i.sources() > 3 ? static_cast<uint32_t>(i.source(3).value) : 0;
      flag(0, flag_value, flag_known);
      uint32_t nonzero = 0;
      for (unsigned l = 0; l < 32; ++l) {
        d.v[l] = logic3(a.v[l], b.v[l], c.v[l], table);
        nonzero |= d.v[l] ? 1u << l : 0;
      }
      d.known = a.known & b.known & c.known;
      put(d);
      return put_flag(0, i.has(kPand) ? nonzero & flag_value : nonzero | flag_value, d.known & flag_known);
    }
    case Action::kShf: {
      get(a, 0), get(b, 1), get(c, 2);
      for (unsigned l = 0; l < 32; ++l) d.v[l] = shift(i, a.v[l], b.v[l], c.v[l]);
      d.known = a.known & b.known & c.known;
      return put(d);
    }
    case Action::kPrmt: {
      get(a, 0), get(b, 1), get(c, 2);
      for (unsigned l = 0; l < 32; ++l) d.v[l] = permute(a.v[l], b.v[l], c.v[l]);
      d.known = a.known & b.known & c.known;
      return put(d);
    }
    case Action::kSgxt: {
      get(a, 0), get(b, 1);
      for (unsigned l = 0; l < 32; ++l) {
        const uint32_t bits = std::min(b.v[l] & 0xff, 32u);
        if (bits == 0)
          d.v[l] = 0;
        else if (bits == 32)
          d.v[l] = a.v[l];
        else if (i.has(kU32))
          d.v[l] = a.v[l] & ((1u << bits) - 1);
        else
          d.v[l] = static_cast<uint32_t>(static_cast<int32_t>(a.v[l] << (32 - bits)) >> (32 - bits));
      }
      d.known = a.known & b.known;
      return put(d);
    }
    case Action::kBmsk: {
      get(a, 0), get(b, 1);
      for (unsigned l = 0; l < 32; ++l) {
        const uint32_t from = i.has(kW) ? a.v[l] & 31 : std::min(a.v[l], 32u),
                       n = i.has(kW) ? b.v[l] & 31 : std::min(b.v[l], 32u);
        d.v[l] = static_cast<uint32_t>(((uint64_t{1} << n) - 1) << from);
      }
      d.known = a.known & b.known;
      return put(d);
    }
    case Action::kImad: {
      get(a, 0), get(b, 1);
      flag(0, flag_value, flag_known);
      if (i.has(kHi) || i.has(kWide)) {
        Lanes high;
        if (i.sources() > 2)
          read_pair(w, i.source(2), c, high);
        else
          c.fill(0), high.fill(0);
        Lanes upper;
        uint32_t carry = 0;
        for (unsigned l = 0; l < 32; ++l) {
          const uint64_t product =
              i.has(kU32) ? uint64_t{a.v[l]} * b.v[l]
                          : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a.v[l])} * static_cast<int32_t>(b.v[l]));
          const uint64_t plus = pair(c.v[l], high.v[l]) + (i.has(kX) ? flag_value >> l & 1 : 0);
          const uint64_t sum = product + plus;
          carry |= sum < product ? 1u << l : 0;
          d.v[l] = static_cast<uint32_t>(sum), upper.v[l] = static_cast<uint32_t>(sum >> 32);
        }
        d.known = upper.known = a.known & b.known & c.known & high.known & flag_known;
        put_flag(0, carry, d.known);
        if (i.has(kHi)) return put(upper);
        for (size_t k = 0; k < i.results; ++k)
          if (i.operands[k].kind == Kind::kRegister || i.operands[k].kind == Kind::kUniform) {
            write(w, i.operands[k], d, mask);
            return write(w, i.operands[k], upper, mask, 1);
          }
        return;
      }
      get(c, 2);
      // IMAD.MOV and the like multiply by zero: only the sum matters.
      const auto is_zero = [&](const Operand& o) {
        return (o.kind == Kind::kRegister && o.index == kZeroRegister) ||
               (o.kind == Kind::kUniform && o.index >= kUniformZero);
      };
      const bool zero = i.sources() > 1 && (is_zero(i.source(0)) || is_zero(i.source(1)));
      uint32_t carry = 0;
      for (unsigned l = 0; l < 32; ++l) {
        const uint64_t sum = uint64_t{a.v[l] * b.v[l]} + c.v[l] + (i.has(kX) ? flag_value >> l & 1 : 0);
        d.v[l] = static_cast<uint32_t>(sum);
        carry |= sum >> 32 ? 1u << l : 0;
      }
      d.known = (zero ? ~0u : a.known & b.known) & c.known & flag_known;
      put(d);
      return put_flag(0, carry, d.known);
    }
    case Action::kIadd3: {
      uint32_t in[2] = {0, 0}, in_known[2] = {~0u, ~0u};
      if (i.has(kX)) flag(0, in[0], in_known[0]), flag(1, in[1], in_known[1]);
      Lanes* values[3] = {&a, &b, &c};
      uint64_t sums[32] = {};
      d.known = in_known[0] & in_known[1];
      for (size_t k = 0; k < 3; ++k) {
        get(*values[k], k);
        d.known &= values[k]->known;
        // -x is ~x + 1, whose carry counts.
        const bool is_negated = k < i.sources() && i.source(k).negative && !i.has(kX);
        for (unsigned l = 0; l < 32; ++l)
          sums[l] += is_negated ? uint64_t{static_cast<uint32_t>(~(0 - values[k]->v[l]))} + 1 : values[k]->v[l];
      }
      uint32_t carry = 0, carry2 = 0;
      for (unsigned l = 0; l < 32; ++l) {
        const uint64_t sum = sums[l] + (in[0] >> l & 1) + (in[1] >> l & 1);
        d.v[l] = static_cast<uint32_t>(sum);
        carry |= sum >> 32 ? 1u << l : 0;
        carry2 |= sum >> 33 ? 1u << l : 0;
      }
      put(d);
      put_flag(0, carry, d.known);
      return put_flag(1, carry2, d.known);
    }
    case Action::kViadd: {
      get(a, 0), get(b, 1);
      for (unsigned l = 0; l < 32; ++l) d.v[l] = a.v[l] + b.v[l];
      d.known = a.known & b.known;
      return put(d);
    }
    case Action::kImnmx:
    case Action::kViaddmnmx: {
      const bool adds = action == Action::kViaddmnmx;
      get(a, 0), get(b, 1), get(c, 2);
      flag(0, flag_value, flag_known);
      for (unsigned l = 0; l < 32; ++l) {
        const uint32_t x = adds ? a.v[l] + b.v[l] : a.v[l], y = adds ? c.v[l] : b.v[l];
        const bool less = i.has(kU32) ? x < y : static_cast<int32_t>(x) < static_cast<int32_t>(y);
        const bool least = flag_value >> l & 1;
        d.v[l] = less == least ? x : y;
        if (i.has(kRelu) && static_cast<int32_t>(d.v[l]) < 0) d.v[l] = 0;
      }
      d.known = a.known & b.known & (adds ? c.known : ~0u) & flag_known;
      return put(d);
    }
    case Action::kLea: {
      // LEA d, a, b, s; LEA.HI d, a, b, c, s, with {c, a} as the shifted pair
      const bool high = i.has(kHi), extend = i.has(kSx32);
      get(a, 0), get(b, 1);
      size_t shift_at = 2;
      c.fill(0);
      if (high && !extend) get(c, 2), shift_at = 3;
      const uint32_t s = shift_at < i.sources() ? static_cast<uint32_t>(i.source(shift_at).value) & 31 : 0;
      flag(0, flag_value, flag_known);
      uint32_t carry = 0;
      for (unsigned l = 0; l < 32; ++l) {
        uint32_t shifted = a.v[l] << s;
        if (high) {
          const uint32_t upper = extend ? static_cast<uint32_t>(static_cast<int32_t>(a.v[l]) >> 31) : c.v[l];
          shifted = static_cast<uint32_t>(pair(a.v[l], upper) << s >> 32);
        }
        const uint64_t sum = uint64_t{shifted} + b.v[l] + (i.has(kX) ? flag_value >> l & 1 : 0);
        d.v[l] = static_cast<uint32_t>(sum);
        carry |= sum >> 32 ? 1u << l : 0;
      }
      d.known = a.known & b.known & c.known & (i.has(kX) ? flag_known : ~0u);
      put(d);
      return put_flag(0, carry, d.known);
    }
    case Action::kI2f: {
      if (i.has(kF64 | kF16) || i.sources() < 1) break;
      b.fill(0);
      if (i.has(kU64 | kS64))
        read_pair(w, i.source(0), a, b);
      else
        get(a, 0);
      for (unsigned l = 0; l < 32; ++l) {
        const uint64_t bits = pair(a.v[l], b.v[l]);
        d.v[l] = as_bits(i.has(kU64)   ? to_float(bits, i.has(kRp))
                         : i.has(kS64) ? to_float(static_cast<int64_t>(bits), i.has(kRp))
                         : i.has(kS16) ? to_float(int64_t{static_cast<int16_t>(bits)}, i.has(kRp))
                         : i.has(kU16) ? to_float(uint64_t{static_cast<uint16_t>(bits)}, i.has(kRp))
                         : i.has(kU32) ? to_float(uint64_t{a.v[l]}, i.has(kRp))
                                       : to_float(int64_t{static_cast<int32_t>(bits)}, i.has(kRp)));
      }
      d.known = a.known & b.known;
      return put(d);
    }
    case Action::kF2i: {
      if (i.has(kF64 | kF16)) break;
      get(a, 0, true);
      for (unsigned l = 0; l < 32; ++l) {
        const float from = as_float(a.v[l]), x = i.has(kTrunc) ? std::trunc(from) : std::nearbyint(from);
        const uint64_t whole = i.has(kU64)   ? saturated<uint64_t>(x)
                               : i.has(kS64) ? static_cast<uint64_t>(saturated<int64_t>(x))
                               : i.has(kU32) ? saturated<uint32_t>(x)
                                             : static_cast<uint32_t>(saturated<int32_t>(x));
        b.v[l] = static_cast<uint32_t>(whole), c.v[l] = static_cast<uint32_t>(whole >> 32);
      }
      b.known = c.known = a.known;
      put(b);
      if (i.bytes > 4) write(w, i.operands[0], c, mask, 1);
      return;
    }
    case Action::kMatch: {
      // The active lanes that have the same value; all of them or none for MATCH.ALL.
      if (i.sources() < 1) break;
      b.fill(0);
      if (i.has(kU64))
        read_pair(w, i.source(0), a, b);
      else
        get(a, 0);
      uint32_t all = ~0u;
      for (unsigned l = 0; l < 32; ++l) {
        d.v[l] = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
          const auto other = static_cast<size_t>(std::countr_zero(left));
          if (a.v[l] == a.v[other] && b.v[l] == b.v[other]) d.v[l] |= 1u << other;
        }
        if (mask >> l & 1 && d.v[l] != mask) all = 0;
      }
      if (i.has(kAll))
        for (uint32_t& v : d.v) v = mask & all;
      d.known = mask & ~(a.known & b.known) ? 0 : ~0u;
      put(d);
      return put_flag(0, all, d.known);
    }
    case Action::kRedux: {
      get(a, 0);
      uint32_t result = a.v[std::countr_zero(mask)];
      for (uint32_t left = mask & (mask - 1); left; left &= left - 1) {
        const uint32_t x = a.v[std::countr_zero(left)];
        const bool less = i.has(kS32) ? static_cast<int32_t>(x) < static_cast<int32_t>(result) : x < result;
        if (i.has(kSum))
          result += x;
        else if (i.has(kMin | kMax))
          result = less == i.has(kMin) ? x : result;
        else
          result = combine(i, result, x);
      }
      d.fill(result);
      d.known = mask & ~a.known ? 0 : ~0u;
      return put(d);
    }
    case Action::kVote: {
      // Of the active lanes.
      const bool has_register = i.operands[0].kind == Kind::kRegister || i.operands[0].kind == Kind::kUniform;
      flag(0, flag_value, flag_known);
      const uint32_t votes = flag_value & mask;
      const bool all = votes == mask, any = votes != 0;
      const bool sure = !(mask & ~flag_known);
      if (has_register) {
        d.fill(votes);
        d.known = sure ? ~0u : 0;
        put(d);
      }
      const bool result = i.has(kAll) ? all : i.has(kAny) ? any : all || !any;
      // A known vote may settle the result alone.
      const bool settled = i.has(kAny)   ? (votes & flag_known) != 0
                           : i.has(kAll) ? (mask & flag_known & ~flag_value) != 0
                                         : false;
      return put_flag(0, result ? ~0u : 0, sure || settled ? ~0u : 0);
    }
    case Action::kB2r: {
      operand_axes |= memory_axes;
      d.fill(w.votes.count);
      d.known = w.votes.is_known ? ~0u : 0;
      put(d);
      return put_flag(0, w.votes.holds() ? ~0u : 0, d.known);
    }
    case Action::kShfl: {
      get(a, 0), get(b, 1), get(c, 2);
      uint32_t inside = 0;
      d.known = 0;
      for (unsigned l = 0; l < 32; ++l) {
        const uint32_t clamp = c.v[l] & 31, segment = c.v[l] >> 8 & 31, by = b.v[l] & 31;
        const uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
        int64_t from = 0;
        bool is = false;
        if (i.has(kUp))
          from = int64_t{l} - by, is = from >= static_cast<int64_t>(most);
        else if (i.has(kDown))
          from = int64_t{l} + by, is = from <= most;
        else if (i.has(kBfly))
          from = l ^ by, is = from <= most;
        else
          from = least | (by & ~segment), is = from <= most;
        if (!is)
          from = l;
        else
          inside |= 1u << l;
        d.v[l] = a.v[from & 31];
        if ((a.known >> (from & 31) & 1) && (b.known & c.known) >> l & 1) d.known |= 1u << l;
      }
      put(d);
      return put_flag(0, inside, b.known & c.known);
    }
    case Action::kS2r:
    case Action::kCs2r: {
      if (i.sources() < 1) break;
      d.fill(0);
      const auto special = static_cast<Special>(i.source(0).value);
      if (special >= Special::kCtaidX && special <= Special::kCtaidZ)
        operand_axes |= static_cast<uint8_t>(1u << (static_cast<int>(special) - static_cast<int>(Special::kCtaidX)));
      const uint32_t bx = launch.block.x, by = launch.block.y;
      for (unsigned l = 0; l < 32; ++l) {
        const uint32_t t = 32 * w.number + l;
        switch (special) {
          case Special::kTidX: d.v[l] = t % bx; break;
          case Special::kTidY: d.v[l] = t / bx % by; break;
          case Special::kTidZ: d.v[l] = t / bx / by; break;
          case Special::kCtaidX: d.v[l] = cta_x; break;
          case Special::kCtaidY: d.v[l] = cta_y; break;
          case Special::kCtaidZ: d.v[l] = cta_z; break;
          case Special::kLaneId: d.v[l] = l; break;
          case Special::kLaneMask: d.v[l] = 1u << l; break;
          case Special::kLtMask: d.v[l] = (1u << l) - 1; break;
          case Special::kLeMask: d.v[l] = (2u << l) - 1; break;
          case Special::kGtMask: d.v[l] = ~((2u << l) - 1); break;
          case Special::kGeMask: d.v[l] = ~((1u << l) - 1); break;
          case Special::kSharedWindowHigh: d.v[l] = static_cast<uint32_t>(kSharedWindow >> 32); break;
          case Special::kZero: d.v[l] = 0; break;
          case Special::kClusterCta: {
            const Dim3& of = launch.cluster;
            d.v[l] = cta_x % of.x + of.x * (cta_y % of.y + of.y * (cta_z % of.z));
            operand_axes |= static_cast<uint8_t>((of.x > 1 ? 1 : 0) | (of.y > 1 ? 2 : 0) | (of.z > 1 ? 4 : 0));
            break;
          }
          default: d.known = 0;
        }
      }
      put(d);
      if (action == Action::kCs2r && !i.has(kB32) && i.results) {
        d.fill(0);
        write(w, i.operands[0], d, mask, 1);
      }
      return;
    }
    case Action::kLdc: {
      if (i.sources() < 1 || i.source(0).kind != Kind::kConstant || !i.results) break;
      Lanes base;
      base.fill(0);
      const Operand& o = i.source(0);
      if (o.index != kZeroRegister) base = w.registers[o.index];
      if (o.uniform < kUniformZero) add_lanes(base, w.uniform[o.uniform]);
      operand_axes |= base.axes;
      for (unsigned word = 0; word < std::max(1u, i.bytes / 4u); ++word) {
        constant(o, base, std::min<uint32_t>(i.bytes, 4), word, d);
        if (i.bytes == 1 && i.has(kSigned))
          for (uint32_t& v : d.v) v = static_cast<uint32_t>(static_cast<int8_t>(v));
        if (i.bytes == 2 && i.has(kSigned))
          for (uint32_t& v : d.v) v = static_cast<uint32_t>(static_cast<int16_t>(v));
        write(w, i.operands[0], d, mask, word);
      }
      return;
    }
    case Action::kElect: return put_flag(0, mask & (0 - mask), ~0u);
    case Action::kSetMaxReg: return put_flag(0, ~0u, ~0u);
    case Action::kSyncs: {
      if (i.spelling.find(".PHASECHK") == std::string::npos) break;
      return put_flag(0, ~0u, ~0u);
    }
    case Action::kP2r: {
      uint32_t bits = 0;
      for (size_t k = 0; k < i.sources(); ++k)
        if (i.source(k).kind == Kind::kImmediate) bits = static_cast<uint32_t>(i.source(k).value);
      for (size_t k = 0; k < i.sources(); ++k)
        if (i.source(k).kind == Kind::kRegister) read(w, i.source(k), a);
      if (i.sources() < 2) break;
      d = a;
      for (const uint8_t axes : w.predicate_axes) operand_axes |= axes;
      for (unsigned l = 0; l < 32; ++l) {
        d.v[l] &= ~bits;
        for (unsigned p = 0; p < kTruePredicate; ++p)
          if (bits >> p & 1) {
            d.v[l] |= (w.predicates[p] >> l & 1) << p;
            if (!(w.predicate_known[p] >> l & 1)) d.known &= ~(1u << l);
          }
      }
      return put(d);
    }
    case Action::kR2p: {
      uint32_t bits = 0x7f;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == Kind::kImmediate) bits = static_cast<uint32_t>(i.operands[k].value);
      const Operand* from = nullptr;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == Kind::kRegister) from = &i.operands[k];
      if (!from) break;
      read(w, *from, a);
      const unsigned skip = i.spelling.find(".B1") != std::string::npos   ? 8
                            : i.spelling.find(".B2") != std::string::npos ? 16
                            : i.spelling.find(".B3") != std::string::npos ? 24
                                                                          : 0;
      for (uint8_t p = 0; p < kTruePredicate; ++p) {
        if (!(bits >> p & 1)) continue;
        uint32_t value = 0;
        for (unsigned l = 0; l < 32; ++l) value |= (a.v[l] >> (p + skip) & 1) << l;
        w.predicates[p] = (w.predicates[p] & ~mask) | (value & mask);
        w.predicate_known[p] = (w.predicate_known[p] & ~mask) | (a.known & mask);
        w.predicate_axes[p] |= operand_axes;
      }
      return;
    }
    case Action::kBmov: {
      // BMOV R, B saves the members of a convergence barrier, BMOV B, R restores them.
      if (i.count < 2) return;
      if (i.operands[0].kind == Kind::kRegister) {
        const auto barrier = static_cast<size_t>(i.operands[1].value & 15);
        d.fill(w.members[barrier]);
        return write(w, i.operands[0], d, mask);
      }
      if (i.operands[0].kind == Kind::kOther) {
        read(w, i.operands[1], a);
        if (a.known & mask) w.members[static_cast<size_t>(i.operands[0].value & 15)] = a.v[std::countr_zero(mask)];
      }
      return;
    }
    default: break;
  }
  forget_results();  // of every other instruction
}

}  // namespace roofgen::sass
