// From the times of the partitions to verdicts: which edges to fuse, the gain, and its causes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/pool.h"
#include "base/units.h"
#include "tuner/verdict.h"
#include "tuner/verify/l2_model.h"
#include "tuner/whatif/report.h"

namespace roofgen {
namespace {

/// Half the 95 % interval of a measured time, or the error band of a modelled time.
double error_of(const KernelReport& k) {
  const Timing* timing = k.measurement ? ranking_timing(*k.measurement) : nullptr;
  return timing ? 0.5e-9 * (timing->high_ns - timing->low_ns) : k.time.band * k.seconds;
}

/// Two gemms of one schedule run the same main loop, so the model makes the same error in both. Kernels of split and of
/// whole keys share the schedule too, but not the number of CTAs.
bool same_main_loop(const KernelReport& a, const KernelReport& b) {
  return a.flops > 0 && a.flops == b.flops && a.work.ctas == b.work.ctas && !a.measurement && !b.measurement &&
         a.schedule.params == b.schedule.params;
}

/// The difference between the epilogues of two gemms with one main loop, pipe after pipe on the busiest SM. The model
/// may wrongly hide it after the main loop.
double epilogue_seconds(const WhatIfReport& report, const KernelReport& x, const KernelReport& y) {
  const auto a = roof_times(report.device, x.work, RoofSet::kSustained),
             b = roof_times(report.device, y.work, RoofSet::kSustained);
  double pipes = 0, issue = 0, memory = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double seconds = std::fabs(a[i].seconds - b[i].seconds);
    if (!per_sm(a[i].resource))
      memory = std::max(memory, seconds);  // DRAM traffic passes through L2
    else if (a[i].resource == Resource::kIssue)
      issue = seconds;  // includes every instruction of the pipes
    else
      pipes += seconds;
  }
  const double sms = report.device.at("sms"), ctas = std::max(1.0, x.work.ctas);
  return std::max(pipes, issue) * std::ceil(ctas / sms) * sms / ctas + memory;
}

/// The index of the kernel with a step; kernels are in the order of the steps.
size_t kernel_of(const PartitionReport& p, size_t step) {
  return static_cast<size_t>(std::count_if(p.cuts.begin(), p.cuts.end(), [&](size_t c) { return c < step; }));
}

const PartitionReport* best_where(const std::vector<PartitionReport>& partitions, size_t edge, bool cut) {
  const PartitionReport* out = nullptr;
  for (const PartitionReport& p : partitions)
    if (p.timed() && p.cut(edge) == cut && (!out || p.seconds < out->seconds)) out = &p;
  return out;
}

EdgeSide side(const PartitionReport& p, size_t edge) {
  const size_t first = kernel_of(p, edge), last = kernel_of(p, edge + 1);
  EdgeSide s{side_of(p, first, last), p.name, 0, p.waste, p.idle, p.stall};
  for (size_t i = first; i <= last && i < p.kernels.size(); ++i)
    s.ctas = s.ctas == 0 ? p.kernels[i].work.ctas : std::min(s.ctas, p.kernels[i].work.ctas);
  return s;
}

/// Why no partition on one side of an edge was timed: the reason of the one with the most cuts, which concerns this
/// edge alone.
std::string why_not(const std::vector<PartitionReport>& partitions, size_t edge, bool cut) {
  const PartitionReport* first = nullptr;
  for (const PartitionReport& p : partitions) {
    if (p.cut(edge) != cut) continue;
    if (!first || p.cuts.size() > first->cuts.size()) first = &p;
  }
  if (!first) return "no partition is on that side";
  return !first->illegal.empty() ? first->illegal : !first->failed.empty() ? first->failed : "it was not asked for";
}

/// `percent`: of the time, at stake with the error.
std::string doubt_of(const std::string& decision, const TimeGap& gap, double percent = 0) {
  const std::string gain = time_text(std::fabs(gap.seconds)), error = time_text(gap.error);
  if (decision == "either")
    return fmt::format(", by {} +- {}, so at most {:.1f} % of the time depends on it", gain, error, percent);
  return decision == "undecided" ? fmt::format(", inside the error of {} on a difference of {}", error, gain)
                                 : fmt::format(" ({} less +- {})", gain, error);
}

std::string l2_text(const EdgeReport& e, double usable_l2) {
  if (!e.intermediate) return "";
  const Intermediate& t = *e.intermediate;
  std::string out = fmt::format("; the value of {} ({}) {} in L2", e.before, bytes_text(t.bytes),
                                t.in_l2 ? "stays" : "does not stay");
  if (!t.in_l2)
    out += fmt::format(" ({} pass before it is read, {} are usable)", bytes_text(t.distance), bytes_text(usable_l2));
  return out;
}

/// By how much normal launches would lengthen a partition.
double saved_by_dependent_launches(const Device& device, const PartitionReport& p) {
  double out = 0;
  for (const KernelReport& k : p.kernels)
    out += launch_seconds(device, false) - launch_seconds(device, k.work.dependent);
  return out;
}

std::string dependent_text(const EdgeReport& e) {
  if (e.dependent_gain == 0) return "";
  const bool cut = e.dependent_gain > 0;
  const double normal = e.gain.seconds + e.dependent_gain;
  return fmt::format(
      "; dependent launches shorten the {} side by {:.2f} us more than the {} one: with normal launches fusing "
      "would {} {}",
      cut ? "cut" : "fused", 1e6 * std::fabs(e.dependent_gain), cut ? "fused" : "cut", normal >= 0 ? "save" : "cost",
      time_text(std::fabs(normal)));
}

/// "either": even with the error, at most this share of the time depends on the edge. That is little more than what
/// repeated measurements of one kernel differ by.
constexpr double kEither = 0.03;

double at_stake(const TimeGap& gain, double seconds) { return (std::fabs(gain.seconds) + gain.error) / seconds; }

/// `seconds`: of the faster side.
std::string decision_of(const TimeGap& gain, double seconds) {
  if (gain.decided()) return gain.seconds > 0 ? "fuse" : "separate";
  return at_stake(gain, seconds) <= kEither ? "either" : "undecided";
}

EdgeReport edge_report(const WhatIfReport& report, size_t edge) {
  EdgeReport e;
  e.edge = edge;
  e.before = report.steps[edge];
  e.after = report.steps[edge + 1];
  const PartitionReport *fused = best_where(report.partitions, edge, false),
                        *cut = best_where(report.partitions, edge, true);
  if (fused) e.fused = side(*fused, edge);
  if (cut) {
    e.cut = side(*cut, edge);
    for (const Intermediate& t : cut->intermediates)
      if (t.after == edge) e.intermediate = t;
  }
  if (!fused || !cut) {
    const bool may_come =
        report.interrupted &&
        std::any_of(report.partitions.begin(), report.partitions.end(), [&](const PartitionReport& p) {
          return !p.timed() && p.illegal.empty() && p.cut(edge) == (fused != nullptr);
        });
    e.decision = may_come ? "undecided" : fused ? "fused only" : cut ? "separate only" : "none";
    e.reason = may_come ? fmt::format("interrupted before a partition that {} here was timed", fused ? "cuts" : "fuses")
                        : why_not(report.partitions, edge, fused != nullptr);
    return e;
  }
  e.dram_saved = cut->dram_bytes - fused->dram_bytes;
  e.gain = time_gap(report, *cut, *fused);
  e.dependent_gain =
      saved_by_dependent_launches(report.device, *cut) - saved_by_dependent_launches(report.device, *fused);
  const double faster = std::min(cut->seconds, fused->seconds);
  e.decision = decision_of(e.gain, faster);
  const TimedKernels one("fused", fused->kernels, fused->seconds), many("separate", cut->kernels, cut->seconds);
  e.causes = causes(report.device, one, many);
  std::vector<OtherVariant> others;
  for (const PartitionReport& p : report.partitions)
    for (OtherVariant v : p.untried) v.fused = !p.cut(edge), others.push_back(std::move(v));
  const std::string doubt = doubt_of(e.decision, e.gain, 100 * at_stake(e.gain, faster));
  Ruling ruling = rule_on_idle_sms(report.device, one, many, others,
                                   [&](double f, double c) {
                                     return decision_of({c - f, e.gain.error}, std::min(f, c));
                                   },
                                   doubt, {e.decision, comparison_text(one, many, doubt, e.causes)});
  e.decision = std::move(ruling.decision);
  e.reason = std::move(ruling.reason) + l2_text(e, kL2Usable * report.device.at("l2_bytes")) + dependent_text(e);
  return e;
}

/// Split keys against all keys in one kernel of all steps.
std::optional<SplitReport> split_report(const WhatIfReport& report) {
  const PartitionReport *whole = nullptr, *split = nullptr;  // the fastest
  for (const PartitionReport& p : report.partitions) {
    const PartitionReport*& best = p.splits ? split : whole;
    if (p.cuts.empty() && p.illegal.empty() && (!best || (p.timed() && (!best->timed() || p.seconds < best->seconds))))
      best = &p;
  }
  if (!whole || !split || (!whole->timed() && !split->timed())) return std::nullopt;
  SplitReport s;
  s.variant = split->variant;
  if (whole->timed()) s.whole = side(*whole, 0);
  if (split->timed()) s.split = side(*split, 0), s.parts = split->intermediates.at(0);
  if (!s.whole || !s.split) {
    s.decision = s.whole ? "whole only" : "split only";
    s.reason = s.whole ? split->failed : whole->failed;
    return s;
  }
  s.gain = time_gap(report, *whole, *split);
  s.decision = !s.gain.decided() ? "undecided" : s.gain.seconds > 0 ? "split" : "whole";
  const TimedKernels one("whole", whole->kernels, whole->seconds), many(s.variant, split->kernels, split->seconds);
  s.causes = causes(report.device, one, many);
  const std::string launch =
      split->kernels.size() > 1
          ? fmt::format("a launch ({}) and ",
                        time_text(launch_seconds(report.device, split->kernels.back().work.dependent)))
          : "";
  s.reason = fmt::format("{}; splitting costs {}{} of parts, written and read once, which {} in L2",
                         comparison_text(one, many, doubt_of(s.decision, s.gain), s.causes), launch,
                         bytes_text(s.parts->bytes), s.parts->in_l2 ? "stay" : "do not stay");
  return s;
}

std::string forced_sentence(const WhatIfReport& report, const PartitionReport& plan) {
  if (!plan.illegal.empty()) return "it cannot be built: " + plan.illegal;
  const PartitionReport* best = report.best();
  if (!plan.timed() || !best) return plan.failed.empty() ? "it has no time" : "it has no time: " + plan.failed;
  if (&plan == best) return "it is the fastest";
  const TimeGap gap = time_gap(report, plan, *best);
  if (!gap.decided())
    return fmt::format("within the error of the fastest, {}: {} against {} (+- {})", best->name,
                       time_text(plan.seconds), time_text(best->seconds), time_text(gap.error));
  const TimedKernels first("the fastest", best->kernels, best->seconds), asked("the plan", plan.kernels, plan.seconds);
  return fmt::format("{:.2f}x the time of the fastest, {} ({} against {}): {}", plan.seconds / best->seconds,
                     best->name, time_text(plan.seconds), time_text(best->seconds),
                     because(causes(report.device, first, asked)));
}

/// Whether a verdict rests on a partition.
bool is_named(const WhatIfReport& report, const PartitionReport& p) {
  return report.best() == &p || report.forced == p.name ||
         std::any_of(report.edges.begin(), report.edges.end(), [&](const EdgeReport& e) {
           return (e.fused && e.fused->partition == p.name) || (e.cut && e.cut->partition == p.name);
         });
}

}  // namespace

