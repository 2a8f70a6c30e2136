#include "generator/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/suggest.h"
#include "base/target.h"
#include "generator/jinja/jinja.h"

namespace roofgen {
namespace {

Result<ParamValue> to_param(const expr::Value& v, const std::string& name) {
  if (auto b = v.as<bool>()) return ParamValue(*b);
  if (auto i = v.as<int64_t>()) return ParamValue(*i);
  if (auto s = v.as<std::string>()) return ParamValue(*s);
  return Error{Exit::kFailed,
               fmt::format("default of {} is a {}; an int, bool or string was expected", name, v.type_name())};
}

}  // namespace

expr::Value to_value(const ParamValue& v) {
  return std::visit([](const auto& x) { return expr::Value(x); }, v);
}

namespace {

Result<expr::Map> with_names(expr::Map scope, const std::vector<std::pair<std::string, expr::Expr>>& names) {
  for (const auto& [name, e] : names) {
    ROOFGEN_TRY(scope[name], e.eval(scope));
  }
  return scope;
}

}  // namespace

Result<expr::Map> stage_scope(const Variant& variant, const Stage& stage, const expr::Map& problem_scope) {
  expr::Map scope = problem_scope;
  scope["dependent"] = false;
  scope["leads"] = false;
  if (!stage.formula.empty()) {
    const auto formulas = scope.find("formulas");
    const expr::Map* map = formulas == scope.end() ? nullptr : formulas->second.map();
    if (!map || !map->count(stage.formula))
      return Error{Exit::kFailed, fmt::format("{}: stage {} needs the formula \"{}\", which {} does not have",
                                              variant.file, stage.name, stage.formula, variant.op)};
    scope["formula"] = map->at(stage.formula);
  }
  return with_names(std::move(scope), stage.problem);
}

Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits) {
  expr::Map scope = op.scope(problem);
  scope["device"] = expr::Value(device_limits);
  return scope;
}

