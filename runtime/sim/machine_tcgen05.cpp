// Tensor memory (tcgen05): allocation, loads and stores of warps, copies, commits. Values change at once; the checks
// know until when an asynchronous operation may be under way (checker_tensor.cpp). Products: machine_tcgen05_mma.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/sim/atomics.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr const char* kBad = "bad-tensor-memory";

}  // namespace

void Machine::tensor(Warp& w, const Inst& in, uint32_t mask) {
  const auto op = static_cast<TensorOp>(in.sub);
  if (in.count && op != TensorOp::kLoad && op != TensorOp::kStore) {
    // PTX ISA, tcgen05.alloc: all instructions of a kernel have the same group.
    if (tensor_->group_ && tensor_->group_ != in.count)
      throw Fault{kBad,
                  fmt::format("cta_group::{}, but an instruction of the CTA before has cta_group::{}", in.count,
                              tensor_->group_),
                  first_lane(mask)};
    tensor_->group_ = in.count;
    if (in.count == 2) peer_of_pair(first_lane(mask));
  }
  switch (op) {
    case TensorOp::kAlloc: return tensor_alloc(w, in, mask);
    case TensorOp::kDealloc: tensor_dealloc(w, in, mask); break;
    case TensorOp::kRelinquish:
      require_full(w, in, mask, "partial-warp", "tcgen05.relinquish_alloc_permit");
      if (!tensor_->relinquished_) tensor_->relinquished_ = w.pc;
      break;
    case TensorOp::kLoad:
    case TensorOp::kStore: tensor_move(w, in, mask, op == TensorOp::kLoad); break;
    case TensorOp::kWaitLoad:
    case TensorOp::kWaitStore:
      require_full(w, in, mask, "partial-warp", "tcgen05.wait");
      if (op == TensorOp::kWaitLoad) w.tensor_loads.clear();
      emit(TensorWait{site(w), op == TensorOp::kWaitLoad});
      break;
    case TensorOp::kFenceBefore:
    case TensorOp::kFenceAfter: emit(TensorFence{site(w), op == TensorOp::kFenceAfter}); break;
    // One thread each: all lanes that are here begin work of their own.
    case TensorOp::kCommit:
      for (uint32_t m = mask; m; m &= m - 1) tensor_commit(w, in, first_lane(m));
      break;
    case TensorOp::kCopy:
      for (uint32_t m = mask; m; m &= m - 1) tensor_copy(w, in, first_lane(m));
      break;
    case TensorOp::kMma:
      for (uint32_t m = mask; m; m &= m - 1) tensor_mma(w, in, first_lane(m));
      break;
  }
  ++w.pc;
}

/// The other CTA of the pair: the ranks differ in the last bit.
Machine& Machine::peer_of_pair(uint32_t lane) const {
  if (cluster_.size() < 2 || cluster_.size() % 2)
    throw Fault{kBad,
                fmt::format("cta_group::2 needs a cluster of an even number of CTAs, but the CTA is in one of {}",
                            std::max<size_t>(cluster_.size(), 1)),
                lane};
  return *cluster_[rank_ ^ 1];
}

uint32_t Machine::tensor_address(const Warp& w, uint32_t place, uint64_t displacement, uint32_t lane) const {
  return row(w, place)[lane] + static_cast<uint32_t>(displacement);
}

/// Columns that an instruction uses are allocated.
void Machine::need_columns(uint32_t address, uint32_t columns, uint32_t lane) const {
  const uint32_t first = address & 0xffff, top = address >> 16;
  if (top >= kTensorLanes || first + columns > kTensorColumns)
    throw Fault{kBad,
                fmt::format("{} columns from address {:#x} (lane {}, column {}): tensor memory has 128 lanes and 512 "
                            "columns",
                            columns, address, top, first),
                lane};
  if (tensor_->is_allocated(first, columns)) return;
  std::string all;
  for (const TensorMemory::Allocation& a : tensor_->allocations())
    all += fmt::format("{}{} to {}", all.empty() ? "" : ", ", a.first, a.first + a.columns - 1);
  throw Fault{
      kBad,
      fmt::format("columns {} to {} of tensor memory{}, and the CTA has allocated {}", first, first + columns - 1,
                  cluster_.empty() ? "" : fmt::format(" of the CTA of rank {}", rank_), all.empty() ? "none" : all),
      lane};
}

/// A count of columns, the same in all lanes.
uint32_t Machine::columns_of(const Warp& w, const Inst& in, const char* name) const {
  const uint32_t* const asked = row(w, in.b);
  for (uint32_t l = 1; l < kWarpSize; ++l)
    if (asked[l] != asked[0])
      throw Fault{kBad, fmt::format("{} of {} columns in lane {} and of {} in lane 0", name, asked[l], l, asked[0]), l};
  if (asked[0] < kTensorUnit || asked[0] > kTensorColumns || !std::has_single_bit(asked[0]))
    throw Fault{kBad, fmt::format("{} of {} columns: expected a power of 2 from 32 to 512", name, asked[0]), 0};
  return asked[0];
}

