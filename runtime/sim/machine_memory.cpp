// Loads, stores and atomics: the lanes' targets are found, the request is emitted, then data moves.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/atomics.h"
#include "runtime/sim/lock_order.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

/// Bytes of device memory that were never written, as DeviceMemory::read returns them.
const std::vector<std::byte> kUnwritten(16, std::byte{0xff});
constexpr std::byte kZeros[16] = {};  ///< the value of a load that was left out

bool is_wide(const Inst& in) { return in.size == 8 || (in.flags & kFlagWide); }

}  // namespace

/// Finds the target of every lane. The lanes whose access is possible.
uint32_t Machine::resolve(const Warp& w, const Inst& in, uint32_t mask, uint32_t bytes, Op op, Targets& t) {
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, t.address);
  if (op != Op::kAtomic && !(in.flags & kFlagStrong)) {
    if (resolve_in_buffer(in, mask, bytes, op, t)) return mask;
    if (checker_.has_noted(w.pc, "out-of-bounds")) mask &= ~count_outside(w, in, mask, bytes, t);
  }
  return possible(w, mask, [&](uint32_t l) { resolve_lane(w, in, l, bytes, op, t); });
}

/// Plain accesses to one buffer of device memory; lanes of a line find it together. False: a lane needs another way.
bool Machine::resolve_in_buffer(const Inst& in, uint32_t mask, uint32_t bytes, Op op, Targets& t) {
  const auto space = static_cast<Space>(in.space);
  if (!mask || (space != Space::kGlobal && space != Space::kGeneric)) return false;
  const uint64_t first = t.address[first_lane(mask)];
  if (!last_buffer_ || first - last_buffer_->base >= last_buffer_->bytes)
    last_buffer_ = DeviceMemory::find(*state_.buffers, first);
  Buffer* const b = last_buffer_;
  if (!b || (b->is_input() && op != Op::kRead)) return false;
  uint64_t line = ~uint64_t{0}, differs = 0;
  for (uint32_t l = 0; mask == ~0u && l < kWarpSize; ++l) differs |= t.address[l] ^ first;
  const bool at_one_place = mask == ~0u && !differs;
  uint32_t slot = 0;
  for (uint32_t m = at_one_place ? 1 : mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const uint64_t offset = t.address[l] - b->base;
    if (offset >= b->bytes || b->bytes - offset < bytes || t.address[l] % bytes) return false;
    if (offset / kLineBytes != line) {
      line = offset / kLineBytes;
      slot = op == Op::kRead ? state_.memory.slot_for_read(*b, line) : state_.memory.slot_for_write(*b, line);
      if (!slot && (b->fill || op != Op::kRead)) return false;
    }
    t.slot[l] = slot;
    t.offset[l] = static_cast<uint32_t>(offset % kLineBytes);
  }
  t.device = mask;
  t.inputs = b->is_input() ? mask : 0;
  t.at_one_place = at_one_place;
  if (at_one_place) {
    std::fill_n(t.slot, kWarpSize, t.slot[0]);
    std::fill_n(t.offset, kWarpSize, t.offset[0]);
  }
  return true;
}

/// Counts the lanes that are in no buffer, at an instruction that has a note of such a lane, and returns them.
uint32_t Machine::count_outside(const Warp& w, const Inst& in, uint32_t mask, uint32_t bytes, const Targets& t) {
  uint32_t outside = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const uint64_t address = t.address[l];
    if (space_of(in, address) != Space::kGlobal || address % bytes || is_in_cluster_window(address)) continue;
    const Buffer* const b = DeviceMemory::find(*state_.buffers, address);
    if (b && address - b->base + bytes <= b->bytes) continue;
    checker_.report(site(w), "out-of-bounds", l, [] { return std::string(); });
    outside |= 1u << l;
  }
  return outside;
}

void Machine::resolve_lane(const Warp&, const Inst& in, uint32_t l, uint32_t bytes, Op op, Targets& t) {
  const bool strong = op == Op::kAtomic || in.flags & kFlagStrong;
  const uint32_t lane = 1u << l;
  uint64_t& address = t.address[l];
  check_alignment(address, op == Op::kAtomic ? bytes * in.count : bytes, l);  // a vector's first element: for all
  Machine& cta = cta_at(address, l);
  switch (space_of(in, address)) {
    case Space::kShared:
      t.offset[l] = cta.shared_offset(address, bytes, l);
      t.rank[l] = static_cast<uint8_t>(cta.rank_);
      t.shared |= lane;
      if (&cta != this) t.remote |= lane;
      break;
    case Space::kLocal:
      if (op == Op::kAtomic) throw Fault{"out-of-bounds", fmt::format("atomic operation on {}", text(address)), l};
      t.offset[l] = local_offset(address, bytes, l);
      t.local |= lane;
      break;
    case Space::kParam: {
      if (op == Op::kAtomic) throw Fault{"out-of-bounds", fmt::format("atomic operation on {}", text(address)), l};
      if (op == Op::kWrite) throw Fault{"out-of-bounds", fmt::format("write to {}", text(address)), l};
      const uint64_t offset = address - kParamBase;
      if (offset >= state_.params.size() || offset + bytes > state_.params.size())
        throw Fault{"out-of-bounds", fmt::format("{} bytes at {}", bytes, text(address)), l};
      t.offset[l] = static_cast<uint32_t>(offset);
      break;
    }
    case Space::kConst:
    case Space::kGlobal:
    case Space::kGeneric:
      if (device_line(address, bytes, l, op, strong, &t.slot[l], &t.offset[l])) t.inputs |= lane;
      t.device |= lane;
      if (in.space == static_cast<uint8_t>(Space::kConst)) state_.memory.note_uncounted_read(last_buffer_);
      break;
  }
}

