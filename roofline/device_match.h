// A real GPU as a Device: the catalogue's entry of exactly that product, or one composed from its
// architecture and what the driver says.
#pragma once

#include "roofgen/driver_facts.h"
#include "roofline/device.h"

namespace roofgen {

/// The device of the catalogue whose driver name is exactly this one and whose bus is as wide, with
/// what the driver knows laid over it; among several, the one with the nearest memory size. Never by
/// die: an H200 is not an H100. Any other GPU is composed from devices/sm_<cc>.json (sm_<cc>_geforce
/// for GeForce, where it exists): bandwidth from memory clock and bus, peaks from SMs, rates and clock,
/// all of origin model, named as the driver names it. Exit::kUnavailable when neither is possible.
Result<Device> match_device(const DataFiles& files, const DriverFacts& facts);

}  // namespace roofgen
