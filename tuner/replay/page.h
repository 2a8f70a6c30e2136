// Searches on recorded spaces as curves.
#pragma once

#include "roofline/plot/figure.h"
#include "tuner/replay/replay.h"

namespace roofgen {

/// Numbers of evaluations from 1 to `most`, in steps of 3 % or one: enough for a smooth curve.
std::vector<size_t> curve_evals(size_t most);

/// `curves`, `strategies`: as for mean_of_spaces(). The table has the numbers of evaluations in `evals`.
plot::Page replay_page(const std::vector<SearchCurve>& curves, size_t strategies, const std::vector<size_t>& evals,
                       size_t seeds);

}  // namespace roofgen
