// Which CTAs of a launch run when.
#pragma once

#include <vector>

#include "runtime/sim/machine.h"
#include "runtime/sim/parallel.h"

namespace roofgen::sim {

/// The numbers of the clusters that CTAs are in, sorted, each once. Clusters tile the grid, x first.
std::vector<uint64_t> cluster_numbers(const Launch& launch, const std::vector<uint64_t>& ctas);

/// Runs `n` CTAs, those of `options.ctas` or the first of the grid: one after another, each to its end, or with the
/// same results on several cores (parallel.h). One that waits for what others do stays on the device: the next one
/// begins, and those that wait take turns. The CTAs of a cluster begin together; of
/// a grid with clusters, `options.ctas` are all CTAs of some of them. Ends early when there are
/// options.max_findings. Returns how many CTAs ran beside others.
uint64_t run_ctas(LaunchState& state, Counter& counter, uint64_t n, const RunOptions& options,
                  std::vector<Finding>& findings, uint64_t wave_instructions = kWaveInstructions);

}  // namespace roofgen::sim
