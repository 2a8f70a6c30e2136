// Bulk and tensor copies. A copy into shared memory reads its source at once and lands when a thread looks at its
// mbarrier; until then its target is pending, as for cp.async. A copy out of shared memory completes at once, but its
// source counts as read until a wait for its group. A copy between CTAs of a cluster does both at the mbarrier.
//
// A copy may access device memory at any time until its end (PTX ISA, "Async proxy"). The checks see the accesses
// twice: when the copy is issued, and at its end, which is the wait for its group or the look at its mbarrier, or else
// the end of the CTA. A conflicting access between these two moments races with one of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/sim/atomics.h"
#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kPiece = 16;  ///< bytes that stay together in every copy
constexpr uint32_t kMostBytes = (1u << 20) - 1;
/// A persistent CTA may never wait for its writes. Of those beyond these it is not known whether another write of the
/// bytes has equal values, which is no race: none of them counts as one.
constexpr size_t kMostWithValues = 64;
constexpr size_t kMostUnderWay = 1024;  ///< far more than shared memory has room for

/// What may be reduced in device memory by a tensor copy; nothing: elements of 8 and 16 bits.
std::optional<ElementType> reduced_as(TensorData data, AtomicOp op) {
  switch (data) {
    case TensorData::kU32: return ElementType::kU32;
    case TensorData::kS32: return ElementType::kS32;
    case TensorData::kU64: return ElementType::kU64;
    case TensorData::kS64: return ElementType::kS64;
    default: break;
  }
  if (op != AtomicOp::kAdd) return std::nullopt;
  switch (data) {
    case TensorData::kF16: return ElementType::kF16;
    case TensorData::kBf16: return ElementType::kBf16;
    case TensorData::kF32: return ElementType::kF32;
    case TensorData::kF64: return ElementType::kF64;
    default: return std::nullopt;
  }
}

}  // namespace

TensorView Machine::tensor_map(const Warp& w, uint64_t address, uint32_t lane) {
  if (address % 64)
    throw Fault{"misaligned", fmt::format("tensor map at {}, which is not aligned to 64 bytes", text(address)), lane};
  if (const auto changed = changed_maps_.find(address); changed != changed_maps_.end())
    checker_.report(site(w), "race", lane, [&] {
      return fmt::format(
          "the copy uses the tensor map at {}, changed{}, with no fence.proxy.tensormap::generic.acquire between",
          text(address), checker_.at(changed->second));
    });
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

/// Where a tensor copy begins: coordinates; of .im2col also the offsets from the filter's corner, in W, H and D.
struct TensorCorner {
  int32_t at[kMaxTensorRank] = {};
  uint32_t offset[kMaxTensorRank - 2] = {};
};

/// The registers of a tensor copy, as the map and the mode allow them.
TensorCorner Machine::corner_of(const Warp& w, const Inst& in, const TensorView& view, uint32_t lane) const {
  const auto walk = static_cast<TensorWalk>(in.space);
  const uint32_t* const list = kernel_.lists.data() + in.list;
  const uint32_t rank = walk == TensorWalk::kFourRows ? 2 : in.count;
  if (view.rank != rank)
    throw Fault{"bad-tensor-map", fmt::format("a tensor of {} dimensions is copied as one of {}", view.rank, rank),
                lane};
  if (view.im2col != (walk == TensorWalk::kColumn))
    throw Fault{"bad-tensor-map",
                view.im2col ? "an im2col map in a tiled copy" : "a tiled map in an im2col copy: expected an im2col map",
                lane};
  if (walk == TensorWalk::kFourRows && view.box[1] != 1)
    throw Fault{"bad-tensor-map",
                fmt::format("a copy of four rows with a box of {} rows: expected a box of 1 row", view.box[1]), lane};
  TensorCorner out;
  for (uint32_t d = 0; d < in.count; ++d) out.at[d] = static_cast<int32_t>(row(w, list[d])[lane]);
  if (walk != TensorWalk::kColumn) return out;
  // PTX ISA, "im2col mode": limits of the offsets by the number of dimensions.
  constexpr uint32_t kMostOffset[] = {65535, 255, 31};
  constexpr char kNames[] = {'W', 'H', 'D'};
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    const int64_t last = static_cast<int64_t>(view.dims[1 + i]) - 1 + view.upper[i];
    if (out.at[1 + i] < view.lower[i] || out.at[1 + i] > last)
      throw Fault{"out-of-bounds",
                  fmt::format("the filter's corner is at {} in {}, outside the bounding box from {} to {}",
                              out.at[1 + i], kNames[i], view.lower[i], last),
                  lane};
    if (!(in.sub & kBulkIn)) continue;
    out.offset[i] = row(w, list[in.count + 2 + i])[lane] & 0xffff;
    if (out.offset[i] > kMostOffset[rank - 3])
      throw Fault{"out-of-bounds",
                  fmt::format("an im2col offset of {} in {}: at most {} with {} dimensions", out.offset[i], kNames[i],
                              kMostOffset[rank - 3], rank),
                  lane};
  }
  return out;
}

