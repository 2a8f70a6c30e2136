#include "tuner/timing/sm_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>

#include "tuner/timing/dram_share.h"
#include "tuner/timing/instruction_cache.h"
#include "tuner/timing/instruction_facts.h"
#include "tuner/timing/l1_cache.h"

namespace roofgen::timing {
namespace {

using sass::Action;
using sass::Instruction;
using sass::Pipe;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// What a warp waits for besides a barrier of its CTA, whose numbers are below 16 (Warp::waits_at).
constexpr int kAtPhase = 16, kAtProducts = 17, kAtCluster = 18;
/// Bytes of a tensor copy that are requested and stored together.
constexpr uint32_t kPieceBytes = 1024;
/// Of a sector: what sums of shares may be off by.
constexpr double kSliver = 1e-6;

struct Scoreboard {
  double free_at = 0;
  uint32_t producer = 0;
  Stall cause = Stall::kFixed;
};

struct Warp {
  const sass::WarpStream* stream = nullptr;
  bool ended() const { return next == std::default_sentinel; }
  sass::Cursor next;
  uint32_t index = 0;  ///< of the next instruction
  int cta = 0, scheduler = 0;
  uint64_t age = 0;
  double begin = 0;
  double ready = 0;  ///< earliest issue by its own state
  double last_issue = 0;
  double own_ready = 0;           ///< by the stall count alone
  Stall why = Stall::kFixed;      ///< what `ready` waits for
  Stall own_why = Stall::kFixed;  ///< what `own_ready` waits for
  uint32_t producer = ~0u, last_index = 0;
  int waits_at = -1;  ///< the number of the barrier of its CTA
  std::array<Scoreboard, 6> scoreboards;
  double copies_done = 0;  ///< of those since the last commit
  uint32_t copies_producer = ~0u;
  std::deque<std::pair<double, uint32_t>> groups;  ///< committed groups of copies
  /// Products that have not ended, by group; the last group is open until a product completes it.
  std::deque<int> products;
  bool group_is_open = false;
  size_t cluster_waits = 0;
  uint32_t waits_for = 0, phase = 0;     ///< at an mbarrier: which, and the number of the phase; groups left: waits_for
  std::map<uint32_t, uint32_t> arrived;  ///< by mbarrier: the phase of its last arrival
};

/// A barrier of a CTA, by the warps that have arrived and those that have to.
struct Barrier {
  size_t arrived = 0, wanted = 0;
};

/// An mbarrier: its phase is complete with all arrivals, all expected bytes and the end of all copies that count at it.
struct Phases {
  uint32_t expected = 0, complete = 0;
  int64_t pending = 0, bytes = 0;
  int copies = 0;
};

struct Cta {
  const sass::CtaStream* stream = nullptr;
  int live = 0;
  double begin = 0;
  std::vector<int> warps;
  std::array<Barrier, 16> barriers;
  std::map<uint32_t, Phases> phases;
  size_t at_cluster = 0;        ///< warps that have arrived at the cluster's barrier in its present phase
  size_t cluster_phases = 0;    ///< that have ended
  double cluster_released = 0;  ///< the end of the last one
  double products_end = 0;      ///< of those in tensor memory
};

/// For the tensor unit of sm_100, in order: a product, a copy to tensor memory, or an arrival.
struct MatrixWork {
  int cta = 0;
  uint32_t index = 0;
  const sass::Sync* sync = nullptr;
};

/// A copy to shared memory in the tensor copy engine.
struct Copy {
  int cta = 0;
  uint32_t barrier = 0, bytes = 0, sectors = 0, ctas = 1, index = 0;
  uint32_t requested = 0, stored = 0;  ///< bytes
  uint32_t senders = 1;
  double cycles = 0;  ///< of the copy engine
  double ready = 0;   ///< the earliest first request
};

/// What happens at a time that is known: the next product of a scheduler begins, one ends, the copy engine makes its
/// next request, a piece of a copy arrives, an arrival at an mbarrier gets there.
struct Event {
  enum class Kind : uint8_t { kProduct, kProductEnd, kMatrix, kRequest, kPiece, kArrival };
  double time = 0;
  Kind kind = Kind::kProduct;
  int which = 0;  ///< scheduler, warp, copy or CTA
  uint32_t barrier = 0, count = 0;
  int32_t bytes = 0;
  uint64_t order = 0;
  bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
};

class Sm {
 public:
  Sm(const Machine& m, const sass::Code& code, const SmLoad& load)
      : m_(m),
        load_(load),
        facts_(facts_of(m, code)),
        l1_(std::max(0.0, m.unified_bytes - load.shared_bytes)),
        code_(m.instruction_bytes, code.instructions.size(), m.fetch_latency, m.fetch_cycles),
        dram_(m, std::max(1, load.active_sms)) {
    out_.instructions.resize(code.instructions.size());
    const double share = 1.0 / std::max(1, load.active_sms);
    l2_rate_ = std::min(m.l2_bytes_per_cycle, m.l2_total_bytes_per_cycle * share);
    schedulers_.resize(static_cast<size_t>(m.schedulers));
    for (Scheduler& s : schedulers_) s.queue.assign(static_cast<size_t>(m.memory_queue), 0), s.pipe_free.fill(0);
  }

