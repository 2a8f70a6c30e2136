#include "tuner/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "roofline/units.h"

namespace roofgen {
namespace {

const VariantReport* best(const std::vector<VariantReport>& variants, bool fused) {
  const VariantReport* out = nullptr;
  for (const VariantReport& v : variants)
    if (v.verified && (v.kernels.size() == 1) == fused && (!out || v.seconds < out->seconds)) out = &v;
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

std::string missing_reason(const std::vector<VariantReport>& variants) {
  for (const VariantReport& v : variants)
    if (!v.available) return fmt::format("{} cannot run: {}", v.name, v.rejected_because);
  for (const VariantReport& v : variants)
    if (!v.verified) return fmt::format("no candidate of {} was verified (--explain lists why)", v.name);
  return "only one kind of variant was asked for";
}

}  // namespace

FusionVerdict fusion_verdict(const std::vector<VariantReport>& variants, double band) {
  const VariantReport* fused = best(variants, true);
  const VariantReport* unfused = best(variants, false);
  FusionVerdict out;
  out.fused = side(fused);
  out.unfused = side(unfused);
  if (!fused || !unfused) {
    out.decision = fused ? "fused only" : unfused ? "separate only" : "none";
    out.reason = missing_reason(variants);
    return out;
  }
  const Side &f = *out.fused, &u = *out.unfused;
  out.speedup = u.seconds / f.seconds;
  // Two independent errors of one model time each.
  out.band = std::sqrt(2.0) * band;
  const double gain = std::max(out.speedup, 1 / out.speedup);
  out.decision = gain < 1 + out.band ? "undecided" : out.speedup > 1 ? "fuse" : "separate";

  const double saved = u.dram_bytes - f.dram_bytes;
  const std::string benefit = fmt::format("{} {} of DRAM traffic and {} launches", saved >= 0 ? "saving" : "adding",
                                          bytes_text(std::fabs(saved)), u.launches - f.launches);
  const std::string price = fmt::format("{} registers against {} and {:.0f} % occupancy against {:.0f} %", f.registers, u.registers,
                                        100 * f.occupancy, 100 * u.occupancy);
  const bool flagged = std::any_of(unfused->kernels.begin(), unfused->kernels.end(), [](const KernelReport& k) { return k.intermediate_in_l2; });
  const char* l2_note = flagged ? "; the intermediates stay in L2, so little DRAM traffic is at stake" : "";
  if (out.decision == "undecided")
    out.reason = fmt::format("fused is {:.2f}x as fast, inside the model's error band of {:.0f} %: {}, at {}{}", out.speedup,
                             100 * out.band, benefit, price, l2_note);
  else
    out.reason = fmt::format("fused is {:.2f}x as fast: {} {} {}{}", out.speedup, benefit,
                             out.speedup > 1 ? "outweighs" : "does not pay for", price, l2_note);
  return out;
}

}  // namespace roofgen
