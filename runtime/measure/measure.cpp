#include "runtime/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "runtime/measure/bench.h"

namespace roofgen {
namespace measuring {
namespace {

constexpr uint64_t kThrottle = kLimitHwSlowdown | kLimitThermalSw | kLimitThermalHw | kLimitPowerBrake;
constexpr double kFirstPause_s = 0.05, kPauseStep_s = 0.5;  // waiting for a throttled clock to come back
constexpr int kPatience = 20;                               // throttled rounds in a row before they are taken as they are
constexpr double kBehind = 1.1;                             // low end over the best's high end, to be left behind
constexpr double kCheckGrowth = 1.25;                       // samples between two looks at whether a median has settled
constexpr double kBatchSpan = 10;                           // a batch lasts this many times `short_ns`
constexpr int kMaxBatch = 1024;
constexpr uint64_t kMaxBurst = 10;
constexpr double kNoteworthy = 0.05;                        // share of samples at the power limit

class Protocolist {
 public:
  Protocolist(Bench& bench) : bench_(bench), protocol_(bench.protocol), burst_(protocol_.mode == Protocol::Mode::kBurst) {}

  Result<Standings> run() {
    ROOFGEN_CHECK(bench_.set_up());
    screen();
    warm_up();
    if (protocol_.cold) rounds(true);
    if (protocol_.hot || !protocol_.cold) rounds(false);
    finals();
    return standings();
  }

 private:
  double now() const { return bench_.hooks.clock.now_s(); }
  void sleep(double s) const {
    if (s > 0) bench_.hooks.clock.sleep_s(s);
  }
  uint64_t least() const { return burst_ ? std::min(protocol_.min_samples, kMaxBurst) : protocol_.min_samples; }
  uint64_t most() const { return burst_ ? std::min(protocol_.max_samples, kMaxBurst) : protocol_.max_samples; }
  bool ranked_cold() const { return protocol_.cold; }
  Phase& phase(size_t i, bool cold) { return cold ? bench_.entries[i].cold : bench_.entries[i].hot; }

  std::vector<size_t> everyone() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < bench_.entries.size(); ++i)
      if (!bench_.entries[i].out()) out.push_back(i);
    return out;
  }

  /// A B C, then B C A: who goes first moves on, so that a drift within a round favours nobody.
  static std::vector<size_t> rotated(std::vector<size_t> who, uint64_t by) {
    if (!who.empty()) std::rotate(who.begin(), who.begin() + static_cast<ptrdiff_t>(by % who.size()), who.end());
    return who;
  }

  /// Each once, alone. The second shot tells how long it takes.
  void screen() {
    const std::vector<size_t> all = everyone();
    for (size_t i : all) {
      if (bench_.over()) return;
      bench_.progress("screening", i, all.size());
      bench_.fire({i}, ranked_cold(), 0);
      if (bench_.entries[i].out() || bench_.over()) continue;
      const auto second = bench_.fire({i}, ranked_cold(), 1);
      if (second.empty()) continue;
      Entry& e = bench_.entries[i];
      e.screened_ns = second[0].sample.time_ns;
      if (e.screened_ns <= 0 || e.screened_ns >= protocol_.short_ns) continue;
      while (e.batch < kMaxBatch && e.screened_ns * e.batch < kBatchSpan * protocol_.short_ns) e.batch *= 2;
    }
  }

  /// Until the clock, the power and the temperature are those of a busy GPU.
  void warm_up() {
    if (burst_) return;
    const double begin = now();
    uint64_t round = 0;
    while (!bench_.over() && now() - begin < protocol_.warmup_s) {
      const std::vector<size_t> all = everyone();
      if (all.empty()) return;
      bench_.progress("warming up", static_cast<uint64_t>(1e3 * (now() - begin)), static_cast<uint64_t>(1e3 * protocol_.warmup_s));
      if (bench_.fire(rotated(all, round), ranked_cold(), round).empty()) return;
      ++round;
    }
  }