  SmTime run() {
    size_t warps = 0, started = 0;
    for (const auto& cta : load_.ctas) warps += cta->warps.size();
    warps_.reserve(warps);  // references stay valid
    ctas_.reserve(load_.ctas.size());
    for (; started < load_.ctas.size() && started < static_cast<size_t>(load_.resident); ++started) start(started, 0);
    next_cta_ = started;
    while (live_ > 0) {
      Scheduler* first = &schedulers_[0];
      for (Scheduler& s : schedulers_)
        if (s.next < first->next) first = &s;
      if (!events_.empty() && events_.top().time <= first->next) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
        continue;
      }
      if (first->next == kNever) {
        if (!break_wait()) break;  // a deadlock at barriers: the interpreter has reported it
        continue;
      }
      step(*first);
    }
    // The kernel ends when its last stores have arrived.
    out_.cycles = std::max({end_, lsu_free_, l2_free_, dram_.end(), atomic_free_});
    out_.instruction_misses = code_.misses();
    return std::move(out_);
  }

 private:
  struct Product {
    int warp = 0;
    uint32_t index = 0;  ///< of the instruction
    double ready = 0;    ///< when it can begin
  };
  struct Scheduler {
    std::vector<int> warps;  ///< resident, oldest first
    int last = -1;
    double next = 0, last_issue = -1;
    std::array<double, static_cast<size_t>(Pipe::kCount)> pipe_free{};
    std::vector<double> queue;  ///< service times of the last memory instructions
    size_t queue_at = 0;
    std::deque<Product> products;  ///< issued, not begun
    double multiplies_until = 0;   ///< end of the product that has begun
  };

  // ---- Asynchronous units -------------------------------------------------------------------------

  void at(double time, Event::Kind kind, int which, uint32_t barrier = 0, uint32_t count = 0, int32_t bytes = 0) {
    events_.push({time, kind, which, barrier, count, bytes, event_order_++});
    now_ = std::max(now_, time);
  }

  void happen(const Event& e) {
    switch (e.kind) {
      case Event::Kind::kProduct: return begin_product(e.which, e.time);
      case Event::Kind::kMatrix: return begin_matrix(e.time);
      case Event::Kind::kProductEnd: return end_product(e.which, e.time);
      case Event::Kind::kRequest: return request_piece(e.time);
      case Event::Kind::kPiece: return store_piece(e.which, e.bytes, e.time);
      case Event::Kind::kArrival: return arrive(e.which, e.barrier, e.count, e.bytes, e.time);
    }
  }

  void wake(Warp& w, double time, Stall why) {
    w.waits_at = -1;
    w.ready = std::max(w.ready, time);
    w.why = why;
    w.producer = w.last_index;
    Scheduler& s = schedulers_[static_cast<size_t>(w.scheduler)];
    s.next = std::min(s.next, w.ready);
  }

  void issue_product(Scheduler& s, int id, const Facts& f, uint32_t index, double now) {
    Warp& w = warps_[static_cast<size_t>(id)];
    if (!w.group_is_open) w.products.push_back(0);
    ++w.products.back();
    w.group_is_open = !f.ends_group;
    s.products.push_back({id, index, now + m_.product_latency});
    if (s.products.size() == 1)
      at(std::max(now + m_.product_latency, s.pipe_free[f.pipe]), Event::Kind::kProduct,
         static_cast<int>(&s - schedulers_.data()));
  }

  /// The unit multiplies as fast as shared memory delivers the operands.
  void begin_product(int scheduler, double time) {
    Scheduler& s = schedulers_[static_cast<size_t>(scheduler)];
    const auto [warp, index, _] = s.products.front();
    s.products.pop_front();
    const Facts& f = facts_[index];
    const double read = use(lsu_free_, time, f.operand_cycles, out_.shared_cycles) + f.operand_cycles;
    out_.instructions[index].shared += f.operand_cycles;
    const double end = std::max(time + f.interval, read);
    s.pipe_free[f.pipe] = s.multiplies_until = end;
    at(end, Event::Kind::kProductEnd, warp);
    if (!s.products.empty()) at(std::max(end, s.products.front().ready), Event::Kind::kProduct, scheduler);
    s.next = std::min(s.next, std::max(time, last_time_of(s)));  // the queue has room
  }

