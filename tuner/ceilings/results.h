// From times to figures, and from figures to a profile's cells. Private to this folder.
#pragma once

#include "tuner/ceilings/ceilings.h"

namespace roofgen::ceilings {

/// In the ceiling's unit. Without a clock the device's highest stands in, so that a rate per clock is a lower bound.
double rate_of(const CeilingSpec& spec, const Device& device, double amount, double time_ns, double sm_mhz);

/// Fills in the rates of a ceiling that was timed. One above what the device states becomes `impossible`, with its
/// reason.
void judge(CeilingResult& result, const Device& device);

/// The cells that the figures give: those that the device accepts, notes on the others.
void derive_cells(CeilingsReport& report);

}  // namespace roofgen::ceilings
