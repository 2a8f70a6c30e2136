// Executes the CTAs of a launch. Warps of a CTA take turns in short fixed runs,
// so results never depend on time or on the host; within a warp the lanes that are furthest behind
// go first, which brings diverged lanes back together.
//
// The machine knows values and addresses, but no counts, races or cycles: it emits its actions as events (events.h) to
// the checks, the counts and the launch's listener, in this order.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/sim/checker.h"
#include "runtime/sim/counts.h"
#include "runtime/sim/events.h"
#include "runtime/sim/launch_state.h"
#include "runtime/sim/opcode_table.h"
#include "runtime/sim/tensor_memory.h"

namespace roofgen::sim {

inline constexpr int kReady = -1;
inline constexpr int kAtClusterBarrier = kClusterBarrierId;
inline constexpr int kWaitsForPhase = 100;      ///< of an mbarrier, beyond the numbers of all barriers
inline constexpr int kAtWarpgroup = 101;        ///< for the other warps of its group
inline constexpr int kWaitsForRegisters = 102;  ///< that another group gives back
inline constexpr int kPaused = 103;             ///< with a lock (RunOptions::pauses)
inline constexpr int kWaitsForColumns = 104;    ///< of tensor memory, which another warp gives back
inline constexpr int kWaitsForLanes = -2;       ///< at a `.sync` instruction whose other members are elsewhere

/// Lanes of a warp that are at the same instruction and not running.
struct Fragment {
  uint32_t pc = 0, mask = 0;
  int barrier = kReady;  ///< number of the barrier they wait at, or one of the above
  /// The instruction that waits: some kinds are issued again after the wait, barriers are not.
  uint32_t waits_at() const {
    const bool again = barrier == kWaitsForPhase || barrier == kAtWarpgroup || barrier == kWaitsForRegisters ||
                       barrier == kWaitsForColumns;
    return again ? pc : pc - 1;
  }
};

/// One warp-wide cp.async, not yet landed in some lanes.
struct AsyncCopy {
  uint32_t mask = 0, bytes = 0;
  uint64_t issued = 0;        ///< `Warp::now` of the issue
  uint32_t group[kWarpSize];  ///< per lane: number of groups the lane had committed before
  uint32_t to[kWarpSize];     ///< shared-memory offset
  alignas(16) std::byte data[kWarpSize][16];
};

/// Bytes of device memory that a bulk copy reads or writes; their place in the copy.
struct DeviceRow {
  uint64_t first;
  uint32_t bytes, begin;
};

/// A bulk copy into shared memory that has not landed.
struct BulkCopy {
  uint32_t barrier;          ///< offset of the mbarrier that it completes
  uint32_t pc, warp, lane;   ///< that issued it
  std::vector<uint32_t> to;  ///< shared-memory offsets of its pieces
  std::vector<std::byte> data;
  uint32_t piece;                    ///< bytes
  class Machine *by, *into;          ///< the CTA that issued it; that whose memory it fills
  std::vector<uint32_t> from;        ///< its source there, if that is shared memory
  std::vector<DeviceRow> rows = {};  ///< its source in device memory, if the kernel may write there
};

/// What is undefined in a register, by lane: at first all.
struct Undefined {
  uint64_t bits[kWarpSize];
  /// 1 + where it comes from (ValueOrigin) * 32 + the lane there; 0: it was never assigned
  uint32_t origin[kWarpSize] = {};
  Undefined() { std::fill_n(bits, kWarpSize, ~uint64_t{0}); }
};
/// A load of bytes that nothing has written, or a shuffle from lanes that do not take part.
struct ValueOrigin {
  uint32_t pc;
  uint64_t address[kWarpSize];  ///< of the first such byte; of a shuffle, the other lane
};

/// A bulk copy out of shared memory whose source may still be read.
struct BulkRead {
  uint32_t pc, lane, group;  ///< number of groups that the lane had committed before
  std::vector<uint32_t> from;
};

/// The writes of a bulk copy to device memory, until a wait for its group shows that they are made.
struct BulkWrite {
  uint32_t pc, lane, group;
  std::vector<DeviceRow> rows;
  std::vector<std::byte> data;
  bool reduces;
};

/// What products of a warpgroup do with a register, by number of their batch, from 1; 0: nothing.
struct ProductUse {
  uint32_t written_by = 0, read_by = 0;
  uint32_t pc = 0, shape = 0;  ///< of the product
  uint32_t changed = 0;        ///< 1 + the warp's fences when something else wrote it
  uint32_t looked_at = 0;      ///< the same when something else read it, but for copies
};

/// Sums of the products that a warp began one after the other, all with the same registers: instead of their
/// ProductUse.
struct SumsInUse {
  uint32_t n = 0, list = 0;  ///< registers, from this entry of Kernel::watched_lists on; n 0: none
  uint32_t shape = 0, pc = 0, batch = 0;
};

/// The pieces of a matrix of wgmma. A swizzle repeats every 1024 bytes, so their places from the last multiple of 1024
/// before the matrix on are the same for each descriptor that differs by a multiple of 1024 only.
struct MatrixPlaces {
  uint64_t descriptor = 0;  ///< with the address modulo 1024
  uint32_t blocks = 0;      ///< 0: not set
  bool turned = false;
  uint32_t end = 0;               ///< of the last piece
  std::vector<uint32_t> offsets;  ///< by block, step along k and row
};

struct Image;
struct TensorView;
struct TensorCorner;
class CtaDoubles;

struct Warp {
  WarpRegs regs{};
  uint32_t index = 0;
  uint32_t pc = 0, active = 0;              ///< the running lanes; active 0: none is ready
  uint32_t dead = 0;                        ///< lanes that exited or never were
  uint32_t merge_pc = ~0u;                  ///< another fragment is here: stop and choose again
  uint32_t spins = 0;                       ///< backward branches while other fragments waited
  uint32_t hoped_at = ~0u, hoped_dead = 0;  ///< the barrier where lanes wait for others that may come; `dead` then
  std::vector<Fragment> parked;
  std::vector<uint32_t> undefined;  ///< by Operand::place: lanes whose value is not wholly defined
  std::vector<Undefined> details;   ///< of these; empty: nothing of them is defined, as they were never assigned
  uint8_t follow = 0;               ///< kFlagTracked: every instruction is checked for undefined values
  std::vector<ValueOrigin> origins;
  uint32_t committed[kWarpSize] = {};
  uint32_t cluster_arrived = 0;   ///< lanes that arrived at the cluster's barrier and have not waited there yet
  uint32_t cluster_released = 0;  ///< of these, the lanes whose phase is complete
  uint64_t ran = 0;               ///< instructions before this turn
  uint64_t now = 0;               ///< instructions so far, as of the last cp.async or wait
  std::vector<AsyncCopy> copies;
  size_t copies_begin = 0;
  std::vector<BulkRead> bulk_reads;
  std::vector<BulkWrite> bulk_writes;
  uint32_t bulk_committed[kWarpSize] = {};
  uint32_t fences = 0, batches = 0, batches_done = 0;  ///< of products: fences, batches that are closed and waited for
  std::vector<ProductUse> uses;                        ///< by Kernel::watched
  SumsInUse sums;
  uint32_t tensor_load = 0;            ///< loads from tensor memory so far
  std::vector<uint32_t> tensor_loads;  ///< of these, the ones that may be under way
  std::vector<uint32_t> load_of;       ///< by Kernel::watched: the load that a register is of; 0: none
  bool impatient = false;              ///< its next wait for a phase ends at once
  bool in_vain = false;                ///< with RunOptions::vain_waits: its last wait ended without success
  bool finished() const { return dead == ~0u; }
};

/// Finds that a deterministic sequence of states repeats (Brent): the state at each power of two is compared with those
/// that follow.
class Polling {
 public:
  /// `changes`: the fingerprint says nothing of states before it last grew.
  template <class Fingerprint>
  bool repeats(uint64_t changes, Fingerprint&& fingerprint) {
    if (changes != changes_) {
      changes_ = changes;
      looks_ = count_ = 0;
      return false;
    }
    if (++looks_ < kLooksBefore) return false;  // most waits end before
    const uint64_t now = fingerprint();
    if (count_ && now == kept_) return true;
    if ((count_ & (count_ + 1)) == 0) kept_ = now;
    ++count_;
    return false;
  }
  bool unchanged(uint64_t changes) const { return changes == changes_; }

