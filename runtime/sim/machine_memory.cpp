// Memory instructions: address checks, data movement, races, asynchronous copies.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/sim/atomics.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(__builtin_ctz(mask)); }

// Without the bytes of a word's last writer two CTAs whose rows meet inside a word would seem to race where the buffer holds the
// values of an earlier launch.

/// Was it another CTA of this launch?
bool by_another(uint32_t written, uint32_t writer, const LaunchState& state) {
  const uint32_t other = written >> 4;
  return other != (writer & kWriterMask) && ((other - state.first_writer) & kWriterMask) < state.n_writers;
}

/// The bytes of word `word` that an access of `bytes` at `at` touches.
uint32_t bytes_of_word(uint32_t word, uint32_t at, uint32_t bytes) {
  const uint32_t begin = std::max(at, 4 * word) - 4 * word, end = std::min(at + bytes, 4 * word + 4) - 4 * word;
  return (1u << end) - (1u << begin);
}

}  // namespace

std::string Machine::describe(uint64_t address) const {
  if (address == 0) return "a null pointer";
  if (address < kSharedBase) return fmt::format("address {:#x}, {} bytes from a null pointer", address, address);
  if (address < kSharedWindowEnd) return fmt::format("shared memory address {:#x}", address);
  if (address < kLocalWindowEnd) return fmt::format("local memory address {:#x}", address - kLocalBase);
  if (address < kParamWindowEnd) return fmt::format("parameter address {:#x}", address - kParamBase);
  const Buffer *nearest = nullptr, *next = nullptr;
  for (const auto& b : *state_.buffers)
    if (b->base <= address) nearest = b.get();
    else if (!next) next = b.get();
  // Not buffer addresses but distances, so that the message does not depend on what else is allocated.
  const uint64_t offset = nearest ? address - nearest->base : 0, before = next ? next->base - address : ~uint64_t{0};
  if (nearest && offset < nearest->bytes) return fmt::format("{}[byte {}]", nearest->label, offset);
  const uint64_t past = nearest ? offset - nearest->bytes : ~uint64_t{0};
  if (past < kGuardBytes && past <= before) return fmt::format("{} bytes past the end of {} ({} bytes)", past, nearest->label, nearest->bytes);
  if (before < kGuardBytes) return fmt::format("{} bytes before {} ({} bytes)", before, next->label, next->bytes);
  return "an address in no buffer";
}

void Machine::addresses(const Warp& w, uint32_t index, bool wide, int64_t displacement, uint64_t* out) const {
  if (wide) {
    const uint64_t* base = wide_row(w, index);
    for (uint32_t l = 0; l < kWarpSize; ++l) out[l] = base[l] + static_cast<uint64_t>(displacement);
  } else {
    // 32-bit address arithmetic wraps at 32 bits.
    const uint32_t* base = row(w, index);
    for (uint32_t l = 0; l < kWarpSize; ++l) out[l] = base[l] + static_cast<uint32_t>(displacement);
  }
}

Space Machine::space_of(const Inst& in, uint64_t address) const {
  auto space = static_cast<Space>(in.space);
  if (space != Space::kGeneric) return space;
  if (address < kSharedWindowEnd) return Space::kShared;
  if (address < kLocalWindowEnd) return Space::kLocal;
  if (address < kParamWindowEnd) return Space::kParam;
  return Space::kGlobal;
}

void Machine::check_alignment(uint64_t address, uint32_t bytes, uint32_t lane) const {
  if (address & (bytes - 1)) [[unlikely]]  // access sizes are powers of two
    throw Fault{"misaligned",
                fmt::format("{} is not aligned to the {} bytes of the access", describe(address), bytes),
                lane};
}

// ---- device memory -------------------------------------------------------------------------------------

Buffer& Machine::buffer_at(uint64_t address, uint32_t bytes, uint32_t lane, const char* what) {
  Buffer* b = last_buffer_;
  if (!b || address - b->base >= b->bytes) b = last_buffer_ = DeviceMemory::find(*state_.buffers, address);
  if (!b || address - b->base + bytes > b->bytes) {
    uint64_t at = b ? b->base + b->bytes : address;
    throw Fault{"out-of-bounds", fmt::format("{} of {} bytes at {}", what, bytes, describe(at)), lane};
  }
  return *b;
}

