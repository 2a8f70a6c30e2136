// Loads, stores and atomics.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/atomics.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {

void Machine::load(Warp& w, const Inst& in, uint32_t mask) {
  if (mask == ~0u && load_row(w, in)) return;
  counter_.at(w.pc);
  uint64_t address[kWarpSize];
  uint32_t shared_address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  uint32_t bytes = uint32_t{in.size} * in.count, global = 0, shared = 0;
  bool strong = in.flags & kFlagStrong;
  uint32_t needed = ~0u, valid[kWarpSize], any_holes = 0;
  for (uint32_t i = 0; in.sub >> i; ++i)
    if (in.sub >> i & 1) needed &= ~(((1u << in.size) - 1) << (i * in.size));
  alignas(16) std::byte data[kWarpSize][16];
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m);
    check_alignment(address[l], bytes, l);
    Machine& cta = cta_at(address[l], l);
    switch (space_of(in, address[l])) {
      case Space::kShared:
        shared |= 1u << l;
        shared_address[l] = cta.shared_offset(address[l], bytes, l);
        if (strong && &cta == this) hand_over(w, shared_address[l], true, false, false);
        valid[l] = &cta == this ? read_shared(w, shared_address[l], bytes, l, data[l], strong, needed)
                                : read_remote(cta, w, shared_address[l], bytes, l, data[l]);
        break;
      case Space::kLocal: valid[l] = read_local(w, address[l], bytes, l, data[l], needed); break;
      case Space::kParam: {
        uint64_t offset = address[l] - kParamBase;
        if (offset >= state_.params.size() || offset + bytes > state_.params.size())
          throw Fault{"out-of-bounds", fmt::format("{} bytes at {}", bytes, describe(address[l])), l};
        std::memcpy(data[l], state_.params.data() + offset, bytes);
        valid[l] = ~0u;
        break;
      }
      case Space::kConst:
      case Space::kGlobal:
      case Space::kGeneric:
        global |= 1u << l;
        if (strong) hand_over_globally(w, address[l], true, false, false);
        valid[l] = read_global(address[l], bytes, l, data[l], strong, needed);
        if (in.space == static_cast<uint8_t>(Space::kConst)) state_.memory.note_uncounted_read(last_buffer_);
        break;
    }
  }
  if (shared && strong && !cluster_.empty()) ++idle_looks_;
  if (global && strong) {
    ++idle_looks_;
    if (in.flags & kFlagAcquire && saw_others_) used_atomics_ = true;
  }
  if (shared) counter_.shared_access(shared_address, shared, bytes);
  if (global && in.space != static_cast<uint8_t>(Space::kConst)) {
    counter_.global_access(address, global, bytes, false);
    counter_.load_lanes(global, bytes);
  }
  if (in.sub) {
    const uint32_t all = (1u << bytes) - 1;
    for (uint32_t m = mask; m; m &= m - 1) any_holes |= all & ~valid[first_lane(m)];
    if (any_holes && w.holes.empty()) w.holes.resize(kernel_.rows);
    for (uint32_t i = 0; i < in.count && !w.holes.empty(); ++i)
      for (uint32_t m = mask; m; m &= m - 1)
        w.holes[kernel_.lists[in.list + i]][first_lane(m)] =
            static_cast<uint8_t>(~(valid[first_lane(m)] >> (i * in.size)) & ((1u << in.size) - 1));
  }
  bool wide = in.size == 8 || (in.flags & kFlagWide);
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t d = kernel_.lists[in.list + i];
    for (uint32_t m = mask; m; m &= m - 1) {
      uint32_t l = first_lane(m);
      uint64_t value = 0;
      std::memcpy(&value, data[l] + i * in.size, in.size);  // little-endian hosts only, as is PTX
      if ((in.flags & kFlagSigned) && in.size < 8) {
        uint32_t shift = 64 - 8 * in.size;
        value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
      }
      if (wide)
        wide_row(w, d)[l] = value;
      else
        row(w, d)[l] = in.type == 2 ? static_cast<uint16_t>(value) : static_cast<uint32_t>(value);
    }
  }
}

void Machine::load_param(Warp& w, const Inst& in, uint32_t mask) {
  for (uint32_t i = 0; i < in.count; ++i) {
    uint64_t value = 0;
    const std::byte* from = state_.params.data() + in.imm + i * in.size;
    switch (in.size) {  // the usual ones: for any size compilers make a slow loop
      case 4: std::memcpy(&value, from, 4); break;
      case 8: std::memcpy(&value, from, 8); break;
      default: std::memcpy(&value, from, in.size);
    }
    if ((in.flags & kFlagSigned) && in.size < 8) {
      uint32_t shift = 64 - 8 * in.size;
      value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
    }
    uint32_t d = kernel_.lists[in.list + i];
    const bool wide = in.size == 8 || (in.flags & kFlagWide);
    if (!wide && in.type == 2) value = static_cast<uint16_t>(value);
    if (mask == ~0u && wide) {
      std::fill_n(wide_row(w, d), kWarpSize, value);
    } else if (mask == ~0u) {
      std::fill_n(row(w, d), kWarpSize, static_cast<uint32_t>(value));
    } else {
      for (uint32_t m = mask; m; m &= m - 1) {
        if (wide)
          wide_row(w, d)[first_lane(m)] = value;
        else
          row(w, d)[first_lane(m)] = static_cast<uint32_t>(value);
      }
    }
  }
}

