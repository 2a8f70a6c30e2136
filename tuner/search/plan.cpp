#include "tuner/search/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "base/pool.h"
#include "base/suggest.h"
#include "base/units.h"
#include "tuner/search/run.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// MMA FLOPs, and bytes read and written once, of all candidates of a big problem by default: about a minute of
/// simulation on two cores.
constexpr double kDefaultBudgetFlops = 2e12, kDefaultBudgetBytes = 1.7e9;
constexpr uint64_t kFewestEvals = 8;

/// Candidates that may be tried for each one to be verified: some spill or fail.
constexpr size_t kTriesEach = 3;

constexpr uint64_t kFullEffort = 10;  ///< times the evaluations

constexpr size_t kFewestJudged = 256;  ///< points of a thread

class Planner {
 public:
  explicit Planner(const SearchRun& run)
      : run_(run),
        context_(run.context),
        problem_(run.problem),
        options_(run.options),
        timed_alone_(run.place() == Place::kGpu),
        ranking_device_(ranking_device(run.context.device)) {}

  Result<SearchPlan> run() {
    ROOFGEN_TRY(plan_.strategy, find_strategy(options_.strategy));
    if (options_.effort == Effort::kNone) {
      if (plan_.strategy != &strategies().front())
        return Error{
            Exit::kUsage,
            fmt::format("--effort none tries the best of the prior alone; leave --strategy {} out", options_.strategy)};
      // In the order of the closed form, which no result corrects.
      ROOFGEN_TRY(plan_.strategy, find_strategy("exhaustive"));
    }
    ROOFGEN_CHECK(describe());
    ROOFGEN_TRY(reduced_scope_, problem_scope(context_.op, context_.op.reduced(problem_), limits(context_.device)));
    ROOFGEN_CHECK(choose_variants());
    ROOFGEN_CHECK(check_pins());
    for (const Variant& v : plan_.variants) ROOFGEN_CHECK(plan_variant(v));
    if (plan_.stages.empty()) return nothing_legal();
    share_evaluations();
    return std::move(plan_);
  }

  /// The plan without search spaces.
  Result<SearchPlan> run_without_spaces() {
    ROOFGEN_CHECK(describe());
    for (const Variant& v : plan_.variants) {
      ROOFGEN_TRY(VariantReport report, report_of(v));
      plan_.reports.push_back(std::move(report));
    }
    return std::move(plan_);
  }

 private:
  /// The problem's own part of the plan.
  Result<void> describe() {
    ROOFGEN_TRY(plan_.words, op_words(context_.files, problem_.op));
    ROOFGEN_TRY(ProblemVariants all, variants_of(context_.files, context_.op, limits(context_.device), problem_));
    plan_.scope = std::move(all.scope), plan_.variants = std::move(all.variants);
    conditions_ = std::move(all.conditions);
    if (context_.files.read("work/" + problem_.op + ".json")) {
      ROOFGEN_TRY(plan_.formula, WorkFormula::load(context_.files, problem_.op));
    }
    ROOFGEN_TRY(plan_.required, required_work(context_.op, plan_.formula ? &*plan_.formula : nullptr, problem_));
    ROOFGEN_TRY(const RequiredWork reduced,
                required_work(context_.op, plan_.formula ? &*plan_.formula : nullptr, context_.op.reduced(problem_)));
    plan_.reduced_flops = reduced.mma_flops;
    reduced_bytes_ = reduced.dram_bytes;
    for (const Variant& v : plan_.variants)
      for (const Stage& s : v.stages)
        ROOFGEN_CHECK(known_rates(context_.device, matrix_instruction(s), problem_.dtype, plan_.required.mma_flops));
    plan_.score.floor = problem_floor(context_.device, plan_.required, problem_.dtype, RoofSet::kSustained);
    plan_.score.floor_datasheet = problem_floor(context_.device, plan_.required, problem_.dtype, RoofSet::kDatasheet);
    return {};
  }

  Result<void> choose_variants() {
    if (options_.variants.empty()) return {};
    const std::vector<std::string> names = names_of(plan_.variants);
    for (const std::string& wanted : options_.variants)
      if (std::find(names.begin(), names.end(), wanted) == names.end())
        return no_variant(wanted, conditions_, names, context_.device.name);
    std::erase_if(plan_.variants, [&](const Variant& v) {
      if (std::find(options_.variants.begin(), options_.variants.end(), v.name) != options_.variants.end())
        return false;
      plan_.untried.push_back({v.name, v.fused, ctas(v), "not tried (--variant)"});
      return true;
    });
    return {};
  }

