// Undefined values: registers that were never assigned, bytes that nothing has written, and what shuffles take from
// absent lanes. Compilers load and compute values that they then do not select, so an undefined value is a finding only
// where it decides something or leaves the lane's registers: a branch, an address, a store, other lanes.
//
// Instructions that may use an unassigned register are known when the kernel is loaded (Kernel::unassigned). From the
// first load of unwritten bytes on, a warp checks every instruction, until no other register is undefined.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

void Machine::report_undefined(Warp& w, uint32_t place, uint32_t bad) {
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

/// Checks the sources of an instruction before it runs, and notes which of its results are undefined.
void Machine::follow(Warp& w, const Inst& in) {
  const auto i = static_cast<size_t>(&in - kernel_.code.data());
  const std::span<const Operand> operands(kernel_.operands.data() + kernel_.operand_begin[i],
                                          kernel_.operands.data() + kernel_.operand_begin[i + 1]);
  for (const Operand& o : operands)
    if (o.field == Operand::kGuard) need(w, o.place, w.active);
  const uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
  if (in.kind == Kind::kLane) return follow_lanes(w, in, mask);
  for (const Operand& o : operands) {
    if (o.is_def || o.field == Operand::kGuard) continue;
    const bool shuffled = in.kind == Kind::kShuffle && o.field == Operand::kA;
    const bool copied = in.kind == Kind::kStore && o.field == Operand::kList && in.sub >> o.entry & 1;
    if (!shuffled && !copied) need(w, o.place, mask);
  }
  for (const Operand& o : operands)
    if (o.is_def) set_defined(w, o.place, mask);
}

void Machine::follow_lanes(Warp& w, const Inst& in, uint32_t mask) {
  const auto i = static_cast<size_t>(&in - kernel_.code.data());
  const std::span<const Operand> operands(kernel_.operands.data() + kernel_.operand_begin[i],
                                          kernel_.operands.data() + kernel_.operand_begin[i + 1]);
  uint32_t defined[3] = {~0u, ~0u, ~0u}, others = ~0u;
  for (const Operand& o : operands) {
    if (o.is_def || o.field == Operand::kGuard) continue;
    (o.field <= Operand::kC ? defined[o.field] : others) &= ~w.undefined[o.place];
  }
  const uint32_t bad = mask & ~(others & made_of_defined(w, in, defined));
  // A source that is also the result is looked at before it changes.
  Undefined made;
  for (uint32_t m = w.details.empty() ? 0 : bad; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    made.bytes[l] = 0xff;
    made.origin[l] = 0;
    for (const Operand& o : operands)
      if (!o.is_def && o.field != Operand::kGuard && w.undefined[o.place] >> l & 1) {
        if (is_plain_move(in)) made.bytes[l] = w.details[o.place].bytes[l];
        made.origin[l] = std::max(made.origin[l], w.details[o.place].origin[l]);
      }
  }
  for (const Operand& o : operands) {
    if (!o.is_def) continue;
    w.undefined[o.place] = (w.undefined[o.place] & ~mask) | bad;
    for (uint32_t m = w.details.empty() ? 0 : bad; m; m &= m - 1) {
      w.details[o.place].bytes[first_lane(m)] = made.bytes[first_lane(m)];
      w.details[o.place].origin[first_lane(m)] = made.origin[first_lane(m)];
    }
  }
}

/// Lanes in which the result is made of sources that are defined.
uint32_t Machine::made_of_defined(const Warp& w, const Inst& in, const uint32_t* defined) const {
  const uint32_t a = defined[Operand::kA], b = defined[Operand::kB], c = defined[Operand::kC];
  const uint32_t* p = w.regs.preds;
  switch (static_cast<MadeOf>(in.type)) {
    case MadeOf::kAll: break;
    case MadeOf::kSelected: return c & ((p[in.c] & a) | (~p[in.c] & b));
    case MadeOf::kAnd: return (a & b) | (a & ~p[in.a]) | (b & ~p[in.b]);
    case MadeOf::kOr: return (a & b) | (a & p[in.a]) | (b & p[in.b]);
    case MadeOf::kCombined: {
      const uint32_t value = p[in.c] ^ static_cast<uint32_t>(in.imm);
      const uint32_t decides = in.sub == 1 ? ~value : in.sub == 2 ? value : 0;
      return c & ((a & b) | decides);
    }
  }
  return a & b & c;
}

void Machine::set_undefined(Warp& w, uint32_t place, uint32_t lane, uint8_t bytes, uint32_t origin) {
  if (w.details.empty()) w.details.resize(w.undefined.size());
  w.follow = kFlagTracked;
  w.undefined[place] |= 1u << lane;
  w.details[place].bytes[lane] = bytes;
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
        set_undefined(w, kernel_.lists[in.list + i], l, static_cast<uint8_t>(part), origin);
  }
}

/// The undefined bytes of a store whose values are only copied: they may be the padding of a struct, unless there is
/// nothing else.
uint32_t Machine::holes_in(Warp& w, const Inst& in, uint32_t lane) {
  uint32_t holes = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t place = kernel_.lists[in.list + i];
    if (w.undefined[place] >> lane & 1)
      holes |= (w.details[place].bytes[lane] & ((1u << in.size) - 1)) << (i * in.size);
  }
  if (holes != (1u << in.size * in.count) - 1) return holes;
  for (uint32_t i = 0; i < in.count; ++i) need(w, kernel_.lists[in.list + i], 1u << lane);
  return 0;
}

/// A lane's result is defined where that of the lane is that it reads.
void Machine::shuffle_undefined(Warp& w, const Inst& in, uint32_t mask, const uint32_t* from, uint32_t absent) {
  const auto i = static_cast<size_t>(&in - kernel_.code.data());
  uint32_t source = 0, result = 0;
  bool has_result = false;
  for (uint32_t k = kernel_.operand_begin[i]; k < kernel_.operand_begin[i + 1]; ++k) {
    const Operand& o = kernel_.operands[k];
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
      set_undefined(w, result, l, 0xff, origin_at(w, l, from[l]));
    else if (undefined >> from[l] & 1)
      set_undefined(w, result, l, details.bytes[from[l]], details.origin[from[l]]);
  }
}

/// Ends the check of every instruction if no more than unassigned registers are undefined.
void Machine::stop_following(Warp& w) {
  for (size_t i = 0; i < w.undefined.size(); ++i)
    if (w.undefined[i] && kernel_.unassigned[i].empty()) return;
  w.follow = 0;
}

}  // namespace roofgen::sim
