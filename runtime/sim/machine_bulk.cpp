// Bulk and tensor copies. A copy into shared memory reads its source at once and lands when a thread looks at its
// mbarrier; until then its target is pending, as for cp.async. A copy out of shared memory completes at once, but its
// source counts as read until a wait for its group.
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

TensorView Machine::tensor_map(const Warp& w, uint64_t address, uint32_t lane) {
  if (address % 64)
    throw Fault{"misaligned", fmt::format("tensor map at {}, which is not aligned to 64 bytes", text(address)), lane};
  alignas(16) std::byte bytes[kTensorMapBytes];
  if (address >= kParamBase && address < kParamWindowEnd) {
    const uint64_t offset = address - kParamBase;
    if (offset + kTensorMapBytes > state_.params.size())
      throw Fault{"out-of-bounds", fmt::format("tensor map at {}", text(address)), lane};
    std::memcpy(bytes, state_.params.data() + offset, kTensorMapBytes);
  } else {
    for (uint32_t i = 0; i < kTensorMapBytes; i += kPiece) read_device(w, address + i, kPiece, lane, bytes + i, true);
  }
  TensorView view;
  if (!view.decode(bytes)) throw Fault{"bad-tensor-map", fmt::format("no tensor map at {}", text(address)), lane};
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

/// One request, checked and moved in pieces that do not cross 16 bytes.
template <class F>
void Machine::bulk_row(BulkRequest row, F&& move) {
  if (row.bytes == 0) return;
  for (uint32_t done = 0; done < row.bytes;) {
    const uint32_t n =
        std::min<uint32_t>(row.bytes - done, kPiece - static_cast<uint32_t>((row.first + done) % kPiece));
    move(row.first + done, n, done);
    done += n;
  }
  emit(row);
}

void Machine::bulk_copy(Warp& w, const Inst& in, uint32_t mask) {
  const bool inwards = in.sub & kBulkIn, tensor = in.sub & kBulkTensor;
  const uint32_t* list = kernel_.lists.data() + in.list;
  uint64_t far[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, far);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const auto own = [&](uint32_t field, uint32_t displacement) {
      uint64_t address = row(w, field)[l] + displacement;
      if (&cta_at(address, l) != this)
        throw Fault{"out-of-bounds", "a bulk copy to another CTA or with its mbarrier is not supported", l};
      return address;
    };
    uint64_t near = own(in.b, list[in.count]);
    TensorView view;
    uint64_t asked = row(w, list[0])[l];
    int32_t at[kMaxTensorRank] = {};
    if (tensor) {
      view = tensor_map(w, far[l], l);
      if (view.rank != in.count)
        throw Fault{"bad-tensor-map",
                    fmt::format("a tensor of {} dimensions is copied as one of {}", view.rank, in.count), l};
      for (uint32_t d = 0; d < in.count; ++d) at[d] = static_cast<int32_t>(row(w, list[d])[l]);
      asked = view.box_bytes();
      if (near % 128)
        throw Fault{"misaligned", fmt::format("{} of a tensor copy is not aligned to 128 bytes", text(near)), l};
    } else {
      if (asked % kPiece || far[l] % kPiece || near % kPiece)
        throw Fault{"misaligned",
                    fmt::format("a bulk copy of {} bytes between {} and {}: expected multiples of 16", asked,
                                text(far[l]), text(near)),
                    l};
    }
    if (asked > kMostBytes)
      throw Fault{"bad-copy-size", fmt::format("a bulk copy of {} bytes is over the limit of {}", asked, kMostBytes),
                  l};
    const auto bytes = static_cast<uint32_t>(asked);
    const uint32_t to = bytes ? shared_offset(near, bytes, l) : 0;
    std::vector<uint32_t> pieces;
    for (uint32_t i = 0; i < bytes; i += kPiece) {
      pieces.push_back(static_cast<uint32_t>(swizzled(near + i, view.swizzle_bytes) - near + to));
      if (pieces.back() + kPiece > shared_bytes_)
        throw Fault{"out-of-bounds", fmt::format("a swizzled box at {} goes past the CTA's shared memory", text(near)),
                    l};
    }
    std::vector<std::byte> data(bytes);
    const uint32_t barrier = inwards ? shared_offset(own(in.c, list[in.count + 1]), 8, l) : 0;
    const auto row_of = [&](uint64_t address, uint32_t n, uint32_t begin) {
      bulk_row({site(w), l, !inwards, address, n, barrier}, [&](uint64_t part, uint32_t k, uint32_t done) {
        if (inwards)
          read_device(w, part, k, l, data.data() + begin + done, false);
        else
          write_device(w, part, k, l, data.data() + begin + done);
      });
    };
    if (!inwards)
      for (size_t i = 0; i < pieces.size(); ++i) {
        emit_shared(w, Op::kRead, pieces[i], kPiece, l, false, 0);
        std::memcpy(data.data() + i * kPiece, shared_.data() + pieces[i], kPiece);
      }
    else if (tensor)
      for (uint32_t i = 0; i < bytes; i += view.element_bytes)
        std::memcpy(data.data() + i, &view.fill, view.element_bytes);
    if (tensor)
      each_tensor_row(view, at, [&](uint32_t offset, uint64_t address, uint32_t before, uint32_t n) {
        row_of(address, n, offset + before);
      });
    else
      row_of(far[l], bytes, 0);
    if (!inwards) {
      if (w.bulk_reads.size() >= kMostUnderWay)
        throw Fault{"bad-copy-size", fmt::format("{} bulk copies are pending at once", w.bulk_reads.size()), l};
      emit(BulkSource{site(w), l, pieces, true});
      w.bulk_reads.push_back({l, w.bulk_committed[l], std::move(pieces)});
      continue;
    }
    if (bulk_copies_.size() >= kMostUnderWay)
      throw Fault{"bad-copy-size", fmt::format("{} bulk copies are pending at once", bulk_copies_.size()), l};
    for (const uint32_t target : pieces) emit_shared(w, Op::kCopyIn, target, kPiece, l, false, 0);
    bulk_copies_.push_back({barrier, w.index, std::move(pieces), std::move(data)});
  }
  if (inwards) wake_phase_waiters();
}

/// Closes a group of copies out of shared memory, or waits until they have read it.
void Machine::bulk_group(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == kNopBulkCommit) {
    for (uint32_t m = mask; m; m &= m - 1) ++w.bulk_committed[first_lane(m)];
    return;
  }
  std::erase_if(w.bulk_reads, [&](const BulkRead& r) {
    const bool read = mask >> r.lane & 1 && r.group + static_cast<uint64_t>(in.imm) < w.bulk_committed[r.lane];
    if (read) emit(BulkSource{site(w), r.lane, r.from, false});
    return read;
  });
}

/// Lands the copies that complete the mbarrier at `at`. Their bytes.
uint32_t Machine::land_bulk(uint32_t at) {
  uint32_t bytes = 0;
  for (BulkCopy& copy : bulk_copies_) {
    if (copy.barrier != at) continue;
    for (size_t i = 0; i < copy.to.size(); ++i)
      std::memcpy(shared_.data() + copy.to[i], copy.data.data() + i * kPiece, kPiece);
    emit(AsyncLand{copy.warp, 0, copy.to, kPiece});
    emit(PhaseArrive{copy.warp, 0, at});
    bytes += static_cast<uint32_t>(copy.data.size());
  }
  if (bytes) std::erase_if(bulk_copies_, [&](const BulkCopy& copy) { return copy.barrier == at; });
  return bytes;
}

}  // namespace roofgen::sim
