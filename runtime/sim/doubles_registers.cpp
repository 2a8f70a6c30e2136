// Doubles in registers: what each instruction without memory does to them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {

namespace {

/// Of the terms of a sum, to its result: from here on it is a cancellation.
constexpr double kCancels = 8;

uint32_t place_of_source(const Inst& in, uint32_t source) {
  return source == 0 ? in.a : source == 1 ? in.b : source == 2 ? in.c : in.e;
}
uint32_t units_of(bool wide) { return wide ? 4 : 2; }
bool is_float32(Format format) { return format == Format::kF32 || format == Format::kTf32; }

}  // namespace

CtaDoubles::CtaDoubles(Machine& machine, Doubles& launch) : machine_(machine), launch_(launch) {}

void CtaDoubles::begin() {
  rows_.assign(size_t{machine_.kernel_.rows} * machine_.n_warps_, {});
  memory_.clear();
}

size_t CtaDoubles::pc_of(const Inst& in) const { return static_cast<size_t>(&in - machine_.kernel_.code.data()); }

CtaDoubles::Row& CtaDoubles::row(const Warp& w, uint32_t place) {
  return rows_[size_t{w.index} * machine_.kernel_.rows + place];
}

bool CtaDoubles::any_in(const Warp& w, uint32_t place, bool wide, uint32_t mask) {
  const Row& low = row(w, place);
  uint32_t has = low.has[0] | low.has[1];
  if (wide) has |= row(w, place + 1).has[0] | row(w, place + 1).has[1];
  return has & mask;
}

void CtaDoubles::forget(const Warp& w, uint32_t place, bool wide, uint32_t mask) {
  for (uint32_t i = 0; i < (wide ? 2u : 1u); ++i)
    for (uint32_t& has : row(w, place + i).has) has &= ~mask;
}

void CtaDoubles::forget_results(const Warp& w, const Inst& in, uint32_t mask) {
  for (const Operand& o : machine_.operands_of(in))
    if (o.is_def && !o.is_pred) forget(w, o.place, o.wide, mask);
}

uint64_t CtaDoubles::bits_in(const Warp& w, uint32_t place, bool wide, uint32_t lane) const {
  return wide ? machine_.wide_row(w, place)[lane] : machine_.row(w, place)[lane];
}

/// The instruction may overwrite its sources.
void CtaDoubles::save(const Warp& w, const Inst& in, const DoubleRule& rule) {
  for (uint32_t s = 0; s < 4; ++s) {
    const uint32_t place = place_of_source(in, s);
    if (rule.wide[s] || rule.from == Format::kF64 || rule.integer_bytes == 8)
      std::copy_n(machine_.wide_row(w, place), kWarpSize, saved_[s]);
    else if (s < 2 || !rule.by_predicate)
      std::copy_n(machine_.row(w, place), kWarpSize, saved_[s]);
    if (rule.op != DoubleOp::kMove && s + 1 >= rule.sources) break;
  }
}

/// The numbers of a register, from a unit of 16 bits on. The upper half of a float whose other half is zero is a bf16.
void CtaDoubles::read(const Warp& w, uint32_t place, uint32_t unit, Format format, const uint64_t* own, uint32_t mask,
                      Numbers& out) {
  for (uint32_t l = 0; l < kWarpSize; ++l)
    out.value[l] = decoded(format, own[l] >> 16 * unit & low_bytes(bytes_of(format)));
  out.has = 0;
  const Row& r = row(w, place + unit / 2);
  for (uint32_t m = mask & r.has[unit % 2]; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const Format have = r.format[unit % 2][l];
    if (have != format && !(is_float32(have) && is_float32(format))) continue;
    out.value[l] = r.value[unit % 2][l];
    out.origin[l] = r.origin[unit % 2][l];
    out.has |= 1u << l;
  }
  if (unit % 2 || !is_float32(format)) return;
  for (uint32_t m = mask & r.has[1] & ~out.has; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (r.format[1][l] != Format::kBf16 || (own[l] >> 16 * unit & 0xffff)) continue;
    out.value[l] = r.value[1][l];
    out.origin[l] = r.origin[1][l];
    out.has |= 1u << l;
  }
}

