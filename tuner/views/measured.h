// The measured parts of a tuning result, as text and as JSON.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "tuner/report.h"

namespace roofgen {

/// `timed`: the origin of measured times.
Json measurement_json(const Measurement& measurement, Origin timed);
Json gpu_json(const GpuRun& gpu);
/// "0.3%": half the 95 % interval of the median over the median.
std::string spread_text(const Measurement& measurement);
/// Lines about the protocol, about ties, and the notes of the measurement.
std::string gpu_line(const GpuRun& gpu);
std::string finalists_text(const TuneReport& report);
std::string notes_text(const GpuRun& gpu);

}  // namespace roofgen
