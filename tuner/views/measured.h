// The measured parts of a tuning result, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/report.h"

namespace roofgen {

nlohmann::ordered_json measurement_json(const Measurement& measurement, Origin timed);
nlohmann::ordered_json finalists_json(const std::vector<Finalist>& finalists);
nlohmann::ordered_json gpu_json(const GpuRun& gpu);
/// Every cell with value, unit, origin and source: the scores of a measured run depend on them.
nlohmann::ordered_json cells_json(const Device& device);

/// "+-0.3 %": half the 95 % interval of the median over the median.
std::string spread_text(const Measurement& measurement);
/// Lines about the protocol, about ties, and the notes of the measurement.
std::string gpu_line(const GpuRun& gpu);
std::string finalists_text(const TuneReport& report);
std::string notes_text(const GpuRun& gpu);

}  // namespace roofgen
