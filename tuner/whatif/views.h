// The views of a WhatIfReport, or of a sweep of them.
#pragma once

#include <string>

#include "base/json.h"
#include "generator/generate.h"
#include "roofline/plot/figure.h"
#include "tuner/whatif/report.h"

namespace roofgen {

inline constexpr const char* kWhatIfSchema = "roofgen.whatif.1";  ///< docs/whatif-schema.json

std::string whatif_text(const WhatIfReport& report, bool color);
std::string sweep_text(const Sweep& sweep, bool color);
std::string whatif_json(const WhatIfReport& report);
/// The document of the last run, with the table of all runs under "sweep".
std::string sweep_json(const Sweep& sweep);
/// The ladder of partitions and the roofline with unfused -> fused arrows, from the JSON, for `whatif --html` and
/// `report`. Exit::kUsage when `result` is no complete document of the schema.
Result<plot::Page> whatif_page(const Json& result, const std::string& file, const DataFiles& files);

}  // namespace roofgen
