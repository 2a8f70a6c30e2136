// From an evaluation to a line of the report: arithmetic on counts and device data, nothing runs.
#pragma once

#include "tuner/search/trials.h"

namespace roofgen {

/// `measured`: the time of the run where it was timed; else the model's time counts.
KernelReport kernel_report(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& evaluation,
                           const std::optional<Measurement>& measured = std::nullopt);

}  // namespace roofgen
