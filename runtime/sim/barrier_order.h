// Whether the order in which warps run decides which arrivals complete a barrier, and which phase a wait sees.
//
// One run stands for all orders as long as each barrier pairs the same arrivals and waits in each of them: then the
// order that the barriers give is the same in all runs, and so are the races that the checker finds by that order. A
// run shows whether the pairs are the only ones. Let C(k) be the completion of phase k of a barrier. The pairs are the
// only ones if
//   - each arrival, copy and expected byte of phase k comes after C(k-1): else it can count in phase k-1;
//   - bytes that are expected without an arrival come before an arrival of their phase: else the phase can end first;
//   - each wait that C(k) ends comes before C(k+1), or else it can wait for C(k+2), for waits name a phase by parity;
//   - and after C(k-1), or else C(k-2), of the same parity, can end it.
// "Before" follows from the program order of a warp, from arrivals to the completion that needs them, and from a
// completion to the waits that saw it. A phase without one of these orders is the first that can be otherwise: the run
// up to there, with the two turned round, is a run as well.
//
// The order of time is meant here, not the visibility of data: a relaxed arrival counts.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace roofgen::sim {

class BarrierOrder {
 public:
  /// An arrival, a copy, expected bytes or a wait. `actor`: a warp, counted through the CTAs of a cluster.
  struct Event {
    uint32_t actor, stamp, pc;
  };
  /// What another order can turn round: `event` and `other`, of which the run had one first.
  struct Alternative {
    enum class What : uint8_t {
      kEarlyArrival,  ///< counts in the phase before, as `other`, which completed it, can come later
      kLateBytes,     ///< are expected when the phase may have ended; no `other`
      kLateWait,      ///< comes after the next phase, which `other` completed
      kEarlyWait,     ///< ends at the phase before the one before, as `other` of the one before can come later
    };
    What what;
    Event event, other;
  };

  void begin(uint32_t actors);
  bool is_actor(uint32_t actor) const { return actor < clocks_.size(); }  ///< false: copies of a barrier
  /// An mbarrier begins anew.
  void initialise(uint64_t barrier) { barriers_.erase(barrier); }
  /// An arrival, or a copy whose bytes the phase needs.
  std::optional<Alternative> arrive(uint64_t barrier, uint32_t actor, uint32_t pc, bool copies = false);
  /// A tcgen05.commit of a lane: it arrives when the work of the thread so far is done, so in the order of its commits.
  std::optional<Alternative> commit(uint64_t barrier, uint32_t actor, uint32_t lane, uint32_t pc);
  std::optional<Alternative> expect(uint64_t barrier, uint32_t actor, uint32_t pc);
  /// The phase ends.
  std::optional<Alternative> complete(uint64_t barrier);
  /// A wait sees the phase that ended last.
  std::optional<Alternative> pass(uint64_t barrier, uint32_t actor, uint32_t pc);
  /// Whether the phase that ended last has ended before the actor's next event in every order.
  bool has_surely_ended(uint64_t barrier, uint32_t actor) const;
  /// The actor goes on after the phase that ended last, as one that was held at a barrier by its number.
  void go_on(uint64_t barrier, uint32_t actor);
  /// A strong access hands over what its warp knows, or takes over what was handed over there.
  void signal(uint64_t place, uint32_t actor);
  void observe(uint64_t place, uint32_t actor);
  /// Warps meet: each knows afterwards what all know.
  void meet(uint32_t first, uint32_t count);

 private:
  using Clock = std::vector<uint32_t>;  ///< by actor: the stamp up to which its events are known
  struct Barrier {
    std::vector<Event> before_last, last, now;  ///< what completed the last two phases; what the phase has so far
    std::vector<Event> expects, waits;          ///< of the phase; that saw the last one
    Clock clock, last_clock;                    ///< of `now` and `last`
    uint32_t copier = 0;                        ///< the actor that completes copies; 0: none yet
    bool copies = false;                        ///< the phase has some
    uint32_t phases = 0;
    bool told = false;  ///< what follows an alternative is likely of the same cause
  };
  static uint32_t known(const Clock& clock, uint32_t actor) { return actor < clock.size() ? clock[actor] : 0; }
  static void join(Clock& into, const Clock& other);
  static void note(std::vector<Event>& events, const Event& e);
  Event next_event(uint32_t actor, uint32_t pc) { return {actor, ++clocks_[actor][actor], pc}; }
  bool is_latest(const std::vector<Event>& events, uint32_t actor, uint32_t pc) const;
  /// The first of `events` that the actor does not know.
  const Event* unknown(const std::vector<Event>& events, uint32_t actor, uint32_t also = ~0u) const;

  std::vector<Clock> clocks_;
  uint32_t actors_ = 0;
  std::unordered_map<uint64_t, Barrier> barriers_;
  std::unordered_map<uint64_t, Event> commits_;  ///< the last one of each thread, as an event of an actor of its own
  std::unordered_map<uint64_t, Clock> places_;
};

}  // namespace roofgen::sim
