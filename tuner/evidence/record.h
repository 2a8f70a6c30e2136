// A tuned space as files that other tools replay: T4 1.0.0, one file a stage, every point with its samples
// or with why it has none.
#pragma once

#include <map>
#include <string>

#include "tuner/report.h"

namespace roofgen {

/// File name ("attention-fused.t4.json") to text. Only of a measured run: a recorded time is a measured one.
/// Times are in milliseconds. Points that were never reached (a search that is not exhaustive) are absent.
std::map<std::string, std::string> t4_files(const TuneReport& report);

}  // namespace roofgen
