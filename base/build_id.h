#pragma once

#include <string>

namespace roofgen {

/// The GNU build ID, in hex, of the program or library that contains the address: other contents have another one.
/// Empty without one.
std::string build_id(const void* inside);

}  // namespace roofgen
