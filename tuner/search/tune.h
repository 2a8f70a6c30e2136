// A search as one function: the pipeline of tuner/tune.h.
#pragma once

#include "tuner/tune.h"

namespace roofgen {

Result<TuneResult> tune(const TuneContext& context, const Problem& problem, const TuneOptions& options);

}  // namespace roofgen
