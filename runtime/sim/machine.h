// Executes the CTAs of a launch. Warps of a CTA take turns in short fixed runs,
// so results never depend on time or on the host; within a warp the lanes that are furthest behind
// go first, which brings diverged lanes back together.
//
// The machine knows values and addresses, no cycles. What it does is reported to a Counter.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/sim/code.h"
#include "runtime/sim/counts.h"
#include "runtime/sim/device_shadow.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/opcode_table.h"
#include "runtime/sim/private_lines.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

/// Something the running kernel did wrong; ends its CTA. Thrown inside the machine only.
struct Fault {
  const char* kind;
  std::string message;
  uint32_t lane;
};

/// Of a CTA that runs beside others, and seen by nobody but parallel.cpp: it did what depends on their order.
inline constexpr const char* kOrderMatters = "order";

/// What stays the same for all CTAs of a launch.
struct LaunchState {
  const Kernel& kernel;
  const Launch& launch;
  std::vector<std::byte> params;
  MemoryView memory;
  std::shared_ptr<const BufferList> buffers;
  uint32_t first_writer;        ///< CTA i of the selection writes as first_writer + i
  uint32_t n_writers;           ///< CTAs of the selection
  uint64_t max_instructions;    ///< warp-instructions per CTA
  uint32_t sms = 1;             ///< %nsmid; CTAs take their %smid in turn
  uint64_t clock_begin = 0;     ///< %clock64 when a CTA begins; it advances by one an instruction
  uint64_t timer_begin_ns = 0;  ///< %globaltimer then
  double timer_ns = 1;          ///< by how much an instruction advances it
  /// What is undefined but no GPU traps on (uninitialised, race, async-pending). Null: it ends the CTA like
  /// any other finding; else it is noted here, the first few of a launch, and the CTA goes on.
  std::vector<Finding>* tolerated = nullptr;
  uint64_t grid_workspace = 0;     ///< of a cooperative launch: 8 bytes, zero; 0: it is none
  std::string* printed = nullptr;  ///< what printf writes, lane by lane; may be null
};
inline constexpr size_t kMostTolerated = 8;

/// A word's last writer: the CTA's number, modulo 2^28, and which of the four bytes it wrote.
inline constexpr uint32_t kWriterMask = (1u << 28) - 1;

inline constexpr int kReady = -1;
inline constexpr int kAtClusterBarrier = 16;  ///< past the barriers of the CTA
inline constexpr int kWaitsForPhase = 100;    ///< of an mbarrier, beyond the numbers of all barriers
inline constexpr int kWaitsForLanes = -2;     ///< at a `.sync` instruction whose other members are elsewhere

/// Lanes of a warp that are at the same instruction and not running.
struct Fragment {
  uint32_t pc = 0, mask = 0;
  int barrier = kReady;  ///< number of the barrier they wait at, or one of the above
};

/// One warp-wide cp.async, not yet landed in some lanes.
struct AsyncCopy {
  uint32_t mask = 0, bytes = 0;
  uint64_t issued = 0;        ///< `Warp::now` of the issue
  uint32_t group[kWarpSize];  ///< per lane: number of groups the lane had committed before
  uint32_t to[kWarpSize];     ///< shared-memory offset
  alignas(16) std::byte data[kWarpSize][16];
};

/// A bulk copy into shared memory that has not landed.
struct BulkCopy {
  uint32_t barrier;  ///< offset of the mbarrier that it completes
  uint32_t warp;
  std::vector<uint32_t> to;  ///< shared-memory offsets of its pieces of 16 bytes
  std::vector<std::byte> data;
};

struct TensorView;

