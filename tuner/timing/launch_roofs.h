// The roofs of a launch, from what the event model ran.
#pragma once

#include "tuner/timing/launch_time.h"

namespace roofgen::timing {

/// Cycles of each tensor unit in the whole launch, at its highest rate. `scale`: executed instructions of the CTAs of
/// the launch over those of the CTAs that ran.
double tensor_unit_cycles(const Machine& machine, const sass::Code& code, const LaunchTime& time, double scale);

/// Sets the slowest roof, and the tensor rates. `copy_rate`: bytes of tensor copies that L2 serves in a cycle;
/// `per_cta`: the work of the launch over that of the CTAs that ran.
void find_roof(const Machine& machine, const sass::Code& code, double copy_rate, double per_cta, LaunchTime& out);

}  // namespace roofgen::timing