/// Emits the requests; `details` sets what they have in common.
template <class F>
void Machine::emit(const Warp& w, const Targets& t, Op op, uint32_t bytes, F&& details) {
  if (t.shared) {
    SharedAccess e{{site(w), op, t.shared, bytes}, t.offset, t.remote ? t.rank : nullptr};
    details(e);
    emit(e);
  }
  if (t.device) {
    DeviceAccess e{{site(w), op, t.device, bytes}, t.address, 0, t.slot, t.inputs};
    e.is_request = e.site.inst.space != static_cast<uint8_t>(Space::kConst);
    e.at_one_place = t.at_one_place;
    details(e);
    emit(e);
  }
  if (t.local) {
    LocalAccess e{{site(w), op, t.local, bytes}, t.offset};
    details(e);
    emit(e);
  }
}

/// Where a lane's bytes are now.
const std::byte* Machine::bytes_at(const Warp& w, const Targets& t, uint32_t l) {
  const uint32_t lane = 1u << l;
  if (t.device & lane) return t.slot[l] ? state_.memory.data(t.slot[l]) + t.offset[l] : kUnwritten.data();
  if (t.shared & lane) return shared_of(t, l) + t.offset[l];
  if (t.local & lane) return local_of(w, l) + t.offset[l];
  return state_.params.data() + t.offset[l];
}

void Machine::put(const Warp& w, const Targets& t, uint32_t l, const std::byte* from, uint32_t bytes, uint32_t holes) {
  const uint32_t lane = 1u << l;
  if (t.device & lane) return write_device(t.slot[l], t.offset[l], bytes, from, holes);
  std::memcpy((t.shared & lane ? shared_of(t, l) : local_of(w, l)) + t.offset[l], from, bytes);
}

/// Which of a lane's bytes hold a value; only copies of structs, padding included, may meet others.
uint32_t Machine::written_bytes(const Warp& w, const Targets& t, uint32_t l, uint32_t bytes) {
  const uint32_t lane = 1u << l;
  if (t.shared & lane & ~t.remote) return checker_.written_shared(t.offset[l], bytes);
  if (t.local & lane) return checker_.written_local(w.index, l, t.offset[l], bytes);
  if (!(t.device & lane) || t.inputs & lane) return ~0u;
  if (!t.slot[l]) return 0;
  return static_cast<uint32_t>(state_.memory.valid(t.slot[l])[t.offset[l] >> 6] >> (t.offset[l] & 63));
}

void Machine::load(Warp& w, const Inst& in, uint32_t mask) {
  bool emitted = false;
  if (mask == ~0u && load_row(w, in, &emitted)) return;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  const bool strong = in.flags & kFlagStrong;
  Targets t;
  const uint32_t all = mask;
  mask = resolve(w, in, mask, bytes, Op::kRead, t);
  if (!emitted)
    emit(w, t, Op::kRead, bytes, [&](Access& e) {
      e.strong = strong;
      e.acquires = strong && in.flags & kFlagAcquire;
      e.is_datum = strong && !(in.flags & (kFlagAcquire | kFlagDecides));
      e.lazily = true;
    });
  if (strong) note_look(w, t.shared, t.device);
  if (mask && checker_.unwritten()) note_unwritten(w, in, mask & checker_.unwritten(), t);
  if (t.at_one_place && !checker_.unwritten()) return load_one_value(w, in, bytes_at(w, t, 0));
  const std::byte* from[kWarpSize];
  for (uint32_t m = mask; m; m &= m - 1) from[first_lane(m)] = bytes_at(w, t, first_lane(m));
  for (uint32_t m = all & ~mask; m; m &= m - 1) from[first_lane(m)] = kZeros;
  const bool wide = is_wide(in);
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t d = kernel_.lists[in.list + i];
    for (uint32_t m = all; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      uint64_t value = 0;
      std::memcpy(&value, from[l] + i * in.size, in.size);  // little-endian hosts only, as is PTX
      value = extended(value, in);
      if (wide)
        wide_row(w, d)[l] = value;
      else
        row(w, d)[l] = in.type == 2 ? static_cast<uint16_t>(value) : static_cast<uint32_t>(value);
    }
  }
}

