#include "tuner/report.h"

#include "tuner/choice.h"

namespace roofgen {

const char* to_string(Check check) {
  return check == Check::kAll ? "all" : check == Check::kFinalists ? "finalists" : "gpu";
}

Result<Check> parse_check(const std::string& name) {
  return parse_choice(name, "--check", {Check::kAll, Check::kFinalists, Check::kGpu});
}

const Timing* ranking_timing(const Measurement& m) { return m.cold ? &*m.cold : m.hot ? &*m.hot : nullptr; }

void estimate_time(KernelReport& k, const Device& device, double floor_seconds) {
  if (k.counted)
    k.time = k.code ? estimate(device, k.work, k.occupancy, *k.code) : estimate(device, k.work, k.occupancy);
  k.seconds = k.measurement ? 1e-9 * ranking_timing(*k.measurement)->median_ns : k.time.seconds;
  if (!k.counted) return;
  k.waste = k.time.work_seconds / floor_seconds;
  k.idle = k.time.kernel_seconds / k.time.work_seconds;
  k.stall = k.seconds / k.time.kernel_seconds;
}

}  // namespace roofgen