  double last_time_of(const Scheduler& s) const { return s.last_issue + 1; }

  void end_product(int id, double time) {
    Warp& w = warps_[static_cast<size_t>(id)];
    if (w.products.empty()) return;
    if (--w.products.front() == 0 && (w.products.size() > 1 || !w.group_is_open)) w.products.pop_front();
    if (w.waits_at == kAtProducts && w.products.size() <= w.waits_for) wake(w, time, Stall::kProducts);
  }

  void issue_matrix(const Warp& w, const sass::Sync& sync, uint32_t index, double now) {
    matrix_queue_.push_back({w.cta, index, &sync});
    if (matrix_queue_.size() == 1) at(std::max(now, matrix_free_), Event::Kind::kMatrix, 0);
  }

  void begin_matrix(double time) {
    const auto [cta, index, sync] = matrix_queue_.front();
    matrix_queue_.pop_front();
    Cta& of = ctas_[static_cast<size_t>(cta)];
    if (sync->kind == sass::Sync::Kind::kCommit) {
      at(std::max(time, of.products_end) + m_.commit_cycles, Event::Kind::kArrival, cta, sync->barrier, sync->count);
    } else {
      const MatrixCycles c = matrix_cycles(m_, facts_[index], *sync);
      const double read = use(lsu_free_, time, c.read, out_.shared_cycles) + c.read;
      matrix_free_ = std::max(time + c.interval, read);
      out_.pipe_cycles[static_cast<size_t>(Pipe::kTensor)] += m_.schedulers * c.math;
      out_.instructions[index].pipe += m_.schedulers * c.math;
      out_.instructions[index].shared += c.read;
      out_.instructions[index].flops += c.flops;
      // The measured latency holds the arrival and the wait for it.
      const double end = time + c.latency - m_.commit_cycles - m_.phase_cycles;
      of.products_end = std::max({of.products_end, matrix_free_, end});
    }
    if (!matrix_queue_.empty()) at(std::max(time, matrix_free_), Event::Kind::kMatrix, 0);
  }

  void start_copy(const Warp& w, const sass::Sync& sync, uint32_t sectors, uint32_t index, double now) {
    ctas_[static_cast<size_t>(w.cta)].phases[sync.barrier].copies++;
    // The engine takes one copy after the other, while it makes the requests of those before.
    const double taken = std::max(now, copies_taken_);
    copies_taken_ = taken + m_.copy_issue_cycles;
    copies_.push_back({w.cta, sync.barrier, std::max(sync.bytes, 1u), sectors, sync.ctas, index, 0, 0, sync.senders,
                       copy_cycles(m_, sync), taken + m_.copy_start});
    waiting_copies_.push_back(static_cast<int>(copies_.size()) - 1);
    if (waiting_copies_.size() == 1) request_next();
  }

  /// The copy engine serves copies in their order.
  void request_piece(double time) {
    const int id = waiting_copies_.front();
    Copy& c = copies_[static_cast<size_t>(id)];
    const uint32_t bytes = std::min(kPieceBytes, c.bytes - c.requested);
    const double sectors = static_cast<double>(c.sectors) * bytes / c.bytes;
    const double l2_before = out_.l2_cycles, dram_before = out_.dram_cycles;
    const double arrives = tile_from_l2(time, sectors, c.ctas);
    out_.instructions[c.index].l2 += out_.l2_cycles - l2_before;
    out_.instructions[c.index].dram += out_.dram_cycles - dram_before;
    at(arrives, Event::Kind::kPiece, id, 0, 0, bytes);
    c.requested += bytes;
    copies_free_ = time + c.cycles * bytes / c.bytes;
    if (c.requested == c.bytes) waiting_copies_.pop_front();
    if (!waiting_copies_.empty()) request_next();
  }
  void request_next() {
    at(std::max(copies_[static_cast<size_t>(waiting_copies_.front())].ready, copies_free_), Event::Kind::kRequest, 0);
  }

  void store_piece(int id, uint32_t bytes, double time) {
    Copy& c = copies_[static_cast<size_t>(id)];
    // All CTAs of a cluster load alike: what goes to others from here comes from them, too.
    const double cycles = bytes * c.ctas / m_.shared_bytes_per_cycle;
    const double end = use(fill_free_, time, cycles, out_.fill_cycles) + cycles;
    c.stored += bytes;
    if (c.stored < c.bytes) return;
    Phases& p = ctas_[static_cast<size_t>(c.cta)].phases[c.barrier];
    --p.copies;
    p.bytes -= int64_t{c.bytes} * c.ctas * c.senders;
    complete_phase(c.cta, c.barrier, end);
  }

