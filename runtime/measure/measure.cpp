#include "runtime/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <tuple>

#include "base/suggest.h"
#include "runtime/measure/rig.h"
#include "runtime/measure/statistics.h"

namespace roofgen {
namespace {

constexpr uint64_t kFewSamples = 10;  // more samples would be a steady load
constexpr double kBehind = 1.1;
constexpr double kHopeless = 5;  // times seconds_each, even below min_samples
constexpr uint64_t kMostBatch = 1024;
constexpr double kBatchSpread = 4;  // kernels within this factor of `short_ns` use the fastest kernel's batch
constexpr double kMessageNs = 2e9;  // total time of shots sent in one message, well below the time-out of one shot
constexpr double kFirstWait = 0.05, kWaitStep = 0.5;  // as nvbench does
constexpr int kMostThrottled = 20;                    // rounds in a row
constexpr double kMostWaiting =
    120;  // total seconds with and without throttling; twenty throttled rounds in a row take 86 s
constexpr uint64_t kSlowdown = kLimitHwSlowdown | kLimitThermalSw | kLimitThermalHw | kLimitPowerBrake;
constexpr size_t kFewestPairs = 6;  // fewer pairs have no 95 % interval

constexpr int kMostIdleDeaths = 3;  // deaths of idle workers that no contender is blamed for

enum class Way { kCold, kHot };

struct Taken {
  std::vector<double> times;  ///< accepted samples
  std::vector<Sample> samples;
  uint64_t discarded = 0, next_check = 0;
  double spent_s = 0;
  bool narrow = false;  ///< at the last check
  std::string stopped;
  Timing timing;  ///< of `times` at the last request

  const Timing& summary() {
    if (timing.samples != times.size()) timing = summarize(times);
    return timing;
  }
};

struct Entrant {
  double screened_ns = 0;
  int batch = 1;
  Taken cold, hot;
  std::optional<Rejected> rejected;
  Taken& of(Way way) { return way == Way::kCold ? cold : hot; }
};

const char* stage_of(Fault fault) {
  switch (fault) {
    case Fault::kKernel: return "gpu fault";
    case Fault::kTimeout: return "gpu timeout";
    case Fault::kMemory: return "gpu memory";
    default: return "gpu";
  }
}

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return v <= 0; });
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : quantile(values, 0.5);
}

class Contest {
 public:
  Contest(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders,
          const Protocol& protocol, const BenchHooks& hooks)
      : gpu_(gpu),
        contenders_(contenders),
        protocol_(protocol),
        hooks_(hooks),
        rig_(gpu, workload, protocol.cold),
        entrants_(contenders.size()) {}

  /// Runs the whole protocol.
  Result<Standings> play() {
    ROOFGEN_CHECK(rig_.set_up());
    look_around();
    screen();
    choose_batches();
    if (!few()) warm_up();
    if (protocol_.cold) rounds(Way::kCold);
    if (protocol_.hot) rounds(Way::kHot);
    conclude();
    finals();
    remarks();
    if (out_.lost && !screened_any_)
      return Error{Exit::kUnavailable, "the GPU was lost before anything was timed: " + out_.lost_because};
    if (given_up_ && !screened_any_) return Error{Exit::kFailed, given_up_->reason};
    return std::move(out_);
  }

