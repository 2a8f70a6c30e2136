// The executed work of a launch, from the streams of some of its CTAs.
#pragma once

#include <array>

#include "runtime/sass/instruction.h"

namespace roofgen::timing {

/// Sums over the whole launch, extrapolated from CTAs at the edges and inside of the grid.
struct StreamCounts {
  double warp_instructions = 0, thread_instructions = 0;
  double fp32_operations = 0;           ///< of active lanes; a fused multiply-add is two
  double fp32_thread_instructions = 0;  ///< of active lanes; a fused multiply-add is one
  double shared_load_wavefronts = 0, shared_store_wavefronts = 0;
  double global_load_requests = 0, global_store_requests = 0;
  double global_load_sectors = 0, l2_read_sectors = 0, l2_write_sectors = 0;
  double tile_sectors = 0;  ///< of the sectors read from L2, by tensor copies
  double dram_read_bytes = 0, dram_write_bytes = 0;
  std::array<double, static_cast<size_t>(sass::Pipe::kCount)> pipe_instructions{};  ///< of warps
};

}  // namespace roofgen::timing
