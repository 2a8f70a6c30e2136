#include "generator/points.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/combinations.h"

namespace roofgen {
namespace {

LegalPoints form_of(const Variant& variant, const Stage& stage) {
  LegalPoints out;
  out.form = {variant.name, variant.stages.size() > 1 ? stage.name : "", {}};
  return out;
}

}  // namespace

Schedule LegalPoints::schedule(size_t point) const {
  Schedule out = form;
  for (size_t i = 0; i < values.size(); ++i) out.params[i].second = values[i][rows[point * values.size() + i]];
  return out;
}

std::optional<std::vector<uint16_t>> LegalPoints::row_of(const Schedule& schedule) const {
  if (schedule.params.size() != values.size()) return std::nullopt;
  std::vector<uint16_t> row;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = schedule.params[i];
    const auto at = std::ranges::find(values[i], value);
    if (name != form.params[i].first || at == values[i].end()) return std::nullopt;
    row.push_back(static_cast<uint16_t>(at - values[i].begin()));
  }
  return row;
}

std::vector<expr::Variable> LegalPoints::variables() const {
  std::vector<expr::Variable> out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.push_back({form.params[i].first, {}});
    for (const ParamValue& value : values[i]) out.back().values.push_back(to_value(value));
  }
  return out;
}

Result<LegalPoints> legal_points(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                 const std::map<std::string, ParamValue>& pins, const expr::Map* reduced_scope) {
  LegalPoints out = form_of(variant, stage);
  for (const Param& p : stage.params) {
    const auto pin = pins.find(p.name);
    out.values.push_back(pin == pins.end() ? p.values : std::vector{pin->second});
    out.form.params.emplace_back(p.name, out.values.back().front());
  }
  ROOFGEN_TRY(const expr::Map scope, stage_scope(variant, stage, problem_scope));
  std::vector<expr::Expr> rules = stage.constraints;
  rules.insert(rules.end(), stage.prunes.begin(), stage.prunes.end());
  Combinations combinations(out.variables());
  combinations.add(scope, stage.derived, rules);
  expr::Map reduced;
  if (reduced_scope) {
    ROOFGEN_TRY(reduced, stage_scope(variant, stage, *reduced_scope));
    combinations.add(reduced, stage.derived, stage.constraints, kOnTheReducedProblem);
  }
  auto found = combinations.find();
  if (!found) {
    Error error = std::move(found).error();
    if (error.where.file.empty())
      error.message = fmt::format("{}: stage {}: {}", variant.file, stage.name, error.message);
    return error;
  }
  out.considered = found->considered;
  out.number = found->number;
  out.rows = std::move(found->rows);
  for (LegalCombinations::Cut& cut : found->cuts) {
    Schedule first = out.form;
    for (size_t i = 0; i < out.values.size(); ++i) first.params[i].second = out.values[i][cut.first[i]];
    out.rejected.push_back({std::move(first), "constraint", std::move(cut.reason), cut.combinations});
  }
  return out;
}

}  // namespace roofgen
