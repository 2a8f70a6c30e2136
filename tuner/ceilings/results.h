// Rates from times, and a profile's cells from rates. Private to this folder.
#pragma once

#include "tuner/ceilings/ceilings.h"

namespace roofgen::ceilings {

/// In the ceiling's unit. If the clock is unknown, the device's highest is used: a rate per clock is then a lower
/// bound.
double rate_of(const CeilingSpec& spec, const Device& device, double amount, double time_ns, double sm_mhz);

/// Sets the rates of a timed ceiling. A rate above the stated limit becomes `impossible`, with the reason.
void judge(CeilingResult& result, const Device& device);

/// The cells of the rates that the device accepts, and notes about the others.
void derive_cells(CeilingsReport& report);

}  // namespace roofgen::ceilings
