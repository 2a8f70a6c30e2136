// Properties of a GPU as the CUDA driver reports them: read by the executor, matched with the catalogue of devices.
#pragma once

#include <cstdint>
#include <string>

namespace roofgen {

/// 0 is "unknown".
struct DriverFacts {
  std::string name;  ///< cuDeviceGetName, "NVIDIA H200"
  int cc = 0;        ///< compute capability, 90 for 9.0
  int64_t sms = 0;
  int64_t bus_bits = 0;
  int64_t memory_clock_khz = 0;  ///< two transfers a clock
  int64_t sm_clock_khz = 0;      ///< the highest
  int64_t l2_bytes = 0, memory_bytes = 0;
  int64_t smem_per_sm = 0, smem_per_block = 0, smem_reserved_per_block = 0;  ///< per block: with opt-in
  int64_t regs_per_sm = 0, max_threads_per_sm = 0, max_ctas_per_sm = 0;
};

}  // namespace roofgen
