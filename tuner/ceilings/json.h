// JSON shared by the report and the profile. Private to this folder.
#pragma once

#include "base/json.h"
#include "tuner/ceilings/ceilings.h"

namespace roofgen::ceilings {

Json provenance_json(const CeilingsReport& report);
Json results_json(const CeilingsReport& report);

}  // namespace roofgen::ceilings
