// The time of a whole launch from its machine code: streams of a few CTAs, one SM, and the waves of the grid.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/sass/stream.h"
#include "tuner/timing/sm_model.h"

namespace roofgen::timing {

/// The launch of a generated kernel. Its buffers lie far apart, because their sizes are not known here.
sass::StreamLaunch stream_launch(const Launch& launch);

struct LaunchRequest {
  const sass::Code* code = nullptr;
  sass::StreamLaunch launch;
  int registers = 0;
  int64_t smem_bytes = 0;   ///< of a CTA, static and dynamic
  size_t trace_spans = 0;   ///< of the timeline that are kept at most
  double buffer_bytes = 0;  ///< of all arguments: a bound of the distinct bytes; 0: unknown
};

/// Sums over the whole launch, extrapolated from CTAs at the edges and inside of the grid.
struct StreamCounts {
  double warp_instructions = 0, thread_instructions = 0;
  double fp32_operations = 0;           ///< of active lanes; a fused multiply-add is two
  double fp32_thread_instructions = 0;  ///< of active lanes; a fused multiply-add is one
  double shared_load_wavefronts = 0, shared_store_wavefronts = 0;
  double global_load_requests = 0, global_store_requests = 0;
  double global_load_sectors = 0, l2_read_sectors = 0, l2_write_sectors = 0;
  double dram_read_bytes = 0, dram_write_bytes = 0;
};

struct LaunchTime {
  double event_s = 0, interval_s = 0, roofline_s = 0;
  std::string roof;  ///< the slowest one of roofline_s
  Occupancy occupancy;
  double ctas = 0, waves = 0;
  int simulated_ctas = 0;
  double cycles = 0;  ///< of the whole launch on the busiest SM
  SmTime sm;          ///< of the simulated CTAs
  StreamCounts counts;
  double l2_miss = 0;            ///< share of the sectors read from L2 that come from DRAM
  double tensor_flops = 0;       ///< of the whole launch
  double tensor_peak_flops = 0;  ///< per second, of the tensor instructions that the kernel has
  std::vector<sass::Doubt> doubts;
};

/// Errors: Exit::kFailed if the kernel does not end or waits for itself; Exit::kUsage if no CTA fits on an SM.
Result<LaunchTime> launch_time(const Device& device, const Machine& machine, LaunchRequest request);

}  // namespace roofgen::timing
