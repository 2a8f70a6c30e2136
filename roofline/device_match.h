// Turns the GPU of this machine into a Device: the catalogue entry of the same product, or a device composed from its
// architecture and the driver's facts.
#pragma once

#include "roofgen/driver_facts.h"
#include "roofline/device.h"

namespace roofgen {

/// Selects the catalogue entry with exactly this driver name and bus width (of several, the one with the nearest memory
/// size) and replaces its cells with the driver's values. The die does not decide: an H200 is not an H100. Any other
/// GPU is composed from devices/sm_<cc>.json (for GeForce from sm_<cc>_geforce, where it exists): bandwidth from memory
/// clock and bus, peaks from SMs, rates and clock, all of origin model, with the driver's name. Exit::kUnavailable when
/// neither is possible.
Result<Device> match_device(const DataFiles& files, const DriverFacts& facts);

}  // namespace roofgen