  double ctas(const Variant& v) const { return default_ctas(ranking_device_, v, plan_.scope, problem_.dtype); }

  /// Whether --set excludes the default schedule of a stage.
  Result<bool> pins_exclude_default(const Variant& v) const {
    for (const Stage& s : v.stages) {
      ROOFGEN_TRY(const Schedule free, default_schedule(v, s, plan_.scope, {}));
      for (const auto& [name, value] : free.params)
        if (const auto pin = options_.pins.find(name); pin != options_.pins.end() && pin->second != value) return true;
    }
    return false;
  }

  /// A pin must name a parameter of some stage and have its type; a text must also be one of its values.
  Result<void> check_pins() const {
    std::vector<const Param*> params;
    std::set<std::string> names;
    for (const Variant& v : plan_.variants)
      for (const Stage& s : v.stages)
        for (const Param& p : s.params) {
          params.push_back(&p);
          names.insert(p.name);
        }
    for (const auto& [name, value] : options_.pins) {
      if (!names.count(name))
        return Error{Exit::kUsage, fmt::format("--set {}: no such parameter{}", name,
                                               did_you_mean(name, {names.begin(), names.end()}))};
      for (const Param* p : params) {
        if (p->name != name) continue;
        if (p->values[0].index() != value.index())
          return Error{Exit::kUsage, fmt::format("--set {}={}: {} takes values like {}", name, to_string(value), name,
                                                 to_string(p->values[0]))};
        if (!std::holds_alternative<std::string>(value) || std::count(p->values.begin(), p->values.end(), value) > 0)
          continue;
        std::vector<std::string> values;
        for (const ParamValue& known : p->values) values.push_back(to_string(known));
        return Error{Exit::kUsage, fmt::format("--set {}={}: no such value{}", name, to_string(value),
                                               did_you_mean(to_string(value), values))};
      }
    }
    return {};
  }

  /// Without results; says why where the tensors do not fit the device.
  Result<VariantReport> report_of(const Variant& v) {
    VariantReport report;
    static_cast<VariantInfo&>(report) = v;
    report.default_ctas = ctas(v);
    ROOFGEN_TRY(plan_.temporaries[&v], temporaries(v, plan_.scope));
    double total = 0, temporary = 0;
    for (const Buffer& b : context_.op.buffers(problem_)) total += static_cast<double>(b.bytes);
    std::vector<std::string> names;
    for (const Buffer& b : plan_.temporaries[&v]) {
      temporary += static_cast<double>(b.bytes);
      names.push_back(b.name);
    }
    if (total + temporary <= context_.device.at("memory_bytes")) return report;
    report.available = false;
    report.rejected_because = fmt::format(
        "{} need {} of device memory, {} has {}",
        temporary > 0 ? fmt::format("its tensors with {}", fmt::join(names, " and ")) : "its tensors",
        bytes_text(total + temporary), context_.device.name, bytes_text(context_.device.at("memory_bytes")));
    return report;
  }

