#include "generator/combinations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace roofgen {
namespace {

/// States that are remembered, of one rule and of all.
constexpr uint64_t kMostKnown = uint64_t{1} << 18, kMostKnownOfAll = uint64_t{1} << 26;

}  // namespace

void Combinations::add(const expr::Map& constants, const std::vector<std::pair<std::string, expr::Expr>>& derived,
                       const std::vector<expr::Expr>& conditions, std::string why) {
  Set set{&constants, std::move(why), {}};
  std::map<std::string, size_t> places;  // in values_
  expr::Map known = constants;
  for (size_t i = 0; i < params_.size(); ++i) places[params_[i].name] = i;
  std::map<size_t, size_t> rule_at;  // place -> rule
  const auto rule = [&](const expr::Expr& e, std::string name) {
    Rule out{expr::BoundExpr(e, places, known), e, sets_.size(), std::move(name), 0, {}, {}, {}};
    std::set<size_t> reads, params;
    for (const size_t variable : out.bound.variables()) {
      if (variable < params_.size()) {
        params.insert(variable);
        continue;
      }
      const Rule& read = rules_[rule_at.at(variable)];
      reads.insert(read.reads.begin(), read.reads.end());
      reads.insert(rule_at.at(variable));
      params.insert(read.params.begin(), read.params.end());
    }
    out.reads.assign(reads.begin(), reads.end());
    out.params.assign(params.begin(), params.end());
    set.rules.push_back(rules_.size());
    rules_.push_back(std::move(out));
  };
  for (const auto& [name, e] : derived) {
    rule(e, name);
    rules_.back().place = values_.size();
    rule_at[values_.size()] = rules_.size() - 1;
    values_.emplace_back();
    std::optional<expr::Value> value;
    if (rules_.back().params.empty()) value = rules_.back().bound.eval(values_, steps_);
    if (value) {
      known[name] = std::move(*value);
      places.erase(name);
    } else {
      places[name] = rules_.back().place;
    }
  }
  for (const expr::Expr& e : conditions) rule(e, "");
  sets_.push_back(std::move(set));
}

Result<void> Combinations::check_limits() {
  const auto beyond = [](std::string message) { return Error{Exit::kFailed, std::move(message)}; };
  if (params_.size() > kMostParams)
    return beyond(fmt::format("{} parameters; the limit is {}", params_.size(), kMostParams));
  uint64_t product = 1;
  stride_.assign(params_.size(), 0);
  for (size_t i = params_.size(); i-- > 0;) {
    const size_t values = params_[i].values.size();
    if (values > kMostValues)
      return beyond(fmt::format("{} values of {}; the limit is {}", values, params_[i].name, kMostValues));
    stride_[i] = product;
    if (values > 0 && product > kMostCombinations / values) return beyond("more than 2^62 combinations");
    product *= values;
  }
  open_.assign(params_.size() + 1, product);
  return {};
}

/// The next parameter is the one that comes nearest to deciding rules, for its number of values.
void Combinations::choose_order() {
  std::vector<size_t> missing;
  for (const Rule& rule : rules_) missing.push_back(rule.params.size());
  std::vector<bool> fixed(params_.size());
  while (order_.size() < params_.size()) {
    double most = -1;
    size_t best = 0;
    for (size_t p = 0; p < params_.size(); ++p) {
      if (fixed[p]) continue;
      double score = 0;
      for (size_t r = 0; r < rules_.size(); ++r)
        if (rules_[r].name.empty() && std::ranges::count(rules_[r].params, p))
          score += std::pow(0.25, static_cast<double>(missing[r] - 1));
      score /= static_cast<double>(params_[p].values.size());
      if (score > most) most = score, best = p;
    }
    fixed[best] = true;
    order_.push_back(best);
    for (size_t r = 0; r < rules_.size(); ++r)
      missing[r] -= static_cast<size_t>(std::ranges::count(rules_[r].params, best));
  }
}

Result<LegalCombinations> Combinations::find(uint64_t most_steps) {
  most_steps_ = most_steps;
  ROOFGEN_CHECK(check_limits());
  LegalCombinations out;
  out.considered = open_[0];
  choose_order();
  std::vector<size_t> depth_of(params_.size());
  for (size_t depth = 0; depth < order_.size(); ++depth) {
    depth_of[order_[depth]] = depth + 1;
    open_[depth + 1] = open_[depth] / std::max<size_t>(params_[order_[depth]].values.size(), 1);
  }
  due_.assign(params_.size() + 1, {});
  uint64_t known = 0;
  for (size_t r = 0; r < rules_.size(); ++r) {
    size_t depth = 0;
    uint64_t states = 1;
    for (const size_t p : rules_[r].params) {
      depth = std::max(depth, depth_of[p]);
      states = std::min(states * params_[p].values.size(), kMostKnown + 1);
    }
    due_[depth].push_back(r);
    if (states > kMostKnown || known + states > kMostKnownOfAll) continue;
    known += states;
    rules_[r].known.assign(states, State::kUnknown);
  }
  row_.assign(params_.size(), 0);
  set_at_.assign(values_.size(), 0);
  clock_ = 1;
  if (out.considered > 0) descend(0, 0, nullptr);
  if (failure_) return *failure_;
  std::ranges::sort(legal_);
  out.number = legal_.size();
  out.rows.reserve(legal_.size() * params_.size());
  for (const uint64_t number : legal_) {
    const std::vector<uint16_t> row = row_of(number);
    out.rows.insert(out.rows.end(), row.begin(), row.end());
  }
  for (const Rule& rule : rules_)
    if (rule.combinations > 0) out.cuts.push_back({rule.combinations, row_of(rule.first), reason(rule)});
  return out;
}

