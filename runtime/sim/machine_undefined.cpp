// Undefined values: registers that were never assigned, bytes that nothing has written, and what shuffles take from
// absent lanes. Compilers load and compute values that they then do not select, so an undefined value is a finding only
// where it decides something or leaves the lane's registers: a branch, an address, a store, other lanes.
//
// Instructions that may use an unassigned register are known when the kernel is loaded (Kernel::unassigned). From the
// first load of unwritten bytes on, a warp checks every instruction, until no other register is undefined.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"
#include "runtime/sim/undefined_bits.h"

namespace roofgen::sim {

namespace {

constexpr uint64_t kAllBits = ~uint64_t{0};

/// Bit i becomes byte i.
uint64_t bits_of_bytes(uint32_t bytes) {
  uint64_t bits = 0;
  for (uint32_t m = bytes; m; m &= m - 1) bits |= uint64_t{0xff} << 8 * first_lane(m);
  return bits;
}

/// The reverse, of bytes that have any of the bits.
uint32_t bytes_of_bits(uint64_t bits) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < 8; ++i) bytes |= static_cast<uint32_t>((bits >> 8 * i & 0xff) != 0) << i;
  return bytes;
}

}  // namespace

std::span<const Operand> Machine::operands_of(const Inst& in) const {
  const auto i = static_cast<size_t>(&in - kernel_.code.data());
  return {kernel_.operands.data() + kernel_.operand_begin[i], kernel_.operands.data() + kernel_.operand_begin[i + 1]};
}

void Machine::report_undefined(Warp& w, uint32_t place, uint32_t bad, uint64_t bits) {
  for (uint32_t m = w.details.empty() ? 0 : bad; m; m &= m - 1)
    if (!(w.details[place].bits[first_lane(m)] & bits)) bad &= ~(m & (0 - m));
  w.undefined[place] &= ~bad;
  for (uint32_t m = bad; m; m &= m - 1) {
    const uint32_t l = first_lane(m), origin = w.details.empty() ? 0 : w.details[place].origin[l];
    if (!origin) {
      checker_.report(site(w), "uninitialised", l, [&] {
        return fmt::format("register {} is read before it is written", kernel_.unassigned[place]);
      });
      continue;
    }
    const ValueOrigin& from = w.origins[(origin - 1) / kWarpSize];
    const uint32_t lane = (origin - 1) % kWarpSize;
    const Site load{kernel_.code[from.pc], from.pc, w.index};
    if (load.inst.kind == Kind::kShuffle)
      checker_.report(load, "partial-warp", lane, [&] {
        return fmt::format("lane {} reads the register of lane {}, which does not take part in the shuffle", lane,
                           from.address[lane]);
      });
    else
      checker_.report_unwritten_value(load, lane, from.address[lane], site(w));
  }
}

/// Checks the sources of an instruction before it runs, and notes which bits of its results are undefined.
void Machine::follow(Warp& w, const Inst& in) {
  const std::span<const Operand> operands = operands_of(in);
  for (const Operand& o : operands)
    if (o.field == Operand::kGuard) need(w, o.place, w.active);
  const uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
  if (in.kind == Kind::kLane) return follow_lanes(w, in, mask);
  for (const Operand& o : operands) {
    if (o.is_def || o.field == Operand::kGuard) continue;
    const bool shuffled = in.kind == Kind::kShuffle && o.field == Operand::kA;
    const bool stored = in.kind == Kind::kStore && o.field == Operand::kList;
    const bool copied = stored && in.sub >> o.entry & 1;
    if (!shuffled && !copied) need(w, o.place, mask, low_bytes(stored ? in.size : 8));
  }
  for (const Operand& o : operands)
    if (o.is_def) set_defined(w, o.place, mask);
}

