// Instructions that exchange values between the lanes of a warp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/sim/atomics.h"
#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
uint32_t Machine::member_row(const Inst& in) const {
  if (in.kind == Kind::kShuffle) return kernel_.lists[in.list];
  return in.kind == Kind::kWarpBarrier ? in.a : in.b;
}

/// Whether the lanes that a `.sync` instruction names are all here. If some are still on another
/// path, the ones here wait for them, as they would on hardware. Otherwise the masks are checked.
bool Machine::together(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t* members = row(w, member_row(in));
  uint32_t named = 0;
  for (uint32_t m = mask; m; m &= m - 1) named |= members[first_lane(m)];
  uint32_t absent = named & ~mask & ~w.dead;
  if (absent && !(absent & w.active)) {
    bool may_come =
        std::any_of(w.parked.begin(), w.parked.end(), [](const Fragment& f) { return f.barrier != kWaitsForLanes; });
    if (may_come) {
      w.parked.push_back({w.pc, w.active, kWaitsForLanes});
      w.active = 0;
      choose(w);
      return false;
    }
  }
  check_members(w, member_row(in), mask);
  return true;
}

/// Every lane must name itself, all that are named must be here or have exited, and they must name
/// the same lanes.
void Machine::check_members(const Warp& w, uint32_t index, uint32_t mask) const {
  const uint32_t* members = row(w, index);
  if (mask == ~0u) {
    bool all = true;
    for (uint32_t l = 0; l < kWarpSize; ++l) all &= members[l] == ~0u;
    if (all) return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m);
    if (!(members[l] >> l & 1))
      throw Fault{"bad-member-mask", fmt::format("lane {} is not in its own member mask {:#010x}", l, members[l]), l};
    uint32_t absent = members[l] & ~mask & ~w.dead;
    if (absent)
      throw Fault{"partial-warp",
                  fmt::format("member mask {:#010x} names lanes {:#010x}, which never reach this instruction",
                              members[l], absent),
                  l};
    uint32_t group = 0;
    for (uint32_t k = mask; k; k &= k - 1)
      group |= static_cast<uint32_t>(members[first_lane(k)] == members[l]) << first_lane(k);
    if ((members[l] & mask) != group)
      throw Fault{"bad-member-mask", fmt::format("lanes of member mask {:#010x} pass different masks", members[l]), l};
  }
}

/// One event for each group of lanes that name the same members.
void Machine::lane_barrier(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t* members = row(w, in.a);
  for (uint32_t left = mask; left;) {
    const uint32_t group = members[first_lane(left)] & mask;
    emit(LaneBarrier{site(w), group, w.dead});
    left &= ~group;
  }
}

void Machine::shuffle(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t source[kWarpSize];
  const uint32_t *a = row(w, in.a), *b = row(w, in.b), *c = row(w, in.c);
  std::copy_n(a, kWarpSize, source);
  uint32_t result[kWarpSize], from_of[kWarpSize] = {}, valid = 0, absent = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), segment = c[l] >> 8 & 31, clamp = c[l] & 31, offset = b[l] & 31;
    uint32_t max_lane = (l & segment) | (clamp & ~segment), min_lane = l & segment, from = 0;
    bool inside = false;
    switch (static_cast<ShuffleMode>(in.sub)) {
      case ShuffleMode::kUp:
        from = l - offset;
        inside = static_cast<int32_t>(from) >= static_cast<int32_t>(max_lane);
        break;
      case ShuffleMode::kDown:
        from = l + offset;
        inside = from <= max_lane;
        break;
      case ShuffleMode::kBfly:
        from = l ^ offset;
        inside = from <= max_lane;
        break;
      case ShuffleMode::kIdx:
        from = min_lane | (offset & ~segment);
        inside = from <= max_lane;
        break;
    }
    if (!inside) from = l;
    if (!(mask >> from & 1)) absent |= 1u << l;
    result[l] = source[from];
    from_of[l] = from;
    valid |= static_cast<uint32_t>(inside) << l;
  }
  uint32_t* d = row(w, in.d);
  for (uint32_t m = mask; m; m &= m - 1) d[first_lane(m)] = result[first_lane(m)];
  if (in.e) set_pred(w, in.e, valid, mask);
  if (doubles_) [[unlikely]]
    doubles_->shuffle(w, in, mask, from_of);
  if (absent || (in.flags | w.follow) & kFlagTracked) shuffle_undefined(w, in, mask, from_of, absent);
}