uint32_t Machine::read_global(uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out, bool strong, uint32_t needed) {
  if (strong) require_order(lane);
  Buffer& b = buffer_at(address, bytes, lane, "read");
  uint64_t offset = address - b.base;
  uint32_t slot = state_.memory.slot_for_read(b, offset / kLineBytes), at = offset % kLineBytes;
  const uint32_t all = (1u << bytes) - 1;
  uint32_t valid = all;
  if (!b.fill) {
    valid = slot ? static_cast<uint32_t>(state_.memory.valid(slot)[at >> 6] >> (at & 63)) & all : 0;
    if ((all & needed & ~valid || !valid) && notes_undefined())
      undefined(Fault{"uninitialised", fmt::format("read of {}, which nothing has written", describe(address)), lane});
    if (!slot) {
      std::memset(out, 0xff, bytes);  // as DeviceMemory::read has it
      return all;  // it has been said
    }
    const uint32_t written = state_.memory.writers(slot)[at / 4];
    const bool others = by_another(written, writer_, state_) && (written & bytes_of_word(at / 4, at, bytes));
    saw_others_ |= others && strong;
    if (others && !strong && !used_atomics_ && notes_undefined())
      undefined(Fault{"race",
                 fmt::format("read of {}, written by another CTA of this launch without synchronisation",
                             describe(address)),
                 lane});
    if (const auto outcome = device_.read(running_->index, address, bytes, strong); !outcome.ok() && notes_undefined())
      undefined(fault_of(outcome, *running_, address, bytes, lane));
  } else if (!slot) {
    throw Fault{"out-of-memory", "the simulator ran out of memory for this launch", lane};
  }
  std::memcpy(out, state_.memory.data(slot) + at, bytes);
  return valid;
}

void Machine::write_global(uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in,
                           bool strong, uint32_t holes, bool is_constant) {
  if (strong) require_order(lane);
  Buffer& b = buffer_at(address, bytes, lane, "write");
  if (b.fill)
    throw Fault{"write-to-input", fmt::format("write to {}, which is an input", describe(address)), lane};
  uint64_t offset = address - b.base;
  uint32_t slot = state_.memory.slot_for_write(b, offset / kLineBytes), at = offset % kLineBytes;
  if (!slot) throw Fault{"out-of-memory", "the simulator ran out of memory for this launch", lane};
  uint64_t bits = ((uint64_t{1} << bytes) - 1) << (at & 63);
  uint64_t& valid = state_.memory.valid(slot)[at >> 6];
  uint32_t* writers = state_.memory.writers(slot);
  const bool may_be_same = is_constant && (valid & bits) == bits && std::memcmp(state_.memory.data(slot) + at, in, bytes) == 0;
  for (uint32_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
    const uint32_t other = writers[word], mine = bytes_of_word(word, at, bytes);
    if (by_another(other, writer_, state_) && (other & mine) && (valid & bits) && !strong && !used_atomics_ && !may_be_same && notes_undefined())
      undefined(Fault{"race", fmt::format("write to {}, which another CTA of this launch wrote too", describe(address)),
                 lane});
    writers[word] = (writer_ & kWriterMask) << 4 | mine | (other >> 4 == (writer_ & kWriterMask) ? other & 15 : 0);
  }
  if (const auto outcome = device_.write(running_->index, address, bytes, strong); !outcome.ok() && notes_undefined() &&
      !(may_be_same && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite))
    undefined(fault_of(outcome, *running_, address, bytes, lane));
  valid = (valid | bits) & ~(uint64_t{holes} << (at & 63));
  std::memcpy(state_.memory.data(slot) + at, in, bytes);
}

// ---- shared memory -------------------------------------------------------------------------------------

uint32_t Machine::shared_offset(uint64_t address, uint32_t bytes, uint32_t lane) const {
  uint64_t offset = address - kSharedBase;
  if (offset >= shared_bytes_ || offset + bytes > shared_bytes_)
    throw Fault{"out-of-bounds",
                fmt::format("{} bytes at {}: the CTA's shared memory is [{:#x}, {:#x})", bytes,
                            describe(address), kSharedBase, kSharedBase + shared_bytes_),
                lane};
  return static_cast<uint32_t>(offset);
}

Fault Machine::fault_of(SharedShadow::Outcome outcome, const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane) const {
  using Verdict = SharedShadow::Verdict;
  std::string where = fmt::format("{} bytes at {}", bytes, describe(address));
  switch (outcome.verdict) {
    case Verdict::kUninitialised:
      return Fault{"uninitialised", "read of " + where + ", which nothing has written", lane};
    case Verdict::kAsyncPending:
      return Fault{"async-pending", "access to " + where + " while a cp.async into it has not been waited for",
                  lane};
    case Verdict::kReadAfterWrite:
      return Fault{"race",
                  fmt::format("warp {} reads {} written by warp {} with no barrier between", w.index, where,
                              outcome.other),
                  lane};
    case Verdict::kWriteAfterWrite:
      return Fault{"race",
                  fmt::format("warp {} writes {} written by warp {} with no barrier between", w.index, where,
                              outcome.other),
                  lane};
    case Verdict::kWriteAfterRead:
      return Fault{"race",
                  fmt::format("warp {} writes {} read by warp {} with no barrier between", w.index, where,
                              outcome.other),
                  lane};
    case Verdict::kOk:
      break;
  }
  return Fault{"race", where, lane};
}