  bool throttled(const Sample& s) const {
    const double expected = bench_.gpu.identity().default_sm_mhz;
    return (s.limits & kThrottle) != 0 && s.sm_mhz > 0 && expected > 0 && s.sm_mhz < protocol_.slow_clock * expected;
  }

  /// After a round with throttled samples: waits, longer each time. False once that has gone on for too long:
  /// a check that discards everything is of no use.
  bool be_patient() {
    if (++throttled_rounds_ >= kPatience) {
      bench_.note(fmt::format("the clock stayed below {:.0f} % of its default for {} rounds: throttled samples count from then on", 100 * protocol_.slow_clock, kPatience), true);
      impatient_ = true;
      return false;
    }
    pause_s_ = throttled_rounds_ == 1 ? kFirstPause_s : pause_s_ + std::min(pause_s_, kPauseStep_s);
    sleep(pause_s_);
    return true;
  }

  void rounds(bool cold) {
    std::vector<size_t> active = everyone();
    const uint64_t total = active.size();
    // What is in L2 after cold rounds is not what repetition leaves there.
    if (!cold) bench_.fire(active, false, 0);
    double next_look = static_cast<double>(least());
    for (uint64_t round = 0; !bench_.over(); ++round) {
      std::erase_if(active, [&](size_t i) { return bench_.entries[i].out() || !phase(i, cold).stopped.empty(); });
      if (active.empty()) break;
      bench_.progress(cold ? "timing, cold" : "timing, hot", total - active.size(), total);
      bool held_back = false;
      for (const auto& [i, sample] : bench_.fire(rotated(active, round + protocol_.seed), cold, round)) {
        Phase& p = phase(i, cold);
        p.spent_s += 1e-9 * sample.time_ns * bench_.entries[i].batch;
        if (throttled(sample) && !impatient_) {
          ++p.discarded;
          held_back = true;
          continue;
        }
        p.times_ns.push_back(sample.time_ns);
        p.samples.push_back(sample);
      }
      if (held_back) be_patient();
      else throttled_rounds_ = 0;
      // A median is looked at ever less often: who looks after every sample stops on a lucky streak.
      if (static_cast<double>(round + 1) >= next_look) {
        look(active, cold);
        next_look = std::max(next_look + 1, next_look * kCheckGrowth);
      }
      if (burst_ && !active.empty()) sleep(protocol_.rest_s);
    }
    for (size_t i : active)
      if (Phase& p = phase(i, cold); p.stopped.empty()) p.stopped = "interrupted";
  }

  void look(const std::vector<size_t>& active, bool cold) {
    double best_high = INFINITY;
    std::vector<std::pair<size_t, Timing>> seen;
    for (size_t i : everyone()) {
      const Phase& p = phase(i, cold);
      if (p.times_ns.size() < least()) continue;
      seen.emplace_back(i, summarize(p.times_ns));
      best_high = std::min(best_high, seen.back().second.high_ns);
    }
    for (const auto& [i, t] : seen) {
      if (std::find(active.begin(), active.end(), i) == active.end()) continue;
      Phase& p = phase(i, cold);
      if (0.5 * (t.high_ns - t.low_ns) <= protocol_.settled * t.median_ns) p.stopped = "settled";
      else if (t.samples >= most()) p.stopped = "most samples";
      else if (p.spent_s >= protocol_.seconds_each) p.stopped = "out of time";
      else if (!bench_.entries[i].contender->keep && t.low_ns > kBehind * best_high) p.stopped = "behind";
    }
    // A contender whose samples are all discarded ends too.
    for (size_t i : active)
      if (Phase& p = phase(i, cold); p.stopped.empty() && p.times_ns.size() + p.discarded >= 4 * most()) p.stopped = "out of time";
  }

  double median(size_t i) {
    std::vector<double> sorted = phase(i, ranked_cold()).times_ns;
    std::sort(sorted.begin(), sorted.end());
    return quantile(sorted, 0.5);
  }