void CtaDoubles::set(const Warp& w, uint32_t place, uint32_t unit, uint32_t lane, const DoubleMemory::Cell& cell) {
  Row& r = row(w, place + unit / 2);
  r.has[unit % 2] |= 1u << lane;
  r.value[unit % 2][lane] = cell.value;
  r.origin[unit % 2][lane] = cell.origin;
  r.format[unit % 2][lane] = cell.format;
}

/// The place had no double; it gets one if it is another than the own value. `origin`: of the sources.
void CtaDoubles::write(const Warp& w, const Inst& in, uint32_t place, uint32_t unit, Format format, uint32_t lane,
                       double value, uint32_t origin, double largest) {
  const uint64_t bits = bits_in(w, place, format == Format::kF64, lane) >> 16 * unit & low_bytes(bytes_of(format));
  const double own = decoded(format, bits);
  if (own == value || (std::isnan(own) && std::isnan(value))) return;
  const bool apart = launch_.apart(own, value, format);
  if (apart && !origin) {
    const Departure why = std::isnan(own)                                                    ? Departure::kInvalid
                          : !std::isfinite(value)                                            ? Departure::kOnlyInDouble
                          : std::isinf(own)                                                  ? Departure::kOverflow
                          : largest >= kCancels * std::max(std::fabs(own), std::fabs(value)) ? Departure::kCancellation
                                                                                             : Departure::kRounding;
    origin = depart(w, in, lane, why, own, value);
  }
  set(w, place, unit, lane, {bits, value, apart ? origin : 0, format});
}

DoubleSite& CtaDoubles::note(std::vector<DoubleSite>& sites, const Warp& w, const Inst& in, uint32_t lane) {
  DoubleSite& site = sites[pc_of(in)];
  if (site.count++ == 0) {
    site.order = launch_.order_++;
    site.cta = machine_.cta_;
    site.thread = w.index * kWarpSize + lane;
  }
  return site;
}

uint32_t CtaDoubles::depart(const Warp& w, const Inst& in, uint32_t lane, Departure why, double own, double value) {
  DoubleSite& site = note(launch_.departures_, w, in, lane);
  if (site.count == 1) site.why = why, site.own = own, site.value = value;
  return 1 + static_cast<uint32_t>(pc_of(in));
}

// ---- instructions --------------------------------------------------------------------------------------

void CtaDoubles::before(Warp& w, const Inst& in, uint32_t mask) {
  const DoubleRule& rule = launch_.rules_[pc_of(in)];
  switch (in.kind) {
    case Kind::kLane:
      if (rule.op != DoubleOp::kNone) save(w, in, rule);
      break;
    case Kind::kMma:
      if (rule.op == DoubleOp::kMatrices && mask == ~0u) before_mma(w, in, rule);
      break;
    case Kind::kCpAsync:
      machine_.addresses(w, in.b, in.flags & kFlagDst64, static_cast<int32_t>(in.target), other_address_);
      if (in.sub == 1) std::copy_n(machine_.row(w, in.c), kWarpSize, saved_[0]);
      [[fallthrough]];
    case Kind::kLoad:
    case Kind::kStore:
    case Kind::kStoreAsync:
    case Kind::kLdmatrix:
    case Kind::kStmatrix:
    case Kind::kWmmaLoad:
    case Kind::kWmmaStore:
      machine_.addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address_);
      if (in.kind == Kind::kWmmaLoad || in.kind == Kind::kWmmaStore)
        std::copy_n(machine_.row(w, in.b), kWarpSize, saved_[0]);
      break;
    case Kind::kAtomic:
      machine_.addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address_);
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        saved_[1][l] = bits_in(w, in.b, in.size == 8, l);
        saved_[2][l] = bits_in(w, in.c, in.size == 8, l);
      }
      break;
    default: break;
  }
}

