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

/// The points of a list: results of another search.
Result<LegalPoints> listed_points(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                  const std::map<std::string, ParamValue>& pins, const expr::Map* reduced_scope) {
  LegalPoints out = form_of(variant, stage);
  out.form.params = stage.points.front();
  out.values.resize(out.form.params.size());
  ROOFGEN_TRY(StagePoints real, StagePoints::of(variant, stage, problem_scope));
  ROOFGEN_TRY(StagePoints reduced, StagePoints::of(variant, stage, reduced_scope ? *reduced_scope : problem_scope));
  for (const auto& point : stage.points) {
    const bool pinned = std::ranges::all_of(point, [&](const auto& p) {
      const auto pin = pins.find(p.first);
      return pin == pins.end() || pin->second == p.second;
    });
    if (!pinned) continue;
    ++out.considered;
    Schedule schedule = out.form;
    schedule.params = point;
    std::optional<Rejected> rejected;
    for (StagePoints* points : {&real, &reduced}) {
      if (rejected || (points == &reduced && !reduced_scope)) break;
      auto checked = points->check(schedule, points == &real);
      if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
      if (auto* why = std::get_if<Rejected>(&checked)) rejected = std::move(*why);
      if (rejected && points == &reduced) rejected->reason = kOnTheReducedProblem + rejected->reason;
    }
    if (rejected) {
      out.rejected.push_back(std::move(*rejected));
      continue;
    }
    ++out.number;
    for (size_t i = 0; i < point.size(); ++i) {
      auto& values = out.values[i];
      const auto known = std::ranges::find(values, point[i].second);
      out.rows.push_back(static_cast<uint16_t>(known - values.begin()));
      if (known == values.end()) values.push_back(point[i].second);
    }
  }
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
  if (!stage.points.empty()) return listed_points(variant, stage, problem_scope, pins, reduced_scope);
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
