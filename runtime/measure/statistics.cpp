#include "runtime/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {

double quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  double at = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, sorted.size() - 1);
  double share = at - static_cast<double>(below);
  return share == 0 ? sorted[below] : sorted[below] + share * (sorted[above] - sorted[below]);
}

/// How many samples lie below the median is binomial with one half. With k the greatest number for which
/// P(at most k - 1 below) stays under 2.5 %, the k-th least and the k-th greatest sample enclose it.
Interval median_interval(std::span<const double> sorted) {
  if (sorted.empty()) {
    double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  const auto n = static_cast<double>(sorted.size());
  size_t k = 0;
  double below = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    auto x = static_cast<double>(i);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - n * std::log(2.0));
    if (below > 0.025) break;
    k = i + 1;
  }
  if (k == 0) return {sorted.front(), sorted.back()};
  return {sorted[k - 1], sorted[sorted.size() - k]};
}

Timing summarize(std::vector<double> times_ns) {
  Timing out;
  out.times_ns = times_ns;
  out.samples = times_ns.size();
  if (times_ns.empty()) return out;
  std::sort(times_ns.begin(), times_ns.end());
  out.median_ns = quantile(times_ns, 0.5);
  out.q1_ns = quantile(times_ns, 0.25);
  out.q3_ns = quantile(times_ns, 0.75);
  out.min_ns = times_ns.front();
  Interval interval = median_interval(times_ns);
  out.low_ns = interval.low;
  out.high_ns = interval.high;
  return out;
}

Ratio paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] > 0 && b[i] > 0) ratios.push_back(a[i] / b[i]);
  if (ratios.empty()) return {1, {0, std::numeric_limits<double>::infinity()}};
  std::sort(ratios.begin(), ratios.end());
  return {quantile(ratios, 0.5), median_interval(ratios)};
}

}  // namespace roofgen