void CtaDoubles::after(Warp& w, const Inst& in, uint32_t mask) {
  const DoubleRule& rule = launch_.rules_[pc_of(in)];
  switch (in.kind) {
    case Kind::kLane:
      switch (rule.op) {
        case DoubleOp::kNone: return lose(w, in, mask);
        case DoubleOp::kMove: return move(w, in, rule, mask);
        case DoubleOp::kNegate:
        case DoubleOp::kAbsolute: return change_sign(w, in, rule, mask);
        case DoubleOp::kToInteger:
        case DoubleOp::kCompare: return decide(w, in, rule, mask);
        default: return compute(w, in, rule, mask);
      }
    case Kind::kMma:
      if (rule.op == DoubleOp::kMatrices && mask == ~0u) return after_mma(w, in, rule);
      return forget_results(w, in, mask);
    case Kind::kLoad: return load(w, in, mask);
    case Kind::kStore:
    case Kind::kStoreAsync: return store(w, in, mask);
    case Kind::kAtomic: return atomic(w, in, mask);
    case Kind::kCpAsync: return cp_async(w, in, mask);
    case Kind::kLdmatrix:
    case Kind::kStmatrix: return matrix_rows(w, in);
    case Kind::kWmmaLoad:
    case Kind::kWmmaStore: return tile(w, in);
    case Kind::kShuffle:
    case Kind::kWgmma: return;  // they may not have run
    default: return forget_results(w, in, mask);
  }
}

/// A constant is added for its exponent: the sum is a whole number, as device functions round to one. It is meant so.
bool CtaDoubles::rounds_on_purpose(const Inst& in, const DoubleRule& rule, const Numbers (&x)[3], uint32_t lane) const {
  const double low = rule.to == Format::kF64 ? 0x1p52 : 0x1p23;
  const auto is_such = [&](uint32_t source) {
    const double size = std::fabs(x[source].value[lane]);
    return size >= low && size < 2 * low && launch_.constant_[place_of_source(in, source)];
  };
  if (rule.to != Format::kF32 && rule.to != Format::kF64) return false;
  if (rule.op == DoubleOp::kFused) return is_such(2);
  return (rule.op == DoubleOp::kAdd || rule.op == DoubleOp::kSubtract) && (is_such(0) || is_such(1));
}

void CtaDoubles::compute(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask) {
  struct Result {
    double value, largest = 0;
    uint32_t origin = 0;
    bool as_own = false;
  } result[2][kWarpSize];
  const uint32_t parts = rule.paired || rule.joins ? 2 : 1;
  const bool to_wide = rule.to == Format::kF64;
  for (uint32_t part = 0; part < parts; ++part) {
    Numbers x[3];
    if (rule.joins) read(w, part ? in.a : in.b, 0, rule.from, saved_[part ? 0 : 1], mask, x[0]);
    for (uint32_t s = 0; !rule.joins && rule.op != DoubleOp::kFromInteger && s < std::max<uint32_t>(rule.sources, 1);
         ++s)
      read(w, place_of_source(in, s), part, rule.from, saved_[s], mask, x[s]);
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      Result& r = result[part][l];
      if (rule.op == DoubleOp::kFromInteger) {
        const int shift = 64 - 8 * rule.integer_bytes;
        const uint64_t bits = saved_[0][l] << shift;
        r.value = rule.is_signed ? static_cast<double>(static_cast<int64_t>(bits) >> shift)
                                 : static_cast<double>(bits >> shift);
        continue;
      }
      const double numbers[3] = {x[0].value[l], x[1].value[l], x[2].value[l]};
      r.value = in_double(rule, numbers, &r.largest);
      if (rule.op == DoubleOp::kRoundToWhole) r.value = whole(rule.toward, numbers[0]), r.largest = numbers[0];
      r.as_own = rounds_on_purpose(in, rule, x, l);
      for (const Numbers& n : x)
        if (n.has >> l & 1 && n.origin[l] && !r.origin) r.origin = n.origin[l];
    }
  }
  forget(w, in.d, to_wide, mask);
  for (uint32_t part = 0; part < parts; ++part)
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      const Result& r = result[part][l];
      if (r.as_own) continue;
      const double own = decoded(rule.to, bits_in(w, in.d, to_wide, l) >> 16 * part & low_bytes(bytes_of(rule.to)));
      if (rule.op == DoubleOp::kRoundToWhole) {
        if (own == r.value || std::isnan(own)) continue;
        DoubleSite& site = note(launch_.decisions_, w, in, l);
        if (site.count == 1) site.own = decoded(rule.from, saved_[0][l]), site.value = r.largest;
        continue;
      }
      write(w, in, in.d, part, rule.to, l, r.value, r.origin, r.largest);
    }
}

