#include "runtime/sim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "runtime/sim/grid_order.h"
#include "runtime/sim/lock_order.h"

namespace roofgen::sim {
namespace {

/// CTAs resident at a time while they wait for each other: more than any GPU holds.
constexpr size_t kMostResident = 4096;
constexpr uint64_t kMostResidentBytes = uint64_t{2} << 30;
/// Most turns of others that a team which waits leaves out.
constexpr uint32_t kLongestRest = 31;

/// A cluster of CTAs, most often of one.
class Team {
 public:
  Team(LaunchState& state, Counter& counter, size_t ctas) : state_(state), ordinals_(ctas), done_(ctas) {
    for (size_t i = 0; i < ctas; ++i)
      machines_.push_back(std::make_unique<Machine>(state, counter, OpcodeTable::host().lanes()));
    for (const auto& m : machines_) members_.push_back(m.get());
    if (ctas == 1) return;
    for (uint32_t rank = 0; rank < ctas; ++rank) members_[rank]->join(members_, rank);
  }

  /// The `number`-th team of the launch; `clusters`: those of a launch that runs some of them, else empty.
  void begin(uint64_t number, const RunOptions& options, const std::vector<uint64_t>& clusters) {
    polling_ = {};
    in_vain_ = false;
    rest_ = last_rest_ = 0;
    for (uint32_t rank = 0; rank < members_.size(); ++rank) {
      const uint64_t cta = cta_of(clusters.empty() ? number : clusters[number], rank);
      ordinals_[rank] = members_.size() == 1 ? number : place_of(cta, options);
      done_[rank] = false;
      members_[rank]->begin_cta(options.ctas ? options.ctas->ctas[ordinals_[rank]] : cta,
                                static_cast<uint32_t>(ordinals_[rank]));
    }
  }

  /// False: the team waits for other teams, or its CTAs wait for each other.
  bool go_on(std::vector<Finding>& findings) {
    const uint64_t before = state_.stopped;
    bool moved = false, again = true;
    while (again) {
      for (uint32_t rank = 0; rank < members_.size(); ++rank) {
        if (done_[rank]) continue;
        const uint64_t ran = members_[rank]->instructions();
        done_[rank] = members_[rank]->go_on(findings);
        if (state_.stopped > before) {  // the others of the cluster end with it
          hand_in(findings);
          return true;
        }
        moved |= members_[rank]->instructions() != ran || done_[rank] || members_[rank]->pauses();
      }
      if (std::all_of(done_.begin(), done_.end(), [](bool d) { return d; })) return true;
      if (moved) return false;
      again = false;
      for (uint32_t rank = 0; rank < members_.size(); ++rank) again |= !done_[rank] && members_[rank]->end_vain_waits();
    }
    for (uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (done_[rank]) continue;
      Finding finding = members_[rank]->deadlock();
      for (uint32_t other = rank + 1; other < members_.size(); ++other)
        if (!done_[other])
          finding.message += fmt::format("; CTA {}: {}", members_[other]->cta(), members_[other]->waiters());
      return members_[rank]->stop(findings, std::move(finding)), true;
    }
    return true;
  }

  /// Whether all its CTAs wait for others.
  bool waits() const {
    for (uint32_t rank = 0; rank < members_.size(); ++rank)
      if (!done_[rank] && !members_[rank]->waits()) return false;
    return true;
  }
  /// After a turn: a team that waits leaves the next turns to others, twice as many each time.
  void note_turn() {
    last_rest_ = waits() ? std::min(2 * last_rest_ + 1, kLongestRest) : 0;
    rest_ = last_rest_;
  }
  /// Whether the team leaves this turn to others.
  bool rests() { return rest_ > 0 && rest_-- > 0; }
  /// After a turn in which the team waited. If device memory did not change since its turn before, it only repeats
  /// itself once its state does.
  void look_at_state(uint64_t changes) {
    if (polls_in_vain(changes)) return;
    for (Machine* m : members_) m->set_regular(polling_.unchanged(changes));
    in_vain_ = polling_.repeats(changes, [&] {
      uint64_t all = 0;
      for (uint32_t rank = 0; rank < members_.size(); ++rank)
        if (!done_[rank]) all = all * 0x9e3779b97f4a7c15u + members_[rank]->fingerprint();
      return all;
    });
  }
  bool polls_in_vain(uint64_t changes) const { return in_vain_ && polling_.unchanged(changes); }
  /// The CTAs that have not ended, with their places.
  template <class F>
  void each_unfinished(F&& f) const {
    for (uint32_t rank = 0; rank < members_.size(); ++rank)
      if (!done_[rank]) f(*members_[rank]);
  }

