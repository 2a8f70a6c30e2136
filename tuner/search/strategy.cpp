#include "tuner/search/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/suggest.h"

namespace roofgen {
namespace {

std::vector<size_t> preset_first(std::vector<size_t> order, size_t preset, size_t evals) {
  const auto at = std::find(order.begin(), order.end(), preset);
  if (at != order.end()) std::rotate(order.begin(), at, at + 1);
  if (order.size() > std::max<size_t>(evals, 1)) order.resize(std::max<size_t>(evals, 1));
  return order;
}

std::vector<size_t> all(const StrategyInput& in) {
  std::vector<size_t> order(in.predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

std::vector<size_t> by_prior(const StrategyInput& in) {
  std::vector<size_t> order = all(in);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return in.predicted[a] < in.predicted[b]; });
  return order;
}

/// splitmix64 (Steele, Lea, Flood 2014), so that a seed gives the same order with every library.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<size_t> shuffled(const StrategyInput& in) {
  std::vector<size_t> order = all(in);
  uint64_t state = in.seed;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next(state) % i]);
  return order;
}

}  // namespace

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> table = {
      {"prior", "rank all points by the closed-form prior, execute the best",
       [](const StrategyInput& in) { return preset_first(by_prior(in), in.preset, in.evals); }},
      {"exhaustive", "execute every legal point, best prior first",
       [](const StrategyInput& in) { return preset_first(by_prior(in), in.preset, in.predicted.size()); }},
      {"random", "execute a random sample (the baseline every search has to beat)",
       [](const StrategyInput& in) { return preset_first(shuffled(in), in.preset, in.evals); }},
  };
  return table;
}

Result<const Strategy*> find_strategy(const std::string& name) {
  std::vector<std::string> names;
  for (const Strategy& s : strategies()) {
    if (name == s.name) return &s;
    names.emplace_back(s.name);
  }
  return Error{Exit::kUsage, fmt::format("unknown strategy \"{}\"{}", name, did_you_mean(name, names))};
}

}  // namespace roofgen