void Machine::vote(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t values = w.regs.preds[in.a] ^ static_cast<uint32_t>(in.imm), members_of[kWarpSize];
  std::copy_n(row(w, in.b), kWarpSize, members_of);
  uint32_t verdict = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), members = members_of[l] & mask, yes = values & members;
    bool is = false;
    switch (static_cast<VoteMode>(in.sub)) {
      case VoteMode::kAll: is = yes == members; break;
      case VoteMode::kAny: is = yes != 0; break;
      case VoteMode::kUni: is = yes == members || yes == 0; break;
      case VoteMode::kBallot: row(w, in.d)[l] = yes; break;
      case VoteMode::kElect:
        row(w, in.d)[l] = first_lane(members);
        is = first_lane(members) == l;
        break;
    }
    verdict |= static_cast<uint32_t>(is) << l;
  }
  const auto mode = static_cast<VoteMode>(in.sub);
  if (mode == VoteMode::kElect)
    set_pred(w, in.e, verdict, mask);
  else if (mode != VoteMode::kBallot)
    set_pred(w, in.d, verdict, mask);
}

void Machine::match(Warp& w, const Inst& in, uint32_t mask) {
  uint64_t values[kWarpSize];
  uint32_t members_of[kWarpSize];
  for (uint32_t l = 0; l < kWarpSize; ++l) {
    values[l] = in.size == 8 ? wide_row(w, in.a)[l] : row(w, in.a)[l];
    members_of[l] = row(w, in.b)[l];
  }
  uint32_t all_same = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), same = 0, members = members_of[l] & mask;
    for (uint32_t k = members; k; k &= k - 1)
      same |= static_cast<uint32_t>(values[first_lane(k)] == values[l]) << first_lane(k);
    if (in.sub) {
      row(w, in.d)[l] = same == members ? members : 0;
      all_same |= static_cast<uint32_t>(same == members) << l;
    } else {
      row(w, in.d)[l] = same;
    }
  }
  if (in.e) set_pred(w, in.e, all_same, mask);
}

void Machine::redux(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t values[kWarpSize], members_of[kWarpSize];
  std::copy_n(row(w, in.a), kWarpSize, values);
  std::copy_n(row(w, in.b), kWarpSize, members_of);
  bool is_signed = in.flags & kFlagSigned;
  auto less = [&](uint32_t x, uint32_t y) {
    return is_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
  };
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), members = members_of[l] & mask, result = values[first_lane(members)];
    if (in.type) {
      result = extremum(in.sub == 1, in.type, result, result);
      for (uint32_t k = members & (members - 1); k; k &= k - 1)
        result = extremum(in.sub == 1, in.type, result, values[first_lane(k)]);
      row(w, in.d)[l] = result;
      continue;
    }
    for (uint32_t k = members & (members - 1); k; k &= k - 1) {
      uint32_t v = values[first_lane(k)];
      switch (in.sub) {
        case 0: result += v; break;
        case 1: result = less(v, result) ? v : result; break;
        case 2: result = less(result, v) ? v : result; break;
        case 3: result &= v; break;
        case 4: result |= v; break;
        default: result ^= v; break;
      }
    }
    row(w, in.d)[l] = result;
  }
}

void Machine::is_space(Warp& w, const Inst& in, uint32_t mask) {
  uint32_t is = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint64_t a = wide_row(w, in.a)[first_lane(m)];
    Space space = a < kSharedWindowEnd || (a >= kClusterBase && a < kClusterWindowEnd) ? Space::kShared
                  : a < kLocalWindowEnd                                                ? Space::kLocal
                  : a < kParamWindowEnd                                                ? Space::kParam
                                                                                       : Space::kGlobal;
    is |= static_cast<uint32_t>(space == static_cast<Space>(in.space)) << first_lane(m);
  }
  set_pred(w, in.d, is, mask);
}

/// mma.sp. The codes of stored elements name different places.
void Machine::sparse_mma(Warp& w, const Inst& in, uint32_t mask) {
  require_full(w, in, mask, "partial-warp", "mma.sp");
  const MmaForm form = MmaForm::of(in);
  const uint32_t* const metadata = row(w, kernel_.lists[in.list + in.target]);
  for (uint32_t r = 0; r < form.rows; ++r)
    for (uint32_t chunk = 0; chunk < form.chunks(); ++chunk) {
      const auto [lane, shift] = form.code_of(r, chunk);
      if (const uint32_t code = metadata[lane] >> shift & 15; !form.is_code(code))
        throw Fault{
            "bad-metadata",
            fmt::format("bits {} to {} of the metadata {:#x} are {:#06b}, which is no choice of elements of row "
                        "{}, chunk {}",
                        shift, shift + 3, metadata[lane], code, r, chunk),
            lane};
    }
  in.lane(w.regs, in, kernel_.lists.data(), mask);
}

}  // namespace roofgen::sim
