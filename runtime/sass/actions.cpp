// The actions of instructions on values: integers, predicates and the few float operations that steer branches.
#include <bit>
#include <cmath>
#include <type_traits>

#include "runtime/sass/interpreter_state.h"
#include "runtime/sass/lane_math.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

namespace {

bool is_flag(Kind kind) { return kind == Kind::kPredicate || kind == Kind::kUniformPredicate; }
bool is_register(Kind kind) { return kind == Kind::kRegister || kind == Kind::kUniform; }

bool is_zero(const Operand& o) {
  return (o.kind == Kind::kRegister && o.index == kZeroRegister) ||
         (o.kind == Kind::kUniform && o.index >= kUniformZero);
}

}  // namespace

/// One execution of an instruction. The functions for its values are false where they leave its results unknown.
class Interpreter::State::Execution {
 public:
  Execution(State& state, WarpState& warp, const Instruction& instruction, uint32_t at_index, uint32_t active)
      : s(state),
        w(warp),
        i(instruction),
        action(instruction.opcode->action),
        index(at_index),
        mask(active),
        is_uniform(instruction.opcode->pipe == Pipe::kUniform),
        first_lane(static_cast<unsigned>(std::countr_zero(active))) {}

  void run() {
    if (is_memory(action) && !s.access(w, i, index, mask)) return;
    if (!s.steers[index]) return;
    if (is_float_arithmetic(action))
      for (size_t k = 0; k < i.sources(); ++k)
        if (const Operand& o = i.source(k); o.kind == Kind::kRegister && o.index != kZeroRegister)
          if (!(w.registers[o.index].known & mask)) return forget_results();
    if (takes_pairs(i)
            ? !pairs()
            : !(bits() || integers() || floats() || conditions() || conversions() || other_lanes() || places()))
      forget_results();
  }

 private:
  /// A predicate in all lanes, and the lanes in which it is known.
  struct Flag {
    uint32_t value = 0, known = kEveryLane;
    bool in(unsigned lane) const { return value >> lane & 1; }
  };

  // ---- Operands ---------------------------------------------------------------------------------

  /// A source; absent ones are zero. The reference holds until the results are written.
  const Lanes& get(size_t k, bool is_float = false) {
    if (k < i.sources()) {
      const Operand& o = i.source(k);
      const bool is_plain = is_register(o.kind) && !is_zero(o) && !o.negative && !o.inverted && !o.absolute;
      if (is_plain) {
        const Lanes& out = o.kind == Kind::kRegister ? w.registers[o.index] : w.uniform[o.index];
        s.operand_axes |= out.axes;
        return out;
      }
    }
    Lanes& out = read_[k];
    if (k < i.sources())
      s.read(w, i.source(k), out, is_float);
    else
      out.fill(0);
    return out;
  }

  void put(const Lanes& value) {
    for (size_t k = 0; k < i.results; ++k)
      if (is_register(i.operands[k].kind)) return s.write(w, i.operands[k], value, mask);
  }
  /// A pair of registers.
  void put(const Lanes& low, const Lanes& high) {
    for (size_t k = 0; k < i.results; ++k)
      if (is_register(i.operands[k].kind)) {
        s.write(w, i.operands[k], low, mask);
        return s.write(w, i.operands[k], high, mask, 1);
      }
  }
  void put_flag(size_t which, uint32_t value, uint32_t is_known) {
    for (size_t k = 0; k < i.results; ++k)
      if (is_flag(i.operands[k].kind) && which-- == 0)
        return s.write_predicate(w, i.operands[k], value, is_known, mask);
  }

  /// The predicates among the sources, in order; absent ones are false.
  Flag flag(size_t which) const {
    Flag out;
    for (size_t k = 0; k < i.sources(); ++k)
      if (is_flag(i.source(k).kind) && which-- == 0) {
        s.predicate(w, i.source(k), out.value, out.known);
        break;
      }
    return out;
  }

  /// Calls f(lane) for each lane; of the uniform datapath one stands for all.
  template <class F>
  void each(F f) const {
    if (is_uniform) return f(first_lane);
    for (unsigned l = 0; l < 32; ++l) f(l);
  }
  /// The lanes in which f(lane) holds.
  template <class F>
  uint32_t where(F f) const {
    uint32_t out = 0;
    each([&](unsigned l) { out |= (f(l) ? 1u : 0u) << l; });
    return out;
  }

