// Figures of devices and explained operators.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyses/explain.h"
#include "roofline/plot/figure.h"

namespace roofgen {

/// TFLOP/s attainable at an intensity under the datasheet's DRAM slope and the peak of matrix work in `math`.
double attainable_tflops(const Device& device, const std::string& math, double ai);

/// The roofs of a device, without points: datasheet and sustained bandwidths of DRAM, L2 and shared memory, and one
/// ceiling for each rate of arithmetic (formats of equal rate share a line). `everything` adds FP16 accumulation and
/// half precision on CUDA cores.
plot::Roofline device_roofline(const Device& device, bool everything = false);

/// The modelled point of an operator: FLOPs over its time with launches and waves. An arrow ends at the rate that the
/// roofs allow. `levels` adds points of the same name at the intensities of L2 and shared memory.
std::vector<plot::Point> operator_points(const std::string& name, const Explanation& explanation, bool levels = false);

/// Intensity against the dimension that batches the work, or else the first dimension (attention's length), in powers
/// of two, with the ridge as a mark. None if the intensity does not depend on that dimension.
std::optional<plot::Lines> intensity_lines(const WorkFormula& formula, WorkRequest request,
                                           const Explanation& explanation);

/// Table, roofline, bars and `lines` of one explained operator.
plot::Page explain_page(const Device& device, const Explanation& explanation,
                        std::optional<plot::Lines> lines = std::nullopt);

}  // namespace roofgen
