// The events of a launch. The machine emits them to the checks, the counts and the launch's Listener, which do not know
// each other. docs/internals/simulator.md has the table of events.
#pragma once

#include <array>
#include <span>

#include "runtime/sim/code.h"
#include "runtime/sim/memory.h"

namespace roofgen::sim {

/// The instruction that an event belongs to. Kernel::operands has the registers that it reads and writes.
struct Site {
  const Inst& inst;
  uint32_t pc, warp;
};

// ---- CTAs and instructions -----------------------------------------------------------------------------

struct CtaBegin {
  const Kernel& kernel;
  const Launch& launch;
  uint64_t cta;
  uint32_t ordinal;  ///< of the CTAs of this run
  uint32_t warps, shared_bytes;
  uint32_t initialised_from;  ///< shared memory from this offset on is zero; the rest is uninitialised
};
/// The events that follow, up to the next CtaTurn, belong to this CTA.
struct CtaTurn {
  uint32_t ordinal;
};
struct CtaEnd {
  uint32_t ordinal;
};
/// A warp issues an instruction, before anything else that it causes.
struct Issue {
  Site site;
  uint32_t active, mask;  ///< lanes that are here; of them those whose guard is true
};
/// Lanes that evaluate ex2.
struct Exponentials {
  Site site;
  uint32_t mask;
};
struct LanesExit {
  Site site;
  uint32_t mask;
  uint32_t dead;  ///< all lanes of the warp that have exited or never were
};

// ---- requests to memory --------------------------------------------------------------------------------

enum class Op : uint8_t {
  kRead,
  kWrite,
  kAtomic,
  kCopyIn
};  ///< kCopyIn: cp.async's target, which changes only at AsyncLand

/// An element of a request that is not one lane's: tiles are moved in pieces.
struct Piece {
  uint8_t lane, bytes;
};

/// A request of a warp to one memory, emitted before data moves. Element i is lane i, unless there are `pieces`.
struct Access {
  Site site;
  Op op = Op::kRead;
  uint32_t mask = 0, bytes = 0;  ///< elements; bytes of each
  bool strong = false;           ///< volatile, relaxed, acquire, release or atomic
  bool acquires = false, releases = false;
  bool is_datum = false;  ///< a strong read on whose value no predicate depends: a plain read to races
  /// False: no request of its own, only bytes to check: part of a BulkRequest, an mbarrier, a tensor map, printf's
  /// text, a constant.
  bool is_request = true;
  uint8_t part = 0;                   ///< which of the requests of this instruction, where one needs several
  bool lazily = false;                ///< a read of unwritten bytes is no finding: the machine follows the value
  uint32_t needed = ~0u;              ///< bytes of each element that must have been written; others may be padding
  const Piece* pieces = nullptr;      ///< per element
  const std::byte* values = nullptr;  ///< a write: per element, its bytes, each `stride` after the one before
  uint32_t stride = 0;
  const uint32_t* holes = nullptr;  ///< a write: per element, bytes whose value nothing wrote (padding of structs)

  const std::byte* value_of(uint32_t i) const { return values + size_t{i} * stride; }
  uint32_t lane_of(uint32_t i) const { return pieces ? pieces[i].lane : i; }
  uint32_t bytes_of(uint32_t i) const { return pieces ? pieces[i].bytes : bytes; }
};
struct SharedAccess : Access {
  const uint32_t* offset = nullptr;  ///< per element, from the start of the CTA's shared memory
  const uint8_t* rank = nullptr;     ///< per element, whose in the cluster; null: the CTA's own
  bool climbs = false;               ///< each offset is `step` more than the one before
  uint32_t step = 0;
};
struct DeviceAccess : Access {
  const uint64_t* address = nullptr;  ///< per element; null: they lie one after the other from `first`
  uint64_t first = 0;
  const uint32_t* slot = nullptr;  ///< of DeviceMemory, per element, or per line from that of `first`; 0: never written
  uint32_t inputs = 0;             ///< elements in buffers that no kernel may write
  bool at_one_place = false;       ///< all elements have one address

