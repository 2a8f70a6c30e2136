// Standard headers that NVRTC has no directory for, as far as device code needs them.
#pragma once

#include <string>

namespace roofgen {

/// The text of <cassert>, <cstdint> and their like; null for all else.
const std::string* built_in_header(const std::string& name);

}  // namespace roofgen