struct Warp {
  WarpRegs regs{};
  uint32_t index = 0;
  uint32_t pc = 0, active = 0;  ///< the running lanes; active 0: none is ready
  uint32_t dead = 0;            ///< lanes that exited or never were
  uint32_t merge_pc = ~0u;      ///< another fragment is here: stop and choose again
  uint32_t spins = 0;           ///< backward branches while other fragments waited
  std::vector<Fragment> parked;
  std::vector<uint32_t> assigned;  ///< per tracked register: lanes that assigned it
  std::vector<std::array<uint8_t, kWarpSize>>
      holes;  ///< by row: bytes of copied values that hold nothing; empty: none anywhere
  uint32_t committed[kWarpSize] = {};
  uint32_t cluster_arrived = 0;   ///< lanes that arrived at the cluster's barrier and have not waited there yet
  uint32_t cluster_released = 0;  ///< those of them whose phase is complete
  uint64_t ran = 0;               ///< instructions before this turn
  uint64_t now = 0;               ///< instructions so far, as of the last cp.async or wait
  std::vector<AsyncCopy> copies;
  size_t copies_begin = 0;
  bool impatient = false;  ///< its next wait for a phase ends at once
  bool finished() const { return dead == ~0u; }
};

class Machine {
 public:
  Machine(LaunchState& state, Counter& counter, const LaneTable& lanes);
  /// Runs CTA number `cta` of the grid, the `ordinal`-th of this launch. Its findings (at most one)
  /// are appended.
  void run_cta(uint64_t cta, uint32_t ordinal, std::vector<Finding>& findings) {
    begin_cta(cta, ordinal);
    while (!go_on(findings)) {
    }
  }
  /// The same in pieces, for CTAs that wait for each other.
  void begin_cta(uint64_t cta, uint32_t ordinal);
  /// Runs until the CTA ends, or (false) until it has looked at device memory that others should change many times in
  /// vain.
  bool go_on(std::vector<Finding>& findings);
  /// The machines of its cluster by rank, itself among them; before begin_cta. None: it is a cluster of its own.
  void join(std::span<Machine* const> cluster, uint32_t rank) { cluster_ = cluster, rank_ = rank; }
  uint64_t instructions() const { return instructions_; }  ///< that the CTA ran
  Finding deadlock() const;
  /// Memory that a CTA keeps while it waits.
  uint64_t resident_bytes() const;

 private:
  struct Barrier {
    uint32_t arrived[kMaxWarps] = {};  ///< lanes per warp
    uint32_t expected = 0;             ///< threads, 0: all of the CTA
    bool in_use = false;
    uint32_t votes_all = ~0u, votes_any = 0, votes = 0;
    struct Result {
      uint32_t warp, lanes, inst;
    };
    std::vector<Result> results;  ///< bar.red destinations to fill at release
  };

  void run_warp(Warp& w, uint32_t quota);
  void choose(Warp& w);
  void check_assigned(Warp& w, const Inst& in);
  uint32_t made_of_assigned(const Warp& w, const Inst& in, const uint32_t* assigned) const;
  void safe_point();

  // machine_begin.cpp
  void prepare_registers();
  std::string whereabouts() const;
  Finding finding(const char* kind, std::string message, const Warp& w, uint32_t pc, uint32_t lane) const;
  /// False: it is to be passed over without a word, because enough were noted, or one of this instruction.
  bool notes_undefined() const { return !state_.tolerated || !is_noted(); }
  bool is_noted() const;
  void undefined(Fault fault);
  /// What depends on which CTA comes first ends a CTA that runs beside others; they all run again, one after another
  /// (parallel.h).
  void require_order(uint32_t lane) const {
    if (state_.memory.is_private()) throw Fault{kOrderMatters, {}, lane};
  }

  // machine_control.cpp
  void branch_to(Warp& w, uint32_t mask, uint32_t target);
  void branch_indexed(Warp& w, const Inst& in, uint32_t mask);
  void exit_lanes(Warp& w, uint32_t mask);
  void barrier(Warp& w, const Inst& in, uint32_t mask);
  bool others_leave(const Warp& w) const;
  bool others_come(const Warp& w) const;
  void try_release(uint32_t id);
  void require_full(const Warp& w, const Inst& in, uint32_t mask, const char* kind, const char* what) const;

  // machine_memory.cpp
  void load(Warp& w, const Inst& in, uint32_t mask);
  void load_param(Warp& w, const Inst& in, uint32_t mask);
  void store(Warp& w, const Inst& in, uint32_t mask);
  void atomic(Warp& w, const Inst& in, uint32_t mask);