  uint64_t address_of(uint32_t i) const { return address ? address[i] : first + uint64_t{i} * bytes; }
  uint32_t slot_of(uint32_t i) const { return slot[address ? i : address_of(i) / kLineBytes - first / kLineBytes]; }
};
struct LocalAccess : Access {
  const uint32_t* offset = nullptr;  ///< per lane, in its own local memory
};
/// A row of a bulk copy between device and shared memory: one request of one thread.
struct BulkRequest {
  Site site;
  uint32_t lane;
  bool write;
  uint64_t first;
  uint32_t bytes;
  uint32_t barrier;  ///< of a read: the mbarrier that it completes, an offset in shared memory
};

// ---- asynchronous copies -------------------------------------------------------------------------------

struct AsyncCommit {
  Site site;
  uint32_t mask;
};
/// A warp waits until at most `pending` of its groups are pending. The others land here, so the wait always succeeds.
struct AsyncWait {
  Site site;
  uint32_t mask, pending;
  bool landed;        ///< at least one copy did
  uint64_t distance;  ///< instructions of the warp since the issue of the last of them
};
/// Data arrives in shared memory, at the offsets given, for the warp that issued the copy.
struct AsyncLand {
  uint32_t warp;   ///< 0 for one of another CTA of the cluster
  uint32_t lanes;  ///< that issued the copy, one for each offset; 0: a bulk copy, which an mbarrier orders
  std::span<const uint32_t> offsets;
  uint32_t bytes;
  bool from_outside = false;  ///< another CTA of the cluster issued the copy
};

/// A bulk copy begins to read pieces of 16 bytes of shared memory, or a wait for its group shows that it has read them.
struct BulkSource {
  Site site;
  uint32_t lane;
  std::span<const uint32_t> offsets;
  bool begins;
};

// ---- products of warpgroups ---------------------------------------------------------------------------

/// Four warps, from `first` on, begin a product; the site is that of the last one. It reads pieces of 16 bytes of
/// shared memory until they have waited for its batch.
struct WgmmaIssue {
  Site site;
  uint32_t first;
  std::span<const uint32_t> offsets;
};
/// A warp closes a batch of products, or waits until at most `pending` of its batches are under way.
struct WgmmaCommit {
  Site site;
};
struct WgmmaWait {
  Site site;
  uint32_t pending;
};
/// A warpgroup gets another number of registers per thread (setmaxnreg); the site is that of its last warp.
struct RegistersSet {
  Site site;
  uint32_t registers;
};

// ---- tensor memory (tcgen05) --------------------------------------------------------------------------

/// Columns of tensor memory are allocated, or given back.
struct TensorAlloc {
  Site site;
  uint32_t first, columns;
  bool frees;
};
/// An access to some lanes of contiguous columns of tensor memory, by a warp (ld, st) or by the tensor core.
struct TensorAccess {
  Site site;  ///< of the issuing warp
  uint32_t lane;
  bool core, writes, reads;
  uint32_t first, columns;
  std::array<uint32_t, 4> lanes;  ///< a bit each
  uint32_t load = 0;              ///< a load of a warp: its number, from 1
  bool lazily = false;            ///< a read of unwritten cells is no finding: the machine follows the value
  int issuer = -1;                ///< the rank of the CTA in the cluster that the site is of; -1: this one
};
/// A warp waits for its stores or its loads: for one load by a use of its registers, or for all (0).
struct TensorWait {
  Site site;
  bool loads;
  uint32_t load = 0;
};
struct TensorFence {
  Site site;
  bool after;  ///< a synchronisation of threads; not: before one
};
/// The tensor core reads pieces of 16 bytes of shared memory.
struct TensorRead {
  Site site;
  uint32_t lane;
  std::span<const uint32_t> offsets;
  int issuer = -1;
};
/// The tensor core adds this many products.
struct TensorProducts {
  Site site;
  uint64_t products;
};
/// All that the tensor core does for the warp so far will arrive at an mbarrier.
struct TensorCommit {
  Site site;
  uint32_t lane, barrier;
  int rank = -1;  ///< of the CTA whose barrier it is; -1: its own
  int peer = -1;  ///< of the other CTA of the pair
};

// ---- synchronisation -----------------------------------------------------------------------------------

inline constexpr uint32_t kClusterBarrierId = 16;  ///< past the barriers of the CTA

struct BarrierArrive {
  Site site;
  uint32_t id, mask;
  bool waits, orders;  ///< not orders: a relaxed arrival
};
/// A wait apart from the arrival, as the cluster's barrier has.
struct BarrierWait {
  Site site;
  uint32_t id, mask;
};
struct BarrierRelease {
  uint32_t id, warps;  ///< a mask of the warps that waited
  bool all;            ///< a barrier of all threads: those that exited count as arrived
};
/// bar.warp.sync: lanes that synchronise; lanes that have exited.
struct LaneBarrier {
  Site site;
  uint32_t mask, dead;
};
struct Fence {
  Site site;
  bool proxy = false;  ///< between the generic and the asynchronous proxy too
};
/// griddepcontrol: a wait for the launches before this one, or a trigger of the next.
struct GridControl {
  Site site;
  uint32_t mask;
  bool waits;
};
/// An mbarrier is initialised, bytes are expected there, a copy will complete it, or another use.
struct MbarrierUse {
  enum class What : uint8_t { kInitialises, kExpects, kCopies, kOther };
  Site site;
  uint32_t lane, barrier;
  What what = What::kOther;
  int rank = -1;  ///< of the CTA whose barrier it is; -1: its own
};
/// An mbarrier, by its offset in shared memory: an arrival, the end of a phase, a wait that saw this end.
struct PhaseArrive {
  uint32_t warp, lane, barrier;
  bool from_outside = false;  ///< bytes of a copy that another CTA of the cluster issued; warp and lane say nothing
  int rank = -1;              ///< of the CTA in the cluster whose barrier it is; -1: its own
  uint32_t lanes = 0;         ///< that arrive there with the same instruction; 0: bytes of a copy
  uint32_t pc = 0;            ///< of the arrival
  bool releases = true;       ///< false: a relaxed arrival
};
struct PhaseComplete {
  uint32_t barrier;
  int rank = -1;
};
struct PhasePass {
  Site site;
  uint32_t barrier;
  bool acquires;  ///< false: a relaxed wait
};

/// Receives every event of a launch, in the order of the simulation (RunOptions::listener).
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on(const CtaBegin&) {}
  virtual void on(const CtaTurn&) {}
  virtual void on(const CtaEnd&) {}
  virtual void on(const Issue&) {}
  virtual void on(const Exponentials&) {}
  virtual void on(const LanesExit&) {}
  virtual void on(const SharedAccess&) {}
  virtual void on(const DeviceAccess&) {}
  virtual void on(const LocalAccess&) {}
  virtual void on(const BulkRequest&) {}
  virtual void on(const AsyncCommit&) {}
  virtual void on(const AsyncWait&) {}
  virtual void on(const AsyncLand&) {}
  virtual void on(const BulkSource&) {}
  virtual void on(const WgmmaIssue&) {}
  virtual void on(const WgmmaCommit&) {}
  virtual void on(const WgmmaWait&) {}
  virtual void on(const RegistersSet&) {}
  virtual void on(const TensorAlloc&) {}
  virtual void on(const TensorAccess&) {}
  virtual void on(const TensorWait&) {}
  virtual void on(const TensorFence&) {}
  virtual void on(const TensorRead&) {}
  virtual void on(const TensorProducts&) {}
  virtual void on(const TensorCommit&) {}
  virtual void on(const BarrierArrive&) {}
  virtual void on(const BarrierWait&) {}
  virtual void on(const BarrierRelease&) {}
  virtual void on(const LaneBarrier&) {}
  virtual void on(const Fence&) {}
  virtual void on(const GridControl&) {}
  virtual void on(const MbarrierUse&) {}
  virtual void on(const PhaseArrive&) {}
  virtual void on(const PhaseComplete&) {}
  virtual void on(const PhasePass&) {}
};

}  // namespace roofgen::sim
