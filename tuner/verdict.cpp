#include "tuner/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/units.h"

namespace roofgen {
namespace {

const VariantReport* best(const std::vector<VariantReport>& variants, bool fused) {
  const VariantReport* out = nullptr;
  for (const VariantReport& v : variants)
    if (v.verified && v.seconds > 0 && v.fused == fused && (!out || v.seconds < out->seconds)) out = &v;
  return out;
}

/// Why no fused or no separate variant has a time.
std::string missing_reason(const std::vector<VariantReport>& variants, bool fused) {
  for (const VariantReport& v : variants)
    if (!v.available && v.fused == fused) return fmt::format("{} cannot run: {}", v.name, v.rejected_because);
  for (const VariantReport& v : variants)
    if (!v.verified && v.fused == fused)
      return fmt::format("no candidate of {} was verified (--explain lists why)", v.name);
  return "there is no variant of the other kind to compare it with";
}

/// The time of `unfused` over that of `fused`. Pairs exist with the fastest variant, which must be one of the two.
std::optional<Speedup> paired_speedup(const std::vector<VariantPair>& pairs, const std::string& fused,
                                      const std::string& unfused) {
  const auto over_fastest = [&](const std::string& name) {
    return std::find_if(pairs.begin(), pairs.end(), [&](const VariantPair& p) { return p.variant == name; });
  };
  const auto f = over_fastest(fused), u = over_fastest(unfused);
  if (f == pairs.end() || u == pairs.end()) return std::nullopt;
  if (f == pairs.begin()) return u->over_fastest;
  if (u == pairs.begin()) return Speedup{1 / f->over_fastest.ratio, 1 / f->over_fastest.high, 1 / f->over_fastest.low};
  return std::nullopt;
}

}  // namespace

FusionVerdict fusion_verdict(const Device& device, const std::vector<VariantReport>& variants, double band,
                             const std::vector<VariantPair>* pairs, Origin timed) {
  const VariantReport* fused = best(variants, true);
  const VariantReport* unfused = best(variants, false);
  FusionVerdict out;
  if (fused) out.fused = side_of(*fused);
  if (unfused) out.unfused = side_of(*unfused);
  if (!fused || !unfused) {
    out.decision = fused ? "fused only" : unfused ? "separate only" : "none";
    out.reason = missing_reason(variants, fused == nullptr);
    return out;
  }
  const Side &f = *out.fused, &u = *out.unfused;
  out.speedup = u.seconds / f.seconds;
  std::string doubt;
  if (pairs) {
    out.measured = paired_speedup(*pairs, fused->name, unfused->name);
    if (out.measured) {
      const Speedup& m = *out.measured;
      out.speedup = m.ratio;
      out.band = (m.high - m.low) / (2 * m.ratio);
      out.decision = m.low > 1 ? "fuse" : m.high < 1 ? "separate" : "undecided";
      doubt = fmt::format(" ({}, 95 % interval {:.3f} to {:.3f})", to_string(timed), m.low, m.high);
    } else {
      out.decision = "undecided";
      doubt = fmt::format(" ({}, but not side by side)", to_string(timed));
    }
  } else {
    // Two independent errors of one model time each.
    out.band = std::sqrt(2.0) * band;
    const double gain = std::max(out.speedup, 1 / out.speedup);
    out.decision = gain < 1 + out.band ? "undecided" : out.speedup > 1 ? "fuse" : "separate";
    if (out.decision == "undecided") doubt = fmt::format(", inside the model's error band of {:.0f} %", 100 * out.band);
  }

  const TimedKernels one("fused", fused->kernels, f.seconds);
  const TimedKernels many("separate", unfused->kernels, f.seconds * out.speedup);
  out.causes = causes(device, one, many);
  const bool in_l2 = std::any_of(unfused->kernels.begin(), unfused->kernels.end(),
                                 [](const KernelReport& k) { return k.intermediate_in_l2; });
  out.reason = comparison_text(one, many, doubt, out.causes);
  if (in_l2 && std::fabs(u.dram_bytes - f.dram_bytes) < kNoTraffic * u.dram_bytes)
    out.reason += "; the intermediates stay in L2, so fusing saves no DRAM traffic";
  return out;
}

namespace {

/// A cause is named if it contributes at least this share of the logarithm of the ratio, and at least 2 %.
constexpr double kNamedShare = 0.2, kNamedLeast = 0.02;

/// Seconds of a side: at the roofs without launches, in launches, T_work, T_kernel and T; waste is T_work / T_problem.
struct Totals {
  double roofs = 0, launches = 0, work = 0, kernels = 0, time = 0, waste = 0;
};

Totals totals(const TimedKernels& side, double launch_seconds) {
  Totals t;
  for (const KernelReport* k : side.kernels) {
    t.work += k->time.work_seconds;
    t.kernels += k->time.kernel_seconds;
    t.waste += k->waste;
  }
  t.launches = launch_seconds * static_cast<double>(side.kernels.size());
  t.roofs = t.work - t.launches;
  t.time = side.seconds;
  return t;
}

/// (a - b) / ln(a / b): a difference divided by it is that difference's share of the logarithm.
double log_mean(double a, double b) { return a == b ? a : (a - b) / std::log(a / b); }

/// The roof that bounds the largest part of the work.
std::string binding_roof(const TimedKernels& side) {
  std::map<std::string, double> seconds;
  for (const KernelReport* k : side.kernels) seconds[k->time.roof] += k->time.work_seconds;
  return std::max_element(seconds.begin(), seconds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

double sum(const TimedKernels& side, double Work::*amount) {
  double out = 0;
  for (const KernelReport* k : side.kernels) out += k->work.*amount;
  return out;
}

/// The kernel of `side` with the largest value, among those that the other side lacks.
const KernelReport& most(const TimedKernels& side, const TimedKernels& other,
                         const std::function<double(const KernelReport&)>& value) {
  const auto key = [&](const KernelReport* k) {
    const bool shared =
        !k->digest.empty() && std::any_of(other.kernels.begin(), other.kernels.end(),
                                          [&](const KernelReport* o) { return o->digest == k->digest; });
    return std::pair(!shared, value(*k));
  };
  return **std::max_element(side.kernels.begin(), side.kernels.end(),
                            [&](const KernelReport* a, const KernelReport* b) { return key(a) < key(b); });
}

std::string kernel_name(const TimedKernels& side, const KernelReport& k) {
  return side.kernels.size() == 1 || k.stage.empty() ? side.name : fmt::format("{} of {}", k.stage, side.name);
}

std::string work_text(const TimedKernels& better, const TimedKernels& worse, const Totals& b, const Totals& w) {
  const std::string from = binding_roof(worse), to = binding_roof(better);
  const auto amount = from == "DRAM" ? &Work::dram_bytes : from == "L2" ? &Work::l2_bytes : nullptr;
  const double saved = amount ? sum(worse, amount) - sum(better, amount) : 0;
  const std::string bound = from == to ? "both bound by " + to : fmt::format("bound by {} against {}", to, from);
  if (amount && saved >= kNoTraffic * sum(worse, amount))
    return fmt::format("{} saves {} of {} traffic (waste {:.2f} against {:.2f}, {})", better.name, bytes_text(saved),
                       from, b.waste, w.waste, bound);
  return fmt::format("{} needs {} at its roofs against {} ({})", better.name, time_text(b.roofs), time_text(w.roofs),
                     bound);
}

std::string idle_text(const Device& device, const TimedKernels& better, const TimedKernels& worse, double b, double w) {
  const KernelReport& k =
      most(worse, better, [](const KernelReport& x) { return x.time.kernel_seconds - x.time.work_seconds; });
  const double sms = device.at("sms"), ctas = k.work.ctas;
  const std::string name = kernel_name(worse, k);
  const std::string what = ctas < sms ? fmt::format("{} fills {:g} of {:g} SMs", name, ctas, sms)
                           : std::fmod(ctas, sms) != 0
                               ? fmt::format("{} leaves SMs idle with {:g} CTAs on {:g} SMs", name, ctas, sms)
                               : fmt::format("{} reaches the limit of the SMs' L2 ports", name);
  return fmt::format("{} (idle {:.2f} against {:.2f})", what, w, b);
}

/// Registers, occupancy and spills, where they are a reason for the stall. The occupancies that two roofs need differ,
/// so they are compared under one roof only.
std::string residency_text(const KernelReport& better, const KernelReport& worse) {
  std::string out;
  if (worse.time.roof == better.time.roof && worse.occupancy.fraction < better.occupancy.fraction) {
    out = fmt::format(", {:.0f} % occupancy against {:.0f} %", 100 * worse.occupancy.fraction,
                      100 * better.occupancy.fraction);
    if (worse.occupancy.limited_by == "registers" && worse.registers > better.registers)
      out += fmt::format(" for {} registers against {}", worse.registers, better.registers);
    else if (!worse.occupancy.limited_by.empty())
      out += fmt::format(", limited by {}", worse.occupancy.limited_by);
  }
  if (worse.spill_bytes > better.spill_bytes)
    out += fmt::format(", {} of spills", bytes_text(static_cast<double>(worse.spill_bytes)));
  return out;
}

std::string stall_text(const TimedKernels& better, const TimedKernels& worse, double b, double w) {
  const KernelReport& k = most(worse, better, [](const KernelReport& x) { return x.seconds - x.time.kernel_seconds; });
  const std::string name = kernel_name(worse, k);
  // A measured stall also holds the error of the model, so its parts are unknown.
  const std::string what = k.measurement || k.time.stalled_by.empty() ? name + " stalls more"
                           : k.time.stalled_by == "pipes"  ? fmt::format("the pipes of {} overlap less", name)
                           : k.time.stalled_by == "copies" ? name + " waits longer for its asynchronous copies"
                                                           : name + " waits longer for the first loads of its waves";
  const KernelReport& longest = most(better, worse, [](const KernelReport& x) { return x.seconds; });
  return fmt::format("{} (stall {:.2f} against {:.2f}{})", what, w, b, residency_text(longest, k));
}

}  // namespace

TimedKernels::TimedKernels(std::string side, const std::vector<KernelReport>& reports, double time)
    : name(std::move(side)), seconds(time) {
  for (const KernelReport& k : reports) kernels.push_back(&k);
}

std::vector<Cause> causes(const Device& device, const TimedKernels& fused, const TimedKernels& separate) {
  for (const TimedKernels* side : {&fused, &separate})
    if (!std::all_of(side->kernels.begin(), side->kernels.end(),
                     [](const KernelReport* k) { return k->counted && k->time.work_seconds > 0; }))
      return {};
  const double launch_seconds = 1e-6 * device.at("launch_us");
  const Totals f = totals(fused, launch_seconds), s = totals(separate, launch_seconds);
  const double mean = log_mean(s.work, f.work);
  std::vector<Cause> out{
      {"work", (s.roofs - f.roofs) / mean, f.waste, s.waste, ""},
      {"launches", (s.launches - f.launches) / mean, static_cast<double>(fused.kernels.size()),
       static_cast<double>(separate.kernels.size()), ""},
      {"idle", std::log(s.kernels / s.work * f.work / f.kernels), f.kernels / f.work, s.kernels / s.work, ""},
      {"stall", std::log(s.time / s.kernels * f.kernels / f.time), f.time / f.kernels, s.time / s.kernels, ""}};
  for (Cause& c : out) {
    const bool fused_better = c.contribution >= 0;
    const TimedKernels &better = fused_better ? fused : separate, &worse = fused_better ? separate : fused;
    const double b = fused_better ? c.fused : c.separate, w = fused_better ? c.separate : c.fused;
    c.text = c.name == "work"       ? work_text(better, worse, fused_better ? f : s, fused_better ? s : f)
             : c.name == "launches" ? fmt::format("{} saves {}", better.name, counted(w - b, "launch"))
             : c.name == "idle"     ? idle_text(device, better, worse, b, w)
                                    : stall_text(better, worse, b, w);
  }
  std::stable_sort(out.begin(), out.end(), [](const Cause& a, const Cause& b) {
    return std::fabs(a.contribution) > std::fabs(b.contribution);
  });
  return out;
}

std::string because(const std::vector<Cause>& causes, const std::string& subject) {
  if (causes.empty()) return "no work was counted, so the cause is unknown";
  double total = 0;
  for (const Cause& c : causes) total += c.contribution;
  std::vector<std::string> reasons, obstacles;
  for (const Cause& c : causes) {
    if (std::fabs(c.contribution) < std::max(kNamedLeast, kNamedShare * std::fabs(total))) continue;
    const bool it = !subject.empty() && c.text.starts_with(subject + " ");
    ((c.contribution < 0) == (total < 0) ? reasons : obstacles)
        .push_back(it ? "it" + c.text.substr(subject.size()) : c.text);
  }
  if (reasons.empty()) reasons.push_back(fmt::format("no cause contributes more than {:.0f} %", 100 * kNamedLeast));
  std::string out = fmt::format("{}", fmt::join(reasons, ", "));
  if (!obstacles.empty()) out += fmt::format(", although {}", fmt::join(obstacles, " and "));
  return out;
}

std::string comparison_text(const TimedKernels& fused, const TimedKernels& separate, const std::string& doubt,
                            const std::vector<Cause>& causes) {
  const double ratio = separate.seconds / fused.seconds;
  const std::string& faster = ratio < 1 ? separate.name : fused.name;
  return fmt::format("{} is {:.2f}x as fast{}: {}", faster, std::max(ratio, 1 / ratio), doubt, because(causes, faster));
}

}  // namespace roofgen
