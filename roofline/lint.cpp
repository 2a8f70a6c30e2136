#include "roofline/lint.h"

#include <fmt/format.h>

#include <cmath>

#include "roofline/roofs.h"
#include "roofline/units.h"

namespace roofgen {
namespace {

using Text = std::optional<std::string>;

/// Bytes all kernels touch together: an intermediate that one writes and the next reads counts once.
double working_set(const OpWork& w) {
  double out = 0;
  for (const KernelWork& k : w.kernels)
    for (const OperandWork& o : k.operands) {
      bool made_before = false;
      if (!o.write)
        for (const KernelWork* p = w.kernels.data(); p != &k; ++p)
          for (const OperandWork& x : p->operands) made_before |= x.write && x.name == o.name;
      if (!made_before) out += o.bytes();
    }
  return out;
}

Text fits_l2(const Claim& c) {
  if (!c.device || !c.work || !c.device->has("l2_bytes")) return {};
  const double bytes = working_set(*c.work), l2 = c.device->at("l2_bytes");
  if (bytes > l2 || bytes <= 0) return {};
  return fmt::format("the working set of {} fits the {} L2 of {}: with a warm cache its DRAM traffic is not what the formula says; hold it against the L2 roof",
                     bytes_text(bytes), bytes_text(l2), c.device->name);
}

Text few_ctas(const Claim& c) {
  if (!c.device || !c.work) return {};
  const double sms = c.device->at("sms");
  for (const KernelWork& k : c.work->kernels) {
    if (k.ctas <= 0) continue;
    if (k.ctas < sms) return fmt::format("{} has {:g} CTAs for {:g} SMs: the roofs assume that all SMs work", k.name, k.ctas, sms);
    const double waves = k.ctas / sms, idle = 1 - waves / std::ceil(waves);
    if (k.mma_flops > 0 && idle > 0.2)
      return fmt::format("{} has {:.2f} waves of CTAs: {:.0f} % of the SMs' time is a partial last wave", k.name, waves, 100 * idle);
  }
  return {};
}

/// A launch-bound kernel needs no tuning of its inside: five launches of time are mostly overhead.
constexpr double kFewLaunches = 5;

Text overhead(const Claim& c) {
  if (!c.device || !c.time_us || !c.launches) return {};
  const double launch = c.device->at("launch_us");
  if (*c.time_us >= kFewLaunches * launch * *c.launches) return {};
  return fmt::format("{:.1f} us for {:g} launches of about {:g} us: launch overhead is a large part, and roofs do not show it", *c.time_us, *c.launches, launch);
}

struct Check {
  Rule rule;
  Text (*broken)(const Claim&);
};

const std::vector<Check>& checks() {
  static const std::vector<Check> table = {
      {{"R09", "working set fits in L2"}, fits_l2},
      {{"R10", "fewer CTAs than SMs, or a partial wave"}, few_ctas},
      {{"R17", "launch overhead"}, overhead},
  };
  return table;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = [] {
    std::vector<Rule> out;
    for (const Check& c : checks()) out.push_back(c.rule);
    return out;
  }();
  return table;
}

std::vector<Warning> lint(const Claim& claim) {
  std::vector<Warning> out;
  for (const Check& c : checks())
    if (Text text = c.broken(claim)) out.push_back({c.rule.id, *text});
  return out;
}

}  // namespace roofgen