bool PartitionReport::cut(size_t edge) const { return std::find(cuts.begin(), cuts.end(), edge) != cuts.end(); }

const PartitionReport* WhatIfReport::find(const std::string& name) const {
  for (const PartitionReport& p : partitions)
    if (p.name == name) return &p;
  return nullptr;
}

TimeGap time_gap(const WhatIfReport& report, const PartitionReport& slower, const PartitionReport& faster) {
  std::vector<const KernelReport*> a, b;
  for (const KernelReport& k : slower.kernels) a.push_back(&k);
  for (const KernelReport& k : faster.kernels) b.push_back(&k);
  double squares = 0;
  const auto match = [&](auto same, auto contribution) {
    for (auto i = a.begin(); i != a.end();) {
      const auto j = std::find_if(b.begin(), b.end(), [&](const KernelReport* k) { return same(**i, *k); });
      if (j == b.end()) {
        ++i;
        continue;
      }
      const double c = contribution(**i, **j);
      squares += c * c;
      b.erase(j);
      i = a.erase(i);
    }
  };
  const auto difference = [](const KernelReport& x, const KernelReport& y) {
    return std::max(x.time.band, y.time.band) * std::fabs(x.seconds - y.seconds);
  };
  const auto same_launch = [](const KernelReport& x, const KernelReport& y) {
    return !x.digest.empty() && x.digest == y.digest && x.work.ctas == y.work.ctas;
  };
  match(same_launch, difference);
  match(same_main_loop, [&](const KernelReport& x, const KernelReport& y) {
    return std::max(difference(x, y), std::max(x.time.band, y.time.band) * epilogue_seconds(report, x, y));
  });
  for (const auto& rest : {a, b})
    for (const KernelReport* k : rest) squares += error_of(*k) * error_of(*k);
  return {slower.seconds - faster.seconds, std::sqrt(squares)};
}