void Machine::store(Warp& w, const Inst& in, uint32_t mask) {
  if (mask == ~0u && store_row(w, in)) return;
  counter_.at(w.pc);
  uint64_t address[kWarpSize];
  uint32_t shared_address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  uint32_t bytes = uint32_t{in.size} * in.count, global = 0, shared = 0;
  bool strong = in.flags & kFlagStrong, wide = in.size == 8 || (in.flags & kFlagWide);
  const bool is_constant = in.flags & kFlagConstant, releases = in.flags & kFlagRelease;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m);
    alignas(16) std::byte data[16];
    uint32_t holes = 0;
    for (uint32_t i = 0; i < in.count; ++i) {
      uint32_t s = kernel_.lists[in.list + i];
      uint64_t value = wide ? wide_row(w, s)[l] : row(w, s)[l];
      std::memcpy(data + i * in.size, &value, in.size);
      if ((in.sub >> i & 1) && !w.holes.empty()) holes |= uint32_t{w.holes[s][l]} << (i * in.size);
    }
    check_alignment(address[l], bytes, l);
    Machine& cta = cta_at(address[l], l);
    switch (space_of(in, address[l])) {
      case Space::kShared:
        shared |= 1u << l;
        shared_address[l] = cta.shared_offset(address[l], bytes, l);
        if (strong && &cta == this) hand_over(w, shared_address[l], false, true, releases);
        if (&cta == this)
          write_shared(w, shared_address[l], bytes, l, data, strong, holes, is_constant);
        else
          write_remote(cta, w, shared_address[l], bytes, l, data);
        break;
      case Space::kLocal: write_local(w, address[l], bytes, l, data, holes); break;
      case Space::kParam: throw Fault{"out-of-bounds", fmt::format("write to {}", describe(address[l])), l};
      case Space::kConst:
      case Space::kGlobal:
      case Space::kGeneric:
        global |= 1u << l;
        if (strong) hand_over_globally(w, address[l], false, true, releases);
        write_global(address[l], bytes, l, data, strong, holes, is_constant);
        break;
    }
  }
  if (releases) shadow_.advance();
  if (shared) counter_.shared_access(shared_address, shared, bytes);
  if (global) counter_.global_access(address, global, bytes, true);
}

void Machine::atomic(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  uint64_t address[kWarpSize];
  uint32_t shared_address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  bool wide = in.size == 8;
  uint32_t global = 0, shared = 0;
  bool changes = false;
  used_atomics_ = true;
  const bool releases = in.flags & kFlagRelease;
  for (uint32_t m = mask; m; m &= m - 1) {  // lanes take effect in order
    uint32_t l = first_lane(m);
    check_alignment(address[l], in.size, l);
    uint64_t b = wide ? wide_row(w, in.b)[l] : row(w, in.b)[l], c = wide ? wide_row(w, in.c)[l] : row(w, in.c)[l],
             old = 0;
    std::byte bytes[8];
    Machine& cta = cta_at(address[l], l);
    Space space = space_of(in, address[l]);
    if (space != Space::kShared && space != Space::kGlobal)
      throw Fault{"out-of-bounds", fmt::format("atomic operation on {}", describe(address[l])), l};
    if (space == Space::kShared) {
      shared |= 1u << l;
      shared_address[l] = cta.shared_offset(address[l], in.size, l);
      if (&cta == this) hand_over(w, shared_address[l], true, true, releases);
      if (&cta == this)
        read_shared(w, shared_address[l], in.size, l, bytes, true);
      else
        read_remote(cta, w, shared_address[l], in.size, l, bytes);
    } else {
      global |= 1u << l;
      hand_over_globally(w, address[l], true, true, releases);
      read_global(address[l], in.size, l, bytes, true);
    }
    std::memcpy(&old, bytes, in.size);
    uint64_t result = apply_atomic(static_cast<AtomicOp>(in.sub), static_cast<ElementType>(in.type), old, b, c);
    changes |= result != old;
    std::memcpy(bytes, &result, in.size);
    if (space == Space::kShared && &cta == this)
      write_shared(w, shared_address[l], in.size, l, bytes, true);
    else if (space == Space::kShared)
      write_remote(cta, w, shared_address[l], in.size, l, bytes);
    else
      write_global(address[l], in.size, l, bytes, true);
    if (wide)
      wide_row(w, in.d)[l] = old;
    else
      row(w, in.d)[l] = static_cast<uint32_t>(old);
  }
  if (releases) shadow_.advance();
  if (global && !changes) ++idle_looks_;
  if (shared) counter_.shared_access(shared_address, shared, in.size);
  if (global) counter_.global_access(address, global, in.size, true);
}

}  // namespace roofgen::sim
