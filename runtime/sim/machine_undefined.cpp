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
#include "runtime/sim/wgmma.h"

namespace roofgen::sim {

namespace {

/// Bit i: byte i has one of the bits.
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
        const std::string& name = kernel_.unassigned[place];  // empty: the value has moved to another one
        return fmt::format("{} is read before it is written", name.empty() ? "a register" : "register " + name);
      });
      continue;
    }
    const ValueOrigin& from = w.origins[(origin - 1) / kWarpSize];
    const uint32_t lane = (origin - 1) % kWarpSize;
    const Site load{kernel_.code[from.pc], from.pc, w.index};
    const bool stored = partly_undefined_.count(key_of_origin(w, from.address[lane], lane)) > 0;
    if (load.inst.kind == Kind::kShuffle)
      checker_.report(load, "partial-warp", lane, [&] {
        return fmt::format("lane {} reads the register of lane {}, which does not take part in the shuffle", lane,
                           from.address[lane]);
      });
    else
      checker_.report_unwritten_value(load, lane, from.address[lane], stored, site(w));
  }
}

/// Checks the sources of an instruction before it runs, and notes which bits of its results are undefined.
void Machine::follow(Warp& w, const Inst& in) {
  const std::span<const Operand> operands = operands_of(in);
  for (const Operand& o : operands)
    if (o.field == Operand::kGuard) need(w, o.place, w.active);
  const uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
  if (in.kind == Kind::kLane) return follow_lanes(w, in, mask);
  // A product replaces its sums where scale-d is false.
  const bool replaces = in.kind == Kind::kWgmma && (in.imm & kWgmmaReplaces || !(w.regs.preds[in.c] & mask));
  for (const Operand& o : operands) {
    if (o.is_def || o.field == Operand::kGuard) continue;
    if (replaces && o.field == Operand::kList && o.entry < sums_of(in)) continue;
    const bool shuffled = in.kind == Kind::kShuffle && o.field == Operand::kA;
    const bool stored = in.kind == Kind::kStore && o.field == Operand::kList;
    if (stored && w.undefined[o.place] & mask) w.follow = kFlagTracked;
    if (shuffled || (stored && w.follow)) continue;  // holes_in() looks at what is stored
    need(w, o.place, mask, low_bytes(stored ? in.size : 8));
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

  // All sources are read first: the destination may be one of them.
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
  // Instructions that may use an unassigned register are checked anyway.
  if (origin || kernel_.unassigned[place].empty()) w.follow = kFlagTracked;
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
    for (uint32_t i = 0; i < in.count; ++i) {
      uint64_t bits = 0;
      for (uint32_t k = 0; k < in.size; ++k) {
        if (!(missing >> (i * in.size + k) & 1)) continue;
        const auto partly = partly_undefined_.find(byte_key(w, t, l) + i * in.size + k);
        bits |= uint64_t{partly == partly_undefined_.end() ? uint8_t{0xff} : partly->second} << 8 * k;
      }
      if (bits) set_undefined(w, kernel_.lists[in.list + i], l, extended(bits, in), origin);
    }
  }
}

/// An exchange has taken bytes that nothing has written. Of lanes with the same address only the first does.
void Machine::note_unwritten_exchange(Warp& w, const Inst& in, uint32_t mask, const Targets& t) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    bool first = true;
    for (uint32_t before = mask & ((1u << l) - 1); before; before &= before - 1)
      first &= t.address[first_lane(before)] != t.address[l];
    for (const Operand& o : operands_of(in))
      if (first && o.is_def) set_undefined(w, o.place, l, low_bytes(in.size), origin_at(w, l, t.address[l]));
  }
}

/// Local memory from offset `begin` to `end` holds nothing from now on.
void Machine::forget_local(const Warp& w, uint32_t mask, uint32_t begin, uint32_t end) {
  checker_.forget_local(w.index, mask, begin, end);
  for (uint32_t m = partly_undefined_.empty() ? 0 : mask; m; m &= m - 1)
    for (uint64_t at = begin; at < end; ++at) partly_undefined_.erase(local_key(w, first_lane(m)) | (kLocalBase + at));
}

/// Whether undefined bits of a register go back to where they were loaded from, which changes other bits there: a
/// bit-field is written. Device memory leaves the CTA.
bool Machine::goes_back(const Warp& w, const Inst& in, uint32_t place, uint32_t lane, const Targets& t) const {
  const uint32_t origin = w.details[place].origin[lane];
  if (!origin || !t.is_of_cta(lane)) return false;
  const ValueOrigin& from = w.origins[(origin - 1) / kWarpSize];
  return from.address[(origin - 1) % kWarpSize] - t.address[lane] < uint64_t{in.size} * in.count &&
         kernel_.code[from.pc].kind == Kind::kLoad;
}

uint64_t Machine::key_of_origin(const Warp& w, uint64_t address, uint32_t lane) {
  return address | (address >= kLocalBase && address < kLocalWindowEnd ? local_key(w, lane) : 0);
}

/// Whether the undefined bits of a register are those of one that was never assigned, here or before it was stored to
/// the memory of the CTA.
bool Machine::was_never_assigned(const Warp& w, uint32_t place, uint32_t lane) const {
  const uint32_t origin = w.details.empty() ? 0 : w.details[place].origin[lane];
  if (!origin) return true;
  const uint32_t from_lane = (origin - 1) % kWarpSize;
  return partly_undefined_.count(key_of_origin(w, w.origins[(origin - 1) / kWarpSize].address[from_lane], from_lane)) >
         0;
}

/// The bytes of a store that stay unwritten, as one of their bits is undefined. Values that are only copied may be the
/// padding of a struct, unless there is nothing else. The memory of the CTA takes registers that were never assigned:
/// threads exchange what guarded loads did not fill, as CUB's do, and a use of such a value is the finding.
uint32_t Machine::holes_in(Warp& w, const Inst& in, uint32_t lane, const Targets& t) {
  uint64_t undefined[4] = {};
  bool nothing_else = true;
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t place = kernel_.lists[in.list + i];
    if (w.undefined[place] >> lane & 1)
      undefined[i] = (w.details.empty() ? ~uint64_t{0} : w.details[place].bits[lane]) & low_bytes(in.size);
    nothing_else &= undefined[i] == low_bytes(in.size);
  }
  uint32_t holes = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t place = kernel_.lists[in.list + i];
    if (!undefined[i]) continue;
    const bool may_stay = t.is_of_cta(lane) && was_never_assigned(w, place, lane);
    if (!may_stay && (nothing_else || !(in.sub >> i & 1 || goes_back(w, in, place, lane, t)))) {
      need(w, place, 1u << lane);
      continue;
    }
    holes |= bytes_of_bits(undefined[i]) << (i * in.size);
    for (uint32_t k = 0; k < in.size; ++k)
      if (const auto bits = static_cast<uint8_t>(undefined[i] >> 8 * k); bits && t.is_of_cta(lane))
        partly_undefined_[byte_key(w, t, lane) + i * in.size + k] = bits;
  }
  return holes;
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