  // machine_copies.cpp
  void ldmatrix(Warp& w, const Inst& in, uint32_t mask);
  void matrix_offsets(const uint64_t* address, uint32_t n, uint32_t* offset) const;
  void stmatrix(Warp& w, const Inst& in, uint32_t mask);
  void cp_async(Warp& w, const Inst& in, uint32_t mask);
  void cp_wait(Warp& w, const Inst& in, uint32_t mask);
  void land_copies(Warp& w, uint32_t mask);

  // machine_spaces.cpp
  void addresses(const Warp& w, uint32_t row, bool wide, int64_t displacement, uint64_t* out) const;
  Space space_of(const Inst& in, uint64_t address) const;
  void check_alignment(uint64_t address, uint32_t bytes, uint32_t lane) const;
  Buffer& buffer_at(uint64_t address, uint32_t bytes, uint32_t lane, const char* what);
  // Reads: `needed` says which of the bytes must have been written; those that were come back. Writes: `holes` hold
  // nothing; of a flag, a value that is `is_constant` in the PTX, it does not matter who writes it last.
  uint32_t read_global(uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out, bool strong,
                       uint32_t needed = ~0u);
  void write_global(uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in, bool strong,
                    uint32_t holes = 0, bool is_constant = false);
  uint32_t shared_offset(uint64_t address, uint32_t bytes, uint32_t lane) const;
  [[nodiscard]] Fault fault_of(SharedShadow::Outcome outcome, const Warp& w, uint64_t address, uint32_t bytes,
                               uint32_t lane) const;
  [[nodiscard]] Fault shared_fault(SharedShadow::Outcome outcome, const Warp& w, uint32_t offset, uint32_t bytes,
                                   uint32_t lane) const {
    return fault_of(outcome, w, kSharedBase + offset, bytes, lane);
  }
  /// Handshakes between the warps of a CTA: a strong write hands on what was before the warp's last fence, or all there
  /// was if it `releases`; a strong read of it takes that over. Who releases calls shadow_.advance() afterwards.
  void hand_over(const Warp& w, uint32_t offset, bool reads, bool writes, bool releases);
  /// The same in device memory, where it may go through other CTAs.
  void hand_over_globally(const Warp& w, uint64_t address, bool reads, bool writes, bool releases);
  uint32_t read_shared(const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, std::byte* out, bool strong,
                       uint32_t needed = ~0u);
  void write_shared(Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in, bool strong,
                    uint32_t holes = 0, bool is_constant = false);
  uint64_t local_offset(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane) const;
  uint32_t read_local(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out,
                      uint32_t needed = ~0u);
  void write_local(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, const std::byte* in,
                   uint32_t holes = 0);
  std::string describe(uint64_t address) const;

  // machine_mbarrier.cpp
  void mbarrier(Warp& w, const Inst& in, uint32_t mask);
  bool wake_phase_waiters();
  bool end_vain_waits();

  // machine_print.cpp
  void print(Warp& w, const Inst& in, uint32_t mask);
  [[noreturn]] void assertion(const Warp& w, const Inst& in, uint32_t mask);
  void read_any(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out);
  std::string read_text(const Warp& w, uint64_t address, uint32_t lane);

  // machine_rows.cpp: false, nothing was done
  bool load_row(Warp& w, const Inst& in);
  bool store_row(Warp& w, const Inst& in);
  uint64_t row_address(const Warp& w, const Inst& in, uint32_t bytes, Buffer** buffer);
  bool written_by_another(uint32_t slot, uint32_t begin, uint32_t end);
  void prefetch_next(uint32_t slot);
  bool load_global_row(Warp& w, const Inst& in, uint32_t bytes);
  bool store_global_row(Warp& w, const Inst& in, uint32_t bytes);
  bool shared_row(const Warp& w, const Inst& in, uint32_t bytes, uint32_t* offset, SharedRow* shared) const;
  void count_shared_row(const Warp& w, const SharedRow& shared, const uint32_t* offset, uint32_t bytes);
  bool load_shared_row(Warp& w, const Inst& in, uint32_t bytes);
  bool store_shared_row(Warp& w, const Inst& in, uint32_t bytes);
  void spread(const Warp& w, const Inst& in, const std::byte* from);
  const std::byte* collect(const Warp& w, const Inst& in, std::byte* room) const;