  Result<void> plan_variant(const Variant& v) {
    ROOFGEN_TRY(VariantReport report, report_of(v));
    ROOFGEN_TRY(const bool pinned, pins_exclude_default(v));
    if (pinned) plan_.untried.push_back({v.name, v.fused, report.default_ctas, "not tried (--set)"});
    const auto unavailable = [&](const char* stage, std::string reason) {
      plan_.rejections.push_back({Schedule{v.name, "", {}}, stage, reason});
      report.available = false;
      report.rejected_because = std::move(reason);
      plan_.reports.push_back(report);
    };
    if (!report.available) {
      unavailable("memory", report.rejected_because);
      return {};
    }
    std::vector<StagePlan> plans;
    for (size_t i = 0; i < v.stages.size(); ++i) {
      StagePlan plan;
      plan.variant = &v;
      plan.index = i;
      ROOFGEN_CHECK(find_points(plan));
      if (plan.points.number == 0) {
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

  /// Fills the plan's points and its space.
  Result<void> find_points(StagePlan& out) {
    const Variant& variant = *out.variant;
    const Stage& stage = out.stage();
    ROOFGEN_TRY(out.points, legal_points(variant, stage, plan_.scope, options_.pins, &reduced_scope_));
    plan_.considered += out.points.considered;
    for (Rejected& r : out.points.rejected) {
      last_reason_ = r.reason;
      plan_.rejections.push_back(std::move(r));
    }
    ROOFGEN_TRY(const Schedule preset, default_schedule(variant, stage, plan_.scope, options_.pins));
    ROOFGEN_TRY(std::vector<Judged> judged, judge_all(out));
    const size_t params = out.points.values.size();
    const std::optional<std::vector<uint16_t>> preset_row = out.points.row_of(preset);
    std::vector<uint16_t> rows;
    for (size_t point = 0; point < out.points.number; ++point) {
      Judged& result = judged[point];
      if (!result.fault.empty()) {
        last_reason_ = result.fault;
        plan_.rejections.push_back({out.points.schedule(point), result.rejected_by, std::move(result.fault)});
        continue;
      }
      const auto row = out.points.rows.begin() + static_cast<std::ptrdiff_t>(point * params);
      if (preset_row && std::equal(preset_row->begin(), preset_row->end(), row))
        out.space.preset = out.space.predicted.size();
      out.space.predicted.push_back(result.seconds);
      rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(params));
    }
    const std::vector<double>& times = out.space.predicted;
    out.points.rows = std::move(rows);
    out.points.number = times.size();
    if (!out.space.preset && !times.empty())
      out.space.preset = static_cast<size_t>(std::ranges::min_element(times) - times.begin());
    out.space.points = point_space(out.points);
    if (!times.empty()) return {};
    ROOFGEN_TRY(StagePoints real, StagePoints::of(variant, stage, plan_.scope));
    auto checked = real.check(preset);
    if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
    const auto* rejected = std::get_if<Rejected>(&checked);
    preset_reason_ = rejected ? rejected->reason : "";
    return {};
  }

  struct Judged {
    const char* rejected_by = "constraint";
    std::string fault;   ///< empty: none
    double seconds = 0;  ///< by the prior
  };
  /// Of all points, in their order, on the threads of the search: a space has tens of thousands of legal points.
  Result<std::vector<Judged>> judge_all(const StagePlan& plan) const {
    ROOFGEN_TRY(const expr::Map here, stage_scope(*plan.variant, plan.stage(), plan_.scope));
    ROOFGEN_TRY(const expr::Map there, stage_scope(*plan.variant, plan.stage(), reduced_scope_));
    std::vector<Judged> out(plan.points.number);
    const size_t parts =
        std::min(static_cast<size_t>(run_.threads()), (out.size() + kFewestJudged - 1) / kFewestJudged);
    ROOFGEN_CHECK(for_each_index(run_.threads(), parts, [&](size_t part) -> Result<void> {
      expr::Points points(plan.points.variables());
      const expr::Names real(points, points.add_scope(here, plan.stage().derived));
      const expr::Names reduced(points, points.add_scope(there, plan.stage().derived));
      const size_t params = plan.points.values.size(), end = (part + 1) * out.size() / parts;
      for (size_t point = part * out.size() / parts; point < end; ++point) {
        for (size_t p = 0; p < params; ++p) points.move(p, plan.points.rows[point * params + p]);
        ROOFGEN_TRY(out[point], judge(plan.stage(), real, reduced));
      }
      return {};
    }));
    return out;
  }

  /// The checks of a point that satisfies the rules of its space. `reduced`: the point in the problem that stands for
  /// the real one in verification.
  Result<Judged> judge(const Stage& stage, const expr::Names& real, const expr::Names& reduced) const {
    Judged out;
    ROOFGEN_TRY(out.fault, launch_fault(stage, real));
    if (!out.fault.empty()) return out;
    // It cannot where the launch is illegal there, or the source relies on divisible sizes that it lacks.
    ROOFGEN_TRY(out.fault, launch_fault(stage, reduced));
    if (out.fault.empty()) {
      ROOFGEN_TRY(out.fault, broken_assumption(stage, real, reduced));
    }
    if (!out.fault.empty()) {
      out.fault = kOnTheReducedProblem + out.fault;
      return out;
    }
    const auto predicted = prior(ranking_device_, stage, real, problem_.dtype);
    // The grid is beyond the device's limits.
    if (!predicted) return Judged{"launch", predicted.error().message};
    out.seconds = predicted->seconds;
    return out;
  }

  /// The values of an axis are those of the points: `--set` and defaults may give others than the parameter's own.
  static PointSpace point_space(const LegalPoints& points) {
    const size_t params = points.values.size();
    std::vector<Axis> axes;
    std::vector<uint16_t> rows(points.rows.size());
    for (size_t i = 0; i < params; ++i) {
      const std::vector<ParamValue>& values = points.values[i];
      std::map<ParamValue, std::vector<size_t>> used;  // ascending, with the points
      for (size_t at = i; at < rows.size(); at += params) used[values[points.rows[at]]].push_back(at);
      Axis axis{points.form.params[i].first, {}, {}};
      for (const auto& [value, places] : used) {
        for (const size_t at : places) rows[at] = static_cast<uint16_t>(axis.size());
        axis.labels.push_back(to_string(value));
        if (const auto* number = std::get_if<int64_t>(&value)) axis.numbers.push_back(static_cast<double>(*number));
      }
      if (axis.numbers.size() < axis.size()) axis.numbers.clear();
      axes.push_back(std::move(axis));
    }
    return PointSpace(std::move(axes), std::move(rows));
  }

  Error nothing_legal() const {
    std::string reason = plan_.reports.empty() ? "no variant" : plan_.reports[0].rejected_because;
    Error error{Exit::kUnavailable, "no legal point: " + reason};
    for (size_t i = 1; i < plan_.reports.size(); ++i)
      error.notes.push_back(fmt::format("  {}: {}", plan_.reports[i].name, plan_.reports[i].rejected_because));
    return error;
  }

  /// Splits the evaluations evenly over the variants, then over their stages. Shares that exceed a small space go to
  /// the other stages.
  void share_evaluations() {
    uint64_t evals = options_.evals;
    // A candidate that only runs on the GPU costs little more than its compilation.
    if (evals == 0 && timed_alone_) evals = kDefaultGpuEvals;
    if (evals == 0) {
      const double share = std::max(plan_.reduced_flops / kDefaultBudgetFlops, reduced_bytes_ / kDefaultBudgetBytes);
      evals = std::clamp(static_cast<uint64_t>(1 / std::max(share, 1e-9)), kFewestEvals, context_.op.default_evals());
    }
    if (options_.effort == Effort::kFull) evals *= kFullEffort;
    // The stage whose share is furthest below its due gets the next one.
    for (uint64_t given = plan_.stages.size(); given < evals; ++given) {
      StagePlan* neediest = nullptr;
      const auto filled = [](const StagePlan& p) { return p.share * p.variant->stages.size(); };
      for (StagePlan& p : plan_.stages)
        if (p.share < p.points.number && (!neediest || filled(p) < filled(*neediest))) neediest = &p;
      if (!neediest) break;
      ++neediest->share;
    }
    for (StagePlan& p : plan_.stages) {
      if (plan_.strategy->exhaustive) p.share = p.points.number;
      p.most = plan_.strategy->exhaustive ? p.share : kTriesEach * p.share;
      if (options_.effort == Effort::kNone) {
        const std::vector<double>& times = p.space.predicted;
        p.share = p.most = times[*p.space.preset] > *std::ranges::min_element(times) ? 2 : 1;
      }
    }
  }

  const SearchRun& run_;
  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  const bool timed_alone_;  ///< candidates run on the GPU only
  const Device ranking_device_;
  std::string last_reason_, preset_reason_;  ///< why the last point, and the default schedule, is illegal
  expr::Map reduced_scope_;
  std::map<std::string, std::string> conditions_;  ///< of the op's variants, for whatever problem
  double reduced_bytes_ = 0;                       ///< of the reduced problem, each tensor read or written once
  SearchPlan plan_;
};

}  // namespace

std::vector<size_t> SearchPlan::stages_of(const std::string& name) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < stages.size(); ++i)
    if (stages[i].variant->name == name) out.push_back(i);
  return out;
}

Result<SearchPlan> plan_search(const SearchRun& run) { return Planner(run).run(); }
Result<SearchPlan> plan_without_spaces(const SearchRun& run) { return Planner(run).run_without_spaces(); }

}  // namespace roofgen
