#include "runtime/sim/lock_order.h"

#include <algorithm>

namespace roofgen::sim {
namespace {

constexpr size_t kMostHeld = 8;           ///< by a thread: more are no locks, but words that it changes
constexpr size_t kMostThreads = 1 << 16;  ///< that take locks; the others are left out
constexpr size_t kMostPairs = 1 << 12;    ///< of locks
constexpr size_t kEdgesOfPair = 4;        ///< of different warps
constexpr size_t kLongestCycle = 8, kMostCycles = 4;

uint64_t warp_of(uint64_t thread) { return thread >> 8; }

}  // namespace

bool LockOrder::may_follow(const Kernel& kernel) {
  return std::ranges::any_of(kernel.code, [](const Inst& in) {
    const auto op = static_cast<AtomicOp>(in.sub);
    return in.kind == Kind::kAtomic && (op == AtomicOp::kCas || op == AtomicOp::kExch);
  });
}

bool LockOrder::comes(uint64_t thread, bool exchanges, uint64_t value) {
  const Thread& mine = threads_[thread];
  if (std::ranges::find(pauses_, Pause{thread, mine.taken + 1}) == pauses_.end()) return false;
  // An exchange may give a lock back.
  if (exchanges && std::ranges::any_of(mine.held, [&](const Held& h) { return h.value_before == value; })) return false;
  return come_.insert(thread).second;
}

void LockOrder::give_back(uint64_t thread, uint64_t word, uint64_t value) {
  const auto holder = holder_.find(word);
  if (holder == holder_.end()) return;
  std::vector<Held>& held = threads_[holder->second].held;
  const auto lock = std::ranges::find(held, word, &Held::word);
  // Tickets and counters go on; only a word that is as it was before was a lock.
  if (holder->second == thread && lock->value_before == value) locks_.insert(word);
  held.erase(lock);
  holder_.erase(holder);
}

bool LockOrder::change(uint64_t thread, uint64_t word, uint64_t before, uint64_t after) {
  if (before == after) return false;
  if (holder_.contains(word)) return give_back(thread, word, after), false;
  if (threads_.size() >= kMostThreads && !threads_.contains(thread)) return false;
  Thread& mine = threads_[thread];
  if (mine.held.size() >= kMostHeld) return false;
  for (const Held& first : mine.held) {
    if (edges_.size() >= kMostPairs) break;
    std::vector<Edge>& edges = edges_[{first.word, word}];
    if (edges.size() >= kEdgesOfPair ||
        std::ranges::any_of(edges, [&](const Edge& e) { return warp_of(e.thread) == warp_of(thread); }))
      continue;
    Edge edge{first.word, word, thread, first.count, {}};
    for (const Held& h : mine.held)
      if (h.word != first.word) edge.others.insert(h.word);
    edges.push_back(std::move(edge));
  }
  mine.held.push_back({word, before, ++mine.taken});
  holder_[word] = thread;
  return std::ranges::find(pauses_, Pause{thread, mine.taken}) != pauses_.end();
}

/// Depth first, from the cycle's smallest lock. False: enough are found.
bool LockOrder::extend(std::vector<const Edge*>& path, std::vector<Pauses>& found) const {
  const uint64_t first = path.front()->from, last = path.back()->to;
  if (last == first) {
    Pauses pauses;
    for (const Edge* e : path) pauses.push_back({e->thread, e->count});
    found.push_back(std::move(pauses));
    return found.size() < kMostCycles;
  }
  if (path.size() >= kLongestCycle) return true;
  for (auto at = edges_.lower_bound({last, first}); at != edges_.end() && at->first.first == last; ++at) {
    if (!locks_.contains(at->first.second)) continue;
    for (const Edge& next : at->second) {
      // Each warp once, each lock once, and no lock that keeps two of them apart.
      const bool apart = std::ranges::none_of(path, [&](const Edge* e) {
        return warp_of(e->thread) == warp_of(next.thread) || (next.to != first && e->to == next.to) ||
               std::ranges::any_of(next.others, [&](uint64_t w) { return e->others.contains(w); });
      });
      if (!apart) continue;
      path.push_back(&next);
      const bool more = extend(path, found);
      path.pop_back();
      if (!more) return false;
    }
  }
  return true;
}

std::vector<Pauses> LockOrder::cycles() const {
  std::vector<Pauses> found;
  for (const auto& [pair, edges] : edges_) {
    if (!locks_.contains(pair.first) || !locks_.contains(pair.second) || pair.second < pair.first) continue;
    for (const Edge& e : edges) {
      std::vector<const Edge*> path{&e};
      if (!extend(path, found)) return found;
    }
  }
  return found;
}

}  // namespace roofgen::sim
