// Records about tensor memory: the cells that were written, and the last accesses to each 16 lanes of a column, by
// warps (tcgen05.ld, .st) and by the tensor core, which is one more agent with the clock of the warp that gave it work
// (SharedShadow, "core"). What orders two accesses (PTX ISA, "Memory Consistency Model for 5th generation of TensorCore
// operations"):
//   - a store or a load of a warp is over after its wait; a load also when an instruction uses a register of it.
//     Another agent has to know this end, not only the access: a wait after the arrival is too late;
//   - what the tensor core does is over at the end of a phase to which a tcgen05.commit arrived;
//   - releases and acquires of threads, by barriers and mbarriers, order the accesses as those to other memory: "The
//     standard memory consistency model synchronization mechanisms also apply";
//   - a relaxed wait orders them between a fence::before_thread_sync (a commit is one) and a fence::after_thread_sync:
//     the waits of all patterns that the ISA gives with these fences are relaxed.
// The tensor core's own accesses are taken to be in the order of their instructions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/sim/shared_shadow.h"
#include "runtime/sim/tcgen05.h"

namespace roofgen::sim {

class TensorShadow {
 public:
  enum class Problem : uint8_t { kNone, kUnwritten, kUnordered, kPending, kNotBefore, kNotAfter };
  /// What is wrong with an access: at a column and 16 lanes, with an earlier access of another agent.
  struct Outcome {
    Problem problem = Problem::kNone;
    uint32_t column = 0, half = 0, other = 0, pc = 0;
    bool wrote = false;  ///< the other access
  };
  /// Who accesses: an agent, with the stamps up to which it knows the others, and up to which it has acquired what they
  /// did; its work by `issuer`, a warp here, or, from kMaxWarps on, of another CTA of the cluster.
  struct Accessor {
    uint32_t agent, issuer;
    const uint32_t *known, *acquired;
  };

  /// Begins a CTA whose warps access tensor memory; the core's number follows theirs.
  void begin(uint32_t warps);
  bool used() const { return !columns_.empty(); }
  uint32_t core() const { return core_; }

  /// Nothing has written the columns.
  void forget(uint32_t first, uint32_t columns);
  /// `now`: the stamp of the access. `lazily`: unwritten cells are no problem.
  Outcome access(const Accessor& who, uint32_t first, uint32_t columns, const std::array<uint32_t, 4>& lanes,
                 bool reads, bool writes, bool lazily, uint32_t now, uint32_t pc);
  /// Lanes of a column that were written.
  uint32_t written(uint32_t column, uint32_t quarter) const {
    return cell(column, 2 * quarter).written | uint32_t{cell(column, 2 * quarter + 1).written} << 16;
  }
  void note_load(uint32_t warp, uint32_t load, uint32_t now) { loads_[warp].push_back({load, now}); }
  /// All loads, or one, are over.
  void wait_loads(uint32_t warp, uint32_t load, uint32_t now);
  void wait_stores(uint32_t warp, uint32_t now) { stored_[warp].push_back(now); }
  /// A fence after the accesses up to the stamp `now`.
  void fence_before(uint32_t warp, uint32_t now) { befores_[warp].push_back(now); }
  /// The stamps of the other agents' accesses that the issuer knows now.
  void fence_after(uint32_t issuer, const uint32_t* known);
  /// The stamp of the core's last work for a thread, which a commit of the thread covers; whether the last work was for
  /// another one.
  void issued(uint32_t issuer, uint32_t lane, uint32_t now) {
    last_thread_ = issuer * kWarpSize + lane;
    issued_[last_thread_] = now;
  }
  uint32_t last_issued(uint32_t issuer, uint32_t lane) const { return issued_[issuer * kWarpSize + lane]; }
  bool changes(uint32_t issuer, uint32_t lane) const { return last_thread_ != issuer * kWarpSize + lane; }

 private:
  static constexpr uint32_t kAgents = kMaxWarps / 4 + 1;  ///< of a cell: the warps of its quarter of lanes, the core
  struct Cell {
    uint16_t written = 0;                                          ///< lanes
    uint32_t writer = 0, wrote_at = 0, write_pc = 0, read_pc = 0;  ///< wrote_at 0: none
    std::array<uint32_t, kAgents> read_at{};
  };
  /// Cells of a column that the core accessed last have one stamp for both kinds, so that its sums cost little.
  struct Column {
    uint8_t of_core = 0;
    uint32_t pc = 0;
    std::array<uint32_t, kTensorHalves> at{};
  };
  const Cell& cell(uint32_t column, uint32_t half) const { return cells_[column * kTensorHalves + half]; }
  Cell& cell(uint32_t column, uint32_t half) { return cells_[column * kTensorHalves + half]; }
  void spread(Column& c, uint32_t column, uint32_t half);
  Outcome conflict(const Accessor& who, uint32_t column, uint32_t half, bool writes) const;
  uint32_t over_at(uint32_t warp, uint32_t stamp, bool wrote) const;
  Problem order_of(const Accessor& who, uint32_t other, uint32_t stamp, bool wrote) const;

  uint32_t core_ = 0;
  std::vector<Cell> cells_;
  std::vector<Column> columns_;
  struct Load {
    uint32_t number, stamp, over = 0;
  };
  std::array<std::vector<Load>, kMaxWarps> loads_;
  std::array<size_t, kMaxWarps> first_load_{};                     ///< that is not over
  std::array<std::vector<uint32_t>, kMaxWarps> stored_, befores_;  ///< stamps of waits for stores, and of fences
  /// By issuer, of each agent: the stamp before which accesses are fenced.
  std::array<std::array<uint32_t, kMaxWarps>, 2 * kMaxWarps> fenced_{};
  std::array<uint32_t, 2 * kMaxWarps * kWarpSize> issued_{};
  uint32_t last_thread_ = ~0u;
};

}  // namespace roofgen::sim
