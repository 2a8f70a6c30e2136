// Bulk and tensor copies. One into shared memory reads its source at once and lands when a thread looks at its barrier:
// before that its target is under way, as that of cp.async is. One out of shared memory is done at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/machine.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kPiece = 16;  ///< bytes that stay together in every copy
constexpr uint32_t kMostBytes = (1u << 20) - 1;
constexpr size_t kMostUnderWay = 1024;  ///< far more than shared memory has room for

/// Where a piece of a swizzled box lies: bits 4 and up of its address are mixed with those from bit 7 on.
uint64_t swizzled(uint64_t address, uint32_t span) {
  const uint64_t rows = span / kPiece - 1;  // 1, 3 or 7
  return span ? address ^ ((address >> 7 & rows) << 4) : address;
}

}  // namespace

TensorView Machine::tensor_map(uint64_t address, uint32_t lane) {
  if (address % 64)
    throw Fault{"misaligned", fmt::format("tensor map at {}, which is not aligned to 64 bytes", describe(address)),
                lane};
  alignas(16) std::byte bytes[kTensorMapBytes];
  if (address >= kParamBase && address < kParamWindowEnd) {
    const uint64_t offset = address - kParamBase;
    if (offset + kTensorMapBytes > state_.params.size())
      throw Fault{"out-of-bounds", fmt::format("tensor map at {}", describe(address)), lane};
    std::memcpy(bytes, state_.params.data() + offset, kTensorMapBytes);
  } else {
    for (uint32_t i = 0; i < kTensorMapBytes; i += kPiece) read_global(address + i, kPiece, lane, bytes + i, true);
  }
  TensorView view;
  if (!view.decode(bytes))
    throw Fault{"bad-tensor-map", fmt::format("at {} there is no tensor map", describe(address)), lane};
  return view;
}

/// Calls `row(offset in the box, address, bytes before, bytes inside)` for every row of the box: of its bytes those
/// outside the tensor come before and after what is inside.
template <class F>
void Machine::each_tensor_row(const TensorView& view, const int32_t* at, F&& row) {
  const uint32_t row_bytes = view.box[0] * view.element_bytes;
  uint32_t index[kMaxTensorRank] = {};
  for (uint32_t offset = 0;; offset += row_bytes) {
    bool inside = true;
    uint64_t address = view.address;
    for (uint32_t d = 1; d < view.rank; ++d) {
      const int64_t coordinate = int64_t{at[d]} + index[d];
      inside &= coordinate >= 0 && static_cast<uint64_t>(coordinate) < view.dims[d];
      address += static_cast<uint64_t>(coordinate) * view.strides[d];
    }
    const int64_t width = view.box[0], begin = std::clamp<int64_t>(-int64_t{at[0]}, 0, width);
    const int64_t end = std::clamp<int64_t>(static_cast<int64_t>(view.dims[0]) - at[0], begin, width);
    const auto bytes = static_cast<int64_t>(view.element_bytes);
    row(offset, address + static_cast<uint64_t>((int64_t{at[0]} + begin) * bytes), static_cast<uint32_t>(begin * bytes),
        inside ? static_cast<uint32_t>((end - begin) * bytes) : 0u);
    uint32_t d = 1;
    for (; d < view.rank && ++index[d] == view.box[d]; ++d) index[d] = 0;
    if (d >= view.rank) return;
  }
}

/// In pieces that the memory takes, counted as one request.
template <class F>
void Machine::global_bytes(uint64_t address, uint32_t bytes, bool write, F&& part) {
  if (bytes == 0) return;
  for (uint32_t done = 0; done < bytes;) {
    const uint32_t n = std::min<uint32_t>(bytes - done, kPiece - static_cast<uint32_t>((address + done) % kPiece));
    part(address + done, n, done);
    done += n;
  }
  counter_.global_row(address, bytes, write);
}

