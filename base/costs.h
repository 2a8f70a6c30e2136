// What a process has done, in counts that are equal on every machine: a budget for them (tests/budget) does not drift
// with the clock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roofgen {

/// kRuns: starts of the program roofgen; kExpressions: evaluations; kCompiled: NVRTC compilations; kSimulated:
/// warp-instructions of the PTX simulator; kInterpreted: warp-instructions of the interpreter of machine code; kTunes:
/// searches of one problem.
enum class Cost : uint8_t { kRuns, kTunes, kExpressions, kCompiled, kSimulated, kInterpreted };
inline constexpr size_t kCosts = 6;
const char* to_string(Cost cost);

/// From any thread; cheap, but not for inner loops. Where the environment variable ROOFGEN_COSTS names a file, a
/// process that exits, and spent something, adds one line of JSON to the file: {"runs": 1, "tunes": 1, ...}.
void spend(Cost cost, uint64_t count);
uint64_t spent(Cost cost);

}  // namespace roofgen
