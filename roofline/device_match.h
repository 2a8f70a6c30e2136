// A real GPU as a Device: the catalogue's entry of exactly that product, or one composed from its
// architecture and what the driver says.
#pragma once

#include <cstdint>
#include <string>

#include "roofline/device.h"

namespace roofgen {

/// What a CUDA driver says about a GPU. 0 is "unknown".
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

/// The device of the catalogue whose driver name is exactly this one and whose bus is as wide, with
/// what the driver knows laid over it; among several, the one with the nearest memory size. Never by
/// die: an H200 is not an H100. Any other GPU is composed from devices/sm_<cc>.json (sm_<cc>_geforce
/// for GeForce, where it exists): bandwidth from memory clock and bus, peaks from SMs, rates and clock,
/// all of origin model, named as the driver names it. Exit::kUnavailable when neither is possible.
Result<Device> match_device(const DataFiles& files, const DriverFacts& facts);

}  // namespace roofgen