namespace {

/// Calls `row(address, bytes before, bytes inside)` for the elements along dimension 0 from `at` on: of the bytes those
/// outside the tensor come before and after what is inside.
template <class F>
void tensor_row(const TensorView& view, const int64_t* at, F&& row) {
  bool inside = true;
  uint64_t address = view.address;
  for (uint32_t d = 1; d < view.rank; ++d) {
    inside &= at[d] >= 0 && static_cast<uint64_t>(at[d]) < view.dims[d];
    address += static_cast<uint64_t>(at[d]) * view.strides[d];
  }
  const int64_t width = view.box[0], begin = std::clamp<int64_t>(-at[0], 0, width);
  const int64_t end = std::clamp<int64_t>(static_cast<int64_t>(view.dims[0]) - at[0], begin, width);
  const auto bytes = static_cast<int64_t>(view.element_bytes);
  row(address + static_cast<uint64_t>((at[0] + begin) * bytes), static_cast<uint32_t>(begin * bytes),
      inside ? static_cast<uint32_t>((end - begin) * bytes) : 0u);
}

/// Calls `to(coordinates)` for the first element of each row that a copy moves, in their order in shared memory.
template <class F>
void each_tensor_row(const TensorView& view, TensorWalk walk, const TensorCorner& corner, F&& to) {
  int64_t at[kMaxTensorRank] = {};
  std::copy_n(corner.at, view.rank, at);
  if (walk == TensorWalk::kFourRows) {
    for (uint32_t i = 0; i < 4; ++i) at[1] = corner.at[1 + i], to(at);
    return;
  }
  if (walk == TensorWalk::kColumn) {
    // The corner of the filter goes through the bounding box of each image, W first.
    int64_t filter[kMaxTensorRank];
    std::copy_n(at, view.rank, filter);
    for (uint32_t pixel = 0; pixel < view.box[1]; ++pixel) {
      for (uint32_t d = 1; d < view.rank; ++d) at[d] = filter[d] + (d + 1 < view.rank ? corner.offset[d - 1] : 0);
      to(at);
      uint32_t d = 1;
      for (; d + 1 < view.rank; ++d) {
        filter[d] += view.steps[d];
        if (filter[d] <= static_cast<int64_t>(view.dims[d]) - 1 + view.upper[d - 1]) break;
        filter[d] = view.lower[d - 1];
      }
      if (d + 1 == view.rank) ++filter[d];
    }
    return;
  }
  uint32_t index[kMaxTensorRank] = {};
  for (;;) {
    for (uint32_t d = 1; d < view.rank; ++d) at[d] = int64_t{corner.at[d]} + index[d] * view.steps[d];
    to(at);
    uint32_t d = 1;
    for (; d < view.rank && ++index[d] == view.side(d); ++d) index[d] = 0;
    if (d >= view.rank) return;
  }
}

}  // namespace

