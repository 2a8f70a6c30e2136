// The time of a whole launch from its machine code: streams of a few CTAs, one SM, and the waves of the grid.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/sass/stream.h"
#include "tuner/timing/sm_model.h"
#include "tuner/timing/stream_counts.h"

namespace roofgen::timing {

/// Bytes of a kernel's buffer from `offset` on, by the name of its argument; false: unknown.
using ReadBuffer = std::function<bool(const std::string& argument, uint64_t offset, std::span<std::byte> out)>;
/// The launch of a generated kernel. Its buffers lie far apart, because their sizes are not known here.
sass::StreamLaunch stream_launch(const Launch& launch, const ReadBuffer& read = {});

struct LaunchRequest {
  const sass::Code* code = nullptr;
  sass::StreamLaunch launch;
  int registers = 0;
  int64_t smem_bytes = 0;                 ///< of a CTA, static and dynamic
  size_t trace_spans = 0;                 ///< of the timeline that are kept at most
  double buffer_bytes = 0;                ///< of all arguments: a bound of the distinct bytes; 0: unknown
  std::optional<double> dram_bytes = {};  ///< of the whole launch, both directions; nullopt: estimated
  bool event = true;                      ///< false: only the interval model runs
};

/// Without the event model, only `interval_s`, occupancy, waves, counts and doubts.
struct LaunchTime {
  double event_s = 0, interval_s = 0, roofline_s = 0;
  std::string roof;  ///< the slowest one of roofline_s
  Occupancy occupancy;
  double ctas = 0, waves = 0;
  double clock_hz = 0;  ///< of the SMs
  int simulated_ctas = 0;
  double cycles = 0;     ///< of the whole launch on the busiest SM
  double imbalance = 1;  ///< time of the launch over that of CTAs that all do the mean work
  SmTime sm;             ///< of the simulated CTAs
  StreamCounts counts;
  double l2_miss = 0;            ///< share of the sectors read from L2 that come from DRAM
  double tensor_flops = 0;       ///< of the whole launch
  double tensor_peak_flops = 0;  ///< per second, of the tensor instructions that the kernel has
  std::vector<sass::Doubt> doubts;
};

/// A launch that is interpreted once, and timed on many machines of its device, which differ in clock and in the
/// scalars of the time models.
class LaunchModel {
 public:
  /// The device, and what the request refers to, must outlive it.
  LaunchModel(const Device& device, LaunchRequest request);
  LaunchModel(LaunchModel&&) noexcept;
  ~LaunchModel();
  /// Errors as those of launch_time; after one, the model is not used any more.
  Result<LaunchTime> time(const Machine& machine);
  /// Memory of the streams that it keeps after the first time.
  size_t stream_bytes() const;

 private:
  class Estimate;
  std::unique_ptr<Estimate> estimate_;
};

/// Errors: Exit::kFailed if the kernel does not end or waits for itself; Exit::kUsage if no CTA fits on an SM.
Result<LaunchTime> launch_time(const Device& device, const Machine& machine, LaunchRequest request);

}  // namespace roofgen::timing
