// The memories: what an address is of, and each access checked, for bounds, for races, for bytes that nobody wrote.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

// Without the bytes of a word's last writer two CTAs whose rows meet inside a word would seem to race where the buffer
// holds the values of an earlier launch.

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
    if (b->base <= address)
      nearest = b.get();
    else if (!next)
      next = b.get();
  // Not buffer addresses but distances, so that the message does not depend on what else is allocated.
  const uint64_t offset = nearest ? address - nearest->base : 0, before = next ? next->base - address : ~uint64_t{0};
  if (nearest && offset < nearest->bytes) return fmt::format("{}[byte {}]", nearest->label, offset);
  const uint64_t past = nearest ? offset - nearest->bytes : ~uint64_t{0};
  if (past < kGuardBytes && past <= before)
    return fmt::format("{} bytes past the end of {} ({} bytes)", past, nearest->label, nearest->bytes);
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
    throw Fault{"misaligned", fmt::format("{} is not aligned to the {} bytes of the access", describe(address), bytes),
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

uint32_t Machine::read_global(uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out, bool strong,
                              uint32_t needed) {
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
      return all;                     // it has been said
    }
    const uint32_t written = state_.memory.writers(slot)[at / 4];
    const bool others = by_another(written, writer_, state_) && (written & bytes_of_word(at / 4, at, bytes));
    saw_others_ |= others && strong;
    if (others && strong) hand_over(*running_, SharedShadow::kOutside, true, false, false);
    if (others && !strong && !used_atomics_ && notes_undefined())
      undefined(Fault{
          "race",
          fmt::format("read of {}, written by another CTA of this launch without synchronisation", describe(address)),
          lane});
    if (const auto outcome = device_.read(running_->index, address, bytes, strong); !outcome.ok() && notes_undefined())
      undefined(fault_of(outcome, *running_, address, bytes, lane));
  } else if (!slot) {
    throw Fault{"out-of-memory", "the simulator ran out of memory for this launch", lane};
  }
  std::memcpy(out, state_.memory.data(slot) + at, bytes);
  return valid;
}

void Machine::write_global(uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in, bool strong,
                           uint32_t holes, bool is_constant) {
  if (strong) require_order(lane);
  Buffer& b = buffer_at(address, bytes, lane, "write");
  if (b.fill) throw Fault{"write-to-input", fmt::format("write to {}, which is an input", describe(address)), lane};
  uint64_t offset = address - b.base;
  uint32_t slot = state_.memory.slot_for_write(b, offset / kLineBytes), at = offset % kLineBytes;
  if (!slot) throw Fault{"out-of-memory", "the simulator ran out of memory for this launch", lane};
  uint64_t bits = ((uint64_t{1} << bytes) - 1) << (at & 63);
  uint64_t& valid = state_.memory.valid(slot)[at >> 6];
  uint32_t* writers = state_.memory.writers(slot);
  const bool may_be_same =
      is_constant && (valid & bits) == bits && std::memcmp(state_.memory.data(slot) + at, in, bytes) == 0;
  for (uint32_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
    const uint32_t other = writers[word], mine = bytes_of_word(word, at, bytes);
    if (by_another(other, writer_, state_) && (other & mine) && (valid & bits) && !strong && !used_atomics_ &&
        !may_be_same && notes_undefined())
      undefined(Fault{"race", fmt::format("write to {}, which another CTA of this launch wrote too", describe(address)),
                      lane});
    writers[word] = (writer_ & kWriterMask) << 4 | mine | (other >> 4 == (writer_ & kWriterMask) ? other & 15 : 0);
  }
  if (const auto outcome = device_.write(running_->index, address, bytes, strong);
      !outcome.ok() && notes_undefined() &&
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
                fmt::format("{} bytes at {}: the CTA's shared memory is [{:#x}, {:#x})", bytes, describe(address),
                            kSharedBase, kSharedBase + shared_bytes_),
                lane};
  return static_cast<uint32_t>(offset);
}

Fault Machine::fault_of(SharedShadow::Outcome outcome, const Warp& w, uint64_t address, uint32_t bytes,
                        uint32_t lane) const {
  using Verdict = SharedShadow::Verdict;
  const std::string where = fmt::format("{} bytes at {}", bytes, describe(address));
  const auto race = [&](const char* does, const char* did) {
    return Fault{
        "race",
        fmt::format("warp {} {} {} {} by warp {} with no barrier between", w.index, does, where, did, outcome.other),
        lane};
  };
  switch (outcome.verdict) {
    case Verdict::kUninitialised:
      return Fault{"uninitialised", "read of " + where + ", which nothing has written", lane};
    case Verdict::kAsyncPending:
      return Fault{"async-pending", "access to " + where + " while a cp.async into it has not been waited for", lane};
    case Verdict::kReadAfterWrite: return race("reads", "written");
    case Verdict::kWriteAfterWrite: return race("writes", "written");
    case Verdict::kWriteAfterRead: return race("writes", "read");
    case Verdict::kOk: break;
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

void Machine::hand_over(const Warp& w, uint32_t offset, bool reads, bool writes, bool releases) {
  if (reads && shadow_.completed(offset)) shadow_.observe(offset, w.index);
  if (!writes || !(releases || shadow_.has_fenced(w.index))) return;
  releases ? shadow_.signal(offset, w.index, false) : shadow_.signal_fenced(offset, w.index);
  shadow_.complete(offset);
}

void Machine::hand_over_globally(const Warp& w, uint64_t address, bool reads, bool writes, bool releases) {
  const bool gives = writes && (releases || shadow_.has_fenced(w.index));
  const uint32_t at = gives ? device_.make_place(address) : device_.place(address);
  if (at == DeviceShadow::kNowhere) return;
  hand_over(w, at, reads, writes, releases);
  if (gives) hand_over(w, SharedShadow::kOutside, false, true, releases);  // another CTA may pass it on
}

void Machine::write_shared(Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in, bool strong,
                           uint32_t holes, bool is_constant) {
  auto outcome = shadow_.write(w.index, offset, bytes, strong);
  if (is_constant && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite &&
      std::memcmp(shared_.data() + offset, in, bytes) == 0)
    outcome = {};
  if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset, bytes, lane));
  if (holes) shadow_.unwrite(offset, holes);
  std::memcpy(shared_.data() + offset, in, bytes);
}

// ---- local memory --------------------------------------------------------------------------------------

uint64_t Machine::local_offset(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane) const {
  uint64_t offset = address - kLocalBase;
  if (offset >= kernel_.local_bytes || offset + bytes > kernel_.local_bytes)
    throw Fault{"out-of-bounds",
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
      undefined(
          Fault{"uninitialised", fmt::format("read of {}, which the thread has not written", describe(address)), lane});
  std::memcpy(out, local_.data() + at, bytes);
  return valid;
}

void Machine::write_local(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in,
                          uint32_t holes) {
  uint64_t at = local_offset(w, address, bytes, lane);
  for (uint32_t i = 0; i < bytes; ++i) local_written_[at + i] = !(holes >> i & 1);
  std::memcpy(local_.data() + at, in, bytes);
}

}  // namespace roofgen::sim