void conclude(WhatIfReport& report) {
  std::stable_sort(report.partitions.begin(), report.partitions.end(),
                   [](const PartitionReport& a, const PartitionReport& b) {
                     if (a.timed() != b.timed()) return a.timed();
                     if (a.illegal.empty() != b.illegal.empty()) return a.illegal.empty();
                     return a.timed() && a.seconds < b.seconds;
                   });
  report.edges.clear();
  for (size_t edge = 0; edge + 1 < report.steps.size(); ++edge) report.edges.push_back(edge_report(report, edge));
  report.split = split_report(report);
  if (report.forced)
    if (const PartitionReport* plan = report.find(*report.forced))
      report.forced_verdict = forced_sentence(report, *plan);
}

Result<void> verify_named(WhatIfReport& report, int threads, const std::function<bool(size_t, size_t)>& go_on,
                          const std::function<Result<Verification>(const PartitionReport&, bool)>& verify) {
  for (;;) {
    const auto is_answer = [&, best = report.best()](const PartitionReport& p) {
      return best == &p || report.forced == p.name;
    };
    std::vector<PartitionReport*> open;
    for (PartitionReport& p : report.partitions)
      if (is_named(report, p) && p.timed() && (!p.together || (is_answer(p) && !p.on_whole_grid))) open.push_back(&p);
    std::mutex mutex;
    size_t begun = 0;
    bool failed = false, stopped = false;
    ROOFGEN_CHECK(for_each_index(threads, open.size(), [&](size_t i) -> Result<void> {
      PartitionReport& p = *open[i];
      {
        const std::lock_guard lock(mutex);
        stopped = stopped || !go_on(begun++, open.size());
        if (stopped) return {};
      }
      ROOFGEN_TRY(Verification together, verify(p, is_answer(p)));
      const std::lock_guard lock(mutex);
      p.on_whole_grid = is_answer(p);
      if (!together.passed) p.failed = "its kernels together: " + together.failure;
      failed |= !together.passed;
      p.together = std::move(together);
      return {};
    }));
    if (!failed) return {};
    conclude(report);  // which may name partitions that have not been run yet
    if (stopped) return {};
  }
}

