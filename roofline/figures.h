// From devices and explanations to what is drawn.
#pragma once

#include <string>
#include <vector>

#include "roofline/explain.h"
#include "roofline/plot/figure.h"

namespace roofgen {

/// TFLOP/s attainable at an intensity under the datasheet's DRAM slope and the peak of matrix work in `math`.
double attainable_tflops(const Device& device, const std::string& math, double ai);

/// The roofs of a device without points: DRAM, L2 and shared memory as the datasheet states them and as they are
/// sustained, and one ceiling for each rate of arithmetic (formats of equal rate share a line). `everything` adds
/// the lesser ones: FP16 accumulation, half precision on CUDA cores.
plot::Roofline device_roofline(const Device& device, bool everything = false);

/// Where an operator stands by the model: FLOPs over the modelled time, launches and waves included; the arrow
/// goes to what the roofs allow. `levels`: also its intensity at L2 and shared memory, as points of the same name.
std::vector<plot::Point> operator_points(const std::string& name, const Explanation& explanation, bool levels = false);

/// Intensity against the dimension that batches the work, or else its first one (attention's length), in powers of two
/// with the ridge as a mark. None where it does not depend on that dimension.
std::optional<plot::Lines> intensity_lines(const WorkFormula& formula, WorkRequest request,
                                           const Explanation& explanation);

/// Table, roofline and bars of one explained operator; `lines` too, where there are some.
plot::Page explain_page(const Device& device, const Explanation& explanation,
                        std::optional<plot::Lines> lines = std::nullopt);

}  // namespace roofgen