namespace {

/// One instance: every kernel, and the sizes of the temporaries, know the number by its name.
Result<Variant> instance(const Variant& variant, int64_t value) {
  Variant out = variant;
  out.instances.reset();
  out.name += std::to_string(value);
  ROOFGEN_TRY(const expr::Expr number, expr::Expr::parse(std::to_string(value)));
  for (Stage& s : out.stages) s.problem.insert(s.problem.begin(), {variant.instances->name, number});
  out.problem.emplace_back(variant.instances->name, number);
  return out;
}

/// Whether the device has the instructions of all kernels of the variant.
Result<bool> runs_on_device(const Variant& variant, const expr::Map& scope) {
  for (const Stage& s : variant.stages)
    if (is_specific(s.target)) {
      const Target target = *parse_target(s.target);
      const bool own = target.features == Target::Features::kOwn;
      const int last = own ? target.arch : target.arch / 10 * 10 + 9;
      ROOFGEN_TRY(const expr::Expr same,
                  expr::Expr::parse(fmt::format("device.arch >= {} and device.arch <= {} and device.{}|default(true)",
                                                target.arch, last, own ? "arch_specific" : "family_specific")));
      ROOFGEN_TRY(const bool has, same.check(scope));
      if (!has) return false;
    }
  return true;
}

Result<bool> wanted(const std::optional<expr::Expr>& when, const expr::Map& scope) {
  return when ? when->check(scope) : Result<bool>(true);
}

/// Removes the kernels and the temporaries that the problem does not need. The kernels use the buffers that such
/// temporaries stand for.
Result<void> keep_wanted(Variant& variant, const expr::Map& scope) {
  std::vector<Stage> stages;
  for (Stage& stage : variant.stages) {
    ROOFGEN_TRY(const bool keep, wanted(stage.when, scope));
    if (keep) stages.push_back(std::move(stage));
  }
  std::vector<Variant::Temporary> temporaries;
  for (Variant::Temporary& temporary : variant.temporaries) {
    ROOFGEN_TRY(const bool keep, wanted(temporary.when, scope));
    if (!keep)
      for (Stage& stage : stages)
        std::erase_if(stage.buffers, [&](const auto& buffer) { return buffer.second == temporary.name; });
    if (keep) temporaries.push_back(std::move(temporary));
  }
  variant.stages = std::move(stages);
  variant.temporaries = std::move(temporaries);
  return {};
}

/// Kernels after another get the parameter "dependent", and the kernels before them the name "leads".
Result<void> add_dependent_launches(std::vector<Stage>& stages) {
  ROOFGEN_TRY(const expr::Expr leads, expr::Expr::parse("device.arch >= 90"));
  ROOFGEN_TRY(const expr::Expr preset, expr::Expr::parse("device.dependent_launch|default(false)"));
  ROOFGEN_TRY(const expr::Expr searched, expr::Expr::parse("false"));
  ROOFGEN_TRY(const expr::Expr overlap, expr::Expr::parse("dependent"));
  for (size_t i = 1; i < stages.size(); ++i) {
    if (!stages[i].dependent) continue;
    stages[i - 1].problem.insert(stages[i - 1].problem.begin(), {"leads", leads});
    stages[i].params.push_back({"dependent", {false, true}, preset, searched});
    stages[i].overlap = overlap;
  }
  return {};
}

/// The values of a variant's instances, ascending.
Result<std::vector<int64_t>> instance_values(const Variant::Instances& instances, const expr::Map& problem_scope) {
  std::vector<int64_t> out;
  ROOFGEN_TRY(expr::Map scope, with_names(problem_scope, instances.problem));
  for (const expr::Expr& e : instances.values) {
    ROOFGEN_TRY(const int64_t value, e.eval_int(scope));
    scope[instances.name] = value;
    ROOFGEN_TRY(const bool wanted, instances.when.check(scope));
    if (wanted) out.push_back(value);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Result<std::vector<Variant>> expand(std::vector<Variant> variants, const expr::Map& problem_scope) {
  std::vector<Variant> out;
  std::set<std::string> elsewhere;  // targets of the problem's variants
  for (Variant& v : variants) {
    ROOFGEN_TRY(const bool runs, runs_on_device(v, problem_scope));
    ROOFGEN_TRY(const expr::Map scope, with_names(problem_scope, v.problem));
    ROOFGEN_TRY(const bool has, wanted(v.when, scope));
    if (has && !runs)
      for (const Stage& s : v.stages)
        if (!s.target.empty()) elsewhere.insert(s.target);
    if (!runs || !has) continue;
    ROOFGEN_CHECK(keep_wanted(v, scope));
    ROOFGEN_CHECK(add_dependent_launches(v.stages));
    if (!v.instances) {
      out.push_back(std::move(v));
      continue;
    }
    ROOFGEN_TRY(const std::vector<int64_t> values, instance_values(*v.instances, problem_scope));
    for (const int64_t value : values) {
      ROOFGEN_TRY(out.emplace_back(), instance(v, value));
    }
  }
  if (out.empty() && !elsewhere.empty()) {
    const expr::Map& device = *problem_scope.at("device").map();
    return Error{Exit::kUnavailable, fmt::format("no kernel for this problem runs on sm_{}; there is one for {}",
                                                 device.at("arch").str(), fmt::join(elsewhere, ", "))};
  }
  for (Variant& v : out)
    for (Stage& s : v.stages) {
      ROOFGEN_TRY(expr::Map scope, stage_scope(v, s, problem_scope));
      for (Param& p : s.params) {
        if (!p.when) continue;
        ROOFGEN_TRY(const bool varies, p.when->check(scope));
        if (varies) continue;
        ROOFGEN_TRY(const expr::Value preset, p.preset.eval(scope));
        p.values.resize(1);
        ROOFGEN_TRY(p.values[0], to_param(preset, p.name));
      }
    }
  return out;
}

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> out;
  for (const Variant& v : variants) out.push_back(v.name);
  return out;
}

std::map<std::string, std::string> conditions_of(const std::vector<Variant>& variants) {
  std::map<std::string, std::string> out;
  for (const Variant& v : variants) {
    std::set<std::string> all;
    for (const Stage& s : v.stages)
      if (!s.target.empty()) all.insert(s.target);
    if (v.when) all.insert(v.when->text());
    if (v.instances) all.insert(v.instances->when.text());
    out[v.name] = fmt::format("{}", fmt::join(all, ", "));
  }
  return out;
}

Error no_variant(const std::string& wanted, const std::map<std::string, std::string>& conditions,
                 const std::vector<std::string>& left, const std::string& device) {
  const auto known = conditions.find(wanted);
  if (known == conditions.end())
    return {Exit::kUsage, fmt::format("unknown variant \"{}\"{}", wanted, did_you_mean(wanted, left))};
  return {Exit::kUsage, fmt::format("variant \"{}\" is not for this problem on {}: its condition is {}; there are {}",
                                    wanted, device, known->second, fmt::join(left, ", "))};
}

const Variant* ProblemVariants::find(const std::string& name) const {
  const auto found = std::ranges::find(variants, name, &Variant::name);
  return found == variants.end() ? nullptr : &*found;
}

Result<ProblemVariants> variants_of(const DataFiles& files, const Op& op, const expr::Map& device_limits,
                                    const Problem& problem) {
  ProblemVariants out{problem, {}, {}, {}};
  ROOFGEN_TRY(out.scope, problem_scope(op, problem, device_limits));
  ROOFGEN_TRY(out.variants, op.variants(files, problem));
  out.conditions = conditions_of(out.variants);
  ROOFGEN_TRY(out.variants, expand(std::move(out.variants), out.scope));
  return out;
}

Result<StagePoints> StagePoints::of(const Variant& variant, const Stage& stage, const expr::Map& problem_scope) {
  ROOFGEN_TRY(expr::Map scope, stage_scope(variant, stage, problem_scope));
  return StagePoints(stage, std::move(scope));
}

std::optional<std::string> StagePoints::move_to(Schedule schedule) {
  point_.schedule = std::move(schedule);
  for (const auto& [name, value] : point_.schedule.params) point_.scope[name] = to_value(value);
  for (const auto& [name, e] : stage_->derived) {
    auto value = e.eval(point_.scope);
    // A derived value without a result at this point (an inexact division) rejects the point; the space is still valid.
    if (!value) return fmt::format("{}: {}", name, value.error().message);
    point_.scope[name] = std::move(*value);
  }
  return std::nullopt;
}

std::variant<Legal, Rejected, Error> StagePoints::check(Schedule schedule, bool prune) {
  const auto rejected = [&](std::string why) { return Rejected{point_.schedule, "constraint", std::move(why)}; };
  if (auto why = move_to(std::move(schedule))) return rejected(std::move(*why));
  for (const std::vector<expr::Expr>* rules : {&stage_->constraints, &stage_->prunes})
    for (const expr::Expr& rule : *rules) {
      if (rules == &stage_->prunes && !prune) break;
      std::string why;
      auto ok = rule.check(point_.scope, &why);
      if (!ok) return std::move(ok).error();
      if (!*ok) return rejected(why.empty() ? rule.text() : why);
    }
  auto fault = launch_fault(*stage_, point_);
  if (!fault) return std::move(fault).error();
  if (!fault->empty()) return rejected(*fault);
  return point_;
}

std::variant<Legal, Rejected, Error> check_schedule(const Variant& variant, const Stage& stage, Schedule schedule,
                                                    const expr::Map& problem_scope, bool prune) {
  auto points = StagePoints::of(variant, stage, problem_scope);
  if (!points) return std::move(points).error();
  return points->check(std::move(schedule), prune);
}

Result<Schedule> default_schedule(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                  const std::map<std::string, ParamValue>& pins) {
  Schedule s{variant.name, variant.stages.size() > 1 ? stage.name : "", {}};
  ROOFGEN_TRY(expr::Map scope, stage_scope(variant, stage, problem_scope));
  for (const Param& p : stage.params) {
    ParamValue value;
    if (auto pin = pins.find(p.name); pin != pins.end()) {
      value = pin->second;
    } else {
      ROOFGEN_TRY(expr::Value v, p.preset.eval(scope));
      ROOFGEN_TRY(value, to_param(v, p.name));
    }
    scope[p.name] = to_value(value);
    s.params.emplace_back(p.name, std::move(value));
  }
  return s;
}

Result<Program> generate(const DataFiles& files, const Stage& stage, const Legal& legal) {
  auto loader = [&](std::string_view name) { return files.read("templates/" + std::string(name)); };
  auto rendered = jinja::render(loader, stage.template_name, legal.scope);
  if (!rendered) {
    // Replace the template's name by its path.
    Error error = std::move(rendered).error();
    if (files.read("templates/" + error.where.file)) error.where.file = files.origin("templates/" + error.where.file);
    return error;
  }
  return Program{legal.schedule, std::move(rendered->text), stage.entry, std::move(rendered->line_map), stage.target};
}

Result<std::vector<Buffer>> temporaries(const Variant& variant, const expr::Map& problem_scope) {
  std::vector<Buffer> out;
  ROOFGEN_TRY(const expr::Map scope, with_names(problem_scope, variant.problem));
  for (const Variant::Temporary& t : variant.temporaries) {
    ROOFGEN_TRY(int64_t bytes, t.bytes.eval_int(scope));
    ROOFGEN_TRY(expr::Value dtype, t.dtype.eval(scope));
    const std::string name = dtype.str();
    const std::optional<DType> format = parse_dtype(name);
    if (!format) return Error{Exit::kFailed, fmt::format("{}: unknown dtype \"{}\" of {}", variant.file, name, t.name)};
    out.push_back({t.name, *format, static_cast<uint64_t>(bytes), Buffer::Role::kTemporary, t.zeroed});
  }
  return out;
}

}  // namespace roofgen
