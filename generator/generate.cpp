#include "generator/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "generator/jinja/jinja.h"

namespace roofgen {
namespace {

expr::Value to_value(const ParamValue& v) {
  return std::visit([](const auto& x) { return expr::Value(x); }, v);
}

Result<ParamValue> to_param(const expr::Value& v, const std::string& name) {
  if (auto b = v.as<bool>()) return ParamValue(*b);
  if (auto i = v.as<int64_t>()) return ParamValue(*i);
  if (auto s = v.as<std::string>()) return ParamValue(*s);
  return Error{Exit::kFailed,
               fmt::format("default of {} is a {}; an int, bool or string was expected", name, v.type_name())};
}

Result<uint32_t> dimension(int64_t value, const char* what) {
  if (value < 1 || value > std::numeric_limits<int32_t>::max())
    return Error{Exit::kFailed, fmt::format("{} is {}; 1 to 2^31-1 was expected", what, value)};
  return static_cast<uint32_t>(value);
}

Arg scalar_f32(const std::string& name, double value) {
  Arg arg{name, false, 0, 4};
  const float f = static_cast<float>(value);
  std::memcpy(&arg.bits, &f, sizeof f);
  return arg;
}

/// The arguments that the stage's formula brings: its tensors and outputs by pointer, its scalars by value.
template <class BufferOf>
Result<void> add_each(const std::string& kind, const expr::Map& scope, const BufferOf& buffer_of,
                      std::vector<Arg>& out) {
  const auto formula = scope.find("formula");
  const expr::Map* map = formula == scope.end() ? nullptr : formula->second.map();
  const expr::List* list = map && map->count(kind) ? map->at(kind).list() : nullptr;
  if (!list)
    return Error{Exit::kFailed, fmt::format("a stage without a formula takes no arguments for each of its {}", kind)};
  for (const expr::Value& item : *list) {
    if (kind == "scalars") {
      const std::string name = item.str();
      const expr::Map* scalars = scope.count("scalars") ? scope.at("scalars").map() : nullptr;
      if (!scalars || !scalars->count(name))
        return Error{Exit::kFailed, fmt::format("the scalar {} has no value", name)};
      const expr::Value& value = scalars->at(name);
      out.push_back(
          scalar_f32(name, value.as<double>() ? *value.as<double>() : static_cast<double>(*value.as<int64_t>())));
      continue;
    }
    const expr::Map* entry = item.map();
    const char* key = kind == "tensors" ? "name" : "buffer";
    if (!entry || !entry->count(key))
      return Error{Exit::kFailed, fmt::format("an entry of the formula's {} has no {}", kind, key)};
    out.push_back(Arg{buffer_of(entry->at(key).str()), true, 0, 8});
  }
  return {};
}

/// The problem as a stage sees it: with its formula and its own names for what the problem says.
Result<expr::Map> stage_scope(const Variant& variant, const Stage& stage, const expr::Map& problem_scope) {
  expr::Map scope = problem_scope;
  if (!stage.formula.empty()) {
    const auto formulas = scope.find("formulas");
    const expr::Map* map = formulas == scope.end() ? nullptr : formulas->second.map();
    if (!map || !map->count(stage.formula))
      return Error{Exit::kFailed, fmt::format("{}: stage {} needs the formula \"{}\", which {} does not have",
                                              variant.file, stage.name, stage.formula, variant.op)};
    scope["formula"] = map->at(stage.formula);
  }
  for (const auto& [name, e] : stage.problem) {
    ROOFGEN_TRY(scope[name], e.eval(scope));
  }
  return scope;
}

}  // namespace

Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits) {
  expr::Map scope = op.scope(problem);
  scope["device"] = expr::Value(device_limits);
  return scope;
}

Result<StagePoints> StagePoints::of(const Variant& variant, const Stage& stage, const expr::Map& problem_scope) {
  ROOFGEN_TRY(expr::Map scope, stage_scope(variant, stage, problem_scope));
  return StagePoints(stage, std::move(scope));
}

std::variant<Legal, Rejected, Error> StagePoints::check(Schedule schedule, bool prune) {
  for (const auto& [name, value] : schedule.params) scope_[name] = to_value(value);
  for (const auto& [name, e] : stage_->derived) {
    auto value = e.eval(scope_);
    // A derived value that cannot be computed at this point (a tile that does not divide) makes
    // the point illegal, not the space broken.
    if (!value) return Rejected{std::move(schedule), "constraint", fmt::format("{}: {}", name, value.error().message)};
    scope_[name] = std::move(*value);
  }
  for (const std::vector<expr::Expr>* rules : {&stage_->constraints, &stage_->prunes})
    for (const expr::Expr& rule : *rules) {
      if (rules == &stage_->prunes && !prune) break;
      std::string why;
      auto ok = rule.check(scope_, &why);
      if (!ok) return std::move(ok).error();
      if (!*ok) return Rejected{std::move(schedule), "constraint", why.empty() ? rule.text() : why};
    }
  return Legal{std::move(schedule), scope_};
}

std::variant<Legal, Rejected, Error> check_schedule(const Variant& variant, const Stage& stage, Schedule schedule,
                                                    const expr::Map& problem_scope, bool prune) {
  auto points = StagePoints::of(variant, stage, problem_scope);
  if (!points) return std::move(points).error();
  return points->check(std::move(schedule), prune);
}

