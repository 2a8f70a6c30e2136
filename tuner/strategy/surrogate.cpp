// Search by a Gaussian process that the run's own results train.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "tuner/strategy/gaussian_process.h"
#include "tuner/strategy/history.h"
#include "tuner/strategy/kinds.h"

namespace roofgen {
namespace {

constexpr size_t kCandidates = 640;   ///< points whose improvement is computed at each step
constexpr size_t kBred = 5;           ///< neighbours of the point picked that become candidates
constexpr size_t kFitted = 64;        ///< observations by which lengths are chosen
constexpr double kFitGrowth = 1.3;    ///< of the observations, from one fit to the next
constexpr double kSlowWeight = 0.05;  ///< times above the median count so much less: the fast ones matter

/// E[max(0, -x)] of a normal x with mean -z and variance 1, as a table.
class Improvement {
 public:
  Improvement() {
    for (size_t i = 0; i < table_.size(); ++i) {
      const double z = -kReach + static_cast<double>(i) / kPerUnit;
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      table_[i] = z * std::erfc(-z / std::numbers::sqrt2) / 2 + density;
    }
  }
  double operator()(double z) const {
    if (z >= kReach) return z;
    // Beyond the table the order of the points stays that of z.
    if (z < -kReach) return 1e-12 * std::exp(std::max(z, -60.0) + kReach);
    const double at = (z + kReach) * kPerUnit;
    const size_t i = std::min(static_cast<size_t>(at), table_.size() - 2);
    return table_[i] + (at - static_cast<double>(i)) * (table_[i + 1] - table_[i]);
  }

 private:
  static constexpr double kReach = 5;
  static constexpr size_t kPerUnit = 64;
  std::array<double, 2 * 5 * kPerUnit + 1> table_;
};

/// The expected improvement over the best time so far picks the next point. A model's predictions, where the space has
/// them, are the mean of the process, as far as the results agree with them.
class Surrogate final : public Strategy {
 public:
  Surrogate(const SearchSpace& space, uint64_t seed)
      : space_(space), history_(space.points.size()), random_(seed), process_(space.points) {
    for (const double seconds : space.predicted) predicted_.push_back(std::log(seconds));
    by_prior_.resize(predicted_.size());
    std::iota(by_prior_.begin(), by_prior_.end(), size_t{0});
    std::ranges::stable_sort(by_prior_, {}, [&](size_t point) { return predicted_[point]; });
  }

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    std::vector<double> assumed;
    n = std::min(n, history_.longest_round());
    while (out.size() < n && history_.left() > 0) {
      const size_t point = trained() ? pick(assumed) : first_point();
      history_.take(point);
      out.push_back(point);
      if (!trained() || out.size() == n) continue;
      // Later picks of this round take the expected time of this one as observed.
      assumed.push_back(expected_);
      process_.add(point);
    }
    if (trained()) process_.keep(history_.points().size());
    return out;
  }

  void tell(size_t point, const TrialResult& result) override {
    const std::optional<size_t> before = history_.best();
    history_.tell(point, result);
    if (!trained()) return;
    while (process_.size() < history_.points().size()) process_.add(history_.points()[process_.size()]);
    if (static_cast<double>(history_.points().size()) >= kFitGrowth * static_cast<double>(fitted_)) {
      fit();
    } else if (before != history_.best()) {
      surround(history_.points()[*history_.best()]);
    }
  }

 private:
  bool trained() const { return history_.points().size() >= History::kFirst && history_.best(); }

  /// As many of the best predictions as random points, most of the predictions first: a run may be short.
  size_t first_point() {
    static constexpr std::array<bool, History::kFirst> kByPrior{true, true, false, true, false, false};
    if (kByPrior[firsts_++ % kByPrior.size()]) {
      while (next_by_prior_ < by_prior_.size() && history_.taken(by_prior_[next_by_prior_])) ++next_by_prior_;
      if (next_by_prior_ < by_prior_.size()) return by_prior_[next_by_prior_];
    }
    return history_.draw(random_);
  }

  /// The logarithms of the times told, the slow ones drawn towards the median.
  std::vector<double> logs() const {
    std::vector<double> out = history_.logs();
    for (double& log : out) log = std::min(log, history_.slowest());
    std::vector<double> sorted = out;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    for (double& log : out)
      if (log > *middle) log = *middle + kSlowWeight * (log - *middle);
    return out;
  }
  /// The process is about the times beside this.
  double mean(size_t point, double trust) const { return predicted_.empty() ? 0 : trust * predicted_[point]; }