void Machine::tensor_alloc(Warp& w, const Inst& in, uint32_t mask) {
  require_full(w, in, mask, "partial-warp", "tcgen05.alloc");
  const uint32_t columns = columns_of(w, in, "tcgen05.alloc");
  if (tensor_->relinquished_)
    throw Fault{
        kBad,
        fmt::format("tcgen05.alloc after the tcgen05.relinquish_alloc_permit{}", checker_.at(*tensor_->relinquished_)),
        0};
  if (columns > tensor_->last_columns_)
    throw Fault{kBad,
                fmt::format("tcgen05.alloc of {} columns after one of {}: later allocations must not be larger",
                            columns, tensor_->last_columns_),
                0};
  uint64_t to[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, to);
  check_alignment(to[0], 4, 0);
  const uint32_t offset = shared_offset(to[0], 4, 0);
  const std::optional<uint32_t> first = tensor_->allocate(columns, w.pc, w.index);
  if (!first) {
    // The warp waits until another one gives columns back.
    w.parked.push_back({w.pc, w.active, kWaitsForColumns});
    w.active = 0;
    return choose(w);
  }
  tensor_->last_columns_ = columns;
  emit(TensorAlloc{site(w), *first, columns, false});
  std::byte bytes[4];
  std::memcpy(bytes, &*first, 4);
  const Piece piece = piece_of(0, 4);
  SharedAccess e{{site(w), Op::kWrite, 1, 4}, &offset};
  e.is_request = false;
  e.pieces = &piece;
  e.values = bytes;
  emit(e);
  std::memcpy(shared_.data() + offset, bytes, 4);
  ++w.pc;
}

void Machine::tensor_dealloc(Warp& w, const Inst& in, uint32_t mask) {
  require_full(w, in, mask, "partial-warp", "tcgen05.dealloc");
  const uint32_t columns = columns_of(w, in, "tcgen05.dealloc"), address = row(w, in.a)[0];
  const auto& all = tensor_->allocations();
  const auto found = std::ranges::find(all, address, &TensorMemory::Allocation::first);
  if (found == all.end())
    throw Fault{kBad, fmt::format("tcgen05.dealloc of address {:#x}, where no allocation begins", address), 0};
  if (found->columns != columns)
    throw Fault{kBad,
                fmt::format("tcgen05.dealloc of {} columns at column {}, where {} are allocated{}", columns, address,
                            found->columns, checker_.at(found->pc)),
                0};
  emit(TensorAlloc{site(w), address, columns, true});
  tensor_->give_back(address, columns);
  for (Warp& v : warps_)
    for (Fragment& f : v.parked)
      if (f.barrier == kWaitsForColumns) f.barrier = kReady;
}

