// The parts of standard headers that device code uses, for NVRTC, which has no standard include directory.
#pragma once

#include <functional>
#include <string>

namespace roofgen {

/// The text of <cassert>, <cstdint> and similar headers; null for unknown names.
const std::string* built_in_header(const std::string& name);

/// The text of <limits>, <type_traits> and similar headers, which forwards to the toolkit's <cuda/std/...> as far as
/// that exists. For <cub/cub.cuh>: its device-side parts. Empty for unknown names.
std::string redirected_header(const std::string& name, const std::function<bool(const std::string&)>& exists);

}  // namespace roofgen