uint32_t Machine::read_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, std::byte* out,
                              bool strong, uint32_t needed) {
  const uint32_t valid = shadow_.written(offset, bytes);
  auto outcome = shadow_.read(w.index, offset, bytes, strong, valid ? needed : ~0u);
  if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset, bytes, lane));
  std::memcpy(out, shared_.data() + offset, bytes);
  return valid;
}

void Machine::hand_over(Warp& w, uint32_t offset, bool reads, bool writes) {
  if (reads && shadow_.completed(offset)) shadow_.observe(offset, w.index);
  if (!writes || !w.fenced) return;
  shadow_.signal(offset, w.index);
  shadow_.complete(offset);
  if (shadow_.stamps_exhausted()) w.fenced = false;  // some races may be reported that are none; there are 2^27 stamps
}

void Machine::hand_over_globally(Warp& w, uint64_t address, bool reads, bool writes) {
  const uint32_t at = writes && w.fenced ? device_.make_place(address) : device_.place(address);
  if (at != DeviceShadow::kNowhere) hand_over(w, at, reads, writes);
}

void Machine::write_shared(Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in,
                           bool strong, uint32_t holes, bool is_constant) {
  if (!strong) w.fenced = false;
  auto outcome = shadow_.write(w.index, offset, bytes, strong);
  if (is_constant && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite && std::memcmp(shared_.data() + offset, in, bytes) == 0) outcome = {};
  if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset, bytes, lane));
  if (holes) shadow_.unwrite(offset, holes);
  std::memcpy(shared_.data() + offset, in, bytes);
}

// ---- local memory --------------------------------------------------------------------------------------

uint64_t Machine::local_offset(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane) const {
  uint64_t offset = address - kLocalBase;
  if (offset >= kernel_.local_bytes || offset + bytes > kernel_.local_bytes)
    throw Fault{
        "out-of-bounds",
        fmt::format("{} bytes at {}: the thread has {} bytes", bytes, describe(address), kernel_.local_bytes),
        lane};
  return (uint64_t{w.index} * kWarpSize + lane) * kernel_.local_bytes + offset;
}

uint32_t Machine::read_local(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out,
                             uint32_t needed) {
  const uint64_t at = local_offset(w, address, bytes, lane);
  const uint32_t all = (1u << bytes) - 1;
  uint32_t valid = 0;
  for (uint32_t i = 0; i < bytes; ++i) valid |= uint32_t{local_written_[at + i]} << i;
  if ((all & needed & ~valid) || !valid)
    if (notes_undefined())
      undefined(Fault{"uninitialised", fmt::format("read of {}, which the thread has not written", describe(address)), lane});
  std::memcpy(out, local_.data() + at, bytes);
  return valid;
}

void Machine::write_local(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane,
                          const std::byte* in, uint32_t holes) {
  uint64_t at = local_offset(w, address, bytes, lane);
  for (uint32_t i = 0; i < bytes; ++i) local_written_[at + i] = !(holes >> i & 1);
  std::memcpy(local_.data() + at, in, bytes);
}