/// tcgen05.ld and .st. A warp reaches the 32 lanes whose number divided by 32 is its own modulo 4. The first lanes of
/// an address stand for those of any warp, as much public code relies on (DeepGEMM, TIRx) and the ISA does not say.
void Machine::tensor_move(Warp& w, const Inst& in, uint32_t mask, bool loads) {
  require_full(w, in, mask, "partial-warp", loads ? "tcgen05.ld" : "tcgen05.st");
  const auto shape = static_cast<TensorShape>(in.type);
  const uint32_t displacement = static_cast<uint32_t>(in.imm), offset = static_cast<uint32_t>(in.imm >> 32);
  const uint32_t* const list = kernel_.lists.data() + in.list;
  const uint32_t count = in.target, packed = in.size;  // columns of a register
  const uint32_t address = tensor_address(w, in.a, displacement, 0);
  for (uint32_t l = 1; l < kWarpSize; ++l)
    if (const uint32_t other = tensor_address(w, in.a, displacement, l); other != address)
      throw Fault{kBad, fmt::format("address {:#x} in lane {} and {:#x} in lane 0", other, l, address), l};
  const uint32_t first = address & 0xffff, top = address >> 16, lanes = shape == TensorShape::k32x32b ? 32 : 16;
  const uint32_t lane = top < kWarpSize ? w.index % 4 * kWarpSize + top : top;
  uint32_t columns = 0;
  for (uint32_t l = 0; l < kWarpSize; ++l)
    columns = std::max(columns, place_of(shape, count - 1, l, offset).column + 1);
  columns *= packed;
  need_columns(address, columns, 0);
  if (lane / 32 != w.index % 4 || lane % lanes)
    throw Fault{kBad,
                fmt::format("warp {} {} from lane {} on: it reaches lanes {} to {} only, and this shape begins at a "
                            "multiple of {}",
                            w.index, loads ? "loads" : "stores", lane, w.index % 4 * 32, w.index % 4 * 32 + 31, lanes),
                0};
  TensorAccess e{site(w), 0, false, !loads, loads, first, columns, {}};
  e.lanes[lane / 32] = (lanes == 32 ? ~0u : 0xffffu) << lane % 32;
  e.lazily = true;
  if (loads) e.load = ++w.tensor_load;
  if (shape == TensorShape::k16x32bx2 && offset > count) {  // what lies between is not used
    e.columns = count * packed;
    emit(e);
    e.first = first + offset * packed;
  }
  emit(e);
  const bool finds_unwritten = loads && has_unwritten(first, columns, lane / 32, e.lanes[lane / 32]);
  for (uint32_t r = 0; r < count; ++r) {
    uint32_t* const values = row(w, list[r]);
    for (uint32_t l = 0; l < kWarpSize; ++l) {
      const TensorPlace p = place_of(shape, r, l, offset);
      const uint32_t at = first + p.column * packed, to = lane + p.lane;
      if (!loads && packed == 1) {
        tensor_->at(to, at) = values[l];
      } else if (!loads) {
        tensor_->at(to, at) = values[l] & 0xffff;
        tensor_->at(to, at + 1) = values[l] >> 16;
      } else {
        values[l] = packed == 1 ? tensor_->at(to, at) : (tensor_->at(to, at) & 0xffff) | tensor_->at(to, at + 1) << 16;
        if (finds_unwritten && !(checker_.written_tensor(at, to / 32) >> to % 32 & 1))
          set_undefined(w, list[r], l, low_bytes(4), origin_at(w, l, kTensorWindow + (uint64_t{to} << 16 | at) * 4));
      }
    }
  }
  if (!loads) return;
  if (in.space) reduce_loaded(w, in, finds_unwritten);
  w.tensor_loads.push_back(w.tensor_load);
  for (uint32_t r = 0; r < count + (in.space != 0); ++r) w.load_of[kernel_.watched_lists[in.list + r]] = w.tensor_load;
}

/// tcgen05.ld.red: the least or greatest of each thread's columns.
void Machine::reduce_loaded(Warp& w, const Inst& in, bool finds_unwritten) {
  const uint32_t* const list = kernel_.lists.data() + in.list;
  const uint32_t count = in.target, to = list[count];
  const bool least = in.space & kReducesToLeast;
  uint32_t result[kWarpSize];
  for (uint32_t l = 0; l < kWarpSize; ++l) {
    result[l] = row(w, list[0])[l];
    for (uint32_t r = 0; r < count; ++r) {
      const uint32_t x = row(w, list[r])[l], best = result[l];
      const bool less = in.space & kReducesSigned ? static_cast<int32_t>(x) < static_cast<int32_t>(best) : x < best;
      result[l] = in.space & (kReducesSigned | kReducesUnsigned) ? (less == least ? x : best)
                                                                 : extremum(least, in.space, best, x);
    }
  }
  std::copy_n(result, kWarpSize, row(w, to));
  for (uint32_t r = 0; finds_unwritten && r < count; ++r)
    for (uint32_t m = w.undefined[list[r]]; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      set_undefined(w, to, l, low_bytes(4), w.details[list[r]].origin[l]);
    }
}

bool Machine::has_unwritten(uint32_t first, uint32_t columns, uint32_t quarter, uint32_t lanes) const {
  for (uint32_t c = first; c < first + columns; ++c)
    if (lanes & ~checker_.written_tensor(c, quarter)) return true;
  return false;
}

/// An instruction uses registers of loads: these are over. A compiler's copy is no use.
void Machine::use_loaded(Warp& w, const Inst& in) {
  const bool copies = in.flags & kFlagCopy;
  uint32_t source = 0;
  for (const Operand& o : operands_of(in)) {
    if (o.is_pred || o.is_def || !kernel_.watched[o.reg]) continue;
    const uint32_t load = w.load_of[kernel_.watched[o.reg]];
    if (copies)
      source = load;
    else if (std::erase(w.tensor_loads, load))
      emit(TensorWait{site(w), true, load});
  }
  for (const Operand& o : operands_of(in))
    if (!o.is_pred && o.is_def) w.load_of[kernel_.watched[o.reg]] = source;
}

// ---- the tensor core ------------------------------------------------------------------------------------

/// The CTAs of a group: this one and, of a pair, its peer.
std::vector<Machine*> Machine::group_of(const Inst& in, uint32_t lane) {
  if (in.count != 2) return {this};
  Machine& peer = peer_of_pair(lane);
  if (peer.ended_) throw Fault{kBad, "the other CTA of the pair has ended", lane};
  if (!met_)
    throw Fault{"race", "the other CTA of the pair may not have begun: no barrier of the cluster comes before", lane};
  return {this, &peer};
}

