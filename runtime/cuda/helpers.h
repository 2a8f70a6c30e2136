// The small kernels around a timed shot, as PTX written by hand: old enough for every GPU that the
// executor accepts, and compiled by the driver.
#pragma once

#include <cstdint>

namespace roofgen::cuda {

/// roofgen_gate(u64 ns): one thread waits for `ns` of %globaltimer, so that all that follows it in the
/// stream is queued before the first of it runs. A fixed time: it cannot hang.
///
/// roofgen_stamp(u64 to, u32 capacity): one thread an SM stores Stamp{clock64, globaltimer} at
/// to[%smid]. It waits for the tick of %globaltimer (a microsecond on some GPUs) so that the pair belongs
/// together; at most 16384 reads, so it cannot hang either.
///
/// roofgen_sweep(u64 base, u64 lines, u32 write): touches `lines` lines of 16 bytes; with `write` each is
/// changed, without they are only read.
extern const char* const kHelperPtx;

struct Stamp {
  uint64_t clock = 0;    ///< SM cycles
  uint64_t time_ns = 0;  ///< 0: no thread ran on this SM
};

/// Stamps that are kept: more SMs than any GPU has.
inline constexpr uint32_t kStamps = 512;

}  // namespace roofgen::cuda