void Machine::bulk_copy(Warp& w, const Inst& in, uint32_t mask) {
  counter_.at(w.pc);
  const bool inwards = in.sub & kBulkIn, tensor = in.sub & kBulkTensor;
  const uint32_t* list = kernel_.lists.data() + in.list;
  uint64_t far[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, far);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const auto own = [&](uint32_t field, uint32_t displacement) {
      uint64_t address = row(w, field)[l] + displacement;
      if (&cta_at(address, l) != this)
        throw Fault{"out-of-bounds", "a bulk copy to or with a barrier of another CTA, which is not supported", l};
      return address;
    };
    uint64_t near = own(in.b, list[in.count]);
    TensorView view;
    uint64_t asked = row(w, list[0])[l];
    int32_t at[kMaxTensorRank] = {};
    if (tensor) {
      view = tensor_map(far[l], l);
      if (view.rank != in.count)
        throw Fault{"bad-tensor-map",
                    fmt::format("a tensor of {} dimensions is copied as one of {}", view.rank, in.count), l};
      for (uint32_t d = 0; d < in.count; ++d) at[d] = static_cast<int32_t>(row(w, list[d])[l]);
      asked = view.box_bytes();
      if (near % 128)
        throw Fault{"misaligned", fmt::format("{} of a tensor copy is not aligned to 128 bytes", describe(near)), l};
    } else {
      if (asked % kPiece || far[l] % kPiece || near % kPiece)
        throw Fault{"misaligned",
                    fmt::format("a bulk copy of {} bytes between {} and {}: multiples of 16 were expected", asked,
                                describe(far[l]), describe(near)),
                    l};
    }
    if (asked > kMostBytes)
      throw Fault{"bad-copy-size", fmt::format("a bulk copy of {} bytes; at most {} are possible", asked, kMostBytes),
                  l};
    const auto bytes = static_cast<uint32_t>(asked);
    const uint32_t to = bytes ? shared_offset(near, bytes, l) : 0;
    std::vector<uint32_t> pieces;
    for (uint32_t i = 0; i < bytes; i += kPiece) {
      pieces.push_back(static_cast<uint32_t>(swizzled(near + i, view.swizzle_bytes) - near + to));
      if (pieces.back() + kPiece > shared_bytes_)
        throw Fault{"out-of-bounds",
                    fmt::format("a swizzled box at {} goes past the CTA's shared memory", describe(near)), l};
    }
    std::vector<std::byte> data(bytes);
    if (inwards) {
      BulkCopy copy{shared_offset(own(in.c, list[in.count + 1]), 8, l), w.index, {}, {}};
      const auto read = [&](uint64_t address, uint32_t n, uint32_t into) {
        global_bytes(address, n, false, [&](uint64_t part, uint32_t k, uint32_t done) {
          read_global(part, k, l, data.data() + into + done, false);
        });
      };
      if (tensor) {
        for (uint32_t i = 0; i < bytes; i += view.element_bytes)
          std::memcpy(data.data() + i, &view.fill, view.element_bytes);
        each_tensor_row(view, at, [&](uint32_t offset, uint64_t address, uint32_t before, uint32_t n) {
          read(address, n, offset + before);
        });
      } else {
        read(far[l], bytes, 0);
      }
      if (bulk_copies_.size() >= kMostUnderWay)
        throw Fault{"bad-copy-size", fmt::format("{} bulk copies are under way at once", bulk_copies_.size()), l};
      for (const uint32_t target : pieces) {
        const auto outcome = shadow_.async_issue(w.index, target, kPiece);
        if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, target, kPiece, l));
      }
      copy.to = std::move(pieces);
      copy.data = std::move(data);
      bulk_copies_.push_back(std::move(copy));
    } else {
      for (size_t i = 0; i < pieces.size(); ++i) read_shared(w, pieces[i], kPiece, l, data.data() + i * kPiece, false);
      const auto write = [&](uint64_t address, uint32_t n, uint32_t from) {
        global_bytes(address, n, true, [&](uint64_t part, uint32_t k, uint32_t done) {
          write_global(part, k, l, data.data() + from + done, false);
        });
      };
      if (tensor)
        each_tensor_row(view, at, [&](uint32_t offset, uint64_t address, uint32_t before, uint32_t n) {
          write(address, n, offset + before);
        });
      else
        write(far[l], bytes, 0);
    }
  }
  if (inwards) wake_phase_waiters();
}

/// The copies that complete the barrier at `at`. How many bytes.
uint32_t Machine::land_bulk(uint32_t at) {
  uint32_t bytes = 0;
  for (BulkCopy& copy : bulk_copies_) {
    if (copy.barrier != at) continue;
    for (size_t i = 0; i < copy.to.size(); ++i) {
      std::memcpy(shared_.data() + copy.to[i], copy.data.data() + i * kPiece, kPiece);
      shadow_.async_land(copy.warp, copy.to[i], kPiece);
    }
    shadow_.signal(at, copy.warp);
    bytes += static_cast<uint32_t>(copy.data.size());
  }
  if (bytes) std::erase_if(bulk_copies_, [&](const BulkCopy& copy) { return copy.barrier == at; });
  return bytes;
}

}  // namespace roofgen::sim