  /// `bytes`: that the phase waits for from now on; negative ones have come.
  void arrive(int cta, uint32_t barrier, uint32_t count, int32_t bytes, double time) {
    Phases& p = ctas_[static_cast<size_t>(cta)].phases[barrier];
    p.pending -= count;
    p.bytes += bytes;
    complete_phase(cta, barrier, time);
  }

  void complete_phase(int cta, uint32_t barrier, double time) {
    Cta& of = ctas_[static_cast<size_t>(cta)];
    Phases& p = of.phases[barrier];
    if (p.pending > 0 || p.bytes > 0 || p.copies > 0 || p.expected == 0) return;
    p.pending += p.expected;
    p.bytes = 0;
    ++p.complete;
    for (const int id : of.warps) {
      Warp& w = warps_[static_cast<size_t>(id)];
      if (w.waits_at == kAtPhase && w.waits_for == barrier && p.complete > w.phase)
        wake(w, time + m_.phase_cycles, Stall::kPhase);
    }
  }

  /// Cycles to an mbarrier of another CTA, in addition to those of the wait there.
  double way_to_others(bool is_remote) const { return is_remote ? m_.cluster_cycles - m_.phase_cycles : 0; }

  /// An operation on an mbarrier, or a tensor copy.
  void synchronize(Warp& w, const sass::Step& step, double now) {
    const sass::Sync& sync = w.stream->syncs[step.sync()];
    Cta& cta = ctas_[static_cast<size_t>(w.cta)];
    const sass::Access* a = w.stream->access_of(step);
    uint32_t sectors = 0;
    for (uint32_t k = 0; a && k < a->lines; ++k)
      sectors += static_cast<uint32_t>(__builtin_popcount(w.stream->lines[a->first_line + k].sectors));
    Phases& p = cta.phases[sync.barrier];
    switch (sync.kind) {
      case sass::Sync::Kind::kInit: p.expected = sync.count, p.pending = sync.count; return;
      case sass::Sync::Kind::kArrive: {
        w.arrived[sync.barrier] = p.complete;
        const double time = sync.after_copies ? std::max(now, w.copies_done) : now;
        const auto bytes = static_cast<int32_t>(sync.bytes);
        if (!sync.is_remote && time <= now) return arrive(w.cta, sync.barrier, sync.count, bytes, now);
        return at(time + way_to_others(sync.is_remote), Event::Kind::kArrival, w.cta, sync.barrier, sync.count, bytes);
      }
      // All CTAs of a cluster send alike: what leaves here comes from them, too.
      case sass::Sync::Kind::kSend:
        return at(now + way_to_others(true), Event::Kind::kArrival, w.cta, sync.barrier, 0,
                  -static_cast<int32_t>(sync.bytes));
      case sass::Sync::Kind::kWait: {
        const bool of_arrival = sync.parity == sass::Sync::kOfArrival;
        if (of_arrival ? p.complete > w.arrived[sync.barrier] : (p.complete & 1) != sync.parity) return;
        w.waits_at = kAtPhase;
        w.waits_for = sync.barrier;
        w.phase = p.complete;
        return;
      }
      case sass::Sync::Kind::kMatrix:
      case sass::Sync::Kind::kCommit: return issue_matrix(w, sync, step.index, now);
      case sass::Sync::Kind::kLoad: return start_copy(w, sync, sectors, step.index, now);
      case sass::Sync::Kind::kStore: {
        const double cycles = sync.bytes / m_.shared_bytes_per_cycle;
        const double read = use(lsu_free_, now + m_.phase_cycles, cycles, out_.shared_cycles) + cycles;
        out_.instructions[step.index].shared += cycles;
        out_.l2_write_sectors += sectors;
        use(l2_free_, read, sectors * 32 / l2_rate_, out_.l2_cycles);
        dram_.write(read, load_.write_back * sectors, out_.dram_cycles);
        w.copies_done = std::max(w.copies_done, read), w.copies_producer = step.index;
        return;
      }
    }
  }

  /// Lets the longest wait pass, because nothing will end it. False: there is none.
  bool break_wait() {
    for (size_t id = 0; id < warps_.size(); ++id) {
      Warp& w = warps_[id];
      if (w.waits_at < kAtPhase) continue;
      ++out_.broken_waits;
      wake(w, std::max(now_, w.last_issue + 1), Stall::kPhase);
      return true;
    }
    return false;
  }

  /// Ends the phase of the cluster's barrier if all warps that have not ended are there. All CTAs do alike, so that the
  /// others arrive when this one does.
  void complete_cluster(Cta& cta, double at) {
    if (cta.at_cluster == 0 || cta.at_cluster < static_cast<size_t>(cta.live)) return;
    cta.at_cluster = 0;
    ++cta.cluster_phases;
    cta.cluster_released = at + m_.cluster_cycles;
    for (const int id : cta.warps) {
      Warp& w = warps_[static_cast<size_t>(id)];
      if (w.waits_at == kAtCluster) wake(w, cta.cluster_released, Stall::kBarrier);
    }
  }

