#include "tuner/replay/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace roofgen {
namespace {

using Curves = std::span<const SearchCurve>;

/// What a figure shows of a point.
struct Quantity {
  const char *title, *unit;
  double ReplayPoint::*value;
  Band ReplayPoint::*band;
};
constexpr Quantity kFraction = {"Fraction of the optimum", "best time recorded / best time found",
                                &ReplayPoint::fraction, &ReplayPoint::fractions};
constexpr Quantity kScore = {"Score P_t", "0: random sampling, 1: the optimum", &ReplayPoint::score,
                             &ReplayPoint::scores};

plot::Lines::Series line(const SearchCurve& curve, const Quantity& q) {
  plot::Lines::Series out{curve.strategy};
  for (const ReplayPoint& p : curve.points) {
    out.points.emplace_back(static_cast<double>(p.evals), p.*q.value);
    const Band& band = p.*q.band;
    out.band.emplace_back(band.low, band.high);
  }
  return out;
}

plot::Lines figure(Curves curves, const Quantity& q) {
  plot::Lines out{fmt::format("{}: {}", q.title, curves.front().space), "evaluations", q.unit, true, false, {}, {}};
  for (const SearchCurve& curve : curves) out.series.push_back(line(curve, q));
  if (q.value != kFraction.value) return out;
  plot::Lines::Series& random = out.series.emplace_back("random sampling, exact");
  for (const ReplayPoint& p : curves.front().points) random.points.emplace_back(static_cast<double>(p.evals), p.random);
  return out;
}

plot::TableBlock table(Curves curves, const std::vector<size_t>& evals) {
  plot::TableBlock out{"Fraction of the optimum, mean (10th to 90th percentile)", {"space", "strategy"}, {}};
  for (const size_t n : evals) out.head.push_back(fmt::to_string(n));
  for (const SearchCurve& curve : curves) {
    out.rows.push_back({curve.space, curve.strategy});
    for (const ReplayPoint& p : curve.points)
      if (std::ranges::count(evals, p.evals) > 0)
        out.rows.back().push_back(
            fmt::format("{:.3f} ({:.3f} to {:.3f})", p.fraction, p.fractions.low, p.fractions.high));
  }
  return out;
}

}  // namespace

std::vector<size_t> curve_evals(size_t most) {
  std::vector<size_t> out;
  for (size_t n = 1; n < most; n = std::max(n + 1, n + n * 3 / 100)) out.push_back(n);
  out.push_back(most);
  return out;
}

plot::Page replay_page(const std::vector<SearchCurve>& curves, size_t strategies, const std::vector<size_t>& evals,
                       size_t seeds) {
  std::vector<SearchCurve> all;
  const size_t spaces = curves.size() / strategies;
  if (spaces > 1) all = mean_of_spaces(curves, strategies);
  for (SearchCurve& mean : all) mean.space = fmt::format("mean of {} spaces", spaces);
  all.insert(all.end(), curves.begin(), curves.end());
  plot::Page page;
  page.title = "Searches on recorded spaces";
  page.facts = {{"seeds", fmt::format("1 to {}", seeds)},
                {"lines", "means over the seeds"},
                {"bands", "10th to 90th percentile of the seeds"}};
  if (spaces > 1) page.facts.emplace_back("mean of spaces", "means of their means and percentiles");
  page.blocks.emplace_back(table(all, evals));
  for (size_t begin = 0; begin < all.size(); begin += strategies)
    for (const Quantity& q : {kFraction, kScore})
      page.blocks.emplace_back(figure(Curves(all).subspan(begin, strategies), q));
  return page;
}

}  // namespace roofgen