/// To the nearest, ties to even; infinities and NaN stay.
void round_to_tf32(std::vector<std::byte>& words) {
  for (size_t i = 0; i < words.size(); i += 4) {
    uint32_t word;
    std::memcpy(&word, &words[i], 4);
    if ((word & 0x7f800000) == 0x7f800000) continue;
    word = (word + 0xfff + (word >> 13 & 1)) & 0xffffe000;
    std::memcpy(&words[i], &word, 4);
  }
}

/// Pieces that do not cross 16 bytes: `f(address, bytes, bytes before)`.
template <class F>
void each_piece(uint64_t first, uint32_t bytes, F&& f) {
  for (uint32_t done = 0; done < bytes;) {
    const uint32_t n = std::min<uint32_t>(bytes - done, kPiece - static_cast<uint32_t>((first + done) % kPiece));
    f(first + done, n, done);
    done += n;
  }
}

/// One request, checked and moved in pieces.
template <class F>
void Machine::bulk_row(BulkRequest row, F&& move) {
  if (row.bytes == 0) return;
  each_piece(row.first, row.bytes, move);
  emit(row);
}

/// The checks see the accesses of a bulk copy at its end. `values`: of writes; none: those that are there.
void Machine::access_again(uint32_t warp, uint32_t pc, uint32_t lane, Op op, const std::vector<DeviceRow>& rows,
                           const std::vector<std::byte>& values) {
  for (const DeviceRow& row : rows)
    each_piece(row.first, row.bytes, [&](uint64_t address, uint32_t bytes, uint32_t done) {
      Buffer* const b = DeviceMemory::find(*state_.buffers, address);
      const uint32_t slot = b ? state_.memory.slot_for_read(*b, (address - b->base) / kLineBytes) : 0;
      if (!slot) return;
      const Piece piece = piece_of(lane, bytes);
      DeviceAccess e{{{kernel_.code[pc], pc, warp}, op, 1, bytes, op == Op::kAtomic}, &address, 0, &slot};
      e.is_request = false;
      e.pieces = &piece;
      e.lazily = true;
      if (op == Op::kWrite)
        e.values = values.empty() ? state_.memory.data(slot) + address % kLineBytes : &values[row.begin + done];
      checker_.on(e);
    });
}

/// The CTAs that a copy writes to.
std::vector<Machine*> Machine::targets(uint32_t lane, Machine& owner, bool multicast, uint32_t ctas) {
  std::vector<Machine*> out;
  if (!multicast) return {&owner};
  if (&owner != this) throw Fault{"out-of-bounds", "the place of a multicast is in the memory of another CTA", lane};
  for (uint32_t m = ctas & 0xffff; m; m &= m - 1) {
    uint64_t address = kClusterBase + first_lane(m) * kClusterCtaBytes + kSharedBase;
    if (!cluster_.empty())
      out.push_back(&cta_in_cluster(address, lane));
    else if (first_lane(m) == 0)
      out.push_back(this);
    else
      throw Fault{"out-of-bounds", fmt::format("rank {} in a cluster of 1 CTAs", first_lane(m)), lane};
  }
  return out;
}

/// A copy will complete an mbarrier of `owner`.
void Machine::use_barrier(const Warp& w, uint32_t barrier, uint32_t lane, const Machine& owner) {
  emit(MbarrierUse{site(w), lane, barrier, MbarrierUse::What::kCopies,
                   &owner == this ? -1 : static_cast<int>(owner.rank_)});
}

/// Elements of a copy are added to, or combined with, what is there, each at once.
void Machine::reduce_device(const Warp& w, const Inst& in, ElementType type, uint64_t address, uint32_t bytes,
                            uint32_t lane, const std::byte* values) {
  static constexpr uint8_t kSizes[] = {4, 8, 4, 4, 8, 8, 2, 2, 4, 4, 4, 8};  // by ElementType
  const uint32_t size = kSizes[static_cast<size_t>(type)];
  uint32_t slot, at;
  device_line(address, bytes, lane, Op::kAtomic, true, &slot, &at);
  const Piece piece = piece_of(lane, bytes);
  DeviceAccess e{{site(w), Op::kAtomic, 1, bytes, true}, &address, 0, &slot};
  e.is_request = false;
  e.pieces = &piece;
  emit(e);
  for (uint32_t i = 0; i < bytes; i += size) {
    uint64_t old = 0, value = 0;
    std::memcpy(&old, state_.memory.data(slot) + at + i, size);
    std::memcpy(&value, values + i, size);
    const uint64_t result = apply_atomic(static_cast<AtomicOp>(in.size), type, old, value, 0);
    write_device(slot, at + i, size, reinterpret_cast<const std::byte*>(&result), 0);
  }
}