  void start(size_t which, double at) {
    const sass::CtaStream& stream = *load_.ctas[which];
    const int number = static_cast<int>(ctas_.size());
    Cta& cta = ctas_.emplace_back();
    cta.stream = &stream;
    cta.begin = at;
    for (size_t w = 0; w < stream.warps.size(); ++w) {
      const int id = static_cast<int>(warps_.size());
      Warp& warp = warps_.emplace_back();
      warp.stream = &stream.warps[w];
      warp.next = sass::Cursor(warp.stream->steps);
      warp.cta = number;
      warp.age = age_++;
      warp.begin = warp.ready = warp.last_issue = warp.own_ready = at;
      warp.scheduler = static_cast<int>(next_scheduler_++ % schedulers_.size());
      Scheduler& s = schedulers_[static_cast<size_t>(warp.scheduler)];
      s.warps.push_back(id);
      s.next = std::min(s.next, at);
      cta.warps.push_back(id);
      ++cta.live, ++live_;
      if (warp.ended())
        finish(warp, id, at);
      else
        warp.index = (*warp.next).index;
    }
  }

  void finish(Warp& warp, int id, double at) {
    Scheduler& s = schedulers_[static_cast<size_t>(warp.scheduler)];
    s.warps.erase(std::find(s.warps.begin(), s.warps.end(), id));
    if (s.last == id) s.last = -1;
    out_.warp_cycles += at - warp.begin;
    --live_;
    end_ = std::max(end_, at);
    Cta& cta = ctas_[static_cast<size_t>(warp.cta)];
    --cta.live;
    if (cta.live == 0) {
      out_.ctas.push_back({cta.stream->cta, cta.begin, at});
      if (next_cta_ < load_.ctas.size()) start(next_cta_++, at + m_.new_cta_cycles);
    } else {
      for (size_t b = 0; b < cta.barriers.size(); ++b)
        if (cta.barriers[b].arrived) complete(cta, b, at);
      complete_cluster(cta, at);
    }
  }

  /// Releases the warps at a barrier if enough have arrived. At one of all warps, those that have ended count.
  void complete(Cta& cta, size_t number, double at) {
    Barrier& b = cta.barriers[number];
    const size_t all = cta.warps.size(), ended = all - static_cast<size_t>(cta.live);
    if (b.arrived + (b.wanted >= all ? ended : 0) < std::min(b.wanted, all)) return;
    b.arrived = 0;
    for (const int id : cta.warps) {
      Warp& w = warps_[static_cast<size_t>(id)];
      if (w.waits_at != static_cast<int>(number)) continue;
      w.waits_at = -1;
      w.ready = std::max(w.ready, at + m_.barrier_cycles);
      w.why = Stall::kBarrier;
      w.producer = w.last_index;
      Scheduler& s = schedulers_[static_cast<size_t>(w.scheduler)];
      s.next = std::min(s.next, w.ready);
    }
  }

  /// When the warp could issue its next instruction, by the shared units alone.
  double unit_free(const Scheduler& s, const Facts& f) const {
    if (f.is_product) return s.products.size() < static_cast<size_t>(m_.product_queue) ? 0 : kNever;
    double at = s.pipe_free[f.pipe];
    if (f.is_memory) at = std::max(at, s.queue[s.queue_at]);
    return at;
  }

  void step(Scheduler& s) {
    const double now = s.next;
    int chosen = -1;
    double soonest = kNever;
    const auto consider = [&](int id) {
      const Warp& w = warps_[static_cast<size_t>(id)];
      if (w.waits_at >= 0) return false;
      const double at = std::max(w.ready, unit_free(s, facts_[w.index]));
      soonest = std::min(soonest, at);
      if (at > now) return false;
      chosen = id;
      return true;
    };
    if (s.last < 0 || !consider(s.last))
      for (const int id : s.warps)
        if (id != s.last && consider(id)) break;
    if (chosen < 0) {
      s.next = soonest;
      return;
    }
    s.last = chosen;
    issue(s, chosen, now);
    s.next = std::max(s.next, now + 1);
  }

