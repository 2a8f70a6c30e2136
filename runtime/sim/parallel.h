// CTAs of one launch on several cores, with what running them one after another gives.
//
// Each worker takes CTAs in ascending order and writes to copies of lines (private_lines.h). When all are through, and no worker
// read or wrote a word that another one wrote, the order did not matter: the copies are put in place and the counts added. Else,
// and whenever a CTA has a finding or does what depends on the order (atomics and strong accesses of device memory, printf),
// everything is thrown away, and the caller runs the CTAs one after another.
#pragma once

#include "runtime/sim/machine.h"

namespace roofgen::sim {

/// Runs CTAs `begin` to `n` of the selection. False: nothing was done.
bool run_in_parallel(const LaunchState& state, Counter& counter, uint64_t begin, uint64_t n, const RunOptions& options);

}  // namespace roofgen::sim