void Machine::bulk_copy(Warp& w, const Inst& in, uint32_t mask) {
  const bool inwards = in.sub & kBulkIn, tensor = in.sub & kBulkTensor, shared = in.sub & kBulkShared;
  const auto walk = static_cast<TensorWalk>(in.space);
  const char* const what = bulk_name(in);
  const uint32_t* list = kernel_.lists.data() + in.list;
  uint64_t far[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, far);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    uint64_t near = row(w, in.b)[l] + list[in.count];
    Machine& owner = cta_at(near, l);
    if (!inwards && &owner != this)
      throw Fault{"out-of-bounds", fmt::format("{} out of the shared memory of another CTA", what), l};
    TensorView view;
    uint64_t asked = row(w, list[0])[l];
    TensorCorner corner;
    auto type = static_cast<ElementType>(in.type);
    if (tensor) {
      view = tensor_map(w, far[l], l);
      corner = corner_of(w, in, view, l);
      if (corner.at[0] % static_cast<int>(view.per_byte))
        throw Fault{"misaligned", fmt::format("element {} of 4 bits is not the first of a byte", corner.at[0]), l};
      corner.at[0] /= static_cast<int>(view.per_byte);
      asked = view.box_bytes() * (walk == TensorWalk::kFourRows ? 4 : 1);
      if (in.sub & kBulkReduces) {
        const auto reduced = reduced_as(view.data, static_cast<AtomicOp>(in.size));
        if (!reduced) throw Fault{"not-modelled", "this reduction of the elements of the tensor is not modelled", l};
        type = *reduced;
      }
      if (near % 128)
        throw Fault{"misaligned",
                    fmt::format("{} of a tensor {} is not aligned to 128 bytes", text(near),
                                in.sub & kBulkReduces ? "reduction" : "copy"),
                    l};
    } else {
      if (asked % kPiece || far[l] % kPiece || near % kPiece)
        throw Fault{"misaligned",
                    fmt::format("{} of {} bytes between {} and {}: expected multiples of 16", what, asked, text(far[l]),
                                text(near)),
                    l};
    }
    if (asked > kMostBytes)
      throw Fault{"bad-copy-size", fmt::format("{} of {} bytes is over the limit of {}", what, asked, kMostBytes), l};
    const auto bytes = static_cast<uint32_t>(asked);
    const uint32_t to = bytes ? owner.shared_offset(near, bytes, l) : 0;
    std::vector<uint32_t> pieces;
    for (uint32_t i = 0; i < bytes; i += kPiece) {
      pieces.push_back(static_cast<uint32_t>(view.swizzled(near + i) - near + to));
      if (pieces.back() + kPiece > shared_bytes_)
        throw Fault{"out-of-bounds", fmt::format("a swizzled box at {} goes past the CTA's shared memory", text(near)),
                    l};
    }
    std::vector<std::byte> data(bytes);
    uint64_t counts = inwards ? row(w, in.c)[l] + list[in.count + 1] : kSharedBase;
    Machine& counter = inwards ? barrier_cta(counts, l, in.sub & kBulkEven) : owner;
    const bool of_pair = in.sub & kBulkPair && (counter.rank_ ^ owner.rank_) < 2;
    if (inwards && &counter != &owner && !of_pair)
      throw Fault{"out-of-bounds", "the mbarrier of a bulk copy is in another CTA than its target", l};
    const uint32_t barrier = inwards ? owner.shared_offset(counts, 8, l) : 0;
    std::vector<DeviceRow> rows;
    const auto row_of = [&](uint64_t address, uint32_t n, uint32_t begin) {
      if (doubles_) [[unlikely]]
        for (const Machine* target :
             inwards ? targets(l, owner, in.sub & kBulkMulticast, row(w, in.e)[l]) : std::vector{this})
          target->doubles_->bulk_row(w, in, l, address, n, begin, pieces);
      bulk_row({site(w), l, !inwards, address, n, barrier}, [&](uint64_t part, uint32_t k, uint32_t done) {
        if (inwards)
          read_device(w, part, k, l, data.data() + begin + done, false);
        else if (in.sub & kBulkReduces)
          reduce_device(w, in, type, part, k, l, data.data() + begin + done);
        else
          write_device(w, part, k, l, data.data() + begin + done);
      });
      if (n && !buffer_at(address, 1, l, "access").is_input()) rows.push_back({address, n, begin});
    };
    const auto read_source = [&](const std::vector<uint32_t>& from) {
      for (size_t i = 0; i < from.size(); ++i) {
        emit_shared(w, Op::kRead, from[i], kPiece, l, false, 0, *this);
        std::memcpy(data.data() + i * kPiece, shared_.data() + from[i], kPiece);
      }
      emit(BulkSource{site(w), l, from, true});
    };
    std::vector<uint32_t> source;
    if (shared) {
      const uint32_t first = bytes ? shared_offset(far[l], bytes, l) : 0;
      for (uint32_t i = 0; i < bytes; i += kPiece) source.push_back(first + i);
      read_source(source);
    } else if (!inwards) {
      if (w.bulk_reads.size() >= kMostUnderWay)
        throw Fault{"bad-copy-size", fmt::format("{} bulk copies are pending at once", w.bulk_reads.size()), l};
      read_source(pieces);
    } else if (tensor) {
      for (uint32_t i = 0; i < bytes; i += view.element_bytes)
        std::memcpy(data.data() + i, &view.fill, view.element_bytes);
    }
    uint32_t offset = 0;
    if (tensor)
      each_tensor_row(view, walk, corner, [&](const int64_t* at) {
        tensor_row(view, at,
                   [&](uint64_t address, uint32_t before, uint32_t n) { row_of(address, n, offset + before); });
        offset += view.box[0] * view.element_bytes;
      });
    else if (!shared)
      row_of(far[l], bytes, 0);
    if (!inwards) {
      w.bulk_reads.push_back({w.pc, l, w.bulk_committed[l], std::move(pieces)});
      const bool keeps = w.bulk_writes.size() < kMostWithValues && !(in.sub & kBulkReduces);
      w.bulk_writes.push_back({w.pc, l, w.bulk_committed[l], std::move(rows),
                               keeps ? std::move(data) : std::vector<std::byte>(), (in.sub & kBulkReduces) != 0});
      continue;
    }
    if (view.to_tf32) round_to_tf32(data);
    for (Machine* target : targets(l, owner, in.sub & kBulkMulticast, row(w, in.e)[l])) {
      // Each CTA of a multicast signals its own barrier, or in pairs that of its CTA with the parity of the barrier's.
      Machine& signalled =
          of_pair && !cluster_.empty() ? *cluster_[(target->rank_ & ~1u) | (counter.rank_ & 1)] : *target;
      if (signalled.bulk_copies_.size() >= kMostUnderWay)
        throw Fault{"bad-copy-size", fmt::format("{} bulk copies are pending at once", signalled.bulk_copies_.size()),
                    l};
      if (doubles_ && shared) target->doubles_->bulk_from(*doubles_, source, pieces);
      use_barrier(w, barrier, l, signalled);
      for (const uint32_t piece : pieces) emit_shared(w, Op::kCopyIn, piece, kPiece, l, false, 0, *target);
      signalled.bulk_copies_.push_back({barrier, w.pc, w.index, l, pieces, data, kPiece, this, target, source, rows});
      signalled.wake_phase_waiters();
    }
  }
}

