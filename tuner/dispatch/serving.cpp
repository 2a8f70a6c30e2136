#include "tuner/dispatch/serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/expr/c_code.h"
#include "generator/interface.h"

namespace roofgen {
namespace {

/// Translates what a stage relies on: names of the stage are replaced by their definitions.
class Conditions {
 public:
  Conditions(const Stage& stage, const Legal& legal, const std::vector<std::string>& varied)
      : scope_(legal.scope), varied_(varied) {
    for (const auto* list : {&stage.problem, &stage.derived})
      for (const auto& [name, value] : *list) definitions_.emplace_back(name, &value);
    scope_["tuned"] = expr::Value(legal.scope);
  }
  Result<expr::CCode> translate(const expr::Expr& e) const { return translate(e, definitions_.size()); }
  Result<bool> holds(const expr::Expr& e) const { return e.check(scope_); }

 private:
  /// `position`: a definition sees those before it.
  Result<expr::CCode> translate(const expr::Expr& e, size_t position) const {
    return expr::to_c(e, scope_, [&](const std::string& name) -> Result<std::string> {
      for (size_t i = position; i-- > 0;)
        if (definitions_[i].first == name) {
          ROOFGEN_TRY(const expr::CCode code, translate(*definitions_[i].second, i));
          if (code.constant) return std::string();
          return code.text.find(' ') == std::string::npos ? code.text : "(" + code.text + ")";
        }
      const bool varies = std::ranges::count(varied_, name) > 0 || name.ends_with("_stride");
      return varies && scope_.count(name) ? name : std::string();
    });
  }

  expr::Map scope_;
  const std::vector<std::string>& varied_;
  std::vector<std::pair<std::string, const expr::Expr*>> definitions_;
};

/// The schedule of a table's kernel for a problem, without the rules of what is worth trying.
std::variant<Legal, Rejected, Error> legal_of(const ProblemVariants& at, const Variant& variant, size_t i,
                                              const DispatchKernel& kernel) {
  return check_schedule(variant, variant.stages[i], {variant.name, kernel.stages[i].name, kernel.stages[i].params},
                        at.scope, false);
}

}  // namespace

Result<std::string> why_not_served(const DataFiles& files, const CompiledStage& compiled, const Problem& problem,
                                   const Stage& stage, const Legal& legal) {
  ROOFGEN_TRY(const Program there, generate(files, stage, legal));
  if (there.source == *compiled.source) return std::string();
  ROOFGEN_TRY(const std::vector<std::string> at_run_time, run_time_sizes(files, problem.op));
  for (const auto& [name, size] : problem.dims) {
    const auto tuned = compiled.problem->dims.find(name);
    if (tuned == compiled.problem->dims.end() || (tuned->second != size && std::ranges::count(at_run_time, name) == 0))
      return fmt::format("{} is compiled in", name);
  }
  ROOFGEN_TRY(const bool right, serves(*compiled.stage, *compiled.legal, legal));
  return right ? std::string() : "its source relies on sizes that divide otherwise";
}

Result<std::vector<std::string>> requirements_of(const Stage& stage, const Legal& legal,
                                                 const std::vector<std::string>& varied) {
  const Conditions conditions(stage, legal, varied);
  std::vector<std::string> out;
  for (const expr::Expr& e : stage.assumes) {
    ROOFGEN_TRY(const bool relied_on, conditions.holds(e));
    if (!relied_on) continue;
    ROOFGEN_TRY(const expr::CCode code, conditions.translate(e));
    if (!code.constant) out.push_back(code.text);
  }
  return out;
}

Result<bool> serves(const DataFiles& files, const Op& op, const Device& device, const DispatchTable& table,
                    size_t kernel, const Problem& problem) {
  const DispatchKernel& k = table.kernels[kernel];
  const Problem& tuned_for = table.shapes[k.tuned_for].problem;
  ROOFGEN_TRY(const ProblemVariants tuned, variants_of(files, op, limits(device), tuned_for));
  ROOFGEN_TRY(const ProblemVariants here, variants_of(files, op, limits(device), problem));
  const Variant *of_tuned = tuned.find(k.variant), *variant = here.find(k.variant);
  if (!of_tuned || of_tuned->stages.size() != k.stages.size())
    return Error{Exit::kFailed, fmt::format("{} has no variant {} with {} kernels; another release made the table",
                                            problem.op, k.variant, k.stages.size())};
  if (!variant || variant->stages.size() != k.stages.size()) return false;
  for (size_t i = 0; i < k.stages.size(); ++i) {
    auto compiled = legal_of(tuned, *of_tuned, i, k), there = legal_of(here, *variant, i, k);
    for (auto* checked : {&compiled, &there})
      if (auto* error = std::get_if<Error>(checked)) return std::move(*error);
    if (const auto* why = std::get_if<Rejected>(&compiled))
      return Error{Exit::kFailed, fmt::format("{} is illegal where it was tuned ({}); another release made the table",
                                              to_string(why->schedule), why->reason)};
    const auto* legal = std::get_if<Legal>(&there);
    if (!legal || variant->stages[i].name != k.stages[i].name) return false;
    const Legal& own = std::get<Legal>(compiled);
    ROOFGEN_TRY(const Program program, generate(files, of_tuned->stages[i], own));
    ROOFGEN_TRY(const std::string why, why_not_served(files, {&tuned_for, &of_tuned->stages[i], &own, &program.source},
                                                      problem, variant->stages[i], *legal));
    if (!why.empty()) return false;
  }
  return true;
}

}  // namespace roofgen
