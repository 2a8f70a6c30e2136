// The memory spaces: which memory an address belongs to, alignment and bounds, and accesses of single lanes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

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
  // "The kernel parameter space window is always contained within the global space window" (PTX ISA, 5.1.6).
  const bool is_param = address >= kParamBase && address < kParamWindowEnd;
  if (space == Space::kGlobal && is_param) return Space::kParam;
  if (space != Space::kGeneric) return space;
  if (address < kSharedWindowEnd) return Space::kShared;
  if (address < kLocalWindowEnd) return Space::kLocal;
  if (address < kParamWindowEnd) return Space::kParam;
  return Space::kGlobal;
}

void Machine::check_alignment(uint64_t address, uint32_t bytes, uint32_t lane) const {
  if (address & (bytes - 1)) [[unlikely]]  // access sizes are powers of two
    throw Fault{"misaligned", fmt::format("{} is not aligned to the {} bytes of the access", text(address), bytes),
                lane};
}

// ---- device memory -------------------------------------------------------------------------------------

Buffer& Machine::buffer_at(uint64_t address, uint32_t bytes, uint32_t lane, const char* what) {
  Buffer* b = last_buffer_;
  if (!b || address - b->base >= b->bytes) b = last_buffer_ = DeviceMemory::find(*state_.buffers, address);
  if (!b || address - b->base + bytes > b->bytes) {
    uint64_t at = b ? b->base + b->bytes : address;
    throw Fault{"out-of-bounds", fmt::format("{} of {} bytes at {}", what, bytes, text(at)), lane};
  }
  return *b;
}

/// Finds the line of a lane's bytes. True: it is part of an input.
bool Machine::device_line(uint64_t address, uint32_t bytes, uint32_t lane, Op op, bool strong, uint32_t* slot,
                          uint32_t* offset) {
  if (strong) require_order(lane);
  Buffer& b = buffer_at(address, bytes, lane,
                        op == Op::kWrite  ? "write"
                        : op == Op::kRead ? "read"
                                          : "atomic operation");
  if (b.is_input() && op != Op::kRead)
    throw Fault{"write-to-input", fmt::format("write to {}, which is an input", text(address)), lane};
  const uint64_t line = (address - b.base) / kLineBytes;
  *slot = op == Op::kRead ? state_.memory.slot_for_read(b, line) : state_.memory.slot_for_write(b, line);
  *offset = (address - b.base) % kLineBytes;
  if (!*slot && (b.fill || op != Op::kRead))
    throw Fault{"out-of-memory", "the simulator ran out of memory for this launch", lane};
  return b.is_input();
}

void Machine::write_device(uint32_t slot, uint32_t at, uint32_t bytes, const std::byte* in, uint32_t holes) {
  const uint64_t bits = ((uint64_t{1} << bytes) - 1) << (at & 63);
  uint64_t& valid = state_.memory.valid(slot)[at >> 6];
  state_.memory.note_written(slot, at, bytes);
  valid = (valid | bits) & ~(uint64_t{holes} << (at & 63));
  std::byte* const out = state_.memory.data(slot) + at;
  state_.changes += std::memcmp(out, in, bytes) != 0;
  std::memcpy(out, in, bytes);
}

/// An access of one lane that is checked but is no request of its own (Access::is_request).
void Machine::read_device(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out, bool strong) {
  uint32_t slot, at;
  const bool input = device_line(address, bytes, lane, Op::kRead, strong, &slot, &at);
  const Piece piece = piece_of(lane, bytes);
  DeviceAccess e{{site(w), Op::kRead, 1, bytes, strong}, &address, 0, &slot, input};
  e.is_request = false;
  e.pieces = &piece;
  emit(e);
  if (slot)
    std::memcpy(out, state_.memory.data(slot) + at, bytes);
  else
    std::memset(out, 0xff, bytes);
}

void Machine::write_device(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in) {
  uint32_t slot, at;
  device_line(address, bytes, lane, Op::kWrite, false, &slot, &at);
  const Piece piece = piece_of(lane, bytes);
  DeviceAccess e{{site(w), Op::kWrite, 1, bytes}, &address, 0, &slot};
  e.is_request = false;
  e.pieces = &piece;
  e.values = in;
  emit(e);
  write_device(slot, at, bytes, in, 0);
}

// ---- shared and local memory ---------------------------------------------------------------------------

uint32_t Machine::shared_offset(uint64_t address, uint32_t bytes, uint32_t lane) const {
  uint64_t offset = address - kSharedBase;
  if (offset >= shared_bytes_ || offset + bytes > shared_bytes_)
    throw Fault{"out-of-bounds",
                fmt::format("{} bytes at {}: the CTA's shared memory is [{:#x}, {:#x})", bytes, text(address),
                            kSharedBase, kSharedBase + shared_bytes_),
                lane};
  return static_cast<uint32_t>(offset);
}

void Machine::emit_shared(const Warp& w, Op op, uint32_t offset, uint32_t bytes, uint32_t lane, bool strong,
                          uint32_t holes, const Machine& owner) {
  const Piece piece = piece_of(lane, bytes);
  const auto rank = static_cast<uint8_t>(owner.rank_);
  SharedAccess e{{site(w), op, 1, bytes, strong}, &offset, &owner == this ? nullptr : &rank};
  e.is_request = false;
  e.pieces = &piece;
  if (holes) e.holes = &holes;
  emit(e);
}

void Machine::read_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, std::byte* out,
                          Machine& owner) {
  emit_shared(w, Op::kRead, offset, bytes, lane, true, 0, owner);
  std::memcpy(out, owner.shared_.data() + offset, bytes);
}

void Machine::write_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in,
                           uint32_t holes, Machine& owner) {
  emit_shared(w, Op::kWrite, offset, bytes, lane, true, holes, owner);
  std::memcpy(owner.shared_.data() + offset, in, bytes);
}

uint32_t Machine::local_offset(uint64_t address, uint32_t bytes, uint32_t lane) const {
  const uint64_t offset = address - kLocalBase;
  if (offset >= kernel_.local_bytes || offset + bytes > kernel_.local_bytes)
    throw Fault{"out-of-bounds",
                fmt::format("{} bytes at {}: the thread has {} bytes", bytes, text(address), kernel_.local_bytes),
                lane};
  return static_cast<uint32_t>(offset);
}

}  // namespace roofgen::sim
