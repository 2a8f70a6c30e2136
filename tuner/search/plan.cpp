#include "tuner/search/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "base/units.h"
#include "tuner/search/strategy.h"

namespace roofgen {
namespace {

/// Work limit that sets the default number of candidates of a big problem: about a minute of
/// simulation on two cores.
constexpr double kDefaultBudgetFlops = 2e12;
constexpr uint64_t kFewestEvals = 8;

/// Points in line for each one to be verified; the rest of the line stands by.
constexpr size_t kSpares = 3;

class Planner {
 public:
  Planner(const TuneContext& context, const Problem& problem, const TuneOptions& options)
      : context_(context), problem_(problem), options_(options), ranking_device_(ranking_device(context.device)) {}

  Result<SearchPlan> run() {
    ROOFGEN_TRY(strategy_, find_strategy(options_.strategy));
    ROOFGEN_TRY(plan_.scope, problem_scope(context_.op, problem_, limits(context_.device)));
    ROOFGEN_TRY(reduced_scope_, problem_scope(context_.op, context_.op.reduced(problem_), limits(context_.device)));
    ROOFGEN_TRY(plan_.variants, context_.op.variants(context_.files, problem_));
    if (context_.files.read("work/" + problem_.op + ".json")) {
      ROOFGEN_TRY(plan_.formula, WorkFormula::load(context_.files, problem_.op));
    }
    ROOFGEN_TRY(plan_.required, required_work(context_.op, plan_.formula ? &*plan_.formula : nullptr, problem_));
    ROOFGEN_TRY(const RequiredWork reduced,
                required_work(context_.op, plan_.formula ? &*plan_.formula : nullptr, context_.op.reduced(problem_)));
    plan_.reduced_flops = reduced.mma_flops;
    for (const Variant& v : plan_.variants)
      for (const Stage& s : v.stages)
        ROOFGEN_CHECK(known_rates(context_.device, matrix_instruction(s), problem_.dtype, plan_.required.mma_flops));
    ROOFGEN_CHECK(choose_variants());
    ROOFGEN_CHECK(check_pins());
    for (const Variant& v : plan_.variants) ROOFGEN_CHECK(plan_variant(v));
    if (plan_.stages.empty()) return nothing_legal();
    choose_points();
    return std::move(plan_);
  }

 private:
  Result<void> choose_variants() {
    if (options_.variants.empty()) return {};
    std::vector<std::string> names;
    for (const Variant& v : plan_.variants) names.push_back(v.name);
    for (const std::string& wanted : options_.variants)
      if (std::find(names.begin(), names.end(), wanted) == names.end())
        return Error{Exit::kUsage, fmt::format("unknown variant \"{}\"{}", wanted, did_you_mean(wanted, names))};
    std::erase_if(plan_.variants, [&](const Variant& v) {
      return std::find(options_.variants.begin(), options_.variants.end(), v.name) == options_.variants.end();
    });
    return {};
  }

  /// A pin must name a parameter of some stage and have its type.
  Result<void> check_pins() const {
    std::vector<std::string> names;
    for (const Variant& v : plan_.variants)
      for (const Stage& s : v.stages)
        for (const Param& p : s.params) names.push_back(p.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const auto& [name, value] : options_.pins) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        return Error{Exit::kUsage, fmt::format("--set {}: no such parameter{}", name, did_you_mean(name, names))};
      for (const Variant& v : plan_.variants)
        for (const Stage& s : v.stages)
          for (const Param& p : s.params)
            if (p.name == name && p.values[0].index() != value.index())
              return Error{Exit::kUsage, fmt::format("--set {}={}: {} takes values like {}", name, to_string(value),
                                                     name, to_string(p.values[0]))};
            else if (const auto* text = std::get_if<std::string>(&value);
                     p.name == name && text && std::find(p.values.begin(), p.values.end(), value) == p.values.end()) {
              std::vector<std::string> known;
              for (const ParamValue& v2 : p.values) known.push_back(to_string(v2));
              return Error{Exit::kUsage,
                           fmt::format("--set {}={}: no such value{}", name, *text, did_you_mean(*text, known))};
            }
    }
    return {};
  }

