#include "tuner/strategy/strategy.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "tuner/strategy/kinds.h"

namespace roofgen {

const std::vector<StrategyKind>& strategies() {
  static const std::vector<StrategyKind> kTable = {
      {"prior", "the points that the closed-form prior ranks best, corrected by the results", false, by_learnt_prior},
      {"exhaustive", "every legal point, best prior first", true, by_prior},
      {"random", "a random sample: the baseline for every other strategy", false, shuffled},
      {"local", "a walk to faster neighbours, with restarts near the best point", false, local_search},
      {"annealing", "a walk that takes slower steps ever less often", false, simulated_annealing},
      {"genetic", "a population whose fast members are combined", false, genetic},
      {"differential", "a population moved along its own differences", false, differential_evolution},
      {"surrogate", "a Gaussian process trained by the results picks the next point", false, surrogate},
      {"portfolio", "the surrogate, and now and then a walk or a population", false, portfolio},
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