  /// The values of unknown lanes are never used.
  void forget_results() {
    const unsigned words = result_words(i);
    for (size_t k = 0; k < i.results; ++k) {
      const Operand& o = i.operands[k];
      if (is_flag(o.kind))
        s.write_predicate(w, o, 0, 0, mask);
      else if (o.kind == Kind::kRegister)
        for (unsigned r = o.index; r < std::min<unsigned>(o.index + words, kZeroRegister); ++r) s.forget(w, r, mask);
      else if (o.kind == Kind::kUniform)
        for (unsigned r = o.index; r < std::min<unsigned>(o.index + words, kUniformZero); ++r) w.uniform[r].known = 0;
    }
  }

  // ---- Bits -------------------------------------------------------------------------------------

  template <class F>
  bool of_one(F f) {
    const Lanes& a = get(0);
    each([&](unsigned l) { d.v[l] = f(a.v[l]); });
    d.known = a.known;
    put(d);
    return true;
  }

  template <class F>
  bool of_two(F f) {
    const Lanes &a = get(0), &b = get(1);
    each([&](unsigned l) { d.v[l] = f(a.v[l], b.v[l]); });
    d.known = a.known & b.known;
    put(d);
    return true;
  }

  template <class F>
  bool of_three(F f) {
    const Lanes &a = get(0), &b = get(1), &c = get(2);
    each([&](unsigned l) { d.v[l] = f(a.v[l], b.v[l], c.v[l]); });
    d.known = a.known & b.known & c.known;
    put(d);
    return true;
  }

  bool bits() {
    switch (action) {
      case Action::kMov: return of_one([](uint32_t x) { return x; });
      case Action::kPopc: return of_one([](uint32_t x) { return static_cast<uint32_t>(std::popcount(x)); });
      case Action::kBrev:
        return of_one([](uint32_t x) {
          uint32_t r = 0;
          for (unsigned k = 0; k < 32; ++k) r |= (x >> k & 1) << (31 - k);
          return r;
        });
      case Action::kFlo:
        return of_one([&](uint32_t x) -> uint32_t {
          if (!i.has(kU32) && static_cast<int32_t>(x) < 0) x = ~x;
          if (!x) return ~0u;
          const auto bit = static_cast<uint32_t>(31 - std::countl_zero(x));
          return i.has(kSh) ? 31 - bit : bit;
        });
      case Action::kLop3: {
        const Flag with = flag(0);
        const uint32_t table = i.sources() > 3 ? static_cast<uint32_t>(i.source(3).value) : 0;
        of_three([=](uint32_t x, uint32_t y, uint32_t z) { return logic3(x, y, z, table); });
        const uint32_t nonzero = where([&](unsigned l) { return d.v[l] != 0; });
        put_flag(0, i.has(kPand) ? nonzero & with.value : nonzero | with.value, d.known & with.known);
        return true;
      }
      case Action::kShf: return of_three([&](uint32_t x, uint32_t y, uint32_t z) { return shift(i, x, y, z); });
      case Action::kPrmt: return of_three(permute);
      case Action::kSgxt:
        return of_two([&](uint32_t x, uint32_t width) -> uint32_t {
          const uint32_t n = std::min(width & 0xff, 32u);
          if (n == 0) return 0;
          if (n == 32) return x;
          if (i.has(kU32)) return x & ((1u << n) - 1);
          return static_cast<uint32_t>(static_cast<int32_t>(x << (32 - n)) >> (32 - n));
        });
      case Action::kBmsk:
        return of_two([&](uint32_t x, uint32_t y) {
          const uint32_t from = i.has(kW) ? x & 31 : std::min(x, 32u), n = i.has(kW) ? y & 31 : std::min(y, 32u);
          return static_cast<uint32_t>(((uint64_t{1} << n) - 1) << from);
        });
      default: return false;
    }
  }

  // ---- Integers ---------------------------------------------------------------------------------

