// The parts that the JSON of `tune`, `whatif` and recorded spaces share.
#pragma once

#include "roofline/json.h"
#include "roofline/lint/json.h"
#include "tuner/report.h"

namespace roofgen {

ROOFGEN_TO_JSON(Cause, name, contribution, fused, separate, text)

/// `timed`: the origin of measured times.
Json measurement_json(const Measurement& measurement, Origin timed);
Json kernel_json(const KernelReport& kernel, Origin timed);
Json gpu_json(const GpuRun& gpu);

}  // namespace roofgen
