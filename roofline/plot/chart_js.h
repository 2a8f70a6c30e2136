// The text of Chart.js, found at configure time (cmake/embed.cmake). Private to this folder.
#pragma once

#include <string_view>

namespace roofgen::plot {

/// Empty when the build found no Chart.js.
std::string_view chart_js();

}  // namespace roofgen::plot
