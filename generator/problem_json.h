// A problem as a JSON object: dims, flags and numbers by name; formats and expressions if present.
#pragma once

#include "base/json_text.h"
#include "roofgen/pipeline.h"

namespace roofgen {

Json problem_json(const Problem& problem);

}  // namespace roofgen
