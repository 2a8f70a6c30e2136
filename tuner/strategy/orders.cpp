// Strategies whose order is fixed before the first result.
#include <algorithm>
#include <numeric>

#include "tuner/strategy/kinds.h"
#include "tuner/strategy/random.h"

namespace roofgen {
namespace {

class FixedOrder final : public Strategy {
 public:
  FixedOrder(std::vector<size_t> order, std::optional<size_t> preset)
      : order_(std::move(order)), taken_(order_.size()) {
    if (preset) taken_[*preset] = true;
  }
  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    for (; next_ < order_.size() && out.size() < n; ++next_)
      if (!taken_[order_[next_]]) out.push_back(order_[next_]);
    for (const size_t point : out) taken_[point] = true;
    return out;
  }
  void tell(size_t point, const TrialResult&) override { taken_[point] = true; }

 private:
  std::vector<size_t> order_;  ///< all points
  std::vector<bool> taken_;    ///< asked for or told
  size_t next_ = 0;
};

std::vector<size_t> all_points(const SearchSpace& space) {
  std::vector<size_t> order(space.points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

}  // namespace

std::unique_ptr<Strategy> by_prior(const SearchSpace& space, uint64_t) {
  std::vector<size_t> order = all_points(space);
  if (!space.predicted.empty())
    std::ranges::stable_sort(order, {}, [&](size_t point) { return space.predicted[point]; });
  return std::make_unique<FixedOrder>(std::move(order), space.preset);
}

std::unique_ptr<Strategy> shuffled(const SearchSpace& space, uint64_t seed) {
  std::vector<size_t> order = all_points(space);
  Random(seed).shuffle(order);
  return std::make_unique<FixedOrder>(std::move(order), space.preset);
}

}  // namespace roofgen