/// `number`: of the combination, with the first value of each open parameter. `failing`: a condition without a value.
void Combinations::descend(size_t depth, uint64_t number, const Rule* failing) {
  for (const size_t r : due_[depth]) {
    const State state = state_of(rules_[r]);
    if (state == State::kViolated) {
      rules_[r].combinations += open_[depth];
      rules_[r].first = std::min(rules_[r].first, number);
      return;
    }
    if (state == State::kFails) failing = &rules_[r];
  }
  if (depth == order_.size()) {
    if (failing)
      failure_ = failing->source.check(scope_at(*failing, number)).error();
    else if (legal_.size() == kMostLegal)
      failure_ = Error{Exit::kFailed, fmt::format("more than {} legal points", kMostLegal)};
    legal_.push_back(number);
    return;
  }
  const size_t p = order_[depth];
  for (size_t value = 0; value < params_[p].values.size() && !failure_; ++value) {
    if (++steps_ > most_steps_)
      failure_ = Error{Exit::kFailed, fmt::format("its legal points take more than {} steps to find", most_steps_)};
    row_[p] = static_cast<uint16_t>(value);
    values_[p] = params_[p].values[value];
    set_at_[p] = ++clock_;
    descend(depth + 1, number + value * stride_[p], failing);
  }
}

Combinations::State Combinations::state_of(Rule& rule) {
  if (rule.known.empty()) return evaluate(rule);
  size_t at = 0;
  for (const size_t p : rule.params) at = at * params_[p].values.size() + row_[p];
  if (rule.known[at] == State::kUnknown) rule.known[at] = evaluate(rule);
  return rule.known[at];
}

Combinations::State Combinations::evaluate(Rule& rule) {
  // The derived names that it reads hold: they were due before. Their values may be those of another combination.
  const auto value_of = [&](const Rule& derived) {
    std::optional<expr::Value> value = derived.bound.eval(values_, steps_);
    if (!value) return false;
    values_[derived.place] = std::move(*value);
    set_at_[derived.place] = ++clock_;
    return true;
  };
  for (const size_t r : rule.reads) {
    const Rule& derived = rules_[r];
    uint64_t changed = 1;
    for (const size_t p : derived.params) changed = std::max(changed, set_at_[p]);
    if (set_at_[derived.place] < changed) value_of(derived);
  }
  if (!rule.name.empty()) return value_of(rule) ? State::kHolds : State::kViolated;
  const std::optional<expr::Value> value = rule.bound.eval(values_, steps_);
  return !value ? State::kFails : value->truthy() ? State::kHolds : State::kViolated;
}

std::vector<uint16_t> Combinations::row_of(uint64_t number) const {
  std::vector<uint16_t> out;
  for (size_t p = 0; p < params_.size(); ++p)
    out.push_back(static_cast<uint16_t>(number / stride_[p] % params_[p].values.size()));
  return out;
}

/// The names that a rule may read, in a combination.
expr::Map Combinations::scope_at(const Rule& rule, uint64_t number) const {
  const Set& set = sets_[rule.set];
  expr::Map scope = *set.constants;
  const std::vector<uint16_t> row = row_of(number);
  for (size_t p = 0; p < params_.size(); ++p) scope[params_[p].name] = params_[p].values[row[p]];
  for (const size_t r : set.rules) {
    if (rules_[r].name.empty() || &rules_[r] == &rule) break;
    if (auto value = rules_[r].source.eval(scope)) scope[rules_[r].name] = std::move(*value);
  }
  return scope;
}

std::string Combinations::reason(const Rule& rule) const {
  const std::string& why = sets_[rule.set].why;
  const expr::Map scope = scope_at(rule, rule.first);
  if (!rule.name.empty()) return fmt::format("{}{}: {}", why, rule.name, rule.source.eval(scope).error().message);
  std::string comparison;
  (void)rule.source.check(scope, &comparison);
  return why + (comparison.empty() ? rule.source.text() : comparison);
}

}  // namespace roofgen