 private:
  bool few() const { return protocol_.mode != Protocol::Mode::kSteady; }
  void rest() {
    if (protocol_.mode == Protocol::Mode::kBurst) hooks_.clock.sleep_s(protocol_.rest_s);
  }
  Way ranking() const { return protocol_.cold ? Way::kCold : Way::kHot; }
  bool over() {
    if (hooks_.stop && hooks_.stop->load()) out_.interrupted = true;
    if (hooks_.deadline_s && !late_ && hooks_.clock.now_s() > *hooks_.deadline_s) {
      late_ = true;
      note("the time was up before all was timed to the end");
    }
    return halted() || out_.interrupted || late_;
  }
  bool halted() const { return out_.lost || given_up_; }
  void progress(const char* phase, uint64_t done, uint64_t total) {
    if (hooks_.progress) hooks_.progress(phase, done, total);
  }
  void note(std::string text, bool warn = false) {
    if (warn && hooks_.warn) hooks_.warn(text);
    out_.notes.push_back(std::move(text));
  }
  std::vector<size_t> running() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < entrants_.size(); ++i)
      if (!entrants_[i].rejected) out.push_back(i);
    return out;
  }

  void look_around() {
    auto state = gpu_.state();
    if (state && state->other_processes > 0)
      note(fmt::format("{} other process{} on this GPU: times may be longer than on a free one", state->other_processes,
                       state->other_processes == 1 ? " computes" : "es compute"),
           true);
    default_mhz_ = gpu_.identity().default_sm_mhz;
    if (default_mhz_ <= 0) note("the default clock is unknown: no sample is discarded for a slow clock");
    if (!protocol_.cold) return;  // hot runs need only one set of buffers
    if (rig_.l2_bytes() == 0)
      note("the size of L2 is unknown");
    else if (!rig_.enough_sets())
      note(fmt::format("{} set{} of buffers together are less than three times L2: the flush alone keeps samples cold",
                       rig_.sets(), rig_.sets() == 1 ? "" : "s"));
  }

  /// Handles a failed call: the responsible contender is rejected, a lost GPU ends the measurement. Restores the
  /// worker.
  void blame(size_t who, const Error& error, const char* phase) {
    Fault fault = gpu_.fault();
    if (fault == Fault::kLost) return lose(error.message);
    // The death of an idle worker also loses all handles. No contender is to blame unless it recurs.
    const bool innocent = fault == Fault::kRefused && !rig_.current() && ++idle_deaths_ <= kMostIdleDeaths;
    if (!innocent)
      entrants_[who].rejected = Rejected{{}, stage_of(fault), fmt::format("{} ({})", error.message, phase)};
    auto ready = rig_.refresh();
    if (ready) return;
    if (gpu_.fault() == Fault::kLost) return lose(ready.error().message);
    // The GPU works, but its data cannot be restored (too little memory, or a failing preparation kernel).
    given_up_ = Rejected{
        {}, stage_of(gpu_.fault()), "the buffers could not be restored after a fault: " + ready.error().message};
    note("the measurement ended early: " + given_up_->reason, true);
  }
  void lose(const std::string& why) {
    out_.lost = true;
    out_.lost_because = why;
  }

  Result<Shot> shot_of(size_t who, Way way, int batch) {
    Shot out;
    out.flush = way == Way::kCold;
    out.graph = batch > 1;
    for (int i = 0; i < batch; ++i) {
      size_t set = way == Way::kCold ? next_set_++ % rig_.sets() : 0;
      ROOFGEN_TRY(std::vector<Step> steps, rig_.steps(contenders_[who], set));
      out.steps.insert(out.steps.end(), std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
    }
    return out;
  }

  /// One sample per contender in the given order, per single repetition. Contenders that fail are rejected and have no
  /// sample. The remaining shots of a failed message are executed again, because their samples are lost with it.
  std::vector<std::optional<Sample>> fire(const std::vector<size_t>& order, Way way, const char* phase) {
    std::vector<std::optional<Sample>> out(order.size());
    for (size_t begin = 0; begin < order.size() && !halted();) {
      std::vector<Shot> shots;
      std::vector<size_t> at;  // indices into `order`
      double expected_ns = 0;
      size_t end = begin;
      bool failed = false;
      for (; end < order.size(); ++end) {
        Entrant& entrant = entrants_[order[end]];
        if (entrant.rejected) continue;
        expected_ns += entrant.screened_ns * entrant.batch;
        if (!shots.empty() && expected_ns > kMessageNs) break;
        if (way == Way::kHot) {  // an untimed run brings the data back into L2
          auto warm = shot_of(order[end], way, 1);
          if (warm) shots.push_back(std::move(*warm));
        }
        auto shot = shot_of(order[end], way, entrant.batch);
        if (!shot) {
          blame(order[end], shot.error(), phase);
          failed = true;
          break;
        }
        at.push_back(end);
        shots.push_back(std::move(*shot));
      }
      if (failed) continue;
      if (shots.empty()) break;
      size_t done = 0;
      const size_t per = way == Way::kHot ? 2 : 1;
      auto samples = gpu_.time(shots, &done);
      if (!samples || samples->size() != shots.size()) {
        size_t bad = std::min(done / per, at.size() - 1);
        blame(order[at[bad]], samples ? Error{Exit::kFailed, "the GPU gave too few samples"} : samples.error(), phase);
        continue;
      }
      for (size_t i = 0; i < at.size(); ++i) {
        Sample sample = (*samples)[i * per + per - 1];
        sample.time_ns /= entrants_[order[at[i]]].batch;
        out[at[i]] = sample;
      }
      begin = end;
    }
    return out;
  }

  /// Each contender alone, twice: the first launch of a module may load code.
  void screen() {
    for (size_t i = 0; i < contenders_.size() && !over(); ++i) {
      progress("screen", i, contenders_.size());
      std::optional<Sample> sample;
      for (int time = 0; time < 2 && !entrants_[i].rejected && !halted(); ++time)
        sample = fire({i}, Way::kCold, "screening")[0];
      if (sample) {
        entrants_[i].screened_ns = sample->time_ns;
        screened_any_ = true;
      }
      if (entrants_[i].rejected) screened_any_ = true;
    }
    progress("screen", contenders_.size(), contenders_.size());
  }

  /// Short kernels are repeated within a graph. All kernels near the fastest use its number of repetitions, because
  /// repeated and single launches are not comparable.
  void choose_batches() {
    double fastest = std::numeric_limits<double>::infinity();
    for (size_t i : running())
      if (entrants_[i].screened_ns > 0) fastest = std::min(fastest, entrants_[i].screened_ns);
    if (!(fastest < protocol_.short_ns)) return;
    uint64_t batch = 1;
    while (batch < kMostBatch && static_cast<double>(batch) * fastest < 10 * protocol_.short_ns) batch *= 2;
    for (size_t i : running())
      if (entrants_[i].screened_ns < kBatchSpread * protocol_.short_ns) entrants_[i].batch = static_cast<int>(batch);
  }

  void warm_up() {
    const double begin = hooks_.clock.now_s();
    for (double now = begin; now - begin < protocol_.warmup_s && !over() && !running().empty();
         now = hooks_.clock.now_s()) {
      progress("warm up", static_cast<uint64_t>(1000 * (now - begin)),
               static_cast<uint64_t>(1000 * protocol_.warmup_s));
      fire(running(), ranking(), "warm-up");
    }
  }

  /// The order of round `round`: A B C, B C A, ...; the seed selects the start.
  std::vector<size_t> order_of(std::vector<size_t> who, uint64_t round) const {
    if (!who.empty())
      std::rotate(who.begin(), who.begin() + static_cast<ptrdiff_t>((protocol_.seed % who.size() + round) % who.size()),
                  who.end());
    return who;
  }

  bool throttled(const Sample& sample) const {
    return !give_up_ && default_mhz_ > 0 && sample.sm_mhz > 0 && sample.sm_mhz < protocol_.slow_clock * default_mhz_ &&
           (sample.limits & kSlowdown) != 0;
  }

  /// After a round: waits, longer each time, while the GPU is throttled.
  void wait_out(bool held_down) {
    if (!held_down) {
      in_a_row_ = 0;
      wait_s_ = kFirstWait;
      return;
    }
    if (++in_a_row_ >= kMostThrottled || waited_s_ >= kMostWaiting) {
      give_up_ = true;
      note(
          "the GPU is throttled by heat or its power supply and does not recover: samples at a low clock "
          "count from here on",
          true);
      return;
    }
    hooks_.clock.sleep_s(wait_s_);
    waited_s_ += wait_s_;
    wait_s_ += kWaitStep;
  }

  void rounds(Way way) {
    const char* phase = way == Way::kCold ? "cold" : "hot";
    if (few() && !over()) fire(running(), way, phase);  // untimed
    for (uint64_t round = 0;; ++round) {
      std::vector<size_t> active;
      for (size_t i : running())
        if (entrants_[i].of(way).stopped.empty()) active.push_back(i);
      progress(phase, running().size() - active.size(), running().size());
      if (active.empty()) return;
      if (over()) {
        for (size_t i : active)
          entrants_[i].of(way).stopped = late_ && !out_.interrupted && !out_.lost ? "out of time" : "interrupted";
        return;
      }
      rest();
      std::vector<size_t> order = order_of(active, round);
      const double begin = hooks_.clock.now_s();
      auto samples = fire(order, way, phase);
      const double each_s = (hooks_.clock.now_s() - begin) / static_cast<double>(order.size());
      bool held_down = false;
      for (size_t i = 0; i < order.size(); ++i) {
        Taken& taken = entrants_[order[i]].of(way);
        taken.spent_s += each_s;
        if (!samples[i]) continue;
        if (throttled(*samples[i])) {
          held_down = true;
          ++taken.discarded;
          continue;
        }
        taken.times.push_back(samples[i]->time_ns);
        taken.samples.push_back(*samples[i]);
      }
      for (size_t i : order) consider(i, way);
      wait_out(held_down);
    }
  }

  /// Whether the contender has enough samples. Checks happen at growing sample counts, and settling needs two checks in
  /// a row: a check after every sample would stop at the first lucky streak.
  void consider(size_t who, Way way) {
    Taken& taken = entrants_[who].of(way);
    const uint64_t n = taken.times.size();
    const uint64_t most = few() ? std::min(protocol_.max_samples, kFewSamples) : protocol_.max_samples;
    if (n >= most) {
      taken.stopped = "most samples";
    } else if (taken.spent_s >= protocol_.seconds_each &&
               (n >= protocol_.min_samples || taken.spent_s >= kHopeless * protocol_.seconds_each)) {
      taken.stopped = "out of time";
    } else if (n >= std::max<uint64_t>(protocol_.min_samples, kFewestPairs) && n >= taken.next_check) {
      taken.next_check = n + std::max<uint64_t>(n / 2, 1);
      const Timing& timing = taken.summary();
      bool narrow = (timing.high_ns - timing.low_ns) / 2 < protocol_.settled * timing.median_ns;
      if (narrow && taken.narrow)
        taken.stopped = "settled";
      else if (behind(who, timing, way))
        taken.stopped = "behind";
      taken.narrow = narrow;
    }
  }

  bool behind(size_t who, const Timing& timing, Way way) {
    if (contenders_[who].keep) return false;
    size_t better = 0;
    double best_high = std::numeric_limits<double>::infinity(), best = best_high;
    for (size_t i : running()) {
      Taken& other = entrants_[i].of(way);
      if (i == who || other.times.size() < protocol_.min_samples) continue;
      const Timing& theirs = other.summary();
      if (theirs.median_ns < timing.median_ns) ++better;
      if (theirs.median_ns < best) best = theirs.median_ns, best_high = theirs.high_ns;
    }
    return better >= protocol_.finalists && timing.low_ns > kBehind * best_high;
  }

  std::optional<Timing> timing_of(const Taken& taken) const {
    // A contender stopped before the minimum number of samples has no result.
    if (taken.times.empty() || taken.stopped.empty()) return std::nullopt;
    if ((taken.stopped == "interrupted" || late_) && taken.times.size() < protocol_.min_samples) return std::nullopt;
    Timing out = summarize(taken.times);
    out.stopped = taken.stopped;
    out.discarded = taken.discarded;
    return out;
  }

  void conclude() {
    out_.buffer_sets = static_cast<int>(std::max<size_t>(rig_.sets(), 1));
    out_.outcomes.resize(entrants_.size());
    for (size_t i = 0; i < entrants_.size(); ++i) {
      Entrant& entrant = entrants_[i];
      Outcome& outcome = out_.outcomes[i];
      if (entrant.rejected) {
        outcome.rejected = entrant.rejected;
        continue;
      }
      Measurement m;
      m.cold = timing_of(entrant.cold);
      m.hot = timing_of(entrant.hot);
      m.batch = entrant.batch;
      if (!(ranking() == Way::kCold ? m.cold : m.hot)) {
        const std::string why = out_.lost          ? out_.lost_because
                                : out_.interrupted ? "interrupted"
                                : late_            ? "the time was up before it was timed"
                                                   : "no sample was taken in time";
        outcome.rejected = given_up_ ? *given_up_ : Rejected{{}, "gpu", why};
        continue;
      }
      const std::vector<Sample>& samples = entrant.of(ranking()).samples;
      auto middle = [&](double Sample::*field) {
        std::vector<double> values;
        for (const Sample& sample : samples) values.push_back(sample.*field);
        return median_of(std::move(values));
      };
      m.sm_mhz = middle(&Sample::sm_mhz);
      m.power_w = middle(&Sample::power_w);
      m.temperature_c = middle(&Sample::temperature_c);
      for (const Taken* taken : {&entrant.cold, &entrant.hot})
        for (const Sample& sample : taken->samples) m.power_capped += (sample.limits & kLimitPowerCap) != 0;
      outcome.measurement = std::move(m);
      out_.order.push_back(i);
    }
    std::stable_sort(out_.order.begin(), out_.order.end(), [&](size_t a, size_t b) {
      return std::pair(ranked_ns(a), contenders_[a].name) < std::pair(ranked_ns(b), contenders_[b].name);
    });
  }
  double ranked_ns(size_t who) const {
    const Measurement& m = *out_.outcomes[who].measurement;
    return (ranking() == Way::kCold ? m.cold : m.hot)->median_ns;
  }

  /// times[i][r]: time of finalist i in round r; 0 without an accepted sample.
  using FinalTimes = std::vector<std::vector<double>>;

  /// Whether b is faster than a beyond the interval.
  static bool beaten(const std::vector<double>& a, const std::vector<double>& b) {
    return paired_count(a, b) >= kFewestPairs && paired_ratio(b, a).interval.high < 1;
  }
  static size_t paired_count(const std::vector<double>& a, const std::vector<double>& b) {
    size_t out = 0;
    for (size_t i = 0; i < a.size(); ++i) out += a[i] > 0 && b[i] > 0;
    return out;
  }
  static Pairing pair(size_t contender, const std::vector<double>& times, const std::vector<double>& winner) {
    Ratio ratio = paired_ratio(times, winner);
    bool told_apart =
        paired_count(times, winner) >= kFewestPairs && (ratio.interval.low > 1 || ratio.interval.high < 1);
    return {contender, ratio.median, ratio.interval.low, ratio.interval.high, !told_apart};
  }

  void finals() {
    std::vector<size_t> who(out_.order.begin(), out_.order.begin() + static_cast<ptrdiff_t>(std::min(
                                                                         protocol_.finalists, out_.order.size())));
    if (who.size() < 2 || over()) return;
    const uint64_t total = few() ? std::min(protocol_.final_rounds, kFewSamples) : protocol_.final_rounds;
    std::vector<std::vector<double>> times(entrants_.size());
    for (uint64_t round = 0; round < total && !over(); ++round) {
      progress("final", round, total);
      rest();
      std::vector<size_t> in;
      for (size_t i : who)
        if (!entrants_[i].rejected) in.push_back(i);
      if (in.size() < 2) break;
      std::vector<size_t> order = order_of(in, round);
      auto samples = fire(order, ranking(), "final");
      bool held_down = false;
      for (size_t i : in) times[i].push_back(0);
      for (size_t i = 0; i < order.size(); ++i) {
        if (!samples[i]) continue;
        if (throttled(*samples[i]))
          held_down = true;
        else
          times[order[i]].back() = samples[i]->time_ns;
      }
      wait_out(held_down);
    }
    for (size_t i : who) {  // a failure in the final excludes a contender, whatever its earlier results
      if (!entrants_[i].rejected) continue;
      out_.outcomes[i] = {std::nullopt, entrants_[i].rejected};
      std::erase(out_.order, i);
    }
    std::erase_if(who, [&](size_t i) { return entrants_[i].rejected.has_value(); });
    if (who.size() < 2 || halted() || out_.interrupted) return;
    settle(who, times);
  }

  /// Selects the winner among the unbeaten finalists that tie with the leader, by registers, shared memory and name.
  void settle(std::vector<size_t> who, const FinalTimes& times) {
    auto middle = [&](size_t i) {
      double m = median_of(times[i]);
      return m > 0 ? m : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(who.begin(), who.end(), [&](size_t a, size_t b) { return middle(a) < middle(b); });
    std::vector<size_t> best;
    for (size_t i : who) {
      bool lost = std::any_of(who.begin(), who.end(), [&](size_t j) { return j != i && beaten(times[i], times[j]); });
      if (!lost && (i == who[0] || pair(i, times[i], times[who[0]]).tied)) best.push_back(i);
    }
    if (best.empty()) best = {who[0]};  // every finalist is beaten by another: the lowest median wins
    size_t winner = *std::min_element(best.begin(), best.end(), [&](size_t a, size_t b) {
      const Contender &x = contenders_[a], &y = contenders_[b];
      return std::tie(x.registers, x.smem_bytes, x.name) < std::tie(y.registers, y.smem_bytes, y.name);
    });
    std::stable_partition(who.begin(), who.end(), [&](size_t i) { return i == winner; });
    for (size_t i : who)
      out_.finalists.push_back(i == winner ? Pairing{i, 1, 1, 1, true} : pair(i, times[i], times[winner]));
    std::vector<size_t> order = who;
    for (size_t i : out_.order)
      if (std::find(who.begin(), who.end(), i) == who.end()) order.push_back(i);
    out_.order = std::move(order);
  }

  void remarks() {
    uint64_t discarded = 0, capped = 0, samples = 0;
    for (const Entrant& entrant : entrants_)
      for (const Taken* taken : {&entrant.cold, &entrant.hot}) {
        discarded += taken->discarded;
        samples += taken->samples.size();
        for (const Sample& sample : taken->samples) capped += (sample.limits & kLimitPowerCap) != 0;
      }
    if (discarded > 0)
      note(fmt::format(
          "{} samples were discarded: heat or the power supply held the clock below {:.0f} % of its default", discarded,
          100 * protocol_.slow_clock));
    if (capped > 0)
      note(fmt::format("the power limit held the clock during {:.0f} % of the samples, as is usual on a busy GPU",
                       100.0 * static_cast<double>(capped) / static_cast<double>(samples)));
  }

  GpuExecutor& gpu_;
  const std::vector<Contender>& contenders_;
  const Protocol& protocol_;
  const BenchHooks& hooks_;
  Rig rig_;
  std::vector<Entrant> entrants_;
  Standings out_;
  size_t next_set_ = 0;
  double default_mhz_ = 0, wait_s_ = kFirstWait, waited_s_ = 0;
  std::optional<Rejected>
      given_up_;  ///< why the measurement ended although the GPU is not lost; applies to unfinished contenders
  int in_a_row_ = 0;
  int idle_deaths_ = 0;
  bool late_ = false;  ///< the deadline has passed
  bool give_up_ = false, screened_any_ = false;
};

}  // namespace

Result<Standings> measure(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders,
                          const Protocol& protocol, const BenchHooks& hooks) {
  return Contest(gpu, workload, contenders, protocol, hooks).play();
}

const char* to_string(Protocol::Mode mode) {
  switch (mode) {
    case Protocol::Mode::kSteady: return "steady";
    case Protocol::Mode::kBurst: return "burst";
    case Protocol::Mode::kQuick: return "quick";
  }
  return "";
}

Result<Protocol::Mode> parse_mode(const std::string& name) {
  for (const auto mode : {Protocol::Mode::kSteady, Protocol::Mode::kBurst, Protocol::Mode::kQuick})
    if (name == to_string(mode)) return mode;
  const std::string near = nearest(name, {"steady", "burst", "quick"});
  return Error{Exit::kUsage,
               fmt::format("'{}' is not a mode of measurement; there are steady, burst and quick", name),
               {},
               {near.empty() ? std::string("steady is the default") : fmt::format("did you mean '{}'?", near)}};
}

BenchClock BenchClock::real() {
  BenchClock out;
  out.now_s = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  out.sleep_s = [](double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  return out;
}

}  // namespace roofgen
