// Races between pieces of work that no event, wait or stream orders: two of them access one byte of device memory, and
// one writes it. The driver runs work in the order of submission, so that what it does shows no race.
//
// Accesses are recorded only where work of another stream can run beside, and are forgotten when the host has waited
// for them. Kernels that pass on data through memory are no race: the later one reads strongly (volatile, relaxed,
// acquire) what the earlier one wrote strongly, or both update a word strongly and one has atom.cas or atom.exch, as
// locks do.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/shim/stream_order.h"
#include "runtime/sim/access_history.h"

namespace roofgen::shim {

/// Rows of device memory that a copy or a memset accesses.
struct Area {
  uint64_t at = 0;
  size_t width = 0, pitch = 0, rows = 1, slice = 0, slices = 1;  ///< bytes, and their numbers
  bool writes = false;
};

/// The device memory that a piece of work accesses.
class Footprint {
 public:
  /// Rows in ascending order; areas with the same `writes` too.
  void add(const Area& area);
  /// An access to bytes of one line; lines in ascending order for each `what`.
  void add(uint64_t line, sim::What what, sim::LineBits bits);

  struct Conflict {
    uint64_t address;
    bool first_writes, second_writes;
  };
  /// A byte that both access and one writes, not both strongly, and most likely one that the second reads.
  std::optional<Conflict> conflict(const Footprint& second) const;
  /// A word that this work writes strongly and the other one accesses strongly, in this way.
  bool signals(const Footprint& second, sim::What what) const;
  void forget(uint64_t at, size_t bytes);
  size_t runs() const;

 private:
  /// Lines with the same bytes.
  struct Run {
    uint64_t first, last;
    sim::LineBits bits;
  };
  using Runs = std::vector<Run>;
  static void push(Runs& runs, Run run);
  static std::optional<uint64_t> meet(const Runs& a, const Runs& b);
  const Runs& of(sim::What what) const { return runs_[static_cast<size_t>(what)]; }
  std::array<Runs, 4> runs_;  ///< by What; each disjoint and in ascending order
};

/// Which nodes of a graph are behind which, by their places in its order.
using NodeOrder = std::vector<std::vector<bool>>;

/// A piece of work in its stream.
struct Item {
  StreamOrder::Point at;
  StreamOrder::Clock clock;                   ///< what it is behind, and itself
  std::shared_ptr<const NodeOrder> nodes;     ///< of a graph whose nodes may run beside each other; all share `at`
  uint32_t node = 0;                          ///< its place
  std::shared_ptr<const std::string> stream;  ///< in messages
};

/// How messages tell of work.
struct Doer {
  std::string name;
  std::string kernel;           ///< as in the PTX; empty: none
  bool has_locks = false;       ///< a kernel with atom.cas or atom.exch
  const char* does = "writes";  ///< to what it writes
};

class StreamRaces {
 public:
  StreamRaces();
  /// `name`: in messages.
  uint32_t open(StreamOrder::Kind kind, std::string name);
  void close(uint32_t stream);
  StreamOrder& order() { return order_; }

  /// The next work of a stream.
  Item submit(uint32_t stream);
  // Work that is going to run, one piece after another in the order of their submission.
  void enqueue(const Item& item);
  void dequeue(const Item& item);
  void drop_queue();
  /// Whether work that runs now may race with something, so that ran() needs its accesses.
  bool follows(const Item& item) const;
  /// The races of work with what ran before: one for each pair of names. `describe`: a place in memory.
  std::vector<Finding> ran(const Item& item, Doer doer, Footprint footprint,
                           const std::function<std::string(uint64_t)>& describe);
  /// Forgets the work that the host has waited for, unless work in the queue may run beside it.
  void forget_known();
  /// The memory is freed.
  void forget(uint64_t at, size_t bytes);
  void forget_all();
  /// Whether something had to be forgotten that later work may race with. True once.
  bool overflows();

  /// The accesses of a launch, without those to its workspace.
  Footprint of(const sim::AccessHistory& history, const sim::BufferList& buffers, uint64_t workspace);

 private:
  struct Record {
    StreamOrder::Point at;
    uint32_t node;
    std::shared_ptr<const std::string> stream;
    Doer doer;
    Footprint footprint;
  };
  /// Numbers of streams by kind. Any two may run beside each other, but for the legacy one and a blocking one.
  struct Kinds {
    int legacy = 0, blocking = 0, free = 0;
    void add(StreamOrder::Kind kind, int n);
    bool beside() const { return blocking > 1 || (free > 0 && legacy + blocking + free > 1); }
  };
  static bool is_before(const Record& record, const Item& item);
  Finding finding(const Record& first, const Item& item, const Doer& second, const Footprint::Conflict& conflict,
                  const std::function<std::string(uint64_t)>& describe) const;
  void keep(Record record);

  StreamOrder order_;
  std::vector<std::shared_ptr<const std::string>> names_;  ///< of streams
  std::vector<uint64_t> queued_;                           ///< pieces of work, by stream
  Kinds queues_;                                           ///< streams with work in the queue
  std::set<uint32_t> used_;                                ///< streams with work that the host has not waited for
  std::deque<Record> records_;                             ///< in the order in which they ran
  size_t runs_ = 0;                                        ///< of all records
  std::set<std::pair<std::string, std::string>> told_;
  enum class Overflow : uint8_t { kNone, kNow, kTold } overflow_ = Overflow::kNone;

  std::vector<uint64_t> lines_;  ///< by slot of the simulator's memory
  struct Known {
    std::weak_ptr<sim::Buffer> buffer;
    size_t lines = 0;  ///< that are in `lines_`
  };
  std::map<uint64_t, Known> known_;  ///< by base
};

}  // namespace roofgen::shim
