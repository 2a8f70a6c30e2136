#include "generator/combinations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace roofgen {

void Combinations::add(const expr::Map& constants, const std::vector<std::pair<std::string, expr::Expr>>& derived,
                       const std::vector<expr::Expr>& conditions, std::string why) {
  const size_t set = points_.add_scope(constants, derived);
  why_.push_back(std::move(why));
  for (size_t i = 0; i < derived.size(); ++i)
    rules_.push_back({derived[i].second, set, derived[i].first, points_.forms_of(set)[i]});
  for (const expr::Expr& e : conditions) rules_.push_back({e, set, "", points_.form(set, e)});
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
  for (const Rule& rule : rules_) missing.push_back(points_.variables(rule.form).size());
  std::vector<bool> fixed(params_.size());
  while (order_.size() < params_.size()) {
    double most = -1;
    size_t best = 0;
    for (size_t p = 0; p < params_.size(); ++p) {
      if (fixed[p]) continue;
      double score = 0;
      for (size_t r = 0; r < rules_.size(); ++r)
        if (rules_[r].name.empty() && std::ranges::count(points_.variables(rules_[r].form), p))
          score += std::pow(0.25, static_cast<double>(missing[r] - 1));
      score /= static_cast<double>(params_[p].values.size());
      if (score > most) most = score, best = p;
    }
    fixed[best] = true;
    order_.push_back(best);
    for (size_t r = 0; r < rules_.size(); ++r)
      missing[r] -= static_cast<size_t>(std::ranges::count(points_.variables(rules_[r].form), best));
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
  for (size_t r = 0; r < rules_.size(); ++r) {
    size_t depth = 0;
    for (const size_t p : points_.variables(rules_[r].form)) depth = std::max(depth, depth_of[p]);
    due_[depth].push_back(r);
  }
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
    // A derived name without a value violates a rule, as does a condition that is false; one without a value fails.
    const expr::Value* const value = points_.eval(rules_[r].form);
    if (rules_[r].name.empty() ? value && !value->truthy() : !value) {
      rules_[r].combinations += open_[depth];
      rules_[r].first = std::min(rules_[r].first, number);
      return;
    }
    if (!value) failing = &rules_[r];
  }
  if (depth == order_.size()) {
    if (failing)
      failure_ = failing->source.check(names_at(*failing, number)).error();
    else if (legal_.size() == kMostLegal)
      failure_ = Error{Exit::kFailed, fmt::format("more than {} legal points", kMostLegal)};
    legal_.push_back(number);
    return;
  }
  const size_t p = order_[depth];
  for (size_t value = 0; value < params_[p].values.size() && !failure_; ++value) {
    if (++looked_at_ + points_.steps() > most_steps_)
      failure_ = Error{Exit::kFailed, fmt::format("its legal points take more than {} steps to find", most_steps_)};
    points_.move(p, value);
    descend(depth + 1, number + value * stride_[p], failing);
  }
}

std::vector<uint16_t> Combinations::row_of(uint64_t number) const {
  std::vector<uint16_t> out;
  for (size_t p = 0; p < params_.size(); ++p)
    out.push_back(static_cast<uint16_t>(number / stride_[p] % params_[p].values.size()));
  return out;
}

/// The names that a rule may read, in a combination, which becomes the current one.
expr::Map Combinations::names_at(const Rule& rule, uint64_t number) {
  const std::vector<uint16_t> row = row_of(number);
  for (size_t p = 0; p < params_.size(); ++p) points_.move(p, row[p]);
  return points_.names(rule.set, {}, rule.name.empty() ? std::nullopt : std::optional(rule.form));
}

std::string Combinations::reason(const Rule& rule) {
  const std::string& why = why_[rule.set];
  const expr::Map names = names_at(rule, rule.first);
  if (!rule.name.empty()) return fmt::format("{}{}: {}", why, rule.name, rule.source.eval(names).error().message);
  std::string comparison;
  (void)rule.source.check(names, &comparison);
  return why + (comparison.empty() ? rule.source.text() : comparison);
}

}  // namespace roofgen
