#include "tuner/search/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/suggest.h"

namespace roofgen {
namespace {

/// Tries the points in an order that is fixed before the first result.
class FixedOrder final : public Strategy {
 public:
  FixedOrder(std::vector<size_t> order, size_t preset) : order_(std::move(order)) { std::erase(order_, preset); }
  std::vector<size_t> ask(size_t n) override {
    const size_t begin = next_;
    next_ = std::min(order_.size(), begin + n);
    return {order_.begin() + static_cast<ptrdiff_t>(begin), order_.begin() + static_cast<ptrdiff_t>(next_)};
  }
  void tell(size_t, const TrialResult&) override {}

 private:
  std::vector<size_t> order_;
  size_t next_ = 0;
};

std::vector<size_t> all_points(const SearchSpace& space) {
  std::vector<size_t> order(space.predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

std::unique_ptr<Strategy> by_prior(const SearchSpace& space, uint64_t) {
  std::vector<size_t> order = all_points(space);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return space.predicted[a] < space.predicted[b]; });
  return std::make_unique<FixedOrder>(std::move(order), space.preset);
}

/// splitmix64 (Steele, Lea, Flood 2014), so that a seed gives the same order with every standard library.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::unique_ptr<Strategy> shuffled(const SearchSpace& space, uint64_t seed) {
  std::vector<size_t> order = all_points(space);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_random(seed) % i]);
  return std::make_unique<FixedOrder>(std::move(order), space.preset);
}

}  // namespace

const std::vector<StrategyKind>& strategies() {
  static const std::vector<StrategyKind> kTable = {
      {"prior", "the points that the closed-form prior ranks best", false, by_prior},
      {"exhaustive", "every legal point, best prior first", true, by_prior},
      {"random", "a random sample: the baseline for every other strategy", false, shuffled},
  };
  return kTable;
}

std::string strategy_names() {
  std::string out;
  for (const StrategyKind& s : strategies())
    out += (out.empty() ? "" : &s == &strategies().back() ? " or " : ", ") + std::string(s.name);
  return out;
}

Result<const StrategyKind*> find_strategy(const std::string& name) {
  std::vector<std::string> names;
  for (const StrategyKind& s : strategies()) {
    if (name == s.name) return &s;
    names.emplace_back(s.name);
  }
  return Error{Exit::kUsage, fmt::format("unknown strategy \"{}\"{}", name, did_you_mean(name, names))};
}

}  // namespace roofgen
