// Devices as tables name them: "A100 80GB", "H100 SXM5", "GB200".
#pragma once

#include <string>
#include <vector>

#include "roofline/device.h"

namespace roofgen {

/// The products a name may mean: the one of exactly that name, else all whose name has every word of it
/// ("A100" is four products). Words: letters and digits; "NVIDIA", "GeForce", "Tensor", "Core" and "GPU" say
/// nothing; "80GB" is "80", "SXM5" is "SXM". Empty when there is none.
std::vector<const Device*> devices_named(const std::vector<Device>& catalogue, const std::string& name);

}  // namespace roofgen