/// Comparisons and conversions to integers go as the own values say.
void CtaDoubles::decide(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask) {
  const bool compares = rule.op == DoubleOp::kCompare, wide = rule.from == Format::kF64;
  const bool any = any_in(w, in.a, wide, mask) || (compares && any_in(w, in.b, wide, mask));
  for (uint32_t part = 0; any && part < (rule.paired ? 2u : 1u); ++part) {
    Numbers a, b{};
    read(w, in.a, part, rule.from, saved_[0], mask, a);
    if (compares) read(w, in.b, part, rule.from, saved_[1], mask, b);
    for (uint32_t m = mask & (a.has | b.has); m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      const auto own_of = [&](uint32_t s) {
        return decoded(rule.from, saved_[s][l] >> 16 * part & low_bytes(bytes_of(rule.from)));
      };
      const double own = own_of(0);
      if (compares ? holds(rule.relation, own, own_of(1)) == holds(rule.relation, a.value[l], b.value[l])
                   : whole(rule.toward, own) == whole(rule.toward, a.value[l]) || std::isnan(own))
        continue;
      DoubleSite& site = note(launch_.decisions_, w, in, l);
      if (site.count > 1) continue;
      site.own = own, site.value = a.value[l];
      if ((site.compares = compares)) site.own_other = own_of(1), site.value_other = b.value[l];
    }
  }
  forget_results(w, in, mask);
}

