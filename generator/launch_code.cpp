#include "generator/launch_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "generator/expr/c_code.h"

namespace roofgen {
namespace {

/// The name in the scope that is the argument's whole expression; "" for any other expression.
std::string passed_on(const Stage::ArgSpec& arg) {
  if (!arg.value) return "";
  const std::vector<std::string> names = arg.value->names();
  return names.size() == 1 && names[0] == arg.value->text() ? names[0] : "";
}

/// Whether the stage computes the name, or its schedule has it.
bool of_stage(const Stage& stage, const std::string& name) {
  const auto named = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.first == name; });
  };
  return named(stage.problem) || named(stage.derived) ||
         std::any_of(stage.params.begin(), stage.params.end(), [&](const Param& p) { return p.name == name; });
}

class Writer {
 public:
  Writer(Interface& interface, const EmitRequest& request, const EmittedPipeline& pipeline, const EmittedKernel& kernel)
      : interface_(interface), request_(request), pipeline_(pipeline), k_(kernel), scope_(kernel.scope) {
    for (const auto* list : {&k_.stage->problem, &k_.stage->derived})
      for (const auto& [name, e] : *list) definitions_.push_back({name, &e, std::nullopt});
    scope_["tuned"] = kernel.scope;
  }

  Result<LaunchCode> write() {
    ROOFGEN_CHECK(arguments());
    for (const Stage::AxisSpec& axis : k_.stage->axes) {
      ROOFGEN_TRY(const std::string code, translate(axis.extent, definitions_.size()));
      std::string& grid = out_.grid[axis.dim];
      if (code != "1")
        grid += (grid.empty() ? "" : " * ") +
                (code.find(' ') == std::string::npos || code.ends_with(')') ? code : "(" + code + ")");
    }
    for (std::string& grid : out_.grid)
      if (grid.empty()) grid = "1";
    for (const auto* of_tiles : {&k_.stage->ctas, &k_.stage->persistent}) {
      if (!*of_tiles) continue;
      ROOFGEN_TRY(const std::string ctas, translate(**of_tiles, definitions_.size()));
      if (ctas != "0") out_.grid[0] = ctas;
    }
    for (const expr::Expr& e : k_.stage->assumes) {
      ROOFGEN_TRY(const bool holds, e.check(scope_));
      if (!holds) continue;
      ROOFGEN_TRY(std::string code, translate(e, definitions_.size()));
      // A name for a condition is no news to the user.
      for (const auto& [name, value] : all_)
        if (code == name) code = value;
      if (code != "1") out_.conditions.push_back({e, code, "", "", {}});
    }
    settle();
    return std::move(out_);
  }

 private:
  struct Definition {
    std::string name;
    const expr::Expr* value;
    std::optional<std::string> code;  ///< its name in C, once used; "" for a constant
  };

  Result<void> compute_map(const Stage::MapSpec& spec, KernelArgument& a) {
    for (const expr::Expr& e : spec.dims) {
      ROOFGEN_TRY(a.dims.emplace_back(), translate(e, definitions_.size()));
    }
    for (const expr::Expr& e : spec.strides) {
      ROOFGEN_TRY(const std::string code, translate(e, definitions_.size()));
      a.stride_bytes.push_back(fmt::format("({}) * {}", code, size_of(a.map->dtype)));
    }
    return {};
  }

  /// One entry for each argument of the launch; `each` of the stage stands for several.
  Result<void> arguments() {
    size_t next = 0;  // of the launch
    for (const Stage::ArgSpec& spec : k_.stage->args) {
      size_t count = 1;
      if (spec.when) {
        ROOFGEN_TRY(count, spec.when->check(scope_));
      }
      if (spec.type == "each" && count > 0) {
        const auto formula = k_.scope.find("formula");
        const expr::Map* map = formula == k_.scope.end() ? nullptr : formula->second.map();
        count = map && map->count(spec.name) ? map->at(spec.name).list()->size() : 0;
      }
      for (; count > 0; --count, ++next) {
        if (next >= k_.launch->args.size())
          return Error{Exit::kFailed, fmt::format("{}: the launch has fewer arguments than the stage", k_.stage->name)};
        ROOFGEN_TRY(out_.arguments.emplace_back(), argument(spec, k_.launch->args[next]));
      }
    }
    return {};
  }

