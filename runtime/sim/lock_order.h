// Locks that are taken in different orders: a deadlock that needs one special order of the threads.
//
// A lock is a word that a thread changes by atomicCAS or atomicExch, and later writes back as it was. A thread that
// takes lock B while it holds lock A gives an edge from A to B. A cycle of edges of different warps, with no lock that
// two of them hold besides, may be a deadlock (Havelund, "Using runtime analysis to guide model checking of Java
// programs", SPIN 2000, calls them lock graphs). A cycle says which runs to try: its warps take the first of their two
// locks together, and pause before they go on (Pauses). Only a run that ends in the deadlock is a finding.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/executor.h"
#include "runtime/sim/code.h"

namespace roofgen::sim {

class LockOrder {
 public:
  static uint64_t thread_of(uint32_t cta_ordinal, uint32_t warp, uint32_t lane) {
    return uint64_t{cta_ordinal} << 16 | warp << 8 | lane;
  }

  /// Whether the kernel has atomicCAS or atomicExch.
  static bool may_follow(const Kernel& kernel);
  explicit LockOrder(std::span<const Pause> pauses) : pauses_(pauses) {}
  bool any_pauses() const { return !pauses_.empty(); }
  /// A thread is about to try atomicCAS, or atomicExch of `value`. True: its warp pauses before.
  bool comes(uint64_t thread, bool exchanges, uint64_t value);
  /// Whether all threads have come that pause: none pauses before its lock any longer.
  bool all_have_come() const { return come_.size() >= pauses_.size(); }
  /// A thread changes a word from `before` to `after` by atomicCAS or atomicExch. True: its warp pauses.
  bool change(uint64_t thread, uint64_t word, uint64_t before, uint64_t after);
  /// A thread writes a word: if the word was a lock, it is none any more.
  void give_back(uint64_t thread, uint64_t word, uint64_t value);
  bool any_held() const { return !holder_.empty(); }
  /// The runs to try, a few at most: each leads into another cycle.
  std::vector<Pauses> cycles() const;

 private:
  struct Held {
    uint64_t word, value_before;
    uint32_t count;  ///< of the thread's locks, this one included
  };
  struct Thread {
    std::vector<Held> held;
    uint32_t taken = 0;  ///< locks
  };
  struct Edge {
    uint64_t from, to, thread;
    uint32_t count;             ///< with `from`
    std::set<uint64_t> others;  ///< held besides
  };
  bool extend(std::vector<const Edge*>& path, std::vector<Pauses>& found) const;

  std::span<const Pause> pauses_;
  std::unordered_map<uint64_t, Thread> threads_;
  std::unordered_map<uint64_t, uint64_t> holder_;                     ///< thread by word
  std::set<uint64_t> come_;                                           ///< threads that paused before their lock
  std::set<uint64_t> locks_;                                          ///< words that were given back
  std::map<std::pair<uint64_t, uint64_t>, std::vector<Edge>> edges_;  ///< by from and to; of different warps
};

}  // namespace roofgen::sim
