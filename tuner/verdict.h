// Whether to fuse: the best fused variant against the best variant of separate kernels, and the causes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "roofline/lint/lint.h"
#include "roofline/work.h"
#include "tuner/report.h"

namespace roofgen {

/// Compares the fastest fused variant (one kernel) with the fastest of several kernels. Modelled times differ if their
/// ratio exceeds the error bands of both, taken as independent; measured times differ if the 95 % interval of
/// their paired ratio excludes 1. `pairs`: each measured variant with the fastest. Without a pair the verdict is
/// undecided. `untried`: excluded variants. They matter where a side has fewer CTAs than SMs (rule_on_idle_sms()).
FusionVerdict fusion_verdict(const Device& device, const std::vector<VariantReport>& variants,
                             const std::vector<OtherVariant>& untried, const std::vector<VariantPair>* pairs = nullptr,
                             Origin timed = Origin::kMeasured);

// ---- The lint rules (docs/use/lint.md) applied to a tuning result --------------------------------------

/// Lint warnings of the verified variants of a report; each text begins with the variant's name.
std::vector<Warning> own_warnings(const WorkFormula* formula, const TuneReport& report);

// Why one way to compute a problem is faster than another:
//   ln(T_separate / T_fused) = the differences in ln(waste), ln(idle) and ln(stall).
// The difference in ln(waste) is split between launches and the work of the kernels in proportion to their differences
// in seconds. All contributions add up to the logarithm of the ratio.

/// Differences below 0.5 % of the traffic count as zero.
inline constexpr double kNoTraffic = 0.005;

/// The kernels of one side in order, and the time of all of them.
struct TimedKernels {
  std::string name;  ///< in sentences: "fused", "separate"
  std::vector<const KernelReport*> kernels;
  double seconds = 0;

  TimedKernels(std::string name, const std::vector<KernelReport>& kernels, double seconds);
};

/// "fuse", "separate" or "undecided" for the times of the fused and of the separate kernels.
using Decide = std::function<std::string(double fused, double separate)>;

/// A decision and its reason.
struct Ruling {
  std::string decision, reason;
};

/// The rule on idle SMs. Where a side has fewer CTAs than SMs, and the decision would differ if the side filled them,
/// the reason names that side. If one of the `others` of that side has no time, and the decision would differ with its
/// number of CTAs, the comparison is undecided and the reason names that variant.
Ruling rule_on_idle_sms(const Device& device, const TimedKernels& fused, const TimedKernels& separate,
                        const std::vector<OtherVariant>& others, const Decide& decide, const std::string& doubt,
                        Ruling ruling);

/// The largest contribution first. Empty if no work was counted for one of the kernels.
std::vector<Cause> causes(const Device& device, const TimedKernels& fused, const TimedKernels& separate);

/// "fused is 2.35x as fast (95 % ...): it saves ...": the faster side, the doubt about that, the causes.
std::string comparison_text(const TimedKernels& fused, const TimedKernels& separate, const std::string& doubt,
                            const std::vector<Cause>& causes);

/// The causes that explain which side is faster, then those that act against it. A clause that begins with `subject`
/// begins with "it" instead.
std::string because(const std::vector<Cause>& causes, const std::string& subject = "");

/// A variant or a partition as one side: the sums of all its kernels, the resources of kernels first to last.
template <class Report>
Side side_of(const Report& r, size_t first = 0, size_t last = SIZE_MAX) {
  Side s{r.seconds, r.dram_bytes, r.l2_bytes, r.arithmetic_intensity()};
  s.launches = r.kernels.size();
  for (size_t i = first; i <= last && i < r.kernels.size(); ++i) {
    s.registers = std::max(s.registers, r.kernels[i].registers);
    s.occupancy = std::min(s.occupancy, r.kernels[i].occupancy.fraction);
    s.spill_bytes += r.kernels[i].spill_bytes;
  }
  return s;
}

}  // namespace roofgen
