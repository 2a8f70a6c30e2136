#include "runtime/sim/barrier_order.h"

#include <algorithm>

namespace roofgen::sim {
namespace {

/// Places of strong accesses that are remembered; without the others, less is known to be in order.
constexpr size_t kMostPlaces = size_t{1} << 14;

}  // namespace

void BarrierOrder::begin(uint32_t actors) {
  clocks_.assign(actors, Clock(actors, 0));
  actors_ = actors;
  barriers_.clear();
  places_.clear();
  commits_.clear();
}

void BarrierOrder::join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

/// The last event of each actor stands for all of its.
void BarrierOrder::note(std::vector<Event>& events, const Event& e) {
  const auto found = std::ranges::find(events, e.actor, &Event::actor);
  if (found == events.end())
    events.push_back(e);
  else
    *found = e;
}

/// Whether this is what the actor did last: each lane of a warp has an event.
bool BarrierOrder::is_latest(const std::vector<Event>& events, uint32_t actor, uint32_t pc) const {
  const auto found = std::ranges::find(events, actor, &Event::actor);
  return found != events.end() && found->pc == pc && found->stamp == clocks_[actor][actor];
}

const BarrierOrder::Event* BarrierOrder::unknown(const std::vector<Event>& events, uint32_t actor,
                                                 uint32_t also) const {
  for (const Event& e : events)
    if (e.actor != actor && e.actor != also && known(clocks_[actor], e.actor) < e.stamp) return &e;
  return nullptr;
}

std::optional<BarrierOrder::Alternative> BarrierOrder::arrive(uint64_t barrier, uint32_t actor, uint32_t pc,
                                                              bool copies) {
  Barrier& b = barriers_[barrier];
  b.copies |= copies;
  if (is_latest(b.now, actor, pc)) return std::nullopt;
  const Event e = next_event(actor, pc);
  std::optional<Alternative> out;
  if (const Event* other = b.told ? nullptr : unknown(b.last, actor)) {
    out = {Alternative::What::kEarlyArrival, e, *other};
    b.told = true;
  }
  note(b.now, e);
  join(b.clock, clocks_[actor]);
  return out;
}

std::optional<BarrierOrder::Alternative> BarrierOrder::commit(uint64_t barrier, uint32_t actor, uint32_t lane,
                                                              uint32_t pc) {
  Barrier& b = barriers_[barrier];
  Event& core = commits_.try_emplace(uint64_t{actor} << 5 | lane, Event{actors_, 0, pc}).first->second;
  if (core.stamp == 0) ++actors_;
  core.pc = pc;
  ++core.stamp;
  const Event e = next_event(actor, pc);
  std::optional<Alternative> out;
  if (const Event* other = b.told ? nullptr : unknown(b.last, actor, core.actor)) {
    out = {Alternative::What::kEarlyArrival, e, *other};
    b.told = true;
  }
  note(b.now, e);
  note(b.now, core);
  join(b.clock, clocks_[actor]);
  if (b.clock.size() <= core.actor) b.clock.resize(core.actor + 1, 0);
  b.clock[core.actor] = core.stamp;
  return out;
}

std::optional<BarrierOrder::Alternative> BarrierOrder::expect(uint64_t barrier, uint32_t actor, uint32_t pc) {
  Barrier& b = barriers_[barrier];
  const Event e = next_event(actor, pc);
  note(b.expects, e);
  if (const Event* other = b.told ? nullptr : unknown(b.last, actor)) {
    b.told = true;
    return Alternative{Alternative::What::kEarlyArrival, e, *other};
  }
  return std::nullopt;
}

std::optional<BarrierOrder::Alternative> BarrierOrder::complete(uint64_t barrier) {
  Barrier& b = barriers_[barrier];
  std::optional<Alternative> out;
  const Event last = b.now.empty() ? Event{} : b.now.back();
  for (const Event& e : b.expects)
    if (!out && known(b.clock, e.actor) < e.stamp) out = {Alternative::What::kLateBytes, e, last};
  for (const Event& e : b.waits)
    if (!out && known(b.clock, e.actor) < e.stamp) out = {Alternative::What::kLateWait, e, last};
  if (b.told) out.reset();
  b.told |= out.has_value();
  ++b.phases;
  if (b.copies) {  // they end at a time of their own
    if (!b.copier) b.copier = actors_++;
    const Event end{b.copier, b.phases, last.pc};
    note(b.now, end);
    if (b.clock.size() <= b.copier) b.clock.resize(b.copier + 1, 0);
    b.clock[b.copier] = b.phases;
  }
  b.before_last = std::move(b.last);
  b.last = std::move(b.now);
  b.last_clock = std::move(b.clock);
  b.now.clear(), b.clock.clear(), b.expects.clear(), b.waits.clear();
  b.copies = false;
  return out;
}

std::optional<BarrierOrder::Alternative> BarrierOrder::pass(uint64_t barrier, uint32_t actor, uint32_t pc) {
  Barrier& b = barriers_[barrier];
  if (is_latest(b.waits, actor, pc)) return std::nullopt;
  const Event* other = b.told || b.phases < 2 ? nullptr : unknown(b.before_last, actor);
  std::optional<Alternative> out;
  const Event early = other ? *other : Event{};
  go_on(barrier, actor);
  const Event e = next_event(actor, pc);
  note(b.waits, e);
  if (other) {
    out = {Alternative::What::kEarlyWait, e, early};
    b.told = true;
  }
  return out;
}

bool BarrierOrder::has_surely_ended(uint64_t barrier, uint32_t actor) const {
  const auto at = barriers_.find(barrier);
  return at == barriers_.end() || !unknown(at->second.last, actor);
}

void BarrierOrder::go_on(uint64_t barrier, uint32_t actor) { join(clocks_[actor], barriers_[barrier].last_clock); }

void BarrierOrder::signal(uint64_t place, uint32_t actor) {
  ++clocks_[actor][actor];
  if (places_.size() < kMostPlaces || places_.contains(place)) join(places_[place], clocks_[actor]);
}

void BarrierOrder::observe(uint64_t place, uint32_t actor) {
  if (const auto found = places_.find(place); found != places_.end()) join(clocks_[actor], found->second);
}

void BarrierOrder::meet(uint32_t first, uint32_t count) {
  Clock all;
  for (uint32_t i = first; i < first + count; ++i) join(all, clocks_[i]);
  for (uint32_t i = first; i < first + count; ++i) join(clocks_[i], all);
}

}  // namespace roofgen::sim
