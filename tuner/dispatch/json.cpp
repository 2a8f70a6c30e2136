#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/space/problem_json.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {
namespace {

constexpr Origin kOrigins[] = {Origin::kModel, Origin::kSimulated, Origin::kMeasured};

Json stage_json(const DispatchKernel::Stage& s) {
  Json out{{"name", s.name}, {"params", params_json(s.params)}};
  ROOFGEN_PUT(out, s, digest, registers, smem_bytes)
  out["requires"] = s.requirements;
  return out;
}

class DispatchReader : ProblemReader {
 public:
  using ProblemReader::ProblemReader;

  Result<DispatchTable> read(const Json& root) const {
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
    ROOFGEN_TRY(out.exact, boolean(root, "exact"));
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
  Result<size_t> index(const Json& object, const char* key, size_t number) const {
    ROOFGEN_TRY(const int64_t out, integer(object, key, static_cast<int64_t>(number) - 1));
    return static_cast<size_t>(out);
  }
  /// A kernel that no shape has is not in a table.
  Result<const Json*> items(const Json& object, const char* key) const {
    return JsonReader::items(object, key, kMostShapes);
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
      ROOFGEN_TRY(stage.params, params(s));
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

  static std::string settings(Problem p) {
    for (auto& [name, size] : p.dims) size = 0;
    for (auto& [name, value] : p.reals) value = 0;
    return to_string(p);
  }
};

}  // namespace

Json dispatch_json(const DispatchTable& table) {
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
  return out;
}

Result<DispatchTable> read_dispatch(const JsonFile& file, const Json& table) {
  return DispatchReader(file).read(table);
}

Result<DispatchTable> read_dispatch(std::string text, std::string file) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), std::move(file)));
  return read_dispatch(json, json.root());
}

}  // namespace roofgen