 private:
  static constexpr uint64_t kLooksBefore = 8;

  uint64_t changes_ = ~uint64_t{0}, kept_ = 0, looks_ = 0, count_ = 0;
};

class Machine {
 public:
  Machine(LaunchState& state, Counter& counter, const LaneTable& lanes);
  ~Machine();
  /// Runs CTA number `cta` of the grid, the `ordinal`-th of this launch. Its findings are added.
  void run_cta(uint64_t cta, uint32_t ordinal, std::vector<Finding>& findings) {
    begin_cta(cta, ordinal);
    while (!go_on(findings)) {
    }
  }
  /// The same in pieces, for CTAs that wait for each other.
  void begin_cta(uint64_t cta, uint32_t ordinal);
  /// Runs until the CTA ends, or (false) until it waits for others or has had its turn.
  bool go_on(std::vector<Finding>& findings);
  /// Whether it has looked many times in vain at device memory that others should change, or waits for its cluster.
  bool waits() const { return waits_; }
  /// Whether warps pause, which go on by themselves.
  bool pauses() const { return pause_ > 0; }
  /// Of all that the CTA's further way depends on, device memory and clocks apart.
  uint64_t fingerprint() const;
  /// For a CTA that waits without any change: its turns have their usual order and length, whatever the schedule, and
  /// lanes that are ahead get more of them.
  void set_regular(bool regular) { regular_ = regular; }
  /// The machines of its cluster by rank, itself among them; before begin_cta. None: it is a cluster of its own.
  void join(std::span<Machine* const> cluster, uint32_t rank);
  uint64_t cta() const { return cta_; }
  uint64_t instructions() const { return instructions_; }  ///< that the CTA ran
  Finding deadlock() const;
  /// "warps 0-2 at k.cu:7: barrier 1 (64 of 96 threads are there); ...": the warps that wait, and for what.
  std::string waiters() const;
  /// No CTA can run: waits for phases end in vain, as PTX allows try_wait. False: too often.
  bool end_vain_waits();
  bool ends_well(std::vector<Finding>& findings);
  /// None of its warps can run.
  bool sleeps() const;
  /// The CTA ends here. Its findings so far are added, and then this one.
  void stop(std::vector<Finding>& findings, Finding finding);
  /// The same without a finding of its own: the launch ends.
  void hand_in(std::vector<Finding>& findings) { checker_.hand_in(findings); }
  /// The CTA polls in vain. The finding is at its last look.
  Finding vain_polling(std::string message) const;
  /// "warps 0-2 at k.cu:7; warp 3 at ...": the unfinished warps and the places of their first lanes.
  std::string whereabouts() const;
  /// Memory that a CTA keeps while it waits.
  uint64_t resident_bytes() const;

