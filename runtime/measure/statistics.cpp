#include "runtime/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen {

double quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = p * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = at - static_cast<double>(below);
  // Not a + part * (b - a): equal neighbours must give exactly that value.
  return sorted[below] == sorted[below + 1] ? sorted[below] : sorted[below] * (1 - part) + sorted[below + 1] * part;
}

/// The number of samples below the true median is binomial(n, 1/2). The interval from the k-th smallest to
/// the k-th largest misses it with probability 2 P(X <= k - 1); k is the largest that keeps this below 5 %.
Interval median_interval(std::span<const double> sorted) {
  const size_t n = sorted.size();
  if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  double log_term = -static_cast<double>(n) * std::log(2.0);  // of P(X = 0)
  double tail = std::exp(log_term);
  size_t k = 0;
  while (2 * tail <= 0.05 && 2 * (k + 1) <= n) {
    ++k;
    log_term += std::log(static_cast<double>(n - k + 1)) - std::log(static_cast<double>(k));
    tail += std::exp(log_term);
  }
  if (k == 0) return {sorted.front(), sorted.back()};
  return {sorted[k - 1], sorted[n - k]};
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
  const Interval interval = median_interval(times_ns);
  out.low_ns = interval.low;
  out.high_ns = interval.high;
  return out;
}

Ratio paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  std::sort(ratios.begin(), ratios.end());
  if (ratios.empty()) return {};
  return {quantile(ratios, 0.5), median_interval(ratios)};
}

}  // namespace roofgen
