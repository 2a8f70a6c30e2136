#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/json_reader.h"
#include "generator/pointwise/formula.h"
#include "generator/problem_json.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 40;
constexpr Origin kOrigins[] = {Origin::kModel, Origin::kSimulated, Origin::kMeasured};

Json stage_json(const DispatchKernel::Stage& s) {
  Json params = Json::object();
  for (const auto& [name, value] : s.params) std::visit([&, n = name](const auto& v) { params[n] = v; }, value);
  Json out{{"name", s.name}, {"params", params}};
  ROOFGEN_PUT(out, s, digest, registers, smem_bytes)
  out["requires"] = s.requirements;
  return out;
}

class DispatchReader : JsonReader {
 public:
  using JsonReader::JsonReader;

  Result<DispatchTable> read() const {
    const Json& root = file_.root();
    ROOFGEN_CHECK(only(root, {"schema", "release", "device", "executor", "arch", "compiler", "times", "within", "exact",
                              "kernels", "shapes"}));
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != kDispatchSchema)
      return bad_at(root, fmt::format("schema \"{}\"; \"{}\" was expected", schema, kDispatchSchema), "schema");
    DispatchTable out;
    ROOFGEN_TRY(out.release, string(root, "release"));
    ROOFGEN_TRY(out.device, string(root, "device"));
    ROOFGEN_TRY(out.executor, string(root, "executor"));
    ROOFGEN_TRY(out.arch, string(root, "arch"));
    ROOFGEN_TRY(out.compiler, string(root, "compiler"));
    ROOFGEN_TRY(const Json* times, member(root, "times", &Json::is_object, "an object"));
    ROOFGEN_CHECK(read_origin(*times, out));
    ROOFGEN_TRY(out.within, number(root, "within", 0, 1));
    ROOFGEN_TRY(const Json* exact, member(root, "exact", &Json::is_boolean, "true or false"));
    out.exact = *exact;
    ROOFGEN_TRY(const Json* shapes, items(root, "shapes"));
    ROOFGEN_TRY(const Json* kernels, items(root, "kernels"));
    for (const Json& j : *kernels) {
      ROOFGEN_TRY(out.kernels.emplace_back(), kernel(j, shapes->size()));
    }
    for (const Json& j : *shapes) {
      ROOFGEN_TRY(DispatchShape s, shape(j, kernels->size()));
      for (const DispatchShape& other : out.shapes) {
        if (other.problem.dims == s.problem.dims) return bad_at(j, "a shape occurs twice", "problem");
        if (settings(other.problem) != settings(s.problem))
          return bad_at(j, "shapes differ in more than sizes and numbers", "problem");
      }
      out.shapes.push_back(std::move(s));
    }
    return out;
  }

 private:
  Result<const Json*> member(const Json& object, const char* key, bool (Json::*is)() const noexcept,
                             const char* expected) const {
    if (!object.is_object() || !object.contains(key)) return bad_at(object, fmt::format("\"{}\" is missing", key));
    if (!(object[key].*is)()) return bad_at(object, fmt::format("\"{}\": {} was expected", key, expected), key);
    return &object[key];
  }
  Result<double> number(const Json& object, const char* key, double least, double most) const {
    ROOFGEN_TRY(const Json* value, member(object, key, &Json::is_number, "a number"));
    const double out = value->get<double>();
    if (!(out >= least && out <= most))
      return bad_at(object, fmt::format("\"{}\": a number from {:g} to {:g} was expected", key, least, most), key);
    return out;
  }
  Result<int64_t> integer(const Json& object, const char* key, int64_t most) const {
    ROOFGEN_TRY(const Json* value, member(object, key, &Json::is_number_integer, "an integer"));
    ROOFGEN_CHECK(number(object, key, 0, static_cast<double>(most)));
    return value->get<int64_t>();
  }
  Result<size_t> index(const Json& object, const char* key, size_t number) const {
    ROOFGEN_TRY(const int64_t out, integer(object, key, static_cast<int64_t>(number) - 1));
    return static_cast<size_t>(out);
  }
  /// A list of 1 to kMostShapes items: a kernel that no shape has is not in a table.
  Result<const Json*> items(const Json& object, const char* key) const {
    ROOFGEN_TRY(const Json* out, member(object, key, &Json::is_array, "a list"));
    if (out->empty() || out->size() > kMostShapes)
      return bad_at(object, fmt::format("\"{}\" has {} items; 1 to {} were expected", key, out->size(), kMostShapes),
                    key);
    return out;
  }

  Result<void> read_origin(const Json& times, DispatchTable& out) const {
    ROOFGEN_CHECK(only(times, {"origin", "model"}));
    ROOFGEN_TRY(const std::string origin, string(times, "origin"));
    const auto found = std::ranges::find_if(kOrigins, [&](Origin o) { return origin == to_string(o); });
    if (found == std::end(kOrigins))
      return bad_at(times, fmt::format("origin \"{}\"; model, simulated or measured was expected", origin), "origin");
    out.origin = *found;
    ROOFGEN_TRY(out.time_model, string_or(times, "model", ""));
    if (out.time_model.empty() != (out.origin != Origin::kModel))
      return bad_at(times, "\"model\" names the model of modelled times, and of no others", "origin");
    return {};
  }

  Result<DispatchKernel> kernel(const Json& j, size_t shapes) const {
    ROOFGEN_CHECK(only(j, {"variant", "tuned_for", "stages"}));
    DispatchKernel out;
    ROOFGEN_TRY(out.variant, string(j, "variant"));
    ROOFGEN_TRY(out.tuned_for, index(j, "tuned_for", shapes));
    ROOFGEN_TRY(const Json* stages, items(j, "stages"));
    for (const Json& s : *stages) {
      ROOFGEN_CHECK(only(s, {"name", "params", "digest", "registers", "smem_bytes", "requires"}));
      DispatchKernel::Stage& stage = out.stages.emplace_back();
      ROOFGEN_TRY(stage.name, string(s, "name"));
      ROOFGEN_TRY(stage.digest, string(s, "digest"));
      ROOFGEN_TRY(const int64_t registers, integer(s, "registers", 255));
      stage.registers = static_cast<int>(registers);
      ROOFGEN_TRY(stage.smem_bytes, integer(s, "smem_bytes", kMostSize));
      ROOFGEN_TRY(stage.requirements, strings(s, "requires"));
      ROOFGEN_TRY(const Json* params, member(s, "params", &Json::is_object, "an object"));
      for (const auto& [name, value] : params->items()) {
        if (value.is_boolean())
          stage.params.emplace_back(name, value.get<bool>());
        else if (value.is_number_integer())
          stage.params.emplace_back(name, value.get<int64_t>());
        else if (value.is_string())
          stage.params.emplace_back(name, value.get<std::string>());
        else
          return bad_at(*params, "a parameter is an integer, a string, true or false", name);
      }
    }
    return out;
  }

  Result<DispatchShape> shape(const Json& j, size_t kernels) const {
    ROOFGEN_CHECK(only(j, {"problem", "best_us", "kernel", "time_us", "ratio"}));
    DispatchShape out;
    ROOFGEN_TRY(const Json* p, member(j, "problem", &Json::is_object, "an object"));
    ROOFGEN_TRY(out.problem, problem(*p));
    ROOFGEN_TRY(const double best, number(j, "best_us", 1e-9, 1e18));
    ROOFGEN_TRY(out.kernel, index(j, "kernel", kernels));
    ROOFGEN_TRY(const double chosen, number(j, "time_us", best, 1e18));
    ROOFGEN_CHECK(number(j, "ratio", 1, 1e18));
    out.best_seconds = 1e-6 * best;
    out.seconds = 1e-6 * chosen;
    return out;
  }

  /// The inverse of problem_json(): a size is an integer, any other number has a point.
  Result<Problem> problem(const Json& j) const {
    Problem out;
    ROOFGEN_TRY(out.op, string(j, "op"));
    const auto format = [&](const char* key, const std::string& text) -> Result<DType> {
      if (const auto dtype = parse_dtype(text)) return *dtype;
      return bad_at(j, fmt::format("unknown number format \"{}\"", text), key);
    };
    for (const auto& [name, value] : j.items()) {
      if (name == "op") continue;
      if (value.is_boolean()) {
        out.flags[name] = value;
      } else if (value.is_number_integer()) {
        ROOFGEN_TRY(out.dims[name], integer(j, name.c_str(), kMostSize));
      } else if (value.is_number()) {
        out.reals[name] = value;
      } else if (name == "args") {
        ROOFGEN_TRY(const std::vector<std::string> args, strings(j, "args"));
        for (const std::string& text : args) {
          auto arg = pointwise::parse_tensor_arg(text);
          if (!arg) return bad_at(j, arg.error().message, "args");
          out.args.push_back(std::move(*arg));
        }
      } else if (!value.is_string()) {
        return bad_at(j, "a number, a string, true or false was expected", name);
      } else if (name == "dtype") {
        ROOFGEN_TRY(out.dtype, format("dtype", value));
      } else if (name.ends_with("_dtype")) {
        ROOFGEN_TRY(out.dtypes[name.substr(0, name.size() - 6)], format(name.c_str(), value));
      } else {
        out.texts[name] = value;
      }
    }
    if (out.dims.empty()) return bad_at(j, "a problem with sizes was expected");
    return out;
  }

  static std::string settings(Problem p) {
    for (auto& [name, size] : p.dims) size = 0;
    for (auto& [name, value] : p.reals) value = 0;
    return to_string(p);
  }
};

}  // namespace

std::string dispatch_json(const DispatchTable& table) {
  Json out{{"schema", kDispatchSchema}};
  ROOFGEN_PUT(out, table, release, device, executor, arch, compiler)
  out["times"] = {{"origin", to_string(table.origin)}};
  if (!table.time_model.empty()) out["times"]["model"] = table.time_model;
  ROOFGEN_PUT(out, table, within, exact)
  for (const DispatchKernel& k : table.kernels) {
    Json stages = Json::array();
    for (const DispatchKernel::Stage& s : k.stages) stages.push_back(stage_json(s));
    out["kernels"].push_back({{"variant", k.variant}, {"tuned_for", k.tuned_for}, {"stages", stages}});
  }
  for (const DispatchShape& s : table.shapes)
    out["shapes"].push_back({{"problem", problem_json(s.problem)},
                             {"best_us", 1e6 * s.best_seconds},
                             {"kernel", s.kernel},
                             {"time_us", 1e6 * s.seconds},
                             {"ratio", s.ratio()}});
  return json_document(out);
}

Result<DispatchTable> read_dispatch(std::string text, std::string file) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), std::move(file)));
  return DispatchReader(json).read();
}

}  // namespace roofgen
