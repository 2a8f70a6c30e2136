// The text of Chart.js as it was found at configure time (cmake/embed.cmake). Private to this folder.
#pragma once

#include <string_view>

namespace roofgen::plot {

/// Empty when the build had none.
std::string_view chart_js();

}  // namespace roofgen::plot
