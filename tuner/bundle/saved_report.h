// A TuneReport in the store: what every view but --explain and --record prints of a search without a GPU, read back
// into the struct.
#pragma once

#include "base/json.h"
#include "tuner/report.h"

namespace roofgen {

/// Without problem and device, which the reader has; without what was done in this run, and without the list of
/// rejections and of tried points, which may be long.
Json saved_report(const TuneReport& report);
/// Nothing where a member is missing or of another type.
std::optional<TuneReport> read_report(const Json& saved);

}  // namespace roofgen
