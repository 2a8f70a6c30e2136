// Every view prints the one TuneReport; nothing is computed twice for text and JSON.
#pragma once

#include <string>

#include "tuner/report.h"

namespace roofgen {

inline constexpr const char* kTuneSchema = "roofgen.tune.1";  ///< docs/tune-schema.json

std::string tune_json(const TuneReport& report);
/// `color`: ANSI colours.
std::string tune_text(const TuneReport& report, bool color);
/// Every rejection with its reason, grouped by stage; the most common reasons first.
std::string explain_text(const TuneReport& report);
std::string params_text(const Schedule& schedule);  ///< "BM=128 stages=2"

}  // namespace roofgen