 private:
  friend class CtaDoubles;

  struct Barrier {
    uint32_t arrived[kMaxWarps] = {};  ///< lanes per warp
    uint32_t again[kMaxWarps] = {};    ///< that wait after an arrival of theirs: each counts
    uint32_t expected = 0;             ///< threads, 0: all of the CTA
    bool in_use = false;
    uint32_t votes_all = ~0u, votes_any = 0, votes = 0;
    struct Result {
      uint32_t warp, lanes, inst;
    };
    std::vector<Result> results;  ///< bar.red destinations to fill at release
  };

  /// Where the lanes of a request go.
  struct Targets {
    uint64_t address[kWarpSize];
    uint32_t offset[kWarpSize];  ///< in shared or local memory, the parameters, or a line of device memory
    uint32_t slot[kWarpSize];    ///< of the line
    uint8_t rank[kWarpSize];     ///< whose shared memory in the cluster
    uint32_t shared = 0, remote = 0, device = 0, inputs = 0,
             local = 0;         ///< lanes; remote: of other CTAs' shared memory
    bool at_one_place = false;  ///< of device memory
    bool is_of_cta(uint32_t lane) const { return ((shared & ~remote) | local) >> lane & 1; }
  };

  Site site(const Warp& w) const { return {kernel_.code[w.pc], w.pc, w.index}; }
  static Piece piece_of(uint32_t lane, uint32_t bytes) {
    return {static_cast<uint8_t>(lane), static_cast<uint8_t>(bytes)};
  }
  /// Calls the built-in listeners directly; an event that neither handles costs one test.
  template <class Event>
  void emit(const Event& e) {
    if constexpr (requires { checker_.on(e); }) checker_.on(e);
    if constexpr (requires { counter_.on(e); }) counter_.on(e);
    if (state_.listener) [[unlikely]]
      state_.listener->on(e);
  }