  void issue(Scheduler& s, int id, double now) {
    Warp& w = warps_[static_cast<size_t>(id)];
    const sass::Step step = *w.next;
    const Facts& f = facts_[step.index];
    account(s, w, f, step.index, now);
    if (out_.trace.size() < load_.trace_spans) trace(w, id, step.index, now);
    s.last_issue = now;
    if (f.is_product)
      issue_product(s, id, f, step.index, now);
    else
      s.pipe_free[f.pipe] = now + f.interval;
    out_.pipe_cycles[f.pipe] += f.interval;
    out_.instructions[step.index].pipe += f.interval;
    ++out_.issues;

    double result_at = now + f.latency, operands_at = now + 6;
    if (f.is_memory) memory(s, w, f, step, now, result_at, operands_at);
    if (f.write_barrier < 6) hold(w.scoreboards[f.write_barrier], result_at, step.index, f.cause);
    if (f.read_barrier < 6 && !(f.action == Action::kCommit))
      hold(w.scoreboards[f.read_barrier], operands_at, step.index, f.is_memory ? Stall::kQueue : Stall::kFixed);
    if (f.action == Action::kCommit) w.groups.emplace_back(w.copies_done, w.copies_producer), w.copies_done = 0;

    ++w.next;
    const bool ended = w.ended();
    if (!ended) w.index = (*w.next).index;
    w.last_index = step.index;
    w.last_issue = now;
    w.own_ready = now + f.stall + (f.is_product || s.multiplies_until <= now ? 0 : m_.beside_product_cycles);
    // The stall counts of branches and of convergence are their own cost.
    w.why = w.own_why = f.is_branch ? Stall::kBranch : Stall::kFixed;
    w.producer = ~0u;
    if (f.is_branch && !ended && w.index != step.index + 1) {
      w.own_ready = std::max(w.own_ready, now + m_.branch_cycles);
      w.own_why = Stall::kBranch;
    }
    if (!ended) {
      const uint32_t line = w.index / InstructionCache::kInstructionsPerLine;
      if (line != step.index / InstructionCache::kInstructionsPerLine) {
        const double at = code_.ready(line, now);
        if (at > w.own_ready) w.own_ready = at, w.own_why = Stall::kFetch;
      }
    }
    w.ready = w.own_ready;
    if (ended) return finish(w, id, now + 1);
    // The next instruction waits for scoreboards, or for groups of copies.
    const Facts& n = facts_[w.index];
    for (int b = 0; b < 6; ++b)
      if (n.wait_mask >> b & 1) wait_for(w, w.scoreboards[static_cast<size_t>(b)]);
    if (n.action == Action::kDepbar && n.depbar >= 0) {
      while (w.groups.size() > n.depbar_left) {
        wait_for(w, {w.groups.front().first, w.groups.front().second, Stall::kCopies});
        w.groups.pop_front();
      }
    }
    if (step.is_sync()) synchronize(w, step, now);
    if (f.groups_left >= 0 && w.products.size() > static_cast<size_t>(f.groups_left)) {
      w.waits_at = kAtProducts;
      w.waits_for = static_cast<uint32_t>(f.groups_left);
    }
    if (f.action == Action::kClusterArrive) {
      Cta& cta = ctas_[static_cast<size_t>(w.cta)];
      ++cta.at_cluster;
      complete_cluster(cta, now);
    }
    if (f.action == Action::kClusterWait) {
      const Cta& cta = ctas_[static_cast<size_t>(w.cta)];
      if (++w.cluster_waits > cta.cluster_phases)
        w.waits_at = kAtCluster;
      else if (cta.cluster_released > w.ready)
        w.ready = cta.cluster_released, w.why = Stall::kBarrier, w.producer = step.index;
    }
    if (step.is_barrier()) {
      Cta& cta = ctas_[static_cast<size_t>(w.cta)];
      const size_t number = step.barrier_number() % cta.barriers.size();
      if (!f.arrives_only) w.waits_at = static_cast<int>(number);
      ++cta.barriers[number].arrived;
      cta.barriers[number].wanted = step.barrier_warps();
      complete(cta, number, now);
    }
  }

  static void wait_for(Warp& w, const Scoreboard& b) {
    if (b.free_at <= w.ready) return;
    w.ready = b.free_at;
    w.why = b.cause;
    w.producer = b.producer;
  }

  static void hold(Scoreboard& b, double until, uint32_t producer, Stall cause) {
    if (until < b.free_at) return;
    b = {until, producer, cause};
  }