  Result<KernelArgument> argument(const Stage::ArgSpec& spec, const Arg& arg) {
    if (arg.is_buffer) {
      KernelArgument out{spec.type == "each" ? arg.name : spec.name, arg.map ? "tensor_map" : "ptr", pointer(arg.name)};
      out.map = arg.map;
      out.buffer = arg.name;
      if (arg.map) ROOFGEN_CHECK(compute_map(*spec.map, out));
      return out;
    }
    if (spec.fields.empty()) return scalar(spec, arg);
    KernelArgument out{spec.name, "struct", ""};
    for (const Stage::ArgSpec& field : spec.fields) {
      ROOFGEN_TRY(out.fields.emplace_back(), scalar(field, arg));
    }
    return out;
  }

  /// A buffer that the problem does not have is null.
  std::string pointer(const std::string& buffer) {
    const auto named = [&](const Buffer& x) { return x.name == buffer; };
    const auto& own = pipeline_.temporaries;
    if (const auto t = std::find_if(own.begin(), own.end(), named); t != own.end())
      return fmt::format("temporary[{}]", t - own.begin());
    if (std::none_of(request_.buffers.begin(), request_.buffers.end(), named)) return "0";
    return "a->" + interface_.add(Parameter::Kind::kTensor, buffer);
  }

  Result<KernelArgument> scalar(const Stage::ArgSpec& spec, const Arg& arg) {
    if (!spec.value) return KernelArgument{arg.name, "f32", interface_.add(Parameter::Kind::kReal, arg.name)};
    ROOFGEN_TRY(std::string code, translate(*spec.value, definitions_.size()));
    return KernelArgument{spec.name, spec.type, std::move(code)};
  }

  Result<std::string> translate(const expr::Expr& e, size_t position) {
    ROOFGEN_TRY(const expr::CCode code,
                expr::to_c(e, scope_, [&](const std::string& name) { return c_name(name, position); }));
    return code.text;
  }

  /// The C name of `name` in the definition at `position`: a number of the user, the last definition before it, or a
  /// size or stride of the problem.
  Result<std::string> c_name(const std::string& name, size_t position) {
    if (request_.problem->reals.count(name)) return interface_.variable(name);
    for (size_t i = position; i-- > 0;)
      if (definitions_[i].name == name) return define(i);
    const auto& params = k_.stage->params;
    const bool chosen = std::any_of(params.begin(), params.end(), [&](const Param& p) { return p.name == name; });
    return chosen ? std::string() : interface_.variable(name);
  }

  Result<std::string> define(size_t i) {
    Definition& d = definitions_[i];
    if (d.code) return *d.code;
    ROOFGEN_TRY(const expr::CCode code,
                expr::to_c(*d.value, scope_, [&](const std::string& name) { return c_name(name, i); }));
    if (code.constant) return d.code.emplace();
    std::string name = d.name;
    while (!interface_.is_free(name) || !taken_.insert(name).second) name += "_";
    all_.emplace_back(name, code.text);
    return d.code.emplace(name);
  }

  void settle() {
    std::string code = out_.grid[0] + " " + out_.grid[1] + " " + out_.grid[2];
    for (const KernelArgument& a : out_.arguments) {
      code += " " + a.code;
      for (const KernelArgument& field : a.fields) code += " " + field.code;
      for (const std::vector<std::string>* list : {&a.dims, &a.stride_bytes})
        for (const std::string& part : *list) code += " " + part;
    }
    out_.launch = locals(std::move(code));
    std::string conditions;
    for (const LaunchCode::Condition& c : out_.conditions) conditions += " " + c.code;
    out_.check = locals(std::move(conditions));
    for (LaunchCode::Condition& c : out_.conditions) explain(c);
  }

  void explain(LaunchCode::Condition& c) const {
    std::string used = c.code, where;
    for (auto d = out_.check.definitions.rbegin(); d != out_.check.definitions.rend(); ++d) {
      if (!has_word(used, d->first)) continue;
      used += " " + d->second;
      where = fmt::format("{} = {}{}{}", d->first, d->second, where.empty() ? "" : "; ", where);
    }
    c.text = where.empty() ? c.code : c.code + ", where " + where;
    std::string tuned;
    for (const std::string& name : interface_.variables_in(used)) {
      const auto value = scope_.find(name);
      if (value == scope_.end() || !value->second.as<int64_t>()) continue;
      c.numbers.push_back(name);
      tuned += fmt::format("{}{} is {}", tuned.empty() ? "" : ", ", name, *value->second.as<int64_t>());
    }
    // A condition in the user's names speaks for itself.
    c.refusal = where.empty() || tuned.empty() ? requirement(c.text) : tuned + " in the tuned problem";
  }