// ---- instructions --------------------------------------------------------------------------------------

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
        if (strong && &cta == this) hand_over(w, shared_address[l], true, false);
        valid[l] = &cta == this ? read_shared(w, shared_address[l], bytes, l, data[l], strong, needed) : read_remote(cta, w, shared_address[l], bytes, l, data[l]);
        break;
      case Space::kLocal:
        valid[l] = read_local(w, address[l], bytes, l, data[l], needed);
        break;
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
        if (strong) hand_over_globally(w, address[l], true, false);
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
        w.holes[kernel_.lists[in.list + i]][first_lane(m)] = static_cast<uint8_t>(~(valid[first_lane(m)] >> (i * in.size)) & ((1u << in.size) - 1));
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
        if (wide) wide_row(w, d)[first_lane(m)] = value;
        else row(w, d)[first_lane(m)] = static_cast<uint32_t>(value);
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
  const bool is_constant = in.flags & kFlagConstant, was_fenced = w.fenced;
  if (in.flags & kFlagRelease) w.fenced = true;
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
        if (strong && &cta == this) hand_over(w, shared_address[l], false, true);
        if (&cta == this) write_shared(w, shared_address[l], bytes, l, data, strong, holes, is_constant);
        else write_remote(cta, w, shared_address[l], bytes, l, data);
        break;
      case Space::kLocal:
        write_local(w, address[l], bytes, l, data, holes);
        break;
      case Space::kParam:
        throw Fault{"out-of-bounds", fmt::format("write to {}", describe(address[l])), l};
      case Space::kConst:
      case Space::kGlobal:
      case Space::kGeneric:
        global |= 1u << l;
        if (strong) hand_over_globally(w, address[l], false, true);
        write_global(address[l], bytes, l, data, strong, holes, is_constant);
        break;
    }
  }
  if (in.flags & kFlagRelease) w.fenced = was_fenced;
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
  const bool was_fenced = w.fenced;
  if (in.flags & kFlagRelease) w.fenced = true;
  for (uint32_t m = mask; m; m &= m - 1) {  // lanes take effect in order
    uint32_t l = first_lane(m);
    check_alignment(address[l], in.size, l);
    uint64_t b = wide ? wide_row(w, in.b)[l] : row(w, in.b)[l],
             c = wide ? wide_row(w, in.c)[l] : row(w, in.c)[l], old = 0;
    std::byte bytes[8];
    Machine& cta = cta_at(address[l], l);
    Space space = space_of(in, address[l]);
    if (space != Space::kShared && space != Space::kGlobal)
      throw Fault{"out-of-bounds", fmt::format("atomic operation on {}", describe(address[l])), l};
    if (space == Space::kShared) {
      shared |= 1u << l;
      shared_address[l] = cta.shared_offset(address[l], in.size, l);
      if (&cta == this) hand_over(w, shared_address[l], true, true);
      if (&cta == this) read_shared(w, shared_address[l], in.size, l, bytes, true);
      else read_remote(cta, w, shared_address[l], in.size, l, bytes);
    } else {
      global |= 1u << l;
      hand_over_globally(w, address[l], true, true);
      read_global(address[l], in.size, l, bytes, true);
    }
    std::memcpy(&old, bytes, in.size);
    uint64_t result =
        apply_atomic(static_cast<AtomicOp>(in.sub), static_cast<ElementType>(in.type), old, b, c);
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
  if (in.flags & kFlagRelease) w.fenced = was_fenced;
  if (global && !changes) ++idle_looks_;
  if (shared) counter_.shared_access(shared_address, shared, in.size);
  if (global) counter_.global_access(address, global, in.size, true);
}

/// Shared-memory offsets of the 16-byte rows that lanes 0 to n-1 address, checked.
void Machine::matrix_offsets(const uint64_t* address, uint32_t n, uint32_t* offset) const {
  uint64_t misaligned = 0, highest = 0;
  for (uint32_t l = 0; l < n; ++l) {
    uint64_t at = address[l] - kSharedBase;
    misaligned |= address[l] & 15;
    highest = at > highest ? at : highest;
    offset[l] = static_cast<uint32_t>(at);
  }
  if (misaligned || shared_bytes_ < 16 || highest > shared_bytes_ - 16) [[unlikely]] {
    for (uint32_t l = 0; l < n; ++l) {
      check_alignment(address[l], 16, l);
      shared_offset(address[l], 16, l);
    }
  }
}

/// Lane 8i+r addresses row r of matrix i; the row of destination register i *is* that matrix.
void Machine::ldmatrix(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  require_full(w, in, mask, "partial-warp", "ldmatrix");
  uint64_t address[kWarpSize];
  uint32_t offset[kWarpSize], n = 8u * in.count;
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  matrix_offsets(address, n, offset);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t groups = 0;
    const uint32_t* from = offset + 8 * i;
    uint32_t* d = row(w, kernel_.lists[in.list + i]);
    alignas(16) std::byte tile[128];
    std::byte* to = in.sub ? tile : reinterpret_cast<std::byte*>(d);
    for (uint32_t r = 0; r < 8; ++r) {
      auto outcome = shadow_.read_chunk(w.index, from[r] >> 4);
      if (!outcome.ok()) [[unlikely]]
        if (notes_undefined()) undefined(shared_fault(outcome, w, from[r], 16, 8 * i + r));
      std::memcpy(to + 16 * r, shared_.data() + from[r], 16);
      groups |= 1u << (from[r] >> 4 & 7);
    }
    // Eight rows in eight different bank groups are one pass; anything else is looked at closely.
    needed += groups == 0xff ? 1 : shared_wavefronts(from, 0xff, 16).needed;
    if (in.sub) lanes_.transpose(tile, d);
  }
  counter_.shared_wavefronts_are(needed, in.count);
}

