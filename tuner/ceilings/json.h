// JSON shared by the report and the profile. Private to this folder.
#pragma once

#include <nlohmann/json.hpp>

#include "tuner/ceilings/ceilings.h"

namespace roofgen::ceilings {

nlohmann::ordered_json provenance_json(const CeilingsReport& report);
nlohmann::ordered_json results_json(const CeilingsReport& report);

}  // namespace roofgen::ceilings
