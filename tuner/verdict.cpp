#include "tuner/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

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
std::string missing_reason(const std::vector<VariantReport>& variants, const std::vector<OtherVariant>& untried,
                           bool fused) {
  for (const VariantReport& v : variants)
    if (!v.available && v.fused == fused) return fmt::format("{} cannot run: {}", v.name, v.rejected_because);
  for (const VariantReport& v : variants)
    if (!v.verified && v.fused == fused)
      return fmt::format("no candidate of {} was verified (--explain lists why)", v.name);
  for (const OtherVariant& v : untried)
    if (v.fused == fused) return fmt::format("{} was {}", v.name, v.because);
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

/// All variants but the two compared ones.
std::vector<OtherVariant> others(const std::vector<VariantReport>& variants, const std::vector<OtherVariant>& untried,
                                 const VariantReport& fused, const VariantReport& unfused) {
  std::vector<OtherVariant> out = untried;
  for (const VariantReport& v : variants) {
    if (&v == &fused || &v == &unfused) continue;
    OtherVariant o{v.name, v.fused, v.default_ctas, ""};
    if (v.verified && v.seconds > 0)
      o.ctas = std::max_element(v.kernels.begin(), v.kernels.end(), [](const KernelReport& a, const KernelReport& b) {
                 return a.seconds < b.seconds;
               })->work.ctas;
    else
      o.because = v.available ? "not verified" : "cannot run: " + v.rejected_because;
    out.push_back(std::move(o));
  }
  return out;
}

/// Of a modelled time: one model times all kernels of a variant, so their errors have one sign.
double relative_error(const VariantReport& v) {
  double error = 0, seconds = 0;
  for (const KernelReport& k : v.kernels) {
    error += k.time.band * k.seconds;
    seconds += k.seconds;
  }
  return seconds > 0 ? error / seconds : 0;
}

}  // namespace

