#include "tuner/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/views/units.h"

namespace roofgen {
namespace {

const VariantReport* best(const std::vector<VariantReport>& variants, bool fused) {
  const VariantReport* out = nullptr;
  for (const VariantReport& v : variants)
    if (v.verified && (v.kernels.size() == 1) == fused && (!out || v.seconds < out->seconds)) out = &v;
  return out;
}

int most_registers(const VariantReport& v) {
  int out = 0;
  for (const KernelReport& k : v.kernels) out = std::max(out, k.registers);
  return out;
}

double least_occupancy(const VariantReport& v) {
  double out = 1;
  for (const KernelReport& k : v.kernels) out = std::min(out, k.occupancy.fraction);
  return out;
}

std::string missing_reason(const std::vector<VariantReport>& variants) {
  for (const VariantReport& v : variants)
    if (!v.available) return fmt::format("{} cannot run: {}", v.name, v.rejected_because);
  for (const VariantReport& v : variants)
    if (!v.verified) return fmt::format("no candidate of {} passed verification", v.name);
  return "only one kind of variant was asked for";
}

}  // namespace

FusionVerdict fusion_verdict(const std::vector<VariantReport>& variants, double band) {
  const VariantReport* fused = best(variants, true);
  const VariantReport* unfused = best(variants, false);
  FusionVerdict out;
  if (!fused && !unfused) return {"none", missing_reason(variants), 0, 0};
  if (!unfused) return {"fused only", missing_reason(variants), 0, 0};
  if (!fused) return {"separate only", missing_reason(variants), 0, 0};
  out.speedup = unfused->seconds / fused->seconds;
  // Two independent errors of one model time each.
  out.band = std::sqrt(2.0) * band;
  const double gain = std::max(out.speedup, 1 / out.speedup);
  out.decision = gain < 1 + out.band ? "undecided" : out.speedup > 1 ? "fuse" : "separate";

  const double saved = unfused->dram_bytes - fused->dram_bytes;
  const int registers = most_registers(*fused) - most_registers(*unfused);
  const std::string traffic =
      saved >= 0 ? fmt::format("{} less DRAM traffic", bytes_text(saved)) : fmt::format("{} more DRAM traffic", bytes_text(-saved));
  const std::string price = fmt::format(
      "{} {} registers at the peak ({} against {}) and {:.0f} % against {:.0f} % occupancy", std::abs(registers),
      registers >= 0 ? "more" : "fewer", most_registers(*fused), most_registers(*unfused), 100 * least_occupancy(*fused),
      100 * least_occupancy(*unfused));
  const std::string launches = fmt::format("{} fewer launches", unfused->kernels.size() - fused->kernels.size());
  const bool flagged = std::any_of(unfused->kernels.begin(), unfused->kernels.end(), [](const KernelReport& k) { return k.intermediate_in_l2; });
  const char* l2_note = flagged ? "; the intermediates stay in L2, so little DRAM traffic is at stake" : "";
  if (out.decision == "undecided")
    out.reason = fmt::format("fused is {:.2f}x as fast, inside the model's error band of {:.0f} %: {} and {} against {}{}",
                             out.speedup, 100 * out.band, traffic, launches, price, l2_note);
  else
    out.reason = fmt::format("fused is {:.2f}x as fast: {} and {} {} {}{}", out.speedup, traffic, launches,
                             out.speedup > 1 ? "outweigh" : "do not pay for", price, l2_note);
  return out;
}

}  // namespace roofgen