  bool integers() {
    switch (action) {
      case Action::kIabs: return of_one([](uint32_t x) { return static_cast<int32_t>(x) < 0 ? 0 - x : x; });
      case Action::kViadd: return of_two([](uint32_t x, uint32_t y) { return x + y; });
      case Action::kImad: return i.has(kHi | kWide) ? multiply_wide() : multiply();
      case Action::kIadd3: return add3();
      case Action::kImnmx:
      case Action::kVimnmx3:
      case Action::kViaddmnmx: return least_or_most();
      case Action::kLea: return shift_and_add();
      default: return false;
    }
  }

  bool multiply() {
    const Lanes &a = get(0), &b = get(1), &c = get(2);
    const Flag carried = flag(0);
    const uint32_t in = i.has(kX) ? carried.value : 0;
    // IMAD.MOV and the like multiply by zero: only the sum matters.
    const bool zero = i.sources() > 1 && (is_zero(i.source(0)) || is_zero(i.source(1)));
    const uint32_t carry = where([&](unsigned l) {
      const uint64_t sum = uint64_t{a.v[l] * b.v[l]} + c.v[l] + (in >> l & 1);
      d.v[l] = static_cast<uint32_t>(sum);
      return sum >> 32 != 0;
    });
    d.known = (zero ? ~0u : a.known & b.known) & c.known & carried.known;
    put(d);
    put_flag(0, carry, d.known);
    return true;
  }

