#pragma once

#include "base/json.h"
#include "roofline/lint/lint.h"

namespace roofgen {

ROOFGEN_TO_JSON(Warning, rule, text)

}  // namespace roofgen
