// Runs the CTAs of one launch on several cores, with the results of running them in order.
//
// CTAs run in waves. In a wave each worker takes CTAs in ascending order and writes to private copies of lines
// (private_lines.h). If no worker read or wrote a word that another worker wrote, the order did not matter: the copies
// are merged and the counts added. Otherwise the wave is dropped, and the caller runs its CTAs and all later ones in
// order. The same happens if a CTA has a finding, prints, or uses atomics or strong accesses of device memory.
#pragma once

#include "runtime/sim/machine.h"

namespace roofgen::sim {

/// Warp-instructions of a wave: some tens of milliseconds, the loss if the wave is dropped.
inline constexpr uint64_t kWaveInstructions = 2'000'000;

/// Runs CTAs `begin` to `n` - 1 of the selection, each expected to take `instructions`. Returns the first CTA that it
/// did not run; `n`: all ran.
uint64_t run_in_parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, uint64_t instructions,
                         const RunOptions& options, uint64_t wave_instructions = kWaveInstructions);

}  // namespace roofgen::sim