  /// The lanes for which `check` raises no fault. The access of another lane is a finding, and is left out.
  template <class F>
  uint32_t possible(const Warp& w, uint32_t mask, F&& check) {
    uint32_t good = mask;
    for (uint32_t m = mask; m; m &= m - 1) {
      try {
        check(first_lane(m));
      } catch (Fault& fault) {
        if (!goes_on(state_.go_on, fault.kind)) throw;
        checker_.report(site(w), fault.kind, fault.lane, [&] { return std::move(fault.message); });
        good &= ~(m & (0 - m));
      }
    }
    return good;
  }

  bool take_turns(std::vector<Finding>& findings);
  bool polls_in_vain();
  void note_look(const Warp& w, bool shared, bool device);
  // Locks (lock_order.h).
  uint64_t word_of(const Targets& t, uint32_t lane) const;
  void note_change(const Warp& w, const Targets& t, uint32_t lane, uint64_t before, uint64_t after);
  void note_store(const Warp& w, const Targets& t, uint32_t mask, const std::byte (*data)[16], uint32_t bytes);
  bool comes_to_lock(const Warp& w, const Inst& in, uint32_t mask);
  void pause(Warp& w);
  void end_pauses();
  template <bool kFollowed>
  void run_warp(Warp& w, uint32_t quota);
  void choose(Warp& w);

  // machine_undefined.cpp
  void follow(Warp& w, const Inst& in);
  void follow_lanes(Warp& w, const Inst& in, uint32_t mask);
  std::span<const Operand> operands_of(const Inst& in) const;
  /// Reports the lanes in which one of the value's bits is undefined. Each value is reported once.
  void need(Warp& w, uint32_t place, uint32_t mask, uint64_t bits = ~uint64_t{0}) {
    if (const uint32_t bad = mask & w.undefined[place]) [[unlikely]]
      report_undefined(w, place, bad, bits);
  }
  void report_undefined(Warp& w, uint32_t place, uint32_t bad, uint64_t bits);
  void set_defined(Warp& w, uint32_t place, uint32_t mask) { w.undefined[place] &= ~mask; }
  Undefined& details_of(Warp& w, uint32_t place);
  void set_undefined(Warp& w, uint32_t place, uint32_t lane, uint64_t bits, uint32_t origin);
  uint32_t origin_at(Warp& w, uint32_t lane, uint64_t address);
  void note_unwritten_exchange(Warp& w, const Inst& in, uint32_t mask, const Targets& t);
  void note_unwritten(Warp& w, const Inst& in, uint32_t mask, const Targets& t);
  static uint64_t local_key(const Warp& w, uint32_t lane) { return uint64_t{w.index * kWarpSize + lane} << 32; }
  static uint64_t byte_key(const Warp& w, const Targets& t, uint32_t lane) {
    return t.address[lane] | (t.local >> lane & 1 ? local_key(w, lane) : 0);
  }
  void forget_local(const Warp& w, uint32_t mask, uint32_t begin, uint32_t end);
  static uint64_t key_of_origin(const Warp& w, uint64_t address, uint32_t lane);
  bool was_never_assigned(const Warp& w, uint32_t place, uint32_t lane) const;
  bool goes_back(const Warp& w, const Inst& in, uint32_t place, uint32_t lane, const Targets& t) const;
  uint32_t holes_in(Warp& w, const Inst& in, uint32_t lane, const Targets& t);
  void shuffle_undefined(Warp& w, const Inst& in, uint32_t mask, const uint32_t* from, uint32_t absent);
  void stop_following(Warp& w);
  void safe_point();

  // machine_begin.cpp
  void prepare_registers();
  uint64_t special(Special s, uint32_t thread) const;
  Finding finding(const char* kind, std::string message, const Warp& w, uint32_t pc, uint32_t lane) const;
  /// On a worker, an access whose result depends on the order of CTAs ends the CTA; parallel.cpp runs the wave again in
  /// order.
  void require_order(uint32_t lane) const {
    if (state_.memory.is_private()) throw Fault{kOrderMatters, {}, lane};
  }

