#pragma once

#include <string>

namespace roofgen {

std::string utc_now();  ///< "2026-01-31T12:00:00Z"

}  // namespace roofgen