std::vector<Schedule> enumerate(const Variant& variant, const Stage& stage,
                                const std::map<std::string, ParamValue>& pins) {
  std::vector<Schedule> out{{variant.name, variant.stages.size() > 1 ? stage.name : "", {}}};
  if (!stage.points.empty()) {
    const Schedule empty = out[0];
    out.clear();
    for (const auto& point : stage.points) {
      const bool pinned = std::all_of(point.begin(), point.end(), [&](const auto& p) {
        auto pin = pins.find(p.first);
        return pin == pins.end() || pin->second == p.second;
      });
      if (!pinned) continue;
      out.push_back(empty);
      out.back().params = point;
    }
    return out;
  }
  for (const Param& p : stage.params) {
    std::vector<ParamValue> values = p.values;
    if (auto pin = pins.find(p.name); pin != pins.end()) values = {pin->second};
    std::vector<Schedule> next;
    next.reserve(out.size() * values.size());
    for (const Schedule& s : out)
      for (const ParamValue& v : values) {
        next.push_back(s);
        next.back().params.emplace_back(p.name, v);
      }
    out = std::move(next);
  }
  return out;
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
    // The name in the error becomes a path the user can open.
    Error error = std::move(rendered).error();
    if (files.read("templates/" + error.where.file)) error.where.file = files.origin("templates/" + error.where.file);
    return error;
  }
  return Program{legal.schedule, std::move(rendered->text), stage.entry, std::move(rendered->line_map)};
}

Result<Launch> make_launch(const Stage& stage, const Legal& legal) {
  Launch launch;
  uint64_t extent[3] = {1, 1, 1};
  for (const Stage::AxisSpec& spec : stage.axes) {
    GridAxis axis{spec.name, spec.dim, 1, 1, spec.reverse};
    ROOFGEN_TRY(axis.extent, spec.extent.eval_int(legal.scope));
    ROOFGEN_TRY(axis.step, spec.step.eval_int(legal.scope));
    ROOFGEN_CHECK(dimension(axis.extent, "grid axis"));
    ROOFGEN_CHECK(dimension(axis.step, "step of a grid axis"));
    extent[spec.dim] *= static_cast<uint64_t>(axis.extent);
    launch.axes.push_back(std::move(axis));
  }
  // cuda.h: gridDim.x up to 2^31-1, y and z up to 65535.
  const uint64_t limit[3] = {2147483647, 65535, 65535};
  for (int i = 0; i < 3; ++i)
    if (extent[i] > limit[i])
      return Error{Exit::kFailed, fmt::format("grid.{} is {}; the limit is {}", "xyz"[i], extent[i], limit[i])};
  launch.grid = {static_cast<uint32_t>(extent[0]), static_cast<uint32_t>(extent[1]), static_cast<uint32_t>(extent[2])};
  ROOFGEN_TRY(int64_t block, stage.block.eval_int(legal.scope));
  ROOFGEN_TRY(launch.block.x, dimension(block, "block"));
  ROOFGEN_TRY(int64_t smem, stage.smem.eval_int(legal.scope));
  if (smem < 0 || smem > std::numeric_limits<int32_t>::max())
    return Error{Exit::kFailed, fmt::format("shared memory is {} bytes; 0 to 2^31-1 was expected", smem)};
  launch.smem_bytes = static_cast<uint32_t>(smem);
  const auto buffer_of = [&](const std::string& name) {
    auto at = stage.buffers.find(name);
    return at == stage.buffers.end() ? name : at->second;
  };
  for (const Stage::ArgSpec& spec : stage.args) {
    if (spec.type == "each") {
      ROOFGEN_CHECK(add_each(spec.name, legal.scope, buffer_of, launch.args));
      continue;
    }
    Arg arg{spec.type == "ptr" ? buffer_of(spec.name) : spec.name, spec.type == "ptr", 0,
            spec.type == "i32" || spec.type == "f32" ? 4u : 8u};
    if (spec.type == "f32") {
      ROOFGEN_TRY(double v, spec.value->eval_number(legal.scope));
      arg = scalar_f32(spec.name, v);
    } else if (!arg.is_buffer) {
      ROOFGEN_TRY(int64_t v, spec.value->eval_int(legal.scope));
      if (arg.bytes == 4 && (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()))
        return Error{Exit::kFailed, fmt::format("argument {} is {}, which does not fit i32", spec.name, v)};
      std::memcpy(&arg.bits, &v, arg.bytes);
    }
    launch.args.push_back(std::move(arg));
  }
  return launch;
}

Result<std::vector<Buffer>> temporaries(const Variant& variant, const expr::Map& problem_scope) {
  std::vector<Buffer> out;
  for (const Variant::Temporary& t : variant.temporaries) {
    ROOFGEN_TRY(int64_t bytes, t.bytes.eval_int(problem_scope));
    ROOFGEN_TRY(expr::Value dtype, t.dtype.eval(problem_scope));
    const std::string name = dtype.str();
    const std::optional<DType> format = parse_dtype(name);
    if (!format) return Error{Exit::kFailed, fmt::format("{}: unknown dtype \"{}\" of {}", variant.file, name, t.name)};
    out.push_back({t.name, *format, static_cast<uint64_t>(bytes), Buffer::Role::kTemporary});
  }
  return out;
}

}  // namespace roofgen