  /// The launch ends before the team does.
  void hand_in(std::vector<Finding>& findings) {
    for (Machine* m : members_) m->hand_in(findings);
  }

  uint64_t instructions() const { return members_[0]->instructions(); }
  uint64_t resident_bytes() const { return members_.size() * members_[0]->resident_bytes(); }

 private:
  /// Among the CTAs that run.
  static uint64_t place_of(uint64_t cta, const RunOptions& options) {
    if (!options.ctas) return cta;
    const std::vector<uint64_t>& all = options.ctas->ctas;
    return static_cast<uint64_t>(std::lower_bound(all.begin(), all.end(), cta) - all.begin());
  }

  /// The CTA of a rank.
  uint64_t cta_of(uint64_t number, uint32_t rank) const {
    if (members_.size() == 1) return number;
    const Dim3 &grid = state_.launch.grid, &cluster = state_.launch.cluster;
    const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
    const uint64_t x = number % across * cluster.x + rank % cluster.x;
    const uint64_t y = number / across % down * cluster.y + rank / cluster.x % cluster.y;
    const uint64_t z = number / across / down * cluster.z + rank / cluster.x / cluster.y;
    return x + grid.x * (y + grid.y * z);
  }

  LaunchState& state_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<Machine*> members_;
  std::vector<uint64_t> ordinals_;
  std::vector<bool> done_;
  Polling polling_;
  bool in_vain_ = false;
  uint32_t rest_ = 0, last_rest_ = 0;  ///< turns
};

/// No CTA that waits can go on.
Finding deadlock_of(const std::deque<std::unique_ptr<Team>>& waiting, uint64_t not_begun) {
  const Machine* first = nullptr;
  bool all_sleep = true, some_sleep = false;
  std::map<std::string, std::vector<uint64_t>> places;
  for (const auto& team : waiting)
    team->each_unfinished([&](const Machine& m) {
      if (!first || m.cta() < first->cta()) first = &m;
      places[m.whereabouts()].push_back(m.cta());
      all_sleep &= m.sleeps();
      some_sleep |= m.sleeps();
    });
  if (all_sleep && !not_begun) {  // waiting for each other's arrivals and copies, as the CTAs of a cluster can
    Finding finding = first->deadlock();
    for (const auto& team : waiting)
      team->each_unfinished([&](const Machine& m) {
        constexpr size_t kMostText = 2000;
        if (&m != first && finding.message.size() < kMostText)
          finding.message += fmt::format("; CTA {}: {}", m.cta(), m.waiters());
      });
    return finding;
  }
  constexpr size_t kMostPlaces = 4;
  std::string text;
  size_t n = 0, told = 0;
  for (auto& [place, ctas] : places) {
    std::sort(ctas.begin(), ctas.end());
    n += ctas.size();
    if (told++ < kMostPlaces)
      text +=
          fmt::format("; {}: {}",
                      ctas.size() == 1                           ? fmt::format("CTA {}", ctas[0])
                      : ctas.back() - ctas[0] + 1 == ctas.size() ? fmt::format("CTAs {}-{}", ctas[0], ctas.back())
                                                                 : fmt::format("{} CTAs from {}", ctas.size(), ctas[0]),
                      place);
  }
  if (told > kMostPlaces) text += fmt::format("; and {} more places", told - kMostPlaces);
  if (not_begun) text += fmt::format("; {} CTAs wait until others end, as {} are resident", not_begun, n);
  return first->vain_polling(fmt::format("{} {}poll{} device memory that none changes{}",
                                         n == 1 ? "1 CTA" : fmt::format("{} CTAs", n),
                                         some_sleep ? "wait at barriers or " : "", n == 1 ? "s" : "", text));
}

/// Whether an instruction accesses one of these spaces atomically or strongly.
bool accesses_strongly(const Kernel& kernel, std::initializer_list<Space> spaces) {
  return std::any_of(kernel.code.begin(), kernel.code.end(), [&](const Inst& in) {
    const bool strong =
        in.kind == Kind::kAtomic || ((in.kind == Kind::kLoad || in.kind == Kind::kStore) && in.flags & kFlagStrong);
    return strong && std::find(spaces.begin(), spaces.end(), static_cast<Space>(in.space)) != spaces.end();
  });
}

/// Whether the remaining CTAs probably can run side by side and have enough work.
bool worth_threads(const LaunchState& state, uint64_t ctas_left, uint64_t instructions_each,
                   const RunOptions& options) {
  if (options.threads < 2 || state.listener || state.doubles || ctas_left < 2 ||
      ctas_left * instructions_each < options.worth_threads)
    return false;
  if (state.launch.cluster.count() > 1 || state.grid_workspace || state.kernel.has_cancel) return false;
  return !accesses_strongly(state.kernel, {Space::kGlobal});
}

bool reads_read_only(const Kernel& kernel) {
  return std::any_of(kernel.code.begin(), kernel.code.end(), [](const Inst& in) { return reads_non_coherently(in); });
}

/// Whether CTAs of the launch may order their accesses: something is released, and something read strongly.
bool may_synchronise(const LaunchState& state) {
  if (state.launch.cluster.count() > 1 || state.grid_workspace) return true;
  return accesses_strongly(state.kernel, {Space::kGlobal, Space::kGeneric}) &&
         std::any_of(state.kernel.code.begin(), state.kernel.code.end(), [](const Inst& in) {
           const bool has_scope = (in.kind == Kind::kNop && in.sub == kNopFence) || in.kind == Kind::kAtomic ||
                                  (in.kind == Kind::kStore && in.flags & kFlagStrong);
           return has_scope && in.flags & kFlagRelease && in.scope != MemoryScope::kCta;
         });
}

}  // namespace

std::vector<uint64_t> cluster_numbers(const Launch& launch, const std::vector<uint64_t>& ctas) {
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  std::vector<uint64_t> out;
  for (const uint64_t cta : ctas) {
    const uint64_t x = cta % grid.x, y = cta / grid.x % grid.y, z = cta / grid.x / grid.y;
    out.push_back(x / cluster.x + grid.x / cluster.x * (y / cluster.y + grid.y / cluster.y * (z / cluster.z)));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// The CTA of rank 0 of a cluster.
static uint64_t first_cta_of(const Launch& launch, uint64_t number) {
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
  return number % across * cluster.x +
         grid.x * (number / across % down * cluster.y + grid.y * (number / across / down * cluster.z));
}

uint64_t run_ctas(LaunchState& state, Counter& counter, uint64_t n, const RunOptions& options,
                  std::vector<Finding>& findings, uint64_t wave_instructions) {
  const uint64_t ctas = state.launch.cluster.count(), teams = n / ctas;
  counter.trace_to(options.trace);
  std::vector<uint64_t> clusters;
  if (ctas > 1 && options.ctas) clusters = cluster_numbers(state.launch, options.ctas->ctas);
  std::deque<std::unique_ptr<Team>> waiting;
  std::vector<std::unique_ptr<Team>> idle;
  const auto most = static_cast<uint64_t>(std::max(options.max_findings, 1));
  GridOrder order(may_synchronise(state));
  if (n > 1 || reads_read_only(state.kernel) || state.accesses) state.order = &order;
  LockOrder locks(options.pauses);
  if (LockOrder::may_follow(state.kernel)) state.locks = &locks;
  state.schedule = options.schedule;
  state.vain_waits = options.vain_waits;
  std::mt19937_64 random(options.schedule);
  const size_t side_by_side = 2 + random() % 15;  // CTAs that take turns in a random schedule
  std::vector<uint64_t> window;                   // the next CTAs of a random schedule
  uint64_t in_parallel = 0;
  bool asked = options.schedule != 0;  ///< whether they can run beside each other
  uint64_t begun = 0;
  state.cancel = [&]() -> std::optional<uint64_t> {
    if (begun == teams) return std::nullopt;
    uint64_t team = begun++;
    if (!window.empty()) team = window.back(), window.pop_back();
    if (!clusters.empty()) return first_cta_of(state.launch, clusters[team]);
    return options.ctas ? options.ctas->ctas[team] : first_cta_of(state.launch, team);
  };
  const auto in_vain = [&](const auto& team) { return team->polls_in_vain(state.changes); };
  for (; (begun < teams || !waiting.empty()) && state.stopped < most;) {
    // Estimate the remaining work from the first CTA, or the first two, four, ...
    if (begun && (begun & (begun - 1)) == 0 && !asked && waiting.empty() && findings.empty()) {
      const uint64_t each = counter.warp_instructions() / begun;
      RunOptions fitting = options;
      fitting.threads = static_cast<int>(
          std::min<uint64_t>(static_cast<uint64_t>(std::max(options.threads, 1)),
                             kMostResidentBytes / std::max<uint64_t>(idle.front()->resident_bytes(), 1)));
      if (ctas == 1 && worth_threads(state, n - begun, each, fitting)) {
        asked = true;
        const uint64_t before = begun;
        begun = run_in_parallel(state, counter, begun, n, each, fitting, wave_instructions);
        in_parallel = begun - before;
        if (begun == n) break;
      }
    }
    std::unique_ptr<Team> now;
    const auto room = [&] {
      return waiting.empty() || (waiting.size() * ctas < kMostResident &&
                                 waiting.size() * waiting.front()->resident_bytes() < kMostResidentBytes);
    };
    bool begins = begun < teams && room();
    // Clusters that ask for others find some that have not begun.
    if (!options.schedule && state.kernel.has_cancel) begins &= std::ranges::all_of(waiting, in_vain);
    if (options.schedule && !waiting.empty()) {
      const bool all_wait = std::all_of(waiting.begin(), waiting.end(), [](const auto& t) { return t->waits(); });
      begins &= all_wait || (waiting.size() < side_by_side && random() % 2);
      std::swap(waiting.front(), waiting[random() % waiting.size()]);
    }
    if (begins) {
      if (idle.empty()) idle.push_back(std::make_unique<Team>(state, counter, ctas));
      now = std::move(idle.back());
      idle.pop_back();
      // Not in any order of the whole grid: CTAs may wait for those before them, and only so many are resident.
      constexpr uint64_t kWindow = 512;
      if (options.schedule && window.empty()) {
        for (uint64_t i = begun; i < std::min(begun + kWindow, teams); ++i) window.push_back(i);
        for (size_t i = window.size(); i > 1; --i) std::swap(window[i - 1], window[random() % i]);
      }
      now->begin(options.schedule ? window.back() : begun, options, clusters);
      if (options.schedule) window.pop_back();
      ++begun;
    } else {
      for (size_t i = 1; i < waiting.size() && waiting.front()->rests(); ++i) {
        waiting.push_back(std::move(waiting.front()));
        waiting.pop_front();
      }
      now = std::move(waiting.front());
      waiting.pop_front();
    }
    if (now->go_on(findings)) {
      idle.push_back(std::move(now));
      continue;
    }
    now->note_turn();
    if (now->waits()) now->look_at_state(state.changes);
    waiting.push_back(std::move(now));
    if (!in_vain(waiting.back()) || (begun < teams && room()) || !std::all_of(waiting.begin(), waiting.end(), in_vain))
      continue;
    for (auto& team : waiting) team->hand_in(findings);
    // CTAs may wait for one that ended at a finding.
    if (state.stopped == 0) add_finding(state.go_on, findings, deadlock_of(waiting, (teams - begun) * ctas));
    for (auto& team : waiting) idle.push_back(std::move(team));
    waiting.clear();
  }
  state.order = nullptr;
  state.cancel = [] { return std::optional<uint64_t>(); };
  state.locks = nullptr;
  state.lock_cycles = locks.cycles();
  if (state.accesses) *state.accesses = std::move(order.history());
  for (const auto& team : waiting) team->hand_in(findings);
  return in_parallel;
}

}  // namespace roofgen::sim