  // machine_wmma.cpp
  template <class F>
  void each_tile_piece(Warp& w, const Inst& in, uint32_t mask, F&& part);
  template <class F>
  void each_fragment_element(Warp& w, const Inst& in, F&& element);
  void wmma_load(Warp& w, const Inst& in, uint32_t mask);
  void wmma_store(Warp& w, const Inst& in, uint32_t mask);

  // machine_bulk.cpp
  void bulk_copy(Warp& w, const Inst& in, uint32_t mask);
  TensorView tensor_map(uint64_t address, uint32_t lane);
  template <class F>
  void each_tensor_row(const TensorView& view, const int32_t* at, F&& row);
  template <class F>
  void global_bytes(uint64_t address, uint32_t bytes, bool write, F&& part);
  uint32_t land_bulk(uint32_t at);

  // machine_cluster.cpp
  void cluster_specials(Warp& w);
  void cluster_barrier(Warp& w, const Inst& in, uint32_t mask);
  void try_release_cluster();
  void cluster_rank(Warp& w, const Inst& in, uint32_t mask);
  bool waits_for_cluster() const;
  /// The CTA that an address of the cluster's shared memory is of; the address becomes that CTA's own.
  Machine& cta_at(uint64_t& address, uint32_t lane) {
    return address - kClusterBase >= kClusterWindowEnd - kClusterBase ? *this : cta_in_cluster(address, lane);
  }
  Machine& cta_in_cluster(uint64_t& address, uint32_t lane);
  uint32_t read_remote(Machine& cta, const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, std::byte* out);
  void write_remote(Machine& cta, const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane, const std::byte* in);

  // machine_lanes.cpp
  void shuffle(Warp& w, const Inst& in, uint32_t mask);
  void pass_on_assigned(Warp& w, const Inst& in, uint32_t mask, const uint32_t* from);
  void vote(Warp& w, const Inst& in, uint32_t mask);
  void match(Warp& w, const Inst& in, uint32_t mask);
  void redux(Warp& w, const Inst& in, uint32_t mask);
  void is_space(Warp& w, const Inst& in, uint32_t mask);
  bool together(Warp& w, const Inst& in, uint32_t mask);
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
  uint64_t* executed_;
  uint32_t threads_, n_warps_;
  std::vector<uint32_t> register_memory_, predicate_memory_;
  std::vector<Warp> warps_;

  std::span<Machine* const> cluster_;
  uint32_t rank_ = 0;
  bool ended_ = false;
  uint64_t cta_ = 0;
  uint32_t writer_ = 0;
  uint64_t instructions_ = 0;  ///< of this CTA
  bool used_atomics_ = false;  ///< this CTA may have synchronised with others
  bool saw_others_ = false;    ///< a strong read had what another CTA wrote; a fence makes that a synchronisation
  uint32_t idle_looks_ = 0;    ///< strong reads and atomics of device memory that changed nothing, in this turn
  std::vector<std::byte> shared_;
  SharedShadow shadow_;
  DeviceShadow device_{shadow_};
  uint32_t shared_bytes_ = 0;  ///< with what is reserved
  uint32_t reserved_at_ = 0;
  std::vector<std::byte> local_;
  std::vector<uint8_t> local_written_;
  Barrier barriers_[16];
  std::vector<BulkCopy> bulk_copies_;
  uint32_t vain_waits_ = 0;  ///< for phases, since one completed
  Buffer* last_buffer_ = nullptr;
  std::vector<Buffer*> row_buffer_;  ///< per instruction: where its last row was
  const Warp* running_ = nullptr;
};

}  // namespace roofgen::sim