  /// Without the definitions whose only users turned out to be constant.
  LaunchCode::Locals locals(std::string code) const {
    LaunchCode::Locals out;
    for (size_t i = all_.size(); i-- > 0;)
      if (has_word(code, all_[i].first)) {
        code += " " + all_[i].second;
        out.definitions.insert(out.definitions.begin(), all_[i]);
      }
    out.variables = interface_.variables_in(code);
    return out;
  }

  Interface& interface_;
  const EmitRequest& request_;
  const EmittedPipeline& pipeline_;
  const EmittedKernel& k_;
  expr::Map scope_;
  std::vector<Definition> definitions_;
  std::vector<std::pair<std::string, std::string>> all_;  ///< used definitions in C, in order of dependence
  std::set<std::string> taken_;                           ///< their names
  LaunchCode out_;
};

}  // namespace

Result<LaunchCode> launch_code(Interface& interface, const EmitRequest& request, const EmittedPipeline& pipeline,
                               const EmittedKernel& kernel) {
  return Writer(interface, request, pipeline, kernel).write();
}

Error not_served(const std::string& why) {
  return {Exit::kUnavailable, "the kernels are not compiled for these sizes and strides: " + why};
}

Result<Launch> launch_in_call(const Variant& variant, const Stage& stage, const Legal& tuned, const Launch& compiled,
                              const std::vector<LaunchCode::Condition>& conditions, const expr::Map& scope) {
  ROOFGEN_TRY(StagePoints points, StagePoints::of(variant, stage, scope));
  if (const auto why = points.move_to(tuned.schedule)) return not_served(*why);
  const expr::Names here = points.point();
  for (const LaunchCode::Condition& c : conditions) {
    ROOFGEN_TRY(const bool holds, here.with_tuned(tuned).check(c.condition));
    if (holds) continue;
    std::string values;
    for (const std::string& name : c.numbers) values += fmt::format("; {} is {}", name, scope.at(name).str());
    return not_served(c.refusal + values);
  }
  auto launch = make_launch(stage, here);
  if (!launch) return Error{Exit::kUsage, "the sizes are too large together: " + launch.error().message};
  ROOFGEN_TRY(const std::string fault, launch_fault(stage, here));
  if (!fault.empty()) return not_served(fault);
  // The code has these; a shorter row may leave some of the memory unused.
  launch->block = compiled.block, launch->cluster = compiled.cluster;
  launch->smem_bytes = compiled.smem_bytes, launch->overlap = compiled.overlap;
  return launch;
}

Result<std::string> bytes_code(Interface& interface, const EmittedPipeline& pipeline,
                               const Variant::Temporary& temporary) {
  expr::Map scope = pipeline.scope;
  std::set<std::string> fixed;
  for (const auto& [name, e] : pipeline.variant->problem) {
    ROOFGEN_TRY(scope[name], e.eval(scope));
    if (e.names().empty()) fixed.insert(name);
  }
  ROOFGEN_TRY(const expr::CCode code,
              expr::to_c(temporary.bytes, scope, [&](const std::string& name) -> Result<std::string> {
                return fixed.contains(name) ? "" : interface.variable(name);
              }));
  return code.text;
}

std::set<std::string> carried_names(const EmitRequest& request) {
  std::set<std::string> out;
  const auto add = [&](const Stage& stage, const Stage::ArgSpec& arg) {
    const std::string name = arg.type == "i32" || arg.type == "i64" ? passed_on(arg) : "";
    if (!name.empty() && !of_stage(stage, name)) out.insert(name);
  };
  for (const EmittedPipeline& p : request.pipelines)
    for (const EmittedKernel& k : p.kernels)
      for (const Stage::ArgSpec& arg : k.stage->args) {
        bool has = true;
        if (arg.when) {
          const auto checked = arg.when->check(k.scope);
          has = checked && *checked;
        }
        if (!has) continue;
        add(*k.stage, arg);
        for (const Stage::ArgSpec& field : arg.fields) add(*k.stage, field);
      }
  return out;
}

}  // namespace roofgen
