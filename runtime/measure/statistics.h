// Order statistics of samples. They assume no distribution of times, only identically distributed samples.
#pragma once

#include <span>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen {

/// The p-quantile (0 to 1) with linear interpolation. NaN without samples.
double quantile(std::span<const double> sorted, double p);

/// An interval that contains the true median with a probability of at least 95 % (binomial order statistics). Fewer
/// than six samples allow no such interval; the result is then minimum and maximum.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::span<const double> sorted);

/// Median, quartiles and interval of times in ns, in any order. `stopped` and `discarded` stay empty.
Timing summarize(std::vector<double> times_ns);

/// Median and interval of a[i] / b[i] for samples of the same round.
struct Ratio {
  double median = 1;
  Interval interval;
};
Ratio paired_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace roofgen
