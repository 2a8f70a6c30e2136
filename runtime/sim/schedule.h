// The order in which the CTAs of a launch run.
#pragma once

#include <vector>

#include "runtime/sim/machine.h"
#include "runtime/sim/parallel.h"

namespace roofgen::sim {

/// The numbers of the clusters that hold `ctas`, sorted, each once. Clusters tile the grid, x first.
std::vector<uint64_t> cluster_numbers(const Launch& launch, const std::vector<uint64_t>& ctas);

/// Runs `n` CTAs, of `options.ctas` or the first of the grid: in order, or with the same results on several cores
/// (parallel.h). A CTA that waits for other CTAs is suspended while the next one begins; suspended CTAs take turns. The
/// CTAs of a cluster begin together; `options.ctas` of a grid with clusters holds whole clusters. Stops at
/// options.max_findings. Returns the number of CTAs that ran on workers.
uint64_t run_ctas(LaunchState& state, Counter& counter, uint64_t n, const RunOptions& options,
                  std::vector<Finding>& findings, uint64_t wave_instructions = kWaveInstructions);

}  // namespace roofgen::sim
