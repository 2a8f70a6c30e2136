#include "tuner/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace roofgen {
namespace {

/// A smaller share of the traffic is none.
constexpr double kNoTraffic = 0.005;

const VariantReport* best(const std::vector<VariantReport>& variants, bool fused) {
  const VariantReport* out = nullptr;
  for (const VariantReport& v : variants)
    if (v.verified && v.seconds > 0 && v.fused == fused && (!out || v.seconds < out->seconds)) out = &v;
  return out;
}

std::optional<Side> side(const VariantReport* v) {
  if (!v) return std::nullopt;
  Side out;
  out.seconds = v->seconds;
  out.dram_bytes = v->dram_bytes;
  out.l2_bytes = v->l2_bytes;
  out.arithmetic_intensity = v->arithmetic_intensity();
  out.launches = v->kernels.size();
  for (const KernelReport& k : v->kernels) {
    out.registers = std::max(out.registers, k.registers);
    out.occupancy = std::min(out.occupancy, k.occupancy.fraction);
    out.spill_bytes += k.spill_bytes;
  }
  return out;
}

/// Why there is nothing of one kind: fused, or not.
std::string missing_reason(const std::vector<VariantReport>& variants, bool fused) {
  for (const VariantReport& v : variants)
    if (!v.available && v.fused == fused) return fmt::format("{} cannot run: {}", v.name, v.rejected_because);
  for (const VariantReport& v : variants)
    if (!v.verified && v.fused == fused)
      return fmt::format("no candidate of {} was verified (--explain lists why)", v.name);
  return "there is no variant of the other kind to compare it with";
}

/// Unfused over fused, from the pairs with the fastest of all, which is one of the two.
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

FusionVerdict fusion_verdict(const std::vector<VariantReport>& variants, double band,
                             const std::vector<VariantPair>* pairs, Origin timed) {
  const VariantReport* fused = best(variants, true);
  const VariantReport* unfused = best(variants, false);
  FusionVerdict out;
  out.fused = side(fused);
  out.unfused = side(unfused);
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
      doubt = fmt::format("({}, 95 % interval {:.3f} to {:.3f})", to_string(timed), m.low, m.high);
    } else {
      out.decision = "undecided";
      doubt = fmt::format("({}, but not side by side)", to_string(timed));
    }
  } else {
    // Two independent errors of one model time each.
    out.band = std::sqrt(2.0) * band;
    const double gain = std::max(out.speedup, 1 / out.speedup);
    out.decision = gain < 1 + out.band ? "undecided" : out.speedup > 1 ? "fuse" : "separate";
    if (out.decision == "undecided") doubt = fmt::format(", inside the model's error band of {:.0f} %", 100 * out.band);
  }

  const double saved = u.dram_bytes - f.dram_bytes;
  const auto counted = [](const VariantReport* v) {
    return std::all_of(v->kernels.begin(), v->kernels.end(), [](const KernelReport& k) { return k.counted; });
  };
  const std::string benefit =
      counted(fused) && counted(unfused)
          ? std::fabs(saved) < kNoTraffic * u.dram_bytes
                ? fmt::format("saving {} launches and no DRAM traffic", u.launches - f.launches)
                : fmt::format("{} {} of DRAM traffic and {} launches", saved >= 0 ? "saving" : "adding",
                              bytes_text(std::fabs(saved)), u.launches - f.launches)
          : fmt::format("saving {} launches (no traffic was counted)", u.launches - f.launches);
  const bool free = f.registers <= u.registers && f.occupancy >= u.occupancy;
  const std::string price = fmt::format("{} registers against {} and {:.0f} % occupancy against {:.0f} %", f.registers,
                                        u.registers, 100 * f.occupancy, 100 * u.occupancy);
  const bool flagged = std::any_of(unfused->kernels.begin(), unfused->kernels.end(),
                                   [](const KernelReport& k) { return k.intermediate_in_l2; });
  const char* l2_note = flagged && std::fabs(saved) < kNoTraffic * u.dram_bytes
                            ? "; the intermediates stay in L2, so little DRAM traffic is at stake"
                            : "";
  const std::string how = fmt::format("fused is {:.2f}x as fast{}{}", out.speedup, pairs ? " " : "", doubt);
  if (out.decision == "undecided")
    out.reason = fmt::format("{}: {}, at {}{}", how, benefit, price, l2_note);
  else
    out.reason = fmt::format("{}: {} {} {}{}", how, benefit,
                             out.speedup <= 1 ? "does not pay for"
                             : free           ? "comes at no price,"
                                              : "outweighs",
                             price, l2_note);
  return out;
}

}  // namespace roofgen