  void fit() {
    fitted_ = history_.points().size();
    std::vector<size_t> order(fitted_);
    std::iota(order.begin(), order.end(), size_t{0});
    const std::vector<double> all = logs();
    if (fitted_ > kFitted) {  // the fastest ones, and the latest of the others
      std::ranges::nth_element(order, order.begin() + kFitted / 2, {}, [&](size_t i) { return all[i]; });
      std::sort(order.begin() + kFitted / 2, order.end(), std::greater<>());
      order.resize(kFitted);
    }
    std::vector<size_t> points;
    for (const size_t i : order) points.push_back(history_.points()[i]);
    std::vector<std::vector<double>> alternatives;
    for (const double trust : kTrusts) {
      std::vector<double>& values = alternatives.emplace_back();
      for (const size_t i : order) values.push_back(all[i] - mean(history_.points()[i], trust));
      if (predicted_.empty()) break;
    }
    process_.set_candidates({});
    trust_ = kTrusts[process_.fit(points, alternatives)];
    std::vector<size_t> candidates;
    for (size_t i = 0; i < std::min(kCandidates, history_.left()); ++i)
      candidates.push_back(i < next_by_prior_limit() ? by_prior_[i] : history_.draw(random_));
    process_.set_candidates(std::move(candidates));
    next_slot_ = next_by_prior_limit();
    surround(history_.points()[*history_.best()]);
  }
  /// Candidates that the prior ranks best.
  size_t next_by_prior_limit() const { return std::min(by_prior_.size(), kCandidates / 4); }

  /// The neighbours of a point become candidates.
  void surround(size_t point) {
    std::vector<size_t> around = space_.points.neighbours(point);
    std::erase_if(around, [&](size_t neighbour) { return history_.taken(neighbour); });
    enter(around);
  }
  /// Random neighbours of a point that is about to be tried become candidates: the improvement is climbed from step to
  /// step.
  void breed(size_t point) {
    const std::vector<Axis>& axes = space_.points.axes();
    std::vector<uint16_t> row(space_.points.row(point).begin(), space_.points.row(point).end());
    std::vector<size_t> bred;
    for (size_t tries = 0; tries < 3 * kBred && bred.size() < kBred; ++tries) {
      const size_t axis = random_.below(axes.size());
      const uint16_t own = std::exchange(row[axis], static_cast<uint16_t>(random_.below(axes[axis].size())));
      const std::optional<size_t> found = space_.points.find(row);
      row[axis] = own;
      if (found && !history_.taken(*found)) bred.push_back(*found);
    }
    enter(bred);
  }
  void enter(const std::vector<size_t>& points) {
    if (process_.candidates().empty()) return;
    process_.replace_candidates(next_slot_, points);
    next_slot_ += points.size();
  }

  size_t pick(const std::vector<double>& assumed) {
    std::vector<double> values = logs();
    for (size_t i = 0; i < values.size(); ++i) values[i] -= mean(history_.points()[i], trust_);
    values.insert(values.end(), assumed.begin(), assumed.end());
    const GaussianProcess::Prediction prediction = process_.predict(values);
    static const Improvement improvement;
    const std::vector<size_t>& candidates = process_.candidates();
    const double least = history_.logs()[*history_.best()];
    std::optional<size_t> best;
    double most = -1;
    for (size_t slot = 0; slot < candidates.size(); ++slot) {
      if (history_.taken(candidates[slot])) continue;
      const auto at = static_cast<Eigen::Index>(slot);
      const double deviation = prediction.deviation[at], target = least - mean(candidates[slot], trust_);
      const double gain = deviation * improvement((target - prediction.mean[at]) / deviation);
      if (gain <= most) continue;
      most = gain;
      best = slot;
    }
    if (!best) {
      const size_t point = history_.draw(random_);
      expected_ = history_.slowest() - mean(point, trust_);
      return point;
    }
    expected_ = prediction.mean[static_cast<Eigen::Index>(*best)];
    const size_t point = candidates[*best];
    breed(point);
    return point;
  }

  static constexpr std::array kTrusts{0.0, 0.5, 1.0};  ///< in the predictions

  const SearchSpace& space_;
  History history_;
  Random random_;
  GaussianProcess process_;
  std::vector<double> predicted_;  ///< logarithms
  std::vector<size_t> by_prior_;   ///< the points, the best prediction first
  double trust_ = 0;
  double expected_ = 0;  ///< value of the process at the last pick
  size_t firsts_ = 0, next_by_prior_ = 0, fitted_ = 0, next_slot_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> surrogate(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<Surrogate>(space, seed);
}

}  // namespace roofgen
