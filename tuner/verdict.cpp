#include "tuner/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/causes.h"

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

}  // namespace roofgen