  // machine_control.cpp
  void branch_to(Warp& w, uint32_t mask, uint32_t target);
  void branch_indexed(Warp& w, const Inst& in, uint32_t mask);
  void exit_lanes(Warp& w, uint32_t mask);
  void barrier(Warp& w, const Inst& in, uint32_t mask);
  bool others_leave(const Warp& w) const;
  enum class Come : uint8_t { kNever, kMaybe, kSurely };
  Come others_come(const Warp& w) const;
  bool waits_at_join(Warp& w, uint32_t mask);
  void try_release(uint32_t id);
  void require_full(const Warp& w, const Inst& in, uint32_t mask, const char* kind, const char* what) const;

  // machine_memory.cpp
  uint32_t resolve(const Warp& w, const Inst& in, uint32_t mask, uint32_t bytes, Op op, Targets& t);
  void load_one_value(Warp& w, const Inst& in, const std::byte* from);
  bool resolve_in_buffer(const Inst& in, uint32_t mask, uint32_t bytes, Op op, Targets& t);
  uint32_t count_outside(const Warp& w, const Inst& in, uint32_t mask, uint32_t bytes, const Targets& t);
  void resolve_lane(const Warp& w, const Inst& in, uint32_t lane, uint32_t bytes, Op op, Targets& t);
  template <class F>
  void emit(const Warp& w, const Targets& t, Op op, uint32_t bytes, F&& details);
  const std::byte* bytes_at(const Warp& w, const Targets& t, uint32_t lane);
  void put(const Warp& w, const Targets& t, uint32_t lane, const std::byte* from, uint32_t bytes, uint32_t holes);
  uint32_t written_bytes(const Warp& w, const Targets& t, uint32_t lane, uint32_t bytes);
  void load(Warp& w, const Inst& in, uint32_t mask);
  void load_param(Warp& w, const Inst& in, uint32_t mask);
  void store(Warp& w, const Inst& in, uint32_t mask);
  void atomic(Warp& w, const Inst& in, uint32_t mask);

  // machine_copies.cpp
  uint32_t emit_matrices(const Warp& w, const Inst& in, uint32_t mask, Op op, const char* name, uint32_t* offset);
  void ldmatrix(Warp& w, const Inst& in, uint32_t mask);
  void stmatrix(Warp& w, const Inst& in, uint32_t mask);
  void load_bytes(Warp& w, const Inst& in, const uint32_t* offset, uint32_t rows);
  void store_bytes(Warp& w, const Inst& in, const uint32_t* offset, uint32_t rows);
  void cp_async(Warp& w, const Inst& in, uint32_t mask);
  void cp_commit(Warp& w, uint32_t mask);
  void cp_wait(Warp& w, const Inst& in, uint32_t mask);
  void land(Warp& w, AsyncCopy& copy, uint32_t lanes);