void Machine::stmatrix(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  require_full(w, in, mask, "partial-warp", "stmatrix");
  uint64_t address[kWarpSize];
  uint32_t offset[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  matrix_offsets(address, 8u * in.count, offset);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < in.count; ++i) {
    alignas(16) std::byte tile[128];
    const uint32_t* s = row(w, kernel_.lists[in.list + i]);
    if (in.sub)
      lanes_.transpose(s, tile);
    else
      std::memcpy(tile, s, sizeof tile);
    for (uint32_t r = 0; r < 8; ++r) write_shared(w, offset[8 * i + r], 16, 8 * i + r, tile + 16 * r, false);
    needed += shared_wavefronts(offset + 8 * i, 0xff, 16).needed;
  }
  counter_.shared_wavefronts_are(needed, in.count);
}

/// The source is read now, the destination changes only at the wait: the latest moment the ISA
/// allows, so that data used too early is never there by luck.
void Machine::cp_async(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  uint64_t from[kWarpSize], to[kWarpSize];
  uint32_t offset[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, from);
  addresses(w, in.b, in.flags & kFlagDst64, static_cast<int32_t>(in.target), to);
  AsyncCopy& copy = w.copies.emplace_back();
  copy.mask = mask;
  copy.bytes = in.size;
  copy.issued = w.now;
  std::copy(std::begin(w.committed), std::end(w.committed), copy.group);
  uint32_t reads = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = first_lane(m), bytes = in.size;
    if (in.sub == 1) {
      bytes = row(w, in.c)[l];
      if (bytes > in.size)
        throw Fault{"bad-copy-size",
                    fmt::format("cp.async source size {} is over its copy size {}", bytes, in.size), l};
    } else if (in.sub == 2 && ((w.regs.preds[in.c] >> l & 1) != 0) != ((in.flags & kFlagSigned) != 0)) {
      bytes = 0;  // ignore-src
    }
    check_alignment(to[l], in.size, l);
    offset[l] = copy.to[l] = shared_offset(to[l], in.size, l);
    auto outcome = shadow_.async_issue(w.index, offset[l], in.size);
    if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset[l], in.size, l));
    check_alignment(from[l], in.size, l);
    if (bytes) {
      reads |= 1u << l;
      read_global(from[l], bytes, l, copy.data[l], false, 0);
    }
    if (bytes < in.size) std::memset(copy.data[l] + bytes, 0, in.size - bytes);
  }
  if (reads) {
    counter_.global_access(from, reads, in.size, false);
    counter_.load_lanes(reads, in.size);
  }
  counter_.shared_access(offset, mask, in.size);
}

/// All copies of these lanes, in groups or not.
void Machine::land_copies(Warp& w, uint32_t mask) {
  for (AsyncCopy& copy : w.copies) {
    for (uint32_t m = copy.mask & mask; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      std::memcpy(shared_.data() + copy.to[l], copy.data[l], copy.bytes);
      shadow_.async_land(w.index, copy.to[l], copy.bytes);
    }
    copy.mask &= ~mask;
  }
}

void Machine::cp_wait(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == 1)  // wait_all also commits what is not in a group yet
    for (uint32_t m = mask; m; m &= m - 1) ++w.committed[first_lane(m)];
  std::optional<uint64_t> last_issued;
  for (size_t i = w.copies_begin; i < w.copies.size(); ++i) {
    AsyncCopy& copy = w.copies[i];
    uint32_t landing = 0;
    for (uint32_t l = 0; l < kWarpSize; ++l)
      landing |= static_cast<uint32_t>(copy.group[l] + static_cast<uint64_t>(in.imm) < w.committed[l]) << l;
    landing &= copy.mask & mask;
    if (landing) last_issued = copy.issued;
    for (uint32_t m = landing; m; m &= m - 1) {
      uint32_t l = first_lane(m);
      std::memcpy(shared_.data() + copy.to[l], copy.data[l], copy.bytes);
      shadow_.async_land(w.index, copy.to[l], copy.bytes);
    }
    copy.mask &= ~landing;
  }
  if (last_issued) counter_.async_wait(w.now - *last_issued);
  while (w.copies_begin < w.copies.size() && !w.copies[w.copies_begin].mask) ++w.copies_begin;
  if (w.copies_begin == w.copies.size() || w.copies_begin > 64) {
    w.copies.erase(w.copies.begin(), w.copies.begin() + static_cast<ptrdiff_t>(w.copies_begin));
    w.copies_begin = 0;
  }
}

}  // namespace roofgen::sim
