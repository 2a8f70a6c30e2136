// The checks of a launch's arguments that bundles have as C.
#pragma once

#include <cstdint>

namespace roofgen {
#include "templates/bundle/checks.h"
}  // namespace roofgen