/// Bits move with their doubles. The instruction runs on marks in their place to tell where to; a sign may change.
void CtaDoubles::move(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask) {
  bool any = false;
  for (uint32_t s = 0; s < rule.sources; ++s) any |= any_in(w, place_of_source(in, s), rule.wide[s], mask);
  if (!any) return forget_results(w, in, mask);
  constexpr uint64_t kMark = 0x5a50, kMarkBits = 0x7ff0, kSign = 0x8000;
  alignas(64) uint64_t rows[5][kWarpSize] = {};
  Row source[4][2];
  for (uint32_t s = 0; s < 4; ++s) {
    uint64_t marked[kWarpSize];
    std::copy_n(saved_[s], kWarpSize, marked);
    for (uint32_t half = 0; s < rule.sources && half < units_of(rule.wide[s]) / 2; ++half) {
      const Row& r = source[s][half] = row(w, place_of_source(in, s) + half);
      for (uint32_t u = 0; u < 2; ++u)
        for (uint32_t m = mask & r.has[u]; m; m &= m - 1) {
          const uint32_t l = first_lane(m), begin = 2 * half + u, n = bytes_of(r.format[u][l]) / 2;
          for (uint32_t k = begin; k < std::min(begin + n, units_of(rule.wide[s])); ++k)
            marked[l] = (marked[l] & ~(uint64_t{0xffff} << 16 * k)) | (kMark + 4 * s + k) << 16 * k;
        }
    }
    for (uint32_t l = 0; l < kWarpSize; ++l) {
      if (rule.wide[s])
        rows[s][l] = marked[l];
      else
        reinterpret_cast<uint32_t*>(rows[s])[l] = static_cast<uint32_t>(marked[l]);
    }
  }
  Inst trial = in;
  trial.a = 0, trial.b = 2, trial.e = 6, trial.d = 8;  // a row has 32 bits per lane
  if (!rule.by_predicate) trial.c = 4;
  in.lane({reinterpret_cast<uint32_t*>(rows[0]), w.regs.preds}, trial, machine_.kernel_.lists.data(), ~0u);

  forget_results(w, in, mask);
  const bool wide = in.flags & kFlagWide;
  const uint32_t units = units_of(wide);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const uint64_t marks = wide ? rows[4][l] : reinterpret_cast<const uint32_t*>(rows[4])[l];
    const uint64_t own = bits_in(w, in.d, wide, l);
    for (uint32_t u = 0; u < units; ++u) {
      if ((marks >> 16 * u & kMarkBits) != kMark) continue;
      const auto s = static_cast<uint32_t>(marks >> (16 * u + 2) & 3),
                 from = static_cast<uint32_t>(marks >> 16 * u & 3);
      const Row& r = source[s][from / 2];
      if (s >= rule.sources || !(r.has[from % 2] >> l & 1)) continue;
      const Format format = r.format[from % 2][l];
      const uint32_t n = bytes_of(format) / 2;
      if (u + n > units) continue;
      bool whole_number = true, flips = false;
      for (uint32_t k = 0; k < n; ++k) {
        const uint64_t differ = (own >> 16 * (u + k) ^ saved_[s][l] >> 16 * (from + k)) & 0xffff;
        whole_number &= (marks >> 16 * (u + k) & 0x7fff) == kMark + 4 * s + from + k;
        whole_number &= differ == 0 || (differ == kSign && k + 1 == n);
        flips = differ == kSign;
      }
      if (!whole_number) continue;
      const double value = r.value[from % 2][l];
      set(w, in.d, u, l, {0, flips ? -value : value, r.origin[from % 2][l], format});
    }
  }
}

void CtaDoubles::change_sign(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask) {
  const bool wide = rule.to == Format::kF64;
  const Row source[2] = {row(w, in.a), wide ? row(w, in.a + 1) : Row{}};
  forget(w, in.d, wide, mask);
  for (uint32_t u = 0; u < units_of(wide); ++u) {
    const Row& r = source[u / 2];
    for (uint32_t m = mask & r.has[u % 2]; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      const double value = r.value[u % 2][l];
      set(w, in.d, u, l,
          {0, rule.op == DoubleOp::kNegate ? -value : std::fabs(value), r.origin[u % 2][l], r.format[u % 2][l]});
    }
  }
}

/// An instruction that is not followed in double.
void CtaDoubles::lose(const Warp& w, const Inst& in, uint32_t mask) {
  for (const Operand& o : machine_.operands_of(in)) {
    if (o.is_def || o.is_pred || !any_in(w, o.place, o.wide, mask)) continue;
    for (uint32_t u = 0; u < units_of(o.wide); ++u) {
      const Row& r = row(w, o.place + u / 2);
      for (uint32_t m = mask & r.has[u % 2]; m; m &= m - 1)
        if (r.origin[u % 2][first_lane(m)]) note(launch_.losses_, w, in, first_lane(m));
    }
  }
  forget_results(w, in, mask);
}

void CtaDoubles::shuffle(const Warp& w, const Inst& in, uint32_t mask, const uint32_t* from) {
  const Row source = row(w, in.a);
  Row& to = row(w, in.d);
  for (uint32_t u = 0; u < 2; ++u)
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      to.has[u] &= ~(1u << l);
      if (source.has[u] >> from[l] & 1)
        set(w, in.d, u, l, {0, source.value[u][from[l]], source.origin[u][from[l]], source.format[u][from[l]]});
    }
}

}  // namespace roofgen::sim