  // machine_spaces.cpp
  void addresses(const Warp& w, uint32_t row, bool wide, int64_t displacement, uint64_t* out) const;
  Space space_of(const Inst& in, uint64_t address) const;
  void check_alignment(uint64_t address, uint32_t bytes, uint32_t lane) const;
  Buffer& buffer_at(uint64_t address, uint32_t bytes, uint32_t lane, const char* what);
  bool device_line(uint64_t address, uint32_t bytes, uint32_t lane, Op op, bool strong, uint32_t* slot,
                   uint32_t* offset);
  void write_device(uint32_t slot, uint32_t at, uint32_t bytes, const std::byte* in, uint32_t holes);
  uint32_t shared_offset(uint64_t address, uint32_t bytes, uint32_t lane) const;
  uint32_t local_offset(uint64_t address, uint32_t bytes, uint32_t lane) const;
  // Of one lane, and no requests of their own. Those of shared memory are strong: mbarriers and printf's text.
  void read_device(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out, bool strong);
  void write_device(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in);
  // `owner`: the CTA whose memory it is.
  void emit_shared(const Warp& w, Op op, uint32_t offset, uint32_t bytes, uint32_t lane, bool strong, uint32_t holes,
                   const Machine& owner);
  void read_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, std::byte* out, Machine& owner);
  void write_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in, uint32_t holes,
                    Machine& owner);
  std::byte* shared_of(const Targets& t, uint32_t lane) {
    return (t.remote >> lane & 1 ? cluster_[t.rank[lane]]->shared_ : shared_).data();
  }
  std::byte* local_of(const Warp& w, uint32_t lane) {
    return local_.data() + (size_t{w.index} * kWarpSize + lane) * kernel_.local_bytes;
  }
  std::string text(uint64_t address) const { return describe(state_, address); }

  // machine_mbarrier.cpp
  void mbarrier(Warp& w, const Inst& in, uint32_t mask);
  void arrive_for_core(const Warp& w, uint32_t at, uint32_t lane, Machine& owner);
  std::string phase_text(const Warp& w, const Fragment& f) const;
  bool wake_phase_waiters();

  // machine_print.cpp
  void print(Warp& w, const Inst& in, uint32_t mask);
  [[noreturn]] void assertion(const Warp& w, const Inst& in, uint32_t mask);
  void read_any(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out);
  std::string read_text(const Warp& w, uint64_t address, uint32_t lane);

  // machine_rows.cpp: false, left to the general way
  static bool fits_rows(const Inst& in);
  bool load_row(Warp& w, const Inst& in, bool* emitted);
  bool store_row(Warp& w, const Inst& in);
  uint64_t row_address(const Warp& w, const Inst& in, uint32_t bytes, Buffer** buffer);
  void prefetch_next(uint32_t slot);
  void write_words(uint32_t slot, uint32_t at, uint32_t bytes, const std::byte* from);
  bool load_device_row(Warp& w, const Inst& in, uint32_t bytes, bool* emitted);
  bool store_device_row(Warp& w, const Inst& in, uint32_t bytes);
  bool shared_row(const Warp& w, const Inst& in, uint32_t bytes, uint32_t* offset, SharedRow* shared) const;
  bool load_shared_row(Warp& w, const Inst& in, uint32_t bytes, bool* emitted);
  bool store_shared_row(Warp& w, const Inst& in, uint32_t bytes);
  void spread(const Warp& w, const Inst& in, const std::byte* from);
  const std::byte* collect(const Warp& w, const Inst& in, std::byte* room) const;

  // machine_wmma.cpp
  void move_tile(Warp& w, const Inst& in, uint32_t mask, std::byte* tile);
  template <class F>
  void each_fragment_element(Warp& w, const Inst& in, F&& element);
  void wmma_load(Warp& w, const Inst& in, uint32_t mask);
  void wmma_store(Warp& w, const Inst& in, uint32_t mask);

  // machine_wgmma.cpp
  bool warpgroup_together(Warp& w, const Inst& in, uint32_t mask, const char* name);
  void release_warpgroup(Warp& w);
  void settle_sums(Warp& w);
  void watch(Warp& w, const Inst& in, uint32_t mask);
  void use_registers(Warp& w, const Site& at);
  void wgmma_wait(Warp& w, const Inst& in);
  uint64_t descriptor(const Warp& w, uint32_t place, const char* name) const;
  const MatrixPlaces& places_of(uint64_t descriptor, bool turned, uint32_t blocks);
  void read_matrix(const Warp& w, const Inst& in, bool is_a, uint32_t blocks, float* out);
  void wgmma(Warp& w, const Inst& in, uint32_t mask);
  void set_registers(Warp& w, const Inst& in, uint32_t mask);

  // machine_launch.cpp
  void launch_control(Warp& w, const Inst& in, uint32_t mask);
  void try_cancel(Warp& w, const Inst& in, uint32_t lane);

  // machine_tcgen05.cpp
  void tensor(Warp& w, const Inst& in, uint32_t mask);
  Machine& peer_of_pair(uint32_t lane) const;
  std::vector<Machine*> group_of(const Inst& in, uint32_t lane);
  uint32_t tensor_address(const Warp& w, uint32_t place, uint64_t displacement, uint32_t lane) const;
  void need_columns(uint32_t address, uint32_t columns, uint32_t lane) const;
  uint32_t columns_of(const Warp& w, const Inst& in, const char* name) const;
  void tensor_alloc(Warp& w, const Inst& in, uint32_t mask);
  void tensor_dealloc(Warp& w, const Inst& in, uint32_t mask);
  void tensor_move(Warp& w, const Inst& in, uint32_t mask, bool loads);
  void reduce_loaded(Warp& w, const Inst& in, bool finds_unwritten);
  bool has_unwritten(uint32_t first, uint32_t columns, uint32_t quarter, uint32_t lanes) const;
  void use_loaded(Warp& w, const Inst& in);
  void tensor_copy(Warp& w, const Inst& in, uint32_t lane);
  TensorMatrix matrix_of(uint64_t bits, bool turned, uint32_t along, const char* what, uint32_t lane);
  uint32_t matrix_piece(uint32_t address, const char* what, uint32_t lane) const;
  void tensor_commit(Warp& w, const Inst& in, uint32_t lane);

  // machine_tcgen05_mma.cpp
  struct TensorWork;
  void tensor_mma(Warp& w, const Inst& in, uint32_t lane);
  void read_tensor_matrix(TensorWork& work, bool is_a, uint32_t rows, float* out);
  void read_tensor_a(const TensorWork& work, const TensorPart& part, float* out);
  void expand_sparse(const TensorWork& work, float* rows) const;
  void read_scales(const TensorWork& work, bool is_a, uint32_t rows, float* out);
  void access_of_mma(const TensorWork& work, const std::vector<TensorPart>& parts, bool a_in_tensor);
  void multiply_part(const TensorWork& work, const TensorPart& part, const float* a, const float* b);

  // machine_bulk.cpp
  void bulk_copy(Warp& w, const Inst& in, uint32_t mask);
  static constexpr uint32_t kMostImageBytes = 16;  ///< that a lane reads or writes of an image at once
  Image image_at(const Inst& in, uint64_t object, uint32_t lane);
  template <class F>
  void each_image(const Warp& w, const Inst& in, uint32_t mask, F&& f);
  void texture(Warp& w, const Inst& in, uint32_t mask);
  void fetch(Warp& w, const Inst& in, uint32_t lanes, const Image& image);
  uint32_t layer_of(const Warp& w, const uint32_t* list, const Image& image, uint32_t lane) const;
  void read_texels(const Warp& w, uint32_t lanes, const uint64_t* address, uint32_t bytes, uint8_t part,
                   std::byte (*out)[kMostImageBytes]);
  bool surface_place(const Warp& w, const Inst& in, const Image& image, uint32_t lane, uint64_t* address) const;
  void surface_load(Warp& w, const Inst& in, uint32_t lanes, const Image& image);
  void surface_store(Warp& w, const Inst& in, uint32_t mask);
  TensorView tensor_map(const Warp& w, uint64_t address, uint32_t lane);
  void change_tensor_map(Warp& w, const Inst& in, uint32_t mask);
  TensorCorner corner_of(const Warp& w, const Inst& in, const TensorView& view, uint32_t lane) const;
  template <class F>
  void bulk_row(BulkRequest row, F&& move);
  Machine& barrier_cta(uint64_t& address, uint32_t lane, bool even);
  void use_barrier(const Warp& w, uint32_t barrier, uint32_t lane, const Machine& owner);
  std::vector<Machine*> targets(uint32_t lane, Machine& owner, bool multicast, uint32_t ctas);
  void store_async(Warp& w, const Inst& in, uint32_t mask);
  void reduce_device(const Warp& w, const Inst& in, ElementType type, uint64_t address, uint32_t bytes, uint32_t lane,
                     const std::byte* values);
  uint32_t land_bulk(uint32_t at);
  void bulk_group(Warp& w, const Inst& in, uint32_t mask);
  void access_again(uint32_t warp, uint32_t pc, uint32_t lane, Op op, const std::vector<DeviceRow>& rows,
                    const std::vector<std::byte>& values);
  void write_again(uint32_t warp, const BulkWrite& copy) {
    access_again(warp, copy.pc, copy.lane, copy.reduces ? Op::kAtomic : Op::kWrite, copy.rows, copy.data);
  }

  // machine_cluster.cpp
  void cluster_barrier(Warp& w, const Inst& in, uint32_t mask);
  void try_release_cluster();
  void cluster_rank(Warp& w, const Inst& in, uint32_t mask);
  bool waits_for_cluster() const;
  static bool is_in_cluster_window(uint64_t address) {
    return address - kClusterBase < kClusterWindowEnd - kClusterBase;
  }
  /// The CTA that an address of the cluster's shared memory is of; the address becomes that CTA's own.
  Machine& cta_at(uint64_t& address, uint32_t lane) {
    return is_in_cluster_window(address) ? cta_in_cluster(address, lane) : *this;
  }
  Machine& cta_in_cluster(uint64_t& address, uint32_t lane);

  // machine_lanes.cpp
  void shuffle(Warp& w, const Inst& in, uint32_t mask);
  void vote(Warp& w, const Inst& in, uint32_t mask);
  void match(Warp& w, const Inst& in, uint32_t mask);
  void redux(Warp& w, const Inst& in, uint32_t mask);
  void is_space(Warp& w, const Inst& in, uint32_t mask);
  void sparse_mma(Warp& w, const Inst& in, uint32_t mask);
  bool together(Warp& w, const Inst& in, uint32_t mask);
  void lane_barrier(Warp& w, const Inst& in, uint32_t mask);
  void check_members(const Warp& w, uint32_t row, uint32_t mask) const;
  uint32_t member_row(const Inst& in) const;

  uint32_t* row(const Warp& w, uint32_t index) const { return w.regs.rows + index * kWarpSize; }
  uint64_t* wide_row(const Warp& w, uint32_t index) const { return reinterpret_cast<uint64_t*>(row(w, index)); }
  void set_pred(Warp& w, uint32_t index, uint32_t value, uint32_t mask) {
    w.regs.preds[index] = (w.regs.preds[index] & ~mask) | (value & mask);
  }

  LaunchState& state_;
  const Kernel& kernel_;
  Counter& counter_;
  const LaneTable& lanes_;
  uint32_t threads_, n_warps_;
  std::vector<uint32_t> register_memory_, predicate_memory_;
  std::vector<Warp> warps_;

  std::span<Machine* const> cluster_;
  uint32_t rank_ = 0;
  bool met_ = false;  ///< a warp has passed the cluster's barrier, or another CTA has been here: all CTAs have begun
  bool ended_ = false;
  uint64_t cta_ = 0;
  uint32_t ordinal_ = 0;
  uint64_t instructions_ = 0;  ///< of this CTA
  uint32_t idle_looks_ = 0;    ///< strong reads and atomics of device memory that changed nothing
  uint32_t shared_looks_ = 0;  ///< the same of shared memory, since a store
  Polling polling_;
  uint32_t look_pc_ = 0, look_warp_ = 0;  ///< of the last look
  bool waits_ = false, regular_ = false;
  bool took_ = false;            ///< the current atomic took a lock after which its warp pauses
  uint32_t pause_ = 0;           ///< rounds of turns until all pauses end
  bool pauses_before_ = false;   ///< the last pause began before a lock
  std::mt19937_64 random_;       ///< of the schedule
  std::vector<uint32_t> turns_;  ///< warps in the order of their turns
  std::vector<std::byte> shared_;
  Checker checker_;
  uint32_t shared_bytes_ = 0;  ///< with what is reserved
  uint32_t reserved_at_ = 0;   ///< the rest is of cooperative groups
  std::vector<std::byte> local_;
  /// Undefined bits of unwritten bytes of shared and local memory, by byte_key; of the others all are.
  std::unordered_map<uint64_t, uint8_t> partly_undefined_;
  Barrier barriers_[16];
  std::vector<BulkCopy> bulk_copies_;
  /// Tensor maps in device memory that the CTA has changed, and no fence.proxy.tensormap makes known: the instruction.
  std::unordered_map<uint64_t, uint32_t> changed_maps_;
  std::vector<uint32_t> wgmma_reads_;      ///< offsets of the pieces that the current product reads
  std::array<MatrixPlaces, 64> places_;    ///< by a hash
  std::unique_ptr<TensorMemory> tensor_;   ///< null: the kernel uses none
  std::vector<uint32_t> group_registers_;  ///< per thread of each warpgroup; 0: not known
  uint32_t free_registers_ = 0;            ///< of the CTA
  uint32_t canceled_ = 0;                  ///< clusters that it took over (clusterlaunchcontrol)
  bool refused_ = false;                   ///< it has seen that none was left
  uint32_t vain_waits_ = 0;                ///< for phases, since one completed
  Buffer* last_buffer_ = nullptr;
  std::vector<Buffer*> row_buffer_;      ///< per instruction: where its last row was
  std::unique_ptr<CtaDoubles> doubles_;  ///< null: the launch has none
};

}  // namespace roofgen::sim
