// The JSON of `tune`, and the parts that `whatif` and recorded spaces share with it.
#pragma once

#include "roofline/json.h"
#include "roofline/lint/json.h"
#include "tuner/report.h"

namespace roofgen {

inline constexpr const char* kTuneSchema = "roofgen.tune.1";  ///< docs/tune-schema.json

Json tune_json(const TuneReport& report);

ROOFGEN_TO_JSON(Cause, name, contribution, fused, separate, text)

/// `timed`: the origin of measured times.
Json kernel_json(const KernelReport& kernel, Origin timed);

}  // namespace roofgen