  bool multiply_wide() {
    const Lanes &a = get(0), &b = get(1);
    const Flag carried = flag(0);
    const uint32_t in = i.has(kX) ? carried.value : 0;
    Lanes low, high, upper;
    if (i.sources() > 2)
      s.read_pair(w, i.source(2), low, high);
    else
      low.fill(0), high.fill(0);
    const bool is_unsigned = i.has(kU32);
    const uint32_t carry = where([&](unsigned l) {
      const uint64_t product =
          is_unsigned ? uint64_t{a.v[l]} * b.v[l]
                      : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a.v[l])} * static_cast<int32_t>(b.v[l]));
      const uint64_t sum = product + pair(low.v[l], high.v[l]) + (in >> l & 1);
      d.v[l] = static_cast<uint32_t>(sum), upper.v[l] = static_cast<uint32_t>(sum >> 32);
      return sum < product;
    });
    d.known = upper.known = a.known & b.known & low.known & high.known & carried.known;
    put_flag(0, carry, d.known);
    if (i.has(kHi))
      put(upper);
    else
      put(d, upper);
    return true;
  }

  bool pairs() {
    const Flag first = flag(0);
    if (i.has(kX)) return false;
    std::array<uint64_t, 32> sums{}, value;
    d.known = action == Action::kSel ? first.known : kEveryLane;
    for (size_t k = 0; k < i.sources() && !is_flag(i.source(k).kind); ++k) {
      const uint32_t used = action != Action::kSel ? kEveryLane : k == 0 ? first.value : ~first.value;
      d.known &= s.read_wide(w, i.source(k), value) | ~used;
      each([&](unsigned l) { sums[l] += used >> l & 1 ? value[l] : 0; });
    }
    Lanes upper = d;
    each([&](unsigned l) { d.v[l] = static_cast<uint32_t>(sums[l]); });
    each([&](unsigned l) { upper.v[l] = static_cast<uint32_t>(sums[l] >> 32); });
    put(d, upper), put_flag(0, 0, 0);
    return true;
  }

  bool add3() {
    Flag in[2];
    if (i.has(kX)) in[0] = flag(0), in[1] = flag(1);
    uint64_t sums[32];
    each([&](unsigned l) { sums[l] = uint64_t{in[0].in(l)} + in[1].in(l); });
    d.known = in[0].known & in[1].known;
    for (size_t k = 0; k < 3; ++k) {
      const Lanes& value = get(k);
      d.known &= value.known;
      // -x is ~x + 1, whose carry counts.
      if (k < i.sources() && i.source(k).negative && !i.has(kX))
        each([&](unsigned l) { sums[l] += uint64_t{static_cast<uint32_t>(~(0 - value.v[l]))} + 1; });
      else
        each([&](unsigned l) { sums[l] += value.v[l]; });
    }
    each([&](unsigned l) { d.v[l] = static_cast<uint32_t>(sums[l]); });
    put(d);
    put_flag(0, where([&](unsigned l) { return sums[l] >> 32 != 0; }), d.known);
    put_flag(1, where([&](unsigned l) { return sums[l] >> 33 != 0; }), d.known);
    return true;
  }

  bool least_or_most() {
    const bool adds = action == Action::kViaddmnmx, three = action == Action::kVimnmx3;
    const Lanes &a = get(0), &b = get(1), &c = get(2);
    const Flag least = flag(0);
    each([&](unsigned l) {
      const auto chosen = [&](uint32_t x, uint32_t y) {
        const bool less = i.has(kU32) ? x < y : static_cast<int32_t>(x) < static_cast<int32_t>(y);
        return less == least.in(l) ? x : y;
      };
      d.v[l] = adds ? chosen(a.v[l] + b.v[l], c.v[l]) : chosen(a.v[l], b.v[l]);
      if (three) d.v[l] = chosen(d.v[l], c.v[l]);
      if (i.has(kRelu) && static_cast<int32_t>(d.v[l]) < 0) d.v[l] = 0;
    });
    d.known = a.known & b.known & (adds || three ? c.known : ~0u) & least.known;
    put(d);
    return true;
  }

  /// LEA d, a, b, s; LEA.HI d, a, b, c, s, with {c, a} as the shifted pair
  bool shift_and_add() {
    const bool high = i.has(kHi), extend = i.has(kSx32), has_upper = high && !extend;
    const Lanes &a = get(0), &b = get(1), &c = get(has_upper ? 2 : kMostOperands);
    const size_t shift_at = has_upper ? 3 : 2;
    const uint32_t by = shift_at < i.sources() ? static_cast<uint32_t>(i.source(shift_at).value) & 31 : 0;
    const Flag carried = flag(0);
    const uint32_t in = i.has(kX) ? carried.value : 0;
    const uint32_t carry = where([&](unsigned l) {
      uint32_t shifted = a.v[l] << by;
      if (high) {
        const uint32_t upper = extend ? static_cast<uint32_t>(static_cast<int32_t>(a.v[l]) >> 31) : c.v[l];
        shifted = static_cast<uint32_t>(pair(a.v[l], upper) << by >> 32);
      }
      const uint64_t sum = uint64_t{shifted} + b.v[l] + (in >> l & 1);
      d.v[l] = static_cast<uint32_t>(sum);
      return sum >> 32 != 0;
    });
    d.known = a.known & b.known & c.known & (i.has(kX) ? carried.known : ~0u);
    put(d);
    put_flag(0, carry, d.known);
    return true;
  }

  // ---- Floats -----------------------------------------------------------------------------------

  template <class F>
  bool of_floats(size_t n, F f) {
    const Lanes &a = get(0, true), &b = get(1, true), &c = get(2, true);
    each([&](unsigned l) { d.v[l] = as_bits(f(as_float(a.v[l]), as_float(b.v[l]), as_float(c.v[l]))); });
    d.known = a.known & (n > 1 ? b.known : ~0u) & (n > 2 ? c.known : ~0u);
    put(d);
    return true;
  }

  bool floats() {
    switch (action) {
      case Action::kFadd: return of_floats(2, [](float x, float y, float) { return x + y; });
      case Action::kFmul: return of_floats(2, [](float x, float y, float) { return x * y; });
      case Action::kFfma: return of_floats(3, [](float x, float y, float z) { return std::fma(x, y, z); });
      case Action::kMufu: return of_floats(1, [&](float x, float, float) { return special_function(i, x); });
      case Action::kHfma2:
        // HFMA2.MMA R, -RZ, RZ, x, y moves two constants.
        if (i.sources() < 4 || i.source(0).index != kZeroRegister || i.source(1).index != kZeroRegister ||
            i.source(2).kind != Kind::kImmediate)
          return false;
        put(get(2));
        return true;
      case Action::kFmnmx:
      case Action::kFsel: {
        const Lanes &a = get(0, true), &b = get(1, true);
        const Flag first = flag(0);
        each([&](unsigned l) {
          const float x = as_float(a.v[l]), y = as_float(b.v[l]);
          if (action == Action::kFsel)
            d.v[l] = first.in(l) ? a.v[l] : b.v[l];
          else
            d.v[l] = as_bits(first.in(l) ? std::fmin(x, y) : std::fmax(x, y));
        });
        d.known = a.known & b.known & first.known;
        put(d);
        return true;
      }
      default: return false;
    }
  }

  // ---- Predicates -------------------------------------------------------------------------------

  bool conditions() {
    switch (action) {
      case Action::kSel: {
        const Lanes &a = get(0), &b = get(1);
        const Flag first = flag(0);
        each([&](unsigned l) { d.v[l] = first.in(l) ? a.v[l] : b.v[l]; });
        d.known = first.known & (a.known | ~first.value) & (b.known | first.value);
        put(d);
        return true;
      }
      case Action::kFchk: {
        const Lanes &a = get(0, true), &b = get(1, true);
        const uint32_t slow =
            where([&](unsigned l) { return needs_slow_division(as_float(a.v[l]), as_float(b.v[l])); });
        put_flag(0, slow, a.known & b.known);
        return true;
      }
      case Action::kFsetp: return compare_values<float>();
      case Action::kIsetp: return i.has(kU32) ? compare_values<uint32_t>() : compare_values<int32_t>();
      case Action::kPlop3: {
        const Flag x = flag(0), y = flag(1), z = flag(2);
        uint32_t tables[2] = {0, 0};
        size_t n = 0;
        for (size_t k = 0; k < i.sources(); ++k)
          if (i.source(k).kind == Kind::kImmediate && n < 2) tables[n++] = static_cast<uint32_t>(i.source(k).value);
        for (size_t k = 0; k < 2; ++k) {
          // Known is what no unknown operand can change.
          uint32_t some = 0, all = ~0u;
          for (unsigned flips = 0; flips < 8; ++flips) {
            const auto flipped = [&](const Flag& f, unsigned bit) {
              return flips & bit ? f.value ^ ~f.known : f.value;
            };
            const uint32_t result = logic3(flipped(x, 1), flipped(y, 2), flipped(z, 4), tables[k]);
            some |= result;
            all &= result;
          }
          put_flag(k, logic3(x.value, y.value, z.value, tables[k]), ~(some ^ all));
        }
        return true;
      }
      case Action::kP2r: return flags_to_register();
      case Action::kR2p: return register_to_flags();
      default: return false;
    }
  }

  template <class T>
  bool compare_values() {
    constexpr bool is_float = std::is_same_v<T, float>;
    const Lanes &a = get(0, is_float), &b = get(1, is_float);
    const Flag with = flag(0);
    const bool extended = i.has(kEx);
    const Flag lower = extended ? flag(1) : Flag();
    const uint32_t result = where([&](unsigned l) {
      // The upper words decide; if they are equal, the result of the lower words does.
      if (extended && a.v[l] == b.v[l]) return lower.in(l);
      if (extended && i.has(kEq | kNe)) return !i.has(kEq);
      const T x = std::bit_cast<T>(a.v[l]), y = std::bit_cast<T>(b.v[l]);
      if constexpr (is_float)
        return compare_floats(i, x, y);
      else
        return compare(i, x, y);
    });
    const uint32_t compared = a.known & b.known & lower.known;
    // An operand that settles the result makes the other one irrelevant.
    const auto settles = [&](uint32_t value) { return i.has(kOr) ? value : i.has(kXor) ? 0 : ~value; };
    const auto is_known = [&](uint32_t of_comparison) {
      return (compared & with.known) | (with.known & settles(with.value)) | (compared & settles(of_comparison));
    };
    put_flag(0, combine(i, result, with.value), is_known(result));
    put_flag(1, combine(i, ~result, with.value), is_known(~result));
    return true;
  }

  uint32_t last_immediate(uint32_t otherwise) const {
    for (size_t k = i.count; k-- > i.results;)
      if (i.operands[k].kind == Kind::kImmediate) return static_cast<uint32_t>(i.operands[k].value);
    return otherwise;
  }

  bool flags_to_register() {
    const uint32_t wanted = last_immediate(0);
    for (size_t k = 0; k < i.sources(); ++k)
      if (i.source(k).kind == Kind::kRegister) s.read(w, i.source(k), d);
    if (i.sources() < 2) return false;
    for (const uint8_t axes : w.predicate_axes) s.operand_axes |= axes;
    for (unsigned l = 0; l < 32; ++l) {
      d.v[l] &= ~wanted;
      for (unsigned p = 0; p < kTruePredicate; ++p)
        if (wanted >> p & 1) {
          d.v[l] |= (w.predicates[p] >> l & 1) << p;
          if (!(w.predicate_known[p] >> l & 1)) d.known &= ~(1u << l);
        }
    }
    put(d);
    return true;
  }

  bool register_to_flags() {
    const uint32_t wanted = last_immediate(0x7f);
    const Operand* from = nullptr;
    for (size_t k = 0; k < i.count; ++k)
      if (i.operands[k].kind == Kind::kRegister) from = &i.operands[k];
    if (!from) return false;
    s.read(w, *from, d);
    const unsigned skip = i.spelling.find(".B1") != std::string::npos   ? 8
                          : i.spelling.find(".B2") != std::string::npos ? 16
                          : i.spelling.find(".B3") != std::string::npos ? 24
                                                                        : 0;
    for (uint8_t p = 0; p < kTruePredicate; ++p) {
      if (!(wanted >> p & 1)) continue;
      uint32_t value = 0;
      for (unsigned l = 0; l < 32; ++l) value |= (d.v[l] >> (p + skip) & 1) << l;
      w.predicates[p] = (w.predicates[p] & ~mask) | (value & mask);
      w.predicate_known[p] = (w.predicate_known[p] & ~mask) | (d.known & mask);
      w.predicate_axes[p] |= s.operand_axes;
    }
    return true;
  }

  // ---- Conversions ------------------------------------------------------------------------------

  bool conversions() {
    if ((action != Action::kI2f && action != Action::kF2i) || i.has(kF64 | kF16)) return false;
    return action == Action::kI2f ? to_floats() : to_integers();
  }

  bool to_floats() {
    if (i.sources() < 1) return false;
    Lanes low, high;
    high.fill(0);
    if (i.has(kU64 | kS64))
      s.read_pair(w, i.source(0), low, high);
    else
      low = get(0);
    each([&](unsigned l) {
      const uint64_t all = pair(low.v[l], high.v[l]);
      d.v[l] = as_bits(i.has(kU64)   ? to_float(all, i.has(kRp))
                       : i.has(kS64) ? to_float(static_cast<int64_t>(all), i.has(kRp))
                       : i.has(kS16) ? to_float(int64_t{static_cast<int16_t>(all)}, i.has(kRp))
                       : i.has(kU16) ? to_float(uint64_t{static_cast<uint16_t>(all)}, i.has(kRp))
                       : i.has(kU32) ? to_float(uint64_t{low.v[l]}, i.has(kRp))
                                     : to_float(int64_t{static_cast<int32_t>(all)}, i.has(kRp)));
    });
    d.known = low.known & high.known;
    put(d);
    return true;
  }

  bool to_integers() {
    const Lanes& a = get(0, true);
    Lanes high;
    each([&](unsigned l) {
      const float from = as_float(a.v[l]), x = i.has(kTrunc) ? std::trunc(from) : std::nearbyint(from);
      const uint64_t whole = i.has(kU64)   ? saturated<uint64_t>(x)
                             : i.has(kS64) ? static_cast<uint64_t>(saturated<int64_t>(x))
                             : i.has(kU32) ? saturated<uint32_t>(x)
                                           : static_cast<uint32_t>(saturated<int32_t>(x));
      d.v[l] = static_cast<uint32_t>(whole), high.v[l] = static_cast<uint32_t>(whole >> 32);
    });
    d.known = high.known = a.known;
    if (i.bytes > 4)
      put(d, high);
    else
      put(d);
    return true;
  }

  // ---- Other lanes ------------------------------------------------------------------------------

  bool other_lanes() {
    switch (action) {
      case Action::kR2ur: {
        // Its predicate: all active lanes have the value.
        const Lanes& a = get(0);
        uint32_t equal = ~0u;
        for (uint32_t left = mask; left; left &= left - 1)
          if (a.v[std::countr_zero(left)] != a.v[first_lane]) equal = 0;
        const uint32_t is_known = mask & ~a.known ? 0 : ~0u;
        put(a);
        put_flag(0, equal, is_known);
        return true;
      }
      case Action::kMatch: return match();
      case Action::kRedux: return reduce();
      case Action::kVote: return vote();
      case Action::kShfl: return shuffle();
      case Action::kElect: put_flag(0, mask & (0 - mask), ~0u); return true;
      case Action::kB2r:
        s.operand_axes |= s.memory_axes;
        d.fill(w.votes.count);
        d.known = w.votes.is_known ? ~0u : 0;
        put(d);
        put_flag(0, w.votes.holds() ? ~0u : 0, d.known);
        return true;
      default: return false;
    }
  }

  /// The active lanes that have the same value; all of them or none for MATCH.ALL.
  bool match() {
    if (i.sources() < 1) return false;
    Lanes low, high;
    high.fill(0);
    if (i.has(kU64))
      s.read_pair(w, i.source(0), low, high);
    else
      low = get(0);
    uint32_t all = ~0u;
    for (unsigned l = 0; l < 32; ++l) {
      d.v[l] = 0;
      for (uint32_t left = mask; left; left &= left - 1) {
        const auto other = static_cast<size_t>(std::countr_zero(left));
        if (low.v[l] == low.v[other] && high.v[l] == high.v[other]) d.v[l] |= 1u << other;
      }
      if (mask >> l & 1 && d.v[l] != mask) all = 0;
    }
    if (i.has(kAll))
      for (uint32_t& v : d.v) v = mask & all;
    d.known = mask & ~(low.known & high.known) ? 0 : ~0u;
    put(d);
    put_flag(0, all, d.known);
    return true;
  }

  bool reduce() {
    const Lanes& a = get(0);
    uint32_t result = a.v[first_lane];
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
    put(d);
    return true;
  }

  /// Of the active lanes.
  bool vote() {
    const Flag of_lane = flag(0);
    const uint32_t votes = of_lane.value & mask;
    const bool all = votes == mask, any = votes != 0;
    const bool sure = !(mask & ~of_lane.known);
    if (is_register(i.operands[0].kind)) {
      d.fill(votes);
      d.known = sure ? ~0u : 0;
      put(d);
    }
    const bool result = i.has(kAll) ? all : i.has(kAny) ? any : all || !any;
    // A known vote may settle the result alone.
    const bool settled = i.has(kAny)   ? (votes & of_lane.known) != 0
                         : i.has(kAll) ? (mask & of_lane.known & ~of_lane.value) != 0
                                       : false;
    put_flag(0, result ? ~0u : 0, sure || settled ? ~0u : 0);
    return true;
  }

  bool shuffle() {
    const Lanes &a = get(0), &b = get(1), &c = get(2);
    const uint32_t places_known = b.known & c.known;
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
      if ((a.known >> (from & 31) & 1) && places_known >> l & 1) d.known |= 1u << l;
    }
    put(d);
    put_flag(0, inside, places_known);
    return true;
  }

  // ---- Values from elsewhere: special registers, constants, barriers ----------------------------

  bool places() {
    switch (action) {
      case Action::kS2r:
      case Action::kCs2r:
        if (i.sources() < 1) return false;
        read_special(static_cast<Special>(i.source(0).value));
        put(d);
        if (action == Action::kCs2r && !i.has(kB32) && i.results) {
          d.fill(0);
          s.write(w, i.operands[0], d, mask, 1);
        }
        return true;
      case Action::kLdc: return load_constant();
      case Action::kSetMaxReg: put_flag(0, ~0u, ~0u); return true;
      case Action::kTensorMemoryAlloc:
        d.fill(0);
        if (get(0).known >> first_lane & 1)
          d.fill(s.hold_tensor_units(i.spelling.find("FIND_AND_SET") != std::string::npos, get(0).v[first_lane]));
        put(d), put_flag(0, ~0u, ~0u);
        return true;
      case Action::kSyncs:
        if (i.spelling.find(".PHASECHK") == std::string::npos) return false;
        put_flag(0, ~0u, ~0u);
        return true;
      case Action::kBmov: move_barrier(); return true;
      default: return false;
    }
  }

  void read_special(Special special) {
    d.fill(0);
    if (special >= Special::kCtaidX && special <= Special::kCtaidZ)
      s.operand_axes |= static_cast<uint8_t>(1u << (static_cast<int>(special) - static_cast<int>(Special::kCtaidX)));
    const uint32_t bx = s.launch.block.x, by = s.launch.block.y;
    for (unsigned l = 0; l < 32; ++l) {
      const uint32_t t = 32 * w.number + l;
      switch (special) {
        case Special::kTidX: d.v[l] = t % bx; break;
        case Special::kTidY: d.v[l] = t / bx % by; break;
        case Special::kTidZ: d.v[l] = t / bx / by; break;
        case Special::kCtaidX: d.v[l] = s.cta_x; break;
        case Special::kCtaidY: d.v[l] = s.cta_y; break;
        case Special::kCtaidZ: d.v[l] = s.cta_z; break;
        case Special::kLaneId: d.v[l] = l; break;
        case Special::kLaneMask: d.v[l] = 1u << l; break;
        case Special::kLtMask: d.v[l] = (1u << l) - 1; break;
        case Special::kLeMask: d.v[l] = (2u << l) - 1; break;
        case Special::kGtMask: d.v[l] = ~((2u << l) - 1); break;
        case Special::kGeMask: d.v[l] = ~((1u << l) - 1); break;
        case Special::kSharedWindowHigh: d.v[l] = static_cast<uint32_t>(kSharedWindow >> 32); break;
        case Special::kZero:
        case Special::kClusterSize: d.v[l] = 0; break;
        case Special::kClusterCta: {
          const Dim3& of = s.launch.cluster;
          d.v[l] = s.cta_x % of.x + of.x * (s.cta_y % of.y + of.y * (s.cta_z % of.z));
          s.operand_axes |= static_cast<uint8_t>((of.x > 1 ? 1 : 0) | (of.y > 1 ? 2 : 0) | (of.z > 1 ? 4 : 0));
          break;
        }
        default: d.known = 0;
      }
    }
  }

  bool load_constant() {
    if (i.sources() < 1 || i.source(0).kind != Kind::kConstant || !i.results) return false;
    Lanes base;
    base.fill(0);
    const Operand& o = i.source(0);
    if (o.index != kZeroRegister) base = w.registers[o.index];
    if (o.uniform < kUniformZero) add_lanes(base, w.uniform[o.uniform]);
    s.operand_axes |= base.axes;
    for (unsigned word = 0; word < std::max(1u, i.bytes / 4u); ++word) {
      s.constant(o, base, std::min<uint32_t>(i.bytes, 4), word, d);
      if (i.bytes == 1 && i.has(kSigned))
        for (uint32_t& v : d.v) v = static_cast<uint32_t>(static_cast<int8_t>(v));
      if (i.bytes == 2 && i.has(kSigned))
        for (uint32_t& v : d.v) v = static_cast<uint32_t>(static_cast<int16_t>(v));
      s.write(w, i.operands[0], d, mask, word);
    }
    return true;
  }

  /// BMOV R, B saves the members of a convergence barrier, BMOV B, R restores them.
  void move_barrier() {
    if (i.count < 2) return;
    if (i.operands[0].kind == Kind::kRegister) {
      d.fill(w.members[static_cast<size_t>(i.operands[1].value & 15)]);
      return s.write(w, i.operands[0], d, mask);
    }
    if (i.operands[0].kind != Kind::kOther) return;
    s.read(w, i.operands[1], d);
    if (d.known & mask) w.members[static_cast<size_t>(i.operands[0].value & 15)] = d.v[first_lane];
  }

  State& s;
  WarpState& w;
  const Instruction& i;
  const Action action;
  const uint32_t index, mask;
  const bool is_uniform;
  const unsigned first_lane;
  std::array<Lanes, kMostOperands + 1> read_;
  Lanes d;
};

void Interpreter::State::execute(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  if (mask) Execution(*this, w, i, index, mask).run();
}

}  // namespace roofgen::sass