/// The CTA whose mbarrier an address names. `even`: the first one of the pair, for an address in the CTA's own window.
Machine& Machine::barrier_cta(uint64_t& address, uint32_t lane, bool even) {
  if (even && !is_in_cluster_window(address) && rank_ < cluster_.size())
    address += kClusterBase + (rank_ & ~1u) * kClusterCtaBytes;
  return cta_at(address, lane);
}

/// A copy of some registers of the lane.
void Machine::store_async(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t* list = kernel_.lists.data() + in.list;
  const uint32_t bytes = uint32_t{in.size} * in.count;
  uint64_t to[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, to);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    uint64_t counts = row(w, in.c)[l] + list[in.count];
    check_alignment(to[l], bytes, l);
    Machine& owner = cta_at(to[l], l);
    if (&cta_at(counts, l) != &owner)
      throw Fault{"out-of-bounds", "the mbarrier of st.async is in another CTA than its target", l};
    const uint32_t offset = owner.shared_offset(to[l], bytes, l);
    std::vector<std::byte> data(bytes);
    for (uint32_t i = 0; i < in.count; ++i)
      std::memcpy(data.data() + i * in.size,
                  in.size == 8 ? static_cast<const void*>(wide_row(w, list[i]) + l) : row(w, list[i]) + l, in.size);
    const uint32_t barrier = owner.shared_offset(counts, 8, l);
    use_barrier(w, barrier, l, owner);
    emit_shared(w, Op::kCopyIn, offset, bytes, l, false, 0, owner);
    owner.bulk_copies_.push_back({barrier, w.pc, w.index, l, {offset}, std::move(data), bytes, this, &owner, {}});
    owner.wake_phase_waiters();
  }
}