  /// The best few once more, side by side; a round counts only whole.
  void finals() {
    std::vector<size_t> field;
    for (size_t i : everyone())
      if (!phase(i, ranked_cold()).times_ns.empty()) field.push_back(i);
    std::stable_sort(field.begin(), field.end(), [&](size_t a, size_t b) { return median(a) < median(b); });
    field.resize(std::min(field.size(), std::max<size_t>(1, protocol_.finalists)));
    const uint64_t count = burst_ ? std::min(protocol_.final_rounds, kMaxBurst) : protocol_.final_rounds;
    std::map<size_t, std::vector<double>> times;
    for (uint64_t round = 0, tries = 0; round < count && field.size() > 1 && !bench_.over() && tries < 4 * count; ++tries) {
      bench_.progress("finals", round, count);
      const auto fired = bench_.fire(rotated(field, tries + protocol_.seed), ranked_cold(), tries);
      std::erase_if(field, [&](size_t i) { return bench_.entries[i].out(); });
      if (fired.size() < field.size()) continue;
      if (!impatient_ && std::any_of(fired.begin(), fired.end(), [&](const Bench::Fired& f) { return throttled(f.sample); })) {
        for (const Bench::Fired& f : fired) ++phase(f.entry, ranked_cold()).discarded;
        be_patient();
        continue;
      }
      throttled_rounds_ = 0;
      for (const auto& [i, sample] : fired) {
        if (bench_.entries[i].out()) continue;
        times[i].push_back(sample.time_ns);
        phase(i, ranked_cold()).times_ns.push_back(sample.time_ns);
        phase(i, ranked_cold()).samples.push_back(sample);
      }
      ++round;
      if (burst_) sleep(protocol_.rest_s);
    }
    decide(field, times);
  }

  /// The leader is the fastest by median; whoever cannot be told from it ties, and the cheapest of those wins.
  void decide(std::vector<size_t> field, const std::map<size_t, std::vector<double>>& times) {
    if (field.empty()) return;
    const auto paired = [&](size_t a, size_t b) {
      auto x = times.find(a), y = times.find(b);
      if (a == b || x == times.end() || y == times.end()) return Ratio{1, {1, 1}};
      return paired_ratio(x->second, y->second);
    };
    const auto final_median = [&](size_t i) {
      auto at = times.find(i);
      if (at == times.end()) return median(i);
      std::vector<double> sorted = at->second;
      std::sort(sorted.begin(), sorted.end());
      return quantile(sorted, 0.5);
    };
    const size_t leader = *std::min_element(field.begin(), field.end(), [&](size_t a, size_t b) { return final_median(a) < final_median(b); });
    const auto cheaper = [&](size_t a, size_t b) {
      const Contender &x = *bench_.entries[a].contender, &y = *bench_.entries[b].contender;
      return std::tie(x.registers, x.smem_bytes, x.name) < std::tie(y.registers, y.smem_bytes, y.name);
    };
    const bool raced = !times.empty();
    size_t winner = leader;
    for (size_t i : field) {
      const Ratio r = paired(i, leader);
      if (raced && r.interval.low <= 1 && r.interval.high >= 1 && cheaper(i, winner)) winner = i;
    }
    for (size_t i : field) {
      const Ratio r = paired(i, winner);
      finalists_.push_back({i, r.median, r.interval.low, r.interval.high, i == winner || (raced && r.interval.low <= 1 && r.interval.high >= 1)});
    }
    std::stable_sort(finalists_.begin(), finalists_.end(), [&](const Pairing& a, const Pairing& b) {
      return (a.contender == winner) != (b.contender == winner) ? a.contender == winner : a.ratio < b.ratio;
    });
  }

  static double middle(std::vector<double> values) {
    std::erase_if(values, [](double v) { return v <= 0; });
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return quantile(values, 0.5);
  }