  /// The load-store unit, and what is after it.
  void memory(Scheduler& s, Warp& w, const Facts& f, const sass::Step& step, double now, double& result_at,
              double& operands_at) {
    static constexpr sass::Access kNone;
    const sass::Access& a = !step.has_access() ? kNone : w.stream->accesses[step.access];
    const double l2_before = out_.l2_cycles, dram_before = out_.dram_cycles;
    double start = std::max(now + 4, lsu_free_);
    double busy = 0, done = 0;
    if (f.is_shared) {
      const double wavefronts = f.action == Action::kShfl ? 1 : std::max<double>(a.wavefronts, a.same);
      const double cycles = wavefronts > 0 ? std::max(m_.shared_least, m_.cycles_per_wavefront * wavefronts) : 1;
      busy += cycles;
      out_.shared_cycles += cycles;
      out_.instructions[step.index].shared += cycles;
      done = start + busy + m_.shared_latency;
    }
    if (a.lines) {
      const sass::LineRequest* line = &w.stream->lines[a.first_line];
      uint32_t sectors = 0;
      const double slot = start + busy;
      if (f.reads_device && load_.misses) {
        miss_debt_.resize(facts_.size());
        double& debt = miss_debt_[step.index];
        debt += (*load_.misses)[step.index];
        done = std::max(done, debt >= 1 ? from_l2(slot, 1, false) : slot + m_.l1_latency);
        if (debt >= 1) debt -= 1;
      }
      for (uint32_t k = 0; k < a.lines; ++k) {
        const auto count = static_cast<uint32_t>(__builtin_popcount(line[k].sectors));
        sectors += count;
        const bool local = line[k].line >= sass::kLocalLines;
        if (f.reads_device && !load_.misses) {
          out_.load_sectors += count;
          uint8_t missing = line[k].sectors;
          if (!f.bypasses_l1) missing = l1_.missing(line[k].line, line[k].sectors);
          const auto misses = static_cast<uint32_t>(__builtin_popcount(missing));
          out_.l1_hit_sectors += count - misses;
          if (!misses) {
            done = std::max(done, slot + m_.l1_latency);
            continue;
          }
          done = std::max(done, from_l2(slot, misses, local));
        }
        if (f.writes_device) {
          if (local) {
            l1_.keep(line[k].line, line[k].sectors);
            continue;
          }
          out_.l2_write_sectors += count;
          use(l2_free_, slot, count * 32 / l2_rate_, out_.l2_cycles);
          dram_.write(slot, load_.write_back * count, out_.dram_cycles);
        }
      }
      if (const uint32_t evicted = l1_.take_evicted()) {
        out_.l2_write_sectors += evicted;
        use(l2_free_, slot, evicted * 32 / l2_rate_, out_.l2_cycles);
        dram_.write(slot, load_.local_miss * evicted, out_.dram_cycles);
      }
      // One line of tags a cycle, 128 bytes of data a cycle.
      const double cycles = std::max<double>({m_.shared_least, static_cast<double>(a.tags), sectors / 4.0});
      busy += cycles;
      out_.l1_cycles += cycles;
      out_.instructions[step.index].l1 += cycles;
    }
    if (f.atomic && a.same) {
      // L2 takes one operation on an address a cycle, of all SMs; its result comes back as a load's does.
      const double begin = use(atomic_free_, start, a.same * load_.atomic_sharers, out_.atomic_cycles);
      done = begin + m_.l2_latency;
    }
    busy = std::max(busy, 1.0);
    lsu_free_ = start + busy;
    // Operations that L2 has not taken yet fill the queue.
    s.queue[s.queue_at] = f.atomic ? std::max(start, atomic_free_ - m_.l2_latency) : start;
    s.queue_at = (s.queue_at + 1) % s.queue.size();
    out_.instructions[step.index].l2 += out_.l2_cycles - l2_before;
    out_.instructions[step.index].dram += out_.dram_cycles - dram_before;
    operands_at = start + 4;
    result_at = std::max(done, start + busy);
    if (f.action == Action::kLdgsts && result_at > w.copies_done)
      w.copies_done = result_at, w.copies_producer = step.index;
  }

  static double use(double& free_at, double from, double cycles, double& busy) {
    const double begin = std::max(free_at, from);
    free_at = begin + cycles;
    busy += cycles;
    return begin;
  }

  /// Arrival of sectors that L1 does not have.
  double from_l2(double at, uint32_t sectors, bool local) {
    out_.l2_read_sectors += sectors;
    const double begin = use(l2_free_, at, 32.0 * sectors / l2_rate_, out_.l2_cycles);
    double done = begin + m_.l2_latency;
    dram_debt_ += (local ? load_.local_miss : load_.l2_miss) * sectors;
    // What one CTA reads of a line, others read, too: all of it is in L2, or nothing.
    if (dram_debt_ > sectors - kSliver) {
      dram_debt_ -= sectors;
      out_.dram_read_sectors += sectors;
      done = std::max(done, dram_.read(begin, sectors, out_.dram_cycles) + m_.dram_latency);
    }
    return done;
  }

