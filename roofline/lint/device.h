// Devices as tables name them: "A100 80GB", "H100 SXM5", "GB200".
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"

namespace roofgen {

/// The products that a name may mean: an exact match, else every product whose name has all words of `name` ("A100"
/// matches four products). Words consist of letters and digits. "NVIDIA", "GeForce", "Tensor", "Core" and "GPU" are
/// ignored; "80GB" equals "80", "SXM5" equals "SXM". Empty when nothing matches.
std::vector<const Device*> devices_named(const std::vector<Device>& catalogue, const std::string& name);

}  // namespace roofgen
