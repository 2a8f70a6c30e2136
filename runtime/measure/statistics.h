// Order statistics of samples: no assumption about how times are distributed, but that they are alike.
#pragma once

#include <span>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen {

/// The p-quantile (0 to 1), linear between neighbours. NaN of nothing.
double quantile(std::span<const double> sorted, double p);

/// Interval that holds the true median with at least 95 % (binomial order statistics); of fewer than
/// six samples no such interval exists: least and greatest.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::span<const double> sorted);

/// Median, quartiles and interval of times in ns, in any order. `stopped` and `discarded` stay empty.
Timing summarize(std::vector<double> times_ns);

/// Median and interval of a[i] / b[i], for samples taken in the same round.
struct Ratio {
  double median = 1;
  Interval interval;
};
Ratio paired_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace roofgen