  /// The same for a part of a tile, which the SM receives once from each of `ctas` that load for each other.
  double tile_from_l2(double at, double sectors, uint32_t ctas) {
    out_.l2_read_sectors += static_cast<uint64_t>(std::lround(sectors));
    const double bytes = 32.0 * sectors;
    const double share = copy_rate(m_, load_) / std::max(1, load_.active_sms);
    // An SM that has not used its share of L2 for a while, which others had meanwhile, makes up for it.
    l2_free_ = std::max(l2_free_, at - m_.copy_burst_cycles);
    const double cycles = std::max(bytes / share, bytes * ctas / m_.copy_bytes_per_cycle);
    const double begin = std::max(at, l2_free_);
    l2_free_ += cycles;
    out_.l2_cycles += cycles;
    double done = begin + m_.l2_latency;
    tile_debt_ += load_.l2_miss * sectors;
    if (const double whole = std::floor(tile_debt_); whole > 0) {
      tile_debt_ -= whole;
      out_.dram_read_sectors += whole;
      done = std::max(done, dram_.read(begin, whole, out_.dram_cycles) + m_.dram_latency);
    }
    return done;
  }

  void trace(const Warp& w, int id, uint32_t index, double now) {
    if (now > w.last_issue + 1) {
      const Stall why = now > w.ready ? Stall::kNotSelected : w.ready > w.own_ready ? w.why : w.own_why;
      out_.trace.push_back({id, w.scheduler, index, false, why, w.last_issue + 1, now});
    }
    out_.trace.push_back({id, w.scheduler, index, true, Stall::kFixed, now, now + 1});
  }

  /// The warp's cycles since its last issue, by cause.
  void account(const Scheduler& s, const Warp& w, const Facts& f, uint32_t index, double now) {
    InstructionTime& i = out_.instructions[index];
    ++i.issues;
    const auto add = [&](Stall cause, double cycles) {
      if (cycles <= 0) return;
      // A warp waits at the barrier, not at the instruction after it.
      InstructionTime& at = cause == Stall::kBarrier ? out_.instructions[w.producer] : i;
      at.stalls[static_cast<size_t>(cause)] += cycles;
      out_.stalls[static_cast<size_t>(cause)] += cycles;
    };
    const double fixed = std::min(w.own_ready, now);
    add(w.own_why, fixed - w.last_issue - 1);
    const double own = std::min(w.ready, now);
    if (own > fixed) {
      add(w.why, own - fixed);
      if (w.producer != ~0u && w.why != Stall::kBarrier) out_.instructions[w.producer].blamed += own - fixed;
    }
    if (now > own) {
      const double pipe = std::clamp(s.pipe_free[f.pipe] - own, 0.0, now - own);
      const double queue = f.is_memory ? std::clamp(s.queue[s.queue_at] - own, 0.0, now - own) : 0;
      const double unit = std::max(pipe, queue);
      add(queue > pipe ? Stall::kQueue : Stall::kPipe, unit);
      add(Stall::kNotSelected, now - own - unit);
    }
  }

  const Machine& m_;
  const SmLoad& load_;
  std::vector<Facts> facts_;
  L1Cache l1_;
  InstructionCache code_;
  DramShare dram_;
  SmTime out_;
  std::vector<Scheduler> schedulers_;
  std::vector<double> miss_debt_;
  std::vector<Warp> warps_;
  std::vector<Cta> ctas_;
  std::priority_queue<Event> events_;
  std::vector<Copy> copies_;
  std::deque<MatrixWork> matrix_queue_;
  double matrix_free_ = 0;
  std::deque<int> waiting_copies_;  ///< that the copy engine has not requested to their ends
  double copies_free_ = 0, copies_taken_ = 0, tile_debt_ = 0, now_ = 0;
  uint64_t event_order_ = 0;
  size_t next_cta_ = 0;
  size_t next_scheduler_ = 0;
  int live_ = 0;
  uint64_t age_ = 0;
  double end_ = 0, lsu_free_ = 0, fill_free_ = 0, l2_free_ = 0, atomic_free_ = 0, dram_debt_ = 0, l2_rate_ = 64;
};

constexpr const char* kStallNames[] = {"fixed latency", "pipe busy",    "memory queue full", "shared memory",
                                       "device memory", "local memory", "special function",  "atomics",
                                       "copies",        "products",     "tensor memory",     "mbarrier",
                                       "barrier",       "branch",       "instruction fetch", "not selected"};

}  // namespace

const char* to_string(Stall stall) { return kStallNames[static_cast<size_t>(stall)]; }

double copy_rate(const Machine& m, const SmLoad& load) {
  return m.copy_l2_bytes_per_cycle + load.copy_sharing * (m.shared_copy_l2_bytes_per_cycle - m.copy_l2_bytes_per_cycle);
}

SmTime simulate_sm(const Machine& machine, const sass::Code& code, const SmLoad& load) {
  return Sm(machine, code, load).run();
}

}  // namespace roofgen::timing
