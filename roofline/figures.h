// Plots of devices and explanations.
#pragma once

#include <string>
#include <vector>

#include "roofline/explain.h"
#include "roofline/plot/figure.h"

namespace roofgen {

/// The roofs of a device without points: datasheet and sustained bandwidths of DRAM, L2 and shared memory, and one
/// ceiling per arithmetic rate (formats of equal rate share a line). `everything` adds the lower ceilings: FP16
/// accumulation, half precision on CUDA cores.
plot::Roofline device_roofline(const Device& device, bool everything = false);

/// The points of an operator under the model: FLOPs over the modelled time, including launches and waves, with an arrow
/// to the rate that the roofs allow. `levels` adds its intensities at L2 and shared memory as points of the same name.
std::vector<plot::Point> operator_points(const std::string& name, const Explanation& explanation, bool levels = false);

/// Intensity against the batching dimension of the work, or against its first dimension (attention's length), in powers
/// of two, with the ridge as a mark. Empty when the intensity does not depend on that dimension.
std::optional<plot::Lines> intensity_lines(const WorkFormula& formula, WorkRequest request,
                                           const Explanation& explanation);

/// Table, roofline and bars of an explained operator, and `lines` if present.
plot::Page explain_page(const Device& device, const Explanation& explanation,
                        std::optional<plot::Lines> lines = std::nullopt);

}  // namespace roofgen