FusionVerdict fusion_verdict(const Device& device, const std::vector<VariantReport>& variants,
                             const std::vector<OtherVariant>& untried, const std::vector<VariantPair>* pairs,
                             Origin timed) {
  const VariantReport* fused = best(variants, true);
  const VariantReport* unfused = best(variants, false);
  FusionVerdict out;
  if (fused) out.fused = side_of(*fused);
  if (unfused) out.unfused = side_of(*unfused);
  if (!fused || !unfused) {
    out.decision = fused ? "fused only" : unfused ? "separate only" : "none";
    out.reason = missing_reason(variants, untried, fused == nullptr);
    return out;
  }
  const Side &f = *out.fused, &u = *out.unfused;
  out.speedup = u.seconds / f.seconds;
  Decide decide;
  std::string doubt;
  if (pairs) {
    out.measured = paired_speedup(*pairs, fused->name, unfused->name);
    if (out.measured) {
      const Speedup& m = *out.measured;
      out.speedup = m.ratio;
      out.band = (m.high - m.low) / (2 * m.ratio);
      decide = [m](double a, double b) {
        const double scale = b / a / m.ratio;
        return m.low * scale > 1 ? "fuse" : m.high * scale < 1 ? "separate" : "undecided";
      };
      doubt = fmt::format(" ({}, 95 % interval {:.3f} to {:.3f})", to_string(timed), m.low, m.high);
    } else {
      decide = [](double, double) { return "undecided"; };
      doubt = fmt::format(" ({}, but not side by side)", to_string(timed));
    }
  } else {
    out.band = std::hypot(relative_error(*fused), relative_error(*unfused));
    decide = [within = 1 + out.band](double a, double b) {
      return std::max(a / b, b / a) < within ? "undecided" : a < b ? "fuse" : "separate";
    };
  }
  const TimedKernels one(fused->name, fused->kernels, f.seconds);
  const TimedKernels many("separate", unfused->kernels, f.seconds * out.speedup);
  out.decision = decide(one.seconds, many.seconds);
  if (!pairs && out.decision == "undecided")
    doubt = fmt::format(", inside the model's error band of {:.0f} %", 100 * out.band);
  out.causes = causes(device, one, many);
  const bool in_l2 = std::any_of(unfused->kernels.begin(), unfused->kernels.end(),
                                 [](const KernelReport& k) { return k.intermediate_in_l2; });
  Ruling ruling{out.decision, comparison_text(one, many, doubt, out.causes)};
  ruling = rule_on_idle_sms(device, one, many, others(variants, untried, *fused, *unfused), decide, doubt,
                            std::move(ruling));
  out.decision = std::move(ruling.decision);
  out.reason = std::move(ruling.reason);
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

Totals totals(const Device& device, const TimedKernels& side) {
  Totals t;
  for (const KernelReport* k : side.kernels) {
    t.work += k->time.work_seconds;
    t.kernels += k->time.kernel_seconds;
    t.waste += k->waste;
    t.launches += launch_seconds(device, k->work.dependent);
  }
  t.roofs = t.work - t.launches;
  t.time = side.seconds;
  return t;
}

/// (a - b) / ln(a / b): a difference divided by it is that difference's share of the logarithm.
double log_mean(double a, double b) { return a == b ? a : (a - b) / std::log(a / b); }

double sum(const TimedKernels& side, double Work::*amount) {
  double out = 0;
  for (const KernelReport* k : side.kernels) out += k->work.*amount;
  return out;
}

bool has(const TimedKernels& side, const KernelReport& k) {
  return !k.digest.empty() && std::any_of(side.kernels.begin(), side.kernels.end(),
                                          [&](const KernelReport* o) { return o->digest == k.digest; });
}

/// Whether the work of each kernel was counted.
bool is_counted(const TimedKernels& side) {
  return std::all_of(side.kernels.begin(), side.kernels.end(),
                     [](const KernelReport* k) { return k->counted && k->time.work_seconds > 0; });
}

/// The kernel of `side` with the largest value, among those that the other side lacks.
const KernelReport& most(const TimedKernels& side, const TimedKernels& other,
                         const std::function<double(const KernelReport&)>& value) {
  const auto key = [&](const KernelReport* k) { return std::pair(!has(other, *k), value(*k)); };
  return **std::max_element(side.kernels.begin(), side.kernels.end(),
                            [&](const KernelReport* a, const KernelReport* b) { return key(a) < key(b); });
}

bool underfills(const Device& device, const KernelReport& k) {
  return k.work.ctas > 0 && k.work.ctas < device.at("sms");
}

/// "32 of 132 SMs"
std::string filled_text(const Device& device, const KernelReport& k) {
  return fmt::format("{:g} of {:g} SMs", k.work.ctas, device.at("sms"));
}

/// The roof that bounds the largest part of the work.
std::string binding_roof(const TimedKernels& side) {
  std::map<std::string, double> seconds;
  for (const KernelReport* k : side.kernels) seconds[k->time.roof] += k->time.work_seconds;
  return std::max_element(seconds.begin(), seconds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// The binding roof, and how many SMs the longest kernel under it fills if not all.
std::string bound_text(const Device& device, const TimedKernels& side) {
  const std::string roof = binding_roof(side);
  const KernelReport& k =
      most(side, {"", {}, 0}, [&](const KernelReport& x) { return x.time.roof == roof ? x.time.work_seconds : -1; });
  return underfills(device, k) ? fmt::format("{} on {}", roof, filled_text(device, k)) : roof;
}

std::string kernel_name(const TimedKernels& side, const KernelReport& k) {
  return side.kernels.size() == 1 || k.stage.empty() ? side.name : fmt::format("{} of {}", k.stage, side.name);
}

std::string work_text(const Device& device, const TimedKernels& better, const TimedKernels& worse, const Totals& b,
                      const Totals& w) {
  const std::string from = binding_roof(worse);
  const auto amount = from == "DRAM" ? &Work::dram_bytes : from == "L2" ? &Work::l2_bytes : nullptr;
  const double saved = amount ? sum(worse, amount) - sum(better, amount) : 0;
  const std::string ours = bound_text(device, better), theirs = bound_text(device, worse);
  const std::string bound =
      ours == theirs ? "both bound by " + ours : fmt::format("bound by {} against {}", ours, theirs);
  if (amount && saved >= kNoTraffic * sum(worse, amount))
    return fmt::format("{} saves {} of {} traffic (waste {:.2f} against {:.2f}, {})", better.name, bytes_text(saved),
                       from, b.waste, w.waste, bound);
  return fmt::format("{} needs {} at its roofs against {} ({})", better.name, time_text(b.roofs), time_text(w.roofs),
                     bound);
}

/// The part of its time that a kernel would take with `ctas` CTAs: below 1 if it has fewer of them and than SMs. The
/// idle factor is unknown if nothing was counted; then the time is assumed to shrink as the number of busy SMs grows.
double share_with(const Device& device, const KernelReport& k, double ctas) {
  if (!underfills(device, k) || ctas <= k.work.ctas) return 1;
  const double sms = device.at("sms");
  const double filled =
      k.counted && k.time.kernel_seconds > 0 ? k.time.work_seconds / k.time.kernel_seconds : k.work.ctas / sms;
  return std::min(1.0, filled * std::max(1.0, sms / ctas));
}

/// The kernel of `side` that loses the most time because it has fewer CTAs than SMs.
const KernelReport& most_idle(const Device& device, const TimedKernels& side, const TimedKernels& other) {
  return most(side, other,
              [&](const KernelReport& x) { return x.seconds * (1 - share_with(device, x, device.at("sms"))); });
}

/// "pv of separate fills 32 of 132 SMs"
std::string fills_text(const Device& device, const TimedKernels& side, const KernelReport& k) {
  return fmt::format("{} fills {}", kernel_name(side, k), filled_text(device, k));
}

std::string idle_text(const Device& device, const TimedKernels& better, const TimedKernels& worse, double b, double w) {
  const KernelReport& k =
      most(worse, better, [](const KernelReport& x) { return x.time.kernel_seconds - x.time.work_seconds; });
  const double sms = device.at("sms"), ctas = k.work.ctas;
  const std::string name = kernel_name(worse, k);
  const std::string what = underfills(device, k) ? fills_text(device, worse, k)
                           : std::fmod(ctas, sms) != 0
                               ? fmt::format("{} leaves SMs idle with {:g} CTAs on {:g} SMs", name, ctas, sms)
                               : fmt::format("{} reaches the limit of the SMs' L2 ports", name);
  const KernelReport& idle = most_idle(device, better, worse);
  const bool both = b >= 1 + kNamedLeast && underfills(device, idle);
  const std::string also = both ? "; " + fills_text(device, better, idle) : "";
  return fmt::format("{} (idle {:.2f} against {:.2f}{})", what, w, b, also);
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

namespace {

/// The time of a side if each of its own kernels had at least `ctas` CTAs.
double seconds_with(const Device& device, const TimedKernels& side, const TimedKernels& other, double ctas) {
  double all = 0, then = 0;
  for (const KernelReport* k : side.kernels) {
    all += k->seconds;
    then += k->seconds * (has(other, *k) ? 1 : share_with(device, *k, ctas));
  }
  return side.seconds * (all > 0 ? then / all : 1);
}

/// "a, b and c"
std::string list_text(const std::vector<std::string>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : i + 1 < items.size() ? ", " : " and ") + items[i];
  return out;
}

/// "separate is bound by DRAM on 32 of 132 SMs"; without counts the SMs alone.
std::string bound_sentence(const Device& device, const TimedKernels& side) {
  const KernelReport& longest = most(side, {"", {}, 0}, [](const KernelReport& k) { return k.seconds; });
  if (is_counted(side)) return fmt::format("{} is bound by {}", side.name, bound_text(device, side));
  return underfills(device, longest) ? fills_text(device, side, longest) : side.name + " fills all SMs";
}

/// "split8 and split16, which would fill them, were not tried (--variant)", for each reason.
std::string without_time_text(const std::vector<OtherVariant>& variants, double sms) {
  std::vector<std::string> clauses, told;
  for (const OtherVariant& v : variants) {
    if (std::find(told.begin(), told.end(), v.because) != told.end()) continue;
    told.push_back(v.because);
    std::vector<std::string> names;
    double most = 0;
    for (const OtherVariant& o : variants)
      if (o.because == v.because) names.push_back(o.name), most = std::max(most, o.ctas);
    const char* verb = !v.because.starts_with("not ") ? "" : names.size() == 1 ? "was " : "were ";
    const std::string many = most >= sms ? "" : fmt::format("{}{:g} of ", names.size() == 1 ? "" : "up to ", most);
    clauses.push_back(fmt::format("{}, which would fill {}them, {}{}", list_text(names), many, verb, v.because));
  }
  return list_text(clauses);
}

}  // namespace

Ruling rule_on_idle_sms(const Device& device, const TimedKernels& fused, const TimedKernels& separate,
                        const std::vector<OtherVariant>& others, const Decide& decide, const std::string& doubt,
                        Ruling ruling) {
  const double sms = device.at("sms");
  for (const bool of_fused : {true, false}) {
    const TimedKernels &side = of_fused ? fused : separate, &other = of_fused ? separate : fused;
    const auto with = [&](double ctas) {
      const double seconds = seconds_with(device, side, other, ctas);
      return of_fused ? std::pair(seconds, separate.seconds) : std::pair(fused.seconds, seconds);
    };
    const auto decision_with = [&](double ctas) { return std::apply(decide, with(ctas)); };
    if (decision_with(sms) == ruling.decision) continue;

    const KernelReport& idle = most_idle(device, side, other);
    std::vector<OtherVariant> without_time;
    std::vector<std::string> slower;
    double most_ctas = 0;
    for (const OtherVariant& v : others) {
      if (v.fused != of_fused || v.ctas <= idle.work.ctas) continue;
      if (v.because.empty()) {
        slower.push_back(v.name);
      } else if (decision_with(v.ctas) != ruling.decision) {
        without_time.push_back(v);
        most_ctas = std::max(most_ctas, v.ctas);
      }
    }
    const std::string fills = fills_text(device, side, idle);
    if (without_time.empty()) {
      const bool known = ruling.reason.find(fills) != std::string::npos;
      ruling.reason += fmt::format(
          "; {}{}", known ? "" : fills + " and ",
          slower.empty() ? fmt::format("no {} variant fills all {:g} SMs", side.name, sms)
                         : fmt::format("{} {} more, but {} slower", list_text(slower),
                                       slower.size() == 1 ? "fills" : "fill", slower.size() == 1 ? "is" : "are"));
      continue;
    }
    const auto [f, c] = with(most_ctas);
    const std::string otherwise = decide(f, c);
    const auto faster = [&](const char* verb, double r) {
      return fmt::format("{} {} {:.2f}x as fast", r < 1 ? separate.name : fused.name, verb, std::max(r, 1 / r));
    };
    const std::string factor = !is_counted(side) ? ""
                                                 : fmt::format(" (idle {:.2f}, bound by {})",
                                                               1 / share_with(device, idle, sms), binding_roof(side));
    const bool turns = ruling.decision != "undecided" && otherwise != "undecided";
    const std::string effect =
        turns ? " only for that reason"
              : fmt::format("; with {} {}", without_time.size() == 1 ? "it" : "them", faster("would be", c / f));
    return {"undecided",
            fmt::format("{}{}, and {}: {}{}{}; {}", fills, factor, without_time_text(without_time, sms),
                        faster("is", separate.seconds / fused.seconds), doubt, effect, bound_sentence(device, other))};
  }
  return ruling;
}

std::vector<Cause> causes(const Device& device, const TimedKernels& fused, const TimedKernels& separate) {
  if (!is_counted(fused) || !is_counted(separate)) return {};
  const Totals f = totals(device, fused), s = totals(device, separate);
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
    c.text = c.name == "work"       ? work_text(device, better, worse, fused_better ? f : s, fused_better ? s : f)
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
