// The lint rules (docs/lint.md) applied to a tuning result.
#pragma once

#include <vector>

#include "roofline/lint/lint.h"
#include "roofline/work.h"
#include "tuner/report.h"

namespace roofgen {

/// What the rules find in the verified variants of a report; the text begins with the variant's name.
std::vector<Warning> own_warnings(const WorkFormula* formula, const TuneReport& report);

}  // namespace roofgen
