// CTAs of one launch on several cores, with what running them one after another gives.
//
// They run in waves. In a wave each worker takes CTAs in ascending order and writes to copies of lines
// (private_lines.h). When all are through, and no worker read or wrote a word that another one wrote, the order did not
// matter: the copies are put in place and the counts added. Else, and whenever a CTA has a finding or does what depends
// on the order (atomics and strong accesses of device memory, printf), the wave is thrown away, and the caller goes on
// from its first CTA with one after another.
#pragma once

#include "runtime/sim/machine.h"

namespace roofgen::sim {

/// Warp-instructions of a wave: some tens of milliseconds, which is what is lost when the order matters after all.
inline constexpr uint64_t kWaveInstructions = 2'000'000;

/// Runs CTAs `begin`, ... of the `n` of the selection, each expected to take `instructions`. Returns the first that it
/// did not run, `n` for none.
uint64_t run_in_parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, uint64_t instructions,
                         const RunOptions& options, uint64_t wave_instructions = kWaveInstructions);

}  // namespace roofgen::sim