/// The same elements for all lanes.
void Machine::load_one_value(Warp& w, const Inst& in, const std::byte* from) {
  for (uint32_t i = 0; i < in.count; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, from + i * in.size, in.size);
    value = extended(value, in);
    const uint32_t d = kernel_.lists[in.list + i];
    if (is_wide(in))
      std::fill_n(wide_row(w, d), kWarpSize, value);
    else
      std::fill_n(row(w, d), kWarpSize, in.type == 2 ? static_cast<uint16_t>(value) : static_cast<uint32_t>(value));
  }
}

void Machine::load_param(Warp& w, const Inst& in, uint32_t mask) {
  const bool wide = is_wide(in);
  for (uint32_t i = 0; i < in.count; ++i) {
    uint64_t value = 0;
    const std::byte* from = state_.params.data() + in.imm + i * in.size;
    switch (in.size) {  // the usual ones: for any size compilers make a slow loop
      case 4: std::memcpy(&value, from, 4); break;
      case 8: std::memcpy(&value, from, 8); break;
      default: std::memcpy(&value, from, in.size);
    }
    value = extended(value, in);
    if (!wide && in.type == 2) value = static_cast<uint16_t>(value);
    const uint32_t d = kernel_.lists[in.list + i];
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
  const uint32_t bytes = uint32_t{in.size} * in.count;
  const bool wide = is_wide(in);
  Targets t;
  mask = resolve(w, in, mask, bytes, Op::kWrite, t);
  alignas(16) std::byte data[kWarpSize][16];
  uint32_t holes[kWarpSize] = {}, any_holes = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t s = kernel_.lists[in.list + i];
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      const uint64_t value = wide ? wide_row(w, s)[l] : row(w, s)[l];
      std::memcpy(data[l] + i * in.size, &value, in.size);
    }
  }
  for (uint32_t m = w.follow ? mask : 0; m; m &= m - 1)
    any_holes |= holes[first_lane(m)] = holes_in(w, in, first_lane(m), t);
  emit(w, t, Op::kWrite, bytes, [&](Access& e) {
    e.strong = in.flags & kFlagStrong;
    e.releases = in.flags & kFlagRelease;
    e.values = data[0];
    e.stride = sizeof data[0];
    if (any_holes) e.holes = holes;
  });
  if (t.shared) shared_looks_ = 0;
  if (state_.locks && state_.locks->any_held() && bytes <= 8) [[unlikely]]
    note_store(w, t, mask, data, bytes);
  for (uint32_t m = mask; m; m &= m - 1) put(w, t, first_lane(m), data[first_lane(m)], bytes, holes[first_lane(m)]);
}

void Machine::atomic(Warp& w, const Inst& in, uint32_t mask) {
  const bool wide = in.size == 8;
  bool changes = false;
  Targets t;
  const uint32_t all = mask;
  mask = resolve(w, in, mask, in.size, Op::kAtomic, t);
  for (uint32_t m = all & ~mask; m; m &= m - 1) {
    if (wide)
      wide_row(w, in.d)[first_lane(m)] = 0;
    else
      row(w, in.d)[first_lane(m)] = 0;
  }
  const bool exchanges = static_cast<AtomicOp>(in.sub) == AtomicOp::kExch;
  const bool locks = state_.locks && (exchanges || static_cast<AtomicOp>(in.sub) == AtomicOp::kCas);
  emit(w, t, Op::kAtomic, in.size, [&](Access& e) {
    e.strong = true;
    e.acquires = in.flags & kFlagAcquire;
    e.releases = in.flags & kFlagRelease;
    e.lazily = exchanges;  // often only a store: the old value need not be used
  });
  if (exchanges && checker_.unwritten()) note_unwritten_exchange(w, in, mask & checker_.unwritten(), t);
  for (uint32_t m = mask; m; m &= m - 1) {  // lanes take effect in order
    const uint32_t l = first_lane(m);
    const uint64_t b = wide ? wide_row(w, in.b)[l] : row(w, in.b)[l], c = wide ? wide_row(w, in.c)[l] : row(w, in.c)[l];
    uint64_t old = 0;
    std::memcpy(&old, bytes_at(w, t, l), in.size);
    const uint64_t result = apply_atomic(static_cast<AtomicOp>(in.sub), static_cast<ElementType>(in.type), old, b, c);
    changes |= result != old;
    if (locks) note_change(w, t, l, old, result);
    put(w, t, l, reinterpret_cast<const std::byte*>(&result), in.size, 0);
    if (wide)
      wide_row(w, in.d)[l] = old;
    else
      row(w, in.d)[l] = static_cast<uint32_t>(old);
  }
  if (!changes) note_look(w, t.shared, t.device);
  if (changes && t.shared) shared_looks_ = 0;
}

}  // namespace roofgen::sim