  Result<void> plan_variant(const Variant& v) {
    VariantReport report;
    report.name = v.name;
    report.description = v.description;
    report.fused = v.fused;
    const auto unavailable = [&](const char* stage, std::string reason) {
      plan_.rejections.push_back({Schedule{v.name, "", {}}, stage, reason});
      report.available = false;
      report.rejected_because = std::move(reason);
      plan_.reports.push_back(report);
    };
    ROOFGEN_TRY(std::vector<Buffer> temps, temporaries(v, plan_.scope));
    double total = 0, temporary = 0;
    for (const Buffer& b : context_.op.buffers(problem_)) total += static_cast<double>(b.bytes);
    std::vector<std::string> names;
    for (const Buffer& b : temps) {
      temporary += static_cast<double>(b.bytes);
      names.push_back(b.name);
    }
    if (total + temporary > context_.device.at("memory_bytes")) {
      unavailable("memory", fmt::format("{} need {} of device memory, {} has {}",
                                        temporary > 0 ? fmt::format("its tensors with {}", fmt::join(names, " and "))
                                                      : "its tensors",
                                        bytes_text(total + temporary), context_.device.name,
                                        bytes_text(context_.device.at("memory_bytes"))));
      return {};
    }
    std::vector<StagePlan> plans;
    for (size_t i = 0; i < v.stages.size(); ++i) {
      StagePlan plan;
      plan.variant = &v;
      plan.index = i;
      ROOFGEN_CHECK(collect_legal(plan));
      if (plan.legal.empty()) {
        unavailable("constraint", fmt::format("every point of {} is illegal, {} because of {}", v.stages[i].name,
                                              preset_reason_.empty() ? "the last" : "the default schedule",
                                              preset_reason_.empty() ? last_reason_ : preset_reason_));
        return {};
      }
      plans.push_back(std::move(plan));
    }
    for (StagePlan& p : plans) plan_.stages.push_back(std::move(p));
    plan_.reports.push_back(std::move(report));
    return {};
  }

  Result<void> collect_legal(StagePlan& plan) {
    const Stage& stage = plan.variant->stages[plan.index];
    std::vector<Schedule> points = enumerate(*plan.variant, stage, options_.pins);
    plan_.considered += points.size();
    ROOFGEN_TRY(const Schedule preset, default_schedule(*plan.variant, stage, plan_.scope, options_.pins));
    ROOFGEN_TRY(StagePoints real, StagePoints::of(*plan.variant, stage, plan_.scope));
    ROOFGEN_TRY(StagePoints reduced, StagePoints::of(*plan.variant, stage, reduced_scope_));
    bool preset_legal = false;
    preset_reason_.clear();
    for (Schedule& s : points) {
      const bool is_preset = s.params == preset.params;
      auto checked = real.check(std::move(s));
      if (auto error = std::get_if<Error>(&checked)) return *error;
      if (auto rejected = std::get_if<Rejected>(&checked)) {
        last_reason_ = rejected->reason;
        if (is_preset) preset_reason_ = last_reason_;
        plan_.rejections.push_back(std::move(*rejected));
        continue;
      }
      Legal& legal = std::get<Legal>(checked);
      ROOFGEN_TRY(const std::string unverifiable, why_unverifiable(stage, legal, reduced));
      if (!unverifiable.empty()) {
        last_reason_ = unverifiable;
        plan_.rejections.push_back({legal.schedule, "constraint", last_reason_});
        continue;
      }
      auto predicted = prior(ranking_device_, stage, legal, problem_.dtype);
      if (!predicted) {
        // A launch that cannot be (a grid beyond the limits) makes the point illegal.
        last_reason_ = predicted.error().message;
        plan_.rejections.push_back({legal.schedule, "launch", last_reason_});
        continue;
      }
      if (is_preset) {
        plan.preset = plan.legal.size();
        preset_legal = true;
      }
      plan.predicted.push_back(predicted->seconds);
      plan.legal.push_back(std::move(legal));
    }
    if (!preset_legal && !plan.legal.empty())
      plan.preset =
          static_cast<size_t>(std::min_element(plan.predicted.begin(), plan.predicted.end()) - plan.predicted.begin());
    return {};
  }