void Machine::tensor_copy(Warp& w, const Inst& in, uint32_t lane) {
  const auto shape = static_cast<TensorCopy>(in.type);
  const uint32_t address = tensor_address(w, in.a, static_cast<uint32_t>(in.imm), lane);
  const uint64_t bits = wide_row(w, in.b)[lane];
  const uint32_t pieces = shape == TensorCopy::k128x256b ? 2 : 1, columns = 4 * pieces;
  const uint32_t rows = shape == TensorCopy::k32x128b ? 32 : shape < TensorCopy::k64x128b_02_13 ? 128 : 64;
  const TensorMatrix from = matrix_of(bits, false, 16 * pieces, "tcgen05.cp", lane);
  if (address >> 16) throw Fault{kBad, fmt::format("tcgen05.cp to address {:#x}: expected lane 0", address), lane};
  // The lanes of row r of the source: .warpx2 and .warpx4 repeat the rows for other warps.
  const auto targets = [&](uint32_t r) -> std::vector<uint32_t> {
    switch (shape) {
      case TensorCopy::k64x128b_02_13: return {r, r + 64};
      case TensorCopy::k64x128b_01_23: return {r / 32 * 64 + r % 32, r / 32 * 64 + 32 + r % 32};
      case TensorCopy::k32x128b: return {r, r + 32, r + 64, r + 96};
      default: return {r};
    }
  };
  for (Machine* member : group_of(in, lane)) {
    Machine& cta = *member;
    const int issuer = &cta == this ? -1 : static_cast<int>(rank_);
    cta.need_columns(address, columns, lane);
    std::vector<uint32_t> offsets;
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t p = 0; p < pieces; ++p) offsets.push_back(cta.matrix_piece(from.along_k(r, p), "tcgen05.cp", lane));
    cta.emit(TensorRead{site(w), lane, offsets, issuer});
    TensorAccess e{site(w), lane, true, true, false, address, columns, {}};
    e.issuer = issuer;
    for (uint32_t r = 0; r < rows; ++r)
      for (const uint32_t to : targets(r)) e.lanes[to / 32] |= 1u << to % 32;
    cta.emit(e);
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t p = 0; p < pieces; ++p) {
        uint32_t words[4];
        std::memcpy(words, cta.shared_.data() + offsets[r * pieces + p], sizeof words);
        for (const uint32_t to : targets(r))
          for (uint32_t i = 0; i < 4; ++i) cta.tensor_->at(to, address + 4 * p + i) = words[i];
      }
  }
}

/// The matrix of `what` that a descriptor describes (TensorMatrix::fault).
TensorMatrix Machine::matrix_of(uint64_t bits, bool turned, uint32_t along, const char* what, uint32_t lane) {
  if (const std::string why = TensorMatrix::fault(bits, turned, along); !why.empty())
    throw Fault{"bad-descriptor", fmt::format("the descriptor {:#x} of {}: {}", bits, what, why), lane};
  const TensorMatrix matrix = TensorMatrix::of(bits);
  if (matrix.absolute)
    throw Fault{"not-modelled", "an absolute address of the leading dimension of a matrix is not modelled", lane};
  return matrix;
}

/// The offset of 16 bytes of a matrix in this CTA's shared memory.
uint32_t Machine::matrix_piece(uint32_t address, const char* what, uint32_t lane) const {
  const auto base = static_cast<uint32_t>(kSharedBase);
  if (address < base || address - base + 16 > shared_bytes_)
    throw Fault{"out-of-bounds",
                fmt::format("{} reads 16 bytes at {}, and the CTA's {} bytes of shared memory end at {:#x}", what,
                            text(address), shared_bytes_, kSharedBase + shared_bytes_),
                lane};
  return address - base;
}

/// What the tensor core has to do for the thread so far arrives, when done, at an mbarrier, or at the mbarrier of each
/// CTA of a multicast.
void Machine::tensor_commit(Warp& w, const Inst& in, uint32_t lane) {
  uint64_t address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  uint64_t at = address[lane];
  check_alignment(at, 8, lane);
  Machine& owner = barrier_cta(at, lane, in.type & 2);
  const uint32_t barrier = owner.shared_offset(at, 8, lane);
  const bool multicast = in.type & 1;
  const int peer = in.count == 2 ? static_cast<int>(peer_of_pair(lane).rank_) : -1;
  for (Machine* target : targets(lane, owner, multicast, multicast ? row(w, in.b)[lane] : 0)) {
    use_barrier(w, barrier, lane, *target);
    emit(TensorCommit{site(w), lane, barrier, target == this ? -1 : static_cast<int>(target->rank_), peer});
    arrive_for_core(w, barrier, lane, *target);
  }
}

}  // namespace roofgen::sim
