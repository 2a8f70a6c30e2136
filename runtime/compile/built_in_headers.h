// Standard headers that NVRTC has no directory for, as far as device code needs them.
#pragma once

#include <functional>
#include <string>

namespace roofgen {

/// The text of <cassert>, <cstdint> and their like; null for all else.
const std::string* built_in_header(const std::string& name);

/// The text of <limits>, <type_traits> and their like, which hands on what the toolkit has for devices as
/// <cuda/std/...>, as far as that exists; of <cub/cub.cuh>, what of it is for device code. Empty for all else.
std::string redirected_header(const std::string& name, const std::function<bool(const std::string&)>& exists);

}  // namespace roofgen