  /// Why the reduced problem cannot stand for the real one at this point: the point is illegal there, or the source was
  /// made for sizes that divide and there they do not. Empty when it can.
  Result<std::string> why_unverifiable(const Stage& stage, const Legal& legal, StagePoints& reduced) const {
    auto checked = reduced.check(legal.schedule, false);
    if (auto error = std::get_if<Error>(&checked)) return *error;
    if (auto rejected = std::get_if<Rejected>(&checked)) return "on the reduced problem: " + rejected->reason;
    if (stage.assumes.empty()) return std::string();
    expr::Map here_scope = legal.scope, there_scope = std::get<Legal>(checked).scope;
    here_scope["tuned"] = there_scope["tuned"] = expr::Value(legal.scope);
    for (const expr::Expr& assumed : stage.assumes) {
      ROOFGEN_TRY(const bool here, assumed.check(here_scope));
      if (!here) continue;
      std::string why;
      ROOFGEN_TRY(const bool there, assumed.check(there_scope, &why));
      if (!there) return "on the reduced problem: " + why;
    }
    return std::string();
  }

  Error nothing_legal() const {
    std::string reason = plan_.reports.empty() ? "no variant" : plan_.reports[0].rejected_because;
    Error error{Exit::kUnavailable, "no legal point: " + reason};
    for (size_t i = 1; i < plan_.reports.size(); ++i)
      error.notes.push_back(fmt::format("  {}: {}", plan_.reports[i].name, plan_.reports[i].rejected_because));
    return error;
  }

  /// Splits the evaluations evenly over the variants, then over their stages; what a small space
  /// leaves over goes to the others.
  void choose_points() {
    uint64_t evals = options_.evals;
    if (evals == 0) {
      // What is only run on the GPU costs a compilation and little else.
      evals = context_.gpu && options_.check != Check::kAll
                  ? kDefaultGpuEvals
                  : std::clamp(static_cast<uint64_t>(kDefaultBudgetFlops / std::max(plan_.reduced_flops, 1.0)),
                               kFewestEvals, context_.op.default_evals());
    }
    std::map<const Variant*, size_t> stages;
    for (const StagePlan& p : plan_.stages) ++stages[p.variant];
    uint64_t given = plan_.stages.size();
    // The stage whose share is furthest below its due gets the next one.
    while (given < evals) {
      StagePlan* neediest = nullptr;
      double lowest = 0;
      for (StagePlan& p : plan_.stages) {
        if (p.share >= p.legal.size()) continue;
        const double filled = static_cast<double>(p.share) * static_cast<double>(stages[p.variant]);
        if (!neediest || filled < lowest) {
          neediest = &p;
          lowest = filled;
        }
      }
      if (!neediest) break;
      ++neediest->share;
      ++given;
    }
    for (StagePlan& p : plan_.stages) {
      // A few points more than the share stand by for those that spill or fail.
      p.order = strategy_->select({p.predicted, p.preset, kSpares * p.share, options_.seed});
      if (options_.strategy == "exhaustive") p.share = p.order.size();
    }
  }

  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  const Device ranking_device_;
  const Strategy* strategy_ = nullptr;
  std::string last_reason_, preset_reason_;  // why a point, and why the default one, is illegal
  expr::Map reduced_scope_;
  SearchPlan plan_;
};

}  // namespace

Result<SearchPlan> plan_search(const TuneContext& context, const Problem& problem, const TuneOptions& options) {
  return Planner(context, problem, options).run();
}

}  // namespace roofgen
