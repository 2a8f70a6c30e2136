// The small kernels around a timed shot, in hand-written PTX that suits every supported GPU. The driver compiles them.
#pragma once

#include <cstdint>
#include <string_view>

namespace roofgen::cuda {

/// roofgen_gate(u64 ns): one thread waits for `ns` of %globaltimer, so that the host can queue all following work
/// before it starts. The wait is bounded, so the kernel cannot hang.
/// roofgen_stamp(u64 to, u32 capacity): one thread per SM stores Stamp{clock64, globaltimer} at to[%smid]. The thread
/// waits for the next tick of %globaltimer (1 us on some GPUs), so that both values belong together; at most 16384
/// reads, so the kernel cannot hang.
/// roofgen_sweep(u64 base, u64 lines, u32 write): reads `lines` lines of 16 bytes; with `write`, also changes them.
std::string_view helper_ptx();  ///< helpers.ptx; a zero follows

struct Stamp {
  uint64_t clock = 0;    ///< SM cycles
  uint64_t time_ns = 0;  ///< 0: no thread ran on this SM
};

/// Number of stamps: larger than the SM count of any GPU.
inline constexpr uint32_t kStamps = 512;

}  // namespace roofgen::cuda