void Machine::follow_lanes(Warp& w, const Inst& in, uint32_t mask) {
  const std::span<const Operand> operands = operands_of(in);
  const auto is_source = [](const Operand& o) { return !o.is_def && o.field != Operand::kGuard; };
  uint32_t some = 0;
  for (const Operand& o : operands)
    if (is_source(o)) some |= w.undefined[o.place] & mask;
  for (const Operand& o : operands)
    if (o.is_def && !some) set_defined(w, o.place, mask);
  if (!some) return;

  // The sources are looked at before one of them changes that is also the result.
  SourceBits sources[4];
  uint32_t origin[kWarpSize] = {};
  for (const Operand& o : operands) {
    if (!is_source(o)) continue;
    SourceBits& s = sources[o.field == Operand::kOther ? 3 : o.field];
    s.wide = o.wide;
    for (uint32_t l = 0; l < kWarpSize; ++l)
      s.value[l] = o.is_pred ? w.regs.preds[o.place - kernel_.rows] >> l & 1
                   : o.wide  ? wide_row(w, o.place)[l]
                             : row(w, o.place)[l];
    for (uint32_t m = w.undefined[o.place] & mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      s.undefined[l] = w.details.empty() ? ~uint64_t{0} : w.details[o.place].bits[l];
      origin[l] = std::max(origin[l], w.details.empty() ? 0 : w.details[o.place].origin[l]);
    }
  }
  UndefinedResult result;
  undefined_result(in, sources, result);
  for (const Operand& o : operands) {
    if (!o.is_def) continue;
    set_defined(w, o.place, mask);
    const uint64_t width = o.is_pred ? 1 : low_bytes(o.wide ? 8 : 4);
    const uint64_t* bits = o.is_pred && o.place - kernel_.rows == in.e ? result.second : result.first;
    for (uint32_t m = some; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      if (const uint64_t bad = bits[l] & width) set_undefined(w, o.place, l, bad == width ? kAllBits : bad, origin[l]);
    }
  }
}

void Machine::set_undefined(Warp& w, uint32_t place, uint32_t lane, uint64_t bits, uint32_t origin) {
  w.undefined[place] |= 1u << lane;
  if (origin) w.follow = kFlagTracked;  // instructions that may use an unassigned register are checked anyway
  if (w.details.empty()) {
    if (!origin && bits == kAllBits) return;
    w.details.resize(w.undefined.size());
  }
  w.details[place].bits[lane] = bits;
  w.details[place].origin[lane] = origin;
}

/// The instruction that runs is an origin. Each has one record: of its last execution.
uint32_t Machine::origin_at(Warp& w, uint32_t lane, uint64_t address) {
  size_t i = 0;
  while (i < w.origins.size() && w.origins[i].pc != w.pc) ++i;
  if (i == w.origins.size()) w.origins.push_back({w.pc, {}});
  w.origins[i].address[lane] = address;
  return static_cast<uint32_t>(1 + i * kWarpSize + lane);
}

/// A load has read bytes that nothing has written.
void Machine::note_unwritten(Warp& w, const Inst& in, uint32_t mask, const Targets& t) {
  const uint32_t bytes = uint32_t{in.size} * in.count, all = (1u << bytes) - 1;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m), missing = all & ~written_bytes(w, t, l, bytes);
    if (!missing) continue;
    const uint32_t origin = origin_at(w, l, t.address[l] + first_lane(missing));
    for (uint32_t i = 0; i < in.count; ++i)
      if (const uint32_t part = missing >> (i * in.size) & ((1u << in.size) - 1))
        set_undefined(w, kernel_.lists[in.list + i], l, extended(bits_of_bytes(part), in), origin);
  }
}

/// The undefined bytes of a store whose values are only copied: they may be the padding of a struct, unless there is
/// nothing else.
uint32_t Machine::holes_in(Warp& w, const Inst& in, uint32_t lane) {
  uint32_t holes = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t place = kernel_.lists[in.list + i];
    if (w.undefined[place] >> lane & 1)
      holes |= (bytes_of_bits(w.details[place].bits[lane]) & ((1u << in.size) - 1)) << (i * in.size);
  }
  if (holes != (1u << in.size * in.count) - 1) return holes;
  for (uint32_t i = 0; i < in.count; ++i) need(w, kernel_.lists[in.list + i], 1u << lane);
  return 0;
}

/// A lane's result is defined where that of the lane is that it reads.
void Machine::shuffle_undefined(Warp& w, const Inst& in, uint32_t mask, const uint32_t* from, uint32_t absent) {
  uint32_t source = 0, result = 0;
  bool has_result = false;
  for (const Operand& o : operands_of(in)) {
    if (!o.is_def && o.field == Operand::kA) source = o.place;
    if (o.is_def && !o.is_pred) result = o.place, has_result = true;
  }
  if (!has_result) return;
  // The result may be the source.
  const uint32_t undefined = w.undefined[source];
  const Undefined details = w.details.empty() ? Undefined{} : w.details[source];
  set_defined(w, result, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (absent >> l & 1)
      set_undefined(w, result, l, kAllBits, origin_at(w, l, from[l]));
    else if (undefined >> from[l] & 1)
      set_undefined(w, result, l, details.bits[from[l]], details.origin[from[l]]);
  }
}

/// Ends the check of every instruction if no more than unassigned registers are undefined.
void Machine::stop_following(Warp& w) {
  for (size_t i = 0; i < w.undefined.size(); ++i)
    if (w.undefined[i] && kernel_.unassigned[i].empty()) return;
  w.follow = 0;
}

}  // namespace roofgen::sim