/// Closes a group of copies out of shared memory, or waits until they have read it, or have written device memory too.
void Machine::bulk_group(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == kNopBulkCommit) {
    for (uint32_t m = mask; m; m &= m - 1) ++w.bulk_committed[first_lane(m)];
    return;
  }
  const auto ended = [&](uint32_t lane, uint32_t group) {
    return mask >> lane & 1 && group + static_cast<uint64_t>(in.imm) < w.bulk_committed[lane];
  };
  std::erase_if(w.bulk_reads, [&](const BulkRead& r) {
    if (!ended(r.lane, r.group)) return false;
    emit(BulkSource{site(w), r.lane, r.from, false});
    return true;
  });
  if (in.type == kBulkWaitRead) return;
  std::erase_if(w.bulk_writes, [&](const BulkWrite& copy) {
    if (!ended(copy.lane, copy.group)) return false;
    write_again(w.index, copy);
    return true;
  });
}

/// Lands the copies that complete the mbarrier at `at`. Their bytes.
uint32_t Machine::land_bulk(uint32_t at) {
  uint32_t bytes = 0;
  for (BulkCopy& copy : bulk_copies_) {
    if (copy.barrier != at) continue;
    Machine& into = *copy.into;
    for (size_t i = 0; i < copy.to.size(); ++i)
      std::memcpy(into.shared_.data() + copy.to[i], copy.data.data() + i * copy.piece, copy.piece);
    const bool outside = copy.by != &into;
    into.emit(AsyncLand{outside ? 0 : copy.warp, 0, copy.to, copy.piece, outside});
    if (!copy.from.empty())
      copy.by->checker_.on(BulkSource{{kernel_.code[copy.pc], copy.pc, copy.warp}, copy.lane, copy.from, false});
    if (!outside) into.access_again(copy.warp, copy.pc, copy.lane, Op::kRead, copy.rows, {});
    into.emit(PhaseArrive{outside ? 0 : copy.warp, 0, at, outside, &into == this ? -1 : static_cast<int>(rank_)});
    bytes += static_cast<uint32_t>(copy.data.size());
  }
  if (bytes) std::erase_if(bulk_copies_, [&](const BulkCopy& copy) { return copy.barrier == at; });
  return bytes;
}

}  // namespace roofgen::sim
