// The views of a TuneReport. They only format: text and JSON show the same numbers.
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

/// "+-0.3 %": half the 95 % interval of the median over the median.
std::string spread_text(const Measurement& measurement);
/// Lines about the protocol, about ties, and the notes of the measurement.
std::string gpu_line(const GpuRun& gpu);
std::string finalists_text(const TuneReport& report);
std::string notes_text(const GpuRun& gpu);

}  // namespace roofgen