Sweep make_sweep(std::string dim, std::vector<WhatIfReport> runs) {
  Sweep out{std::move(dim), std::move(runs), {}};
  const WhatIfReport* before = nullptr;  // the last size at which something has a time
  for (const WhatIfReport& b : out.runs) {
    if (!b.best()) continue;
    const WhatIfReport* last = std::exchange(before, &b);
    if (!last || last->best()->name == b.best()->name) continue;
    const WhatIfReport& a = *last;
    Sweep::Crossover x{a.best()->name, b.best()->name, a.problem.dims.at(out.dim), b.problem.dims.at(out.dim)};
    const PartitionReport *a_other = a.find(x.to), *b_other = b.find(x.from);
    if (a_other && b_other && a_other->timed() && b_other->timed()) {
      // Straight in the logarithms of size and of the ratio of times, which is 1 where they cross.
      const double below = std::log(a_other->seconds / a.best()->seconds),
                   above = std::log(b_other->seconds / b.best()->seconds);
      const double lo = std::log(static_cast<double>(x.below)), hi = std::log(static_cast<double>(x.above));
      x.at = below + above > 0 ? std::exp(lo + (hi - lo) * below / (below + above)) : std::exp((lo + hi) / 2);
      x.decided = time_gap(a, *a_other, *a.best()).decided() && time_gap(b, *b_other, *b.best()).decided();
    }
    out.crossovers.push_back(std::move(x));
  }
  return out;
}

}  // namespace roofgen
