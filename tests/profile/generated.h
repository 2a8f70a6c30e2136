// Kernels of roofgen's own templates, compiled for a device, as the time models take them.
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"
#include "tests/kernels/programs.h"
#include "tuner/timing/launch_time.h"

namespace roofgen::profile {

using test::Pins;

struct Generated {
  Problem problem;  ///< completed by the op
  std::string device;
  Pins pins = {};
  std::vector<test::Edit> edits = {};
  std::string variant = "fused";  ///< of a variant with instances any of them: "split2"
  size_t stage = 0;               ///< of the variant
};

struct Compiled {
  Device device;
  Program program;
  Binary binary;
  Launch launch;
};
/// With NVRTC.
Result<Compiled> compile(const Generated& kernel);

/// The launch, without its code.
timing::LaunchRequest launch_request(const Compiled& compiled);

}  // namespace roofgen::profile