  Measurement measurement(const Entry& e) {
    Measurement out;
    const auto timing = [](const Phase& p) -> std::optional<Timing> {
      if (p.times_ns.empty()) return std::nullopt;
      Timing t = summarize(p.times_ns);
      t.discarded = p.discarded;
      t.stopped = p.stopped;
      return t;
    };
    out.cold = timing(e.cold);
    out.hot = timing(e.hot);
    out.batch = e.batch;
    const std::vector<Sample>& samples = e.cold.samples.empty() ? e.hot.samples : e.cold.samples;
    std::vector<double> mhz, watts, celsius;
    for (const Sample& s : samples) {
      mhz.push_back(s.sm_mhz);
      watts.push_back(s.power_w);
      celsius.push_back(s.temperature_c);
      out.power_capped += (s.limits & kLimitPowerCap) != 0;
    }
    out.sm_mhz = middle(mhz);
    out.power_w = middle(watts);
    out.temperature_c = middle(celsius);
    return out;
  }

  Standings standings() {
    Standings out;
    uint64_t samples = 0, capped = 0, discarded = 0;
    const std::string unfinished = bench_.lost ? "the GPU was lost before it was timed: " + bench_.lost_because : bench_.interrupted() ? "interrupted before it was timed" : "it was never timed";
    for (Entry& e : bench_.entries) {
      Outcome o;
      discarded += e.cold.discarded + e.hot.discarded;
      if (e.out()) {
        o.rejected = e.rejected;
      } else if ((ranked_cold() ? e.cold : e.hot).times_ns.empty()) {
        o.rejected = Rejected{{}, "gpu", unfinished};
      } else {
        o.measurement = measurement(e);
        samples += (e.cold.samples.empty() ? e.hot : e.cold).samples.size();
        capped += o.measurement->power_capped;
      }
      out.outcomes.push_back(std::move(o));
    }
    std::erase_if(finalists_, [&](const Pairing& p) { return !out.outcomes[p.contender].measurement; });
    for (const Pairing& p : finalists_) out.order.push_back(p.contender);
    std::vector<size_t> others;
    for (size_t i = 0; i < out.outcomes.size(); ++i)
      if (out.outcomes[i].measurement && std::find(out.order.begin(), out.order.end(), i) == out.order.end()) others.push_back(i);
    std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) { return median(a) < median(b); });
    out.order.insert(out.order.end(), others.begin(), others.end());
    out.finalists = std::move(finalists_);
    if (static_cast<double>(capped) > kNoteworthy * static_cast<double>(samples))
      bench_.note(fmt::format("{:.0f} % of the samples ran at the power limit: the clock is what power allows, not the datasheet's", 100.0 * static_cast<double>(capped) / static_cast<double>(samples)));
    if (discarded > 0) bench_.note(fmt::format("{} samples at a throttled clock were discarded", discarded));
    out.notes = bench_.notes;
    out.buffer_sets = bench_.sets;
    out.lost = bench_.lost;
    out.lost_because = bench_.lost_because;
    out.interrupted = bench_.interrupted();
    return out;
  }

  Bench& bench_;
  const Protocol& protocol_;
  const bool burst_;
  int throttled_rounds_ = 0;
  double pause_s_ = 0;
  bool impatient_ = false;
  std::vector<Pairing> finalists_;
};

}  // namespace
}  // namespace measuring

const char* to_string(Protocol::Mode mode) { return mode == Protocol::Mode::kSteady ? "steady" : "burst"; }

Result<Protocol::Mode> parse_mode(const std::string& name) {
  for (Protocol::Mode m : {Protocol::Mode::kSteady, Protocol::Mode::kBurst})
    if (name == to_string(m)) return m;
  return Error{Exit::kUsage, fmt::format("unknown protocol \"{}\"; steady or burst was expected", name)};
}

BenchClock BenchClock::real() {
  return {[] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); },
          [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); }};
}

Result<Standings> measure(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders, const Protocol& protocol,
                          const BenchHooks& hooks) {
  measuring::Bench bench(gpu, workload, contenders, protocol, hooks);
  return measuring::Protocolist(bench).run();
}

}  // namespace roofgen
