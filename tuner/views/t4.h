// A tuned space in the T4 1.0.0 format of other autotuners.
#pragma once

#include <map>
#include <string>

#include "tuner/report.h"

namespace roofgen {

/// File name ("attention-fused.t4.json") to text. With a GPU measured times, else the model's. Times are in
/// milliseconds. Points that the search did not try are absent.
std::map<std::string, std::string> t4_files(const TuneReport& report);

}  // namespace roofgen
