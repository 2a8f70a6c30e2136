#include "tuner/bundle/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "base/suggest.h"
#include "base/target.h"
#include "generator/space/problem_json.h"

namespace roofgen {
namespace {

constexpr size_t kMostPipelineKernels = 64;

class ManifestReader : ProblemReader {
 public:
  ManifestReader(const JsonFile& file, const DataFiles& files) : ProblemReader(file), files_(files) {}

  Result<Manifest> read() const {
    const Json& root = file_.root();
    if (!root.is_object()) return bad_at(root, "an object was expected");
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != kManifestSchema)
      return bad_at(root, fmt::format("schema \"{}\"; \"{}\" was expected", schema, kManifestSchema), "schema");
    ROOFGEN_CHECK(only(root, {"schema", "name", "problem", "licence", "compiler", "parameters", "workspace_parameters",
                              "requires", "self_test", "files", "pipelines", "table"}));
    Manifest out;
    out.file = file_.file();
    ROOFGEN_TRY(out.name, string(root, "name"));
    if (!is_c_name(out.name)) return bad_at(root, fmt::format("\"{}\" is not a name in C", out.name), "name");
    ROOFGEN_TRY(out.compiler, string(root, "compiler"));
    ROOFGEN_TRY(const Json* problem_object, member(root, "problem", &Json::is_object, "an object"));
    ROOFGEN_TRY(out.problem, whole_problem(*problem_object));
    ROOFGEN_TRY(const Json* pipelines, items(root, "pipelines", kMostShapes));
    for (const Json& j : *pipelines) {
      ROOFGEN_TRY(out.pipelines.emplace_back(), pipeline(j));
    }
    if (root.contains("table")) ROOFGEN_CHECK(read_table(root["table"], out));
    return out;
  }

 private:
  /// A problem that Op::complete() takes as it is.
  Result<Problem> whole_problem(const Json& j) const {
    ROOFGEN_TRY(Problem read, problem(j));
    const auto op = find_op(files_, read.op);
    if (!op) return bad_at(j, op.error().message, "op");
    const auto complete = (*op)->complete(read);
    if (!complete) return bad_at(j, complete.error().message);
    if (to_string(*complete) != to_string(read))
      return bad_at(j, fmt::format("numbers are missing: {} was expected", to_string(*complete)));
    return read;
  }

  Result<std::string> arch(const Json& object) const {
    ROOFGEN_TRY(const std::string out, string(object, "arch"));
    if (!parse_target(out))
      return bad_at(object, fmt::format("arch \"{}\"; a name like \"sm_90a\" was expected", out), "arch");
    return out;
  }

  Result<std::string> digest(const Json& object, const char* key) const {
    ROOFGEN_TRY(const std::string out, string(object, key));
    if (out.size() != 64 || out.find_first_not_of("0123456789abcdef") != std::string::npos)
      return bad_at(object, fmt::format("\"{}\": 64 hexadecimal digits were expected", key), key);
    return out;
  }

  Result<ManifestKernel> kernel(const Json& j) const {
    ROOFGEN_CHECK(only(j, {"name", "entry", "arch", "params", "digest", "source_sha256", "ptx_sha256", "cubin_sha256",
                           "registers", "spill_bytes", "smem_bytes", "threads", "cluster", "dependent", "source"}));
    ManifestKernel out;
    out.where = file_.place(j);
    ROOFGEN_TRY(out.name, string(j, "name"));
    ROOFGEN_TRY(out.arch, arch(j));
    ROOFGEN_TRY(out.params, params(j));
    for (const auto& [key, value] : {std::pair{"digest", &out.digest},
                                     {"source_sha256", &out.source_sha256},
                                     {"ptx_sha256", &out.ptx_sha256},
                                     {"cubin_sha256", &out.cubin_sha256}}) {
      ROOFGEN_TRY(*value, digest(j, key));
    }
    return out;
  }

  Result<ManifestPipeline> pipeline(const Json& j) const {
    ROOFGEN_CHECK(only(j, {"arch", "variant", "limits", "ptx", "kernels", "temporaries", "result"}));
    ManifestPipeline out;
    out.where = file_.place(j);
    ROOFGEN_TRY(out.arch, arch(j));
    ROOFGEN_TRY(out.variant, string(j, "variant"));
    ROOFGEN_TRY(const Json* limits, member(j, "limits", &Json::is_object, "an object"));
    for (const auto& [name, value] : limits->items()) {
      if (value.is_boolean()) {
        out.limits[name] = value.get<bool>();
      } else {
        ROOFGEN_TRY(out.limits[name], integer(*limits, name.c_str(), kMostSize));
      }
    }
    ROOFGEN_TRY(const Json* kernels, items(j, "kernels", kMostPipelineKernels));
    for (const Json& k : *kernels) {
      ROOFGEN_TRY(out.kernels.emplace_back(), kernel(k));
    }
    if (!j.contains("result")) return out;
    ROOFGEN_TRY(const Json* result, member(j, "result", &Json::is_object, "an object"));
    ROOFGEN_TRY(const Json* variant, member(*result, "variant", &Json::is_object, "an object"));
    ROOFGEN_TRY(const std::string name, string(*variant, "name"));
    ROOFGEN_TRY(const Json* timed, items(*variant, "kernels", kMostPipelineKernels));
    bool same = name == out.variant && timed->size() == out.kernels.size();
    for (size_t k = 0; same && k < timed->size(); ++k) {
      ROOFGEN_TRY(const std::string of, digest((*timed)[k], "digest"));
      same = of == out.kernels[k].digest;
    }
    if (!same) return bad_at(j, "\"result\" belongs to other kernels: variant and digests differ", "result");
    out.result = json_line(*result);
    return out;
  }

  Result<void> read_table(const Json& j, Manifest& out) const {
    ROOFGEN_TRY(out.table, read_dispatch(file_, j));
    out.table_text = json_line(j);
    const DispatchTable& table = *out.table;
    bool same = table.kernels.size() == out.pipelines.size();
    for (size_t p = 0; same && p < table.kernels.size(); ++p)
      same = table.kernels[p].variant == out.pipelines[p].variant &&
             std::ranges::equal(table.kernels[p].stages, out.pipelines[p].kernels, {}, &DispatchKernel::Stage::digest,
                                &ManifestKernel::digest);
    if (!same) return bad_at(file_.root(), "\"table\" belongs to other kernels: variants and digests differ", "table");
    for (const Json& shape : j["shapes"]) ROOFGEN_CHECK(whole_problem(shape["problem"]));
    if (to_string(table.shapes.front().problem) != to_string(out.problem))
      return bad_at(file_.root(), "\"problem\" is not the first shape of \"table\"", "problem");
    return {};
  }

  const DataFiles& files_;
};

/// What one problem has and the other has not: "L is 2048 instead of 4096"; the op first.
std::string difference(const Problem& has, const Problem& asked) {
  if (has.op != asked.op) return fmt::format("op is {} instead of {}", has.op, asked.op);
  const Json a = problem_json(has), b = problem_json(asked);
  for (const auto& [name, value] : b.items())
    if (!a.contains(name) || a[name] != value)
      return fmt::format("{} is {} instead of {}", name, a.contains(name) ? json_words(a[name]) : "absent",
                         json_words(value));
  for (const auto& [name, value] : a.items())
    if (!b.contains(name)) return fmt::format("{} is {} instead of absent", name, json_words(value));
  return "";
}

}  // namespace

std::vector<Problem> Manifest::shapes() const {
  if (!table) return {problem};
  std::vector<Problem> out;
  for (const DispatchShape& s : table->shapes) out.push_back(s.problem);
  return out;
}

Result<Manifest> read_manifest(std::string text, std::string file, const DataFiles& files) {
  ROOFGEN_TRY(const JsonFile json, JsonFile::parse(std::move(text), std::move(file)));
  return ManifestReader(json, files).read();
}

std::set<std::string> written_digests(const std::string& manifest) {
  std::set<std::string> out;
  const auto file = JsonFile::parse(manifest, "");
  if (!file || !file->root().is_object() || file->root().value("schema", Json()) != kManifestSchema) return out;
  out.insert(sha256(manifest));
  if (const auto files = file->root().find("files"); files != file->root().end() && files->is_object())
    for (const auto& [name, digest] : files->items())
      if (digest.is_string()) out.insert(digest.get<std::string>());
  return out;
}

Result<void> check_fits(const Manifest& manifest, const std::vector<Problem>& problems,
                        const std::vector<std::string>& archs) {
  const auto no = [&](const std::string& why) {
    return Error{Exit::kFailed, fmt::format("the manifest is of another bundle: {}", why), {manifest.file}};
  };
  const std::vector<Problem> shapes = manifest.shapes();
  if (const std::string why = difference(shapes.front(), problems.front()); !why.empty() && problems.size() == 1)
    return no(why);
  for (const Problem& asked : problems)
    if (std::ranges::none_of(shapes, [&](const Problem& s) { return to_string(s) == to_string(asked); }))
      return no(fmt::format("it has no shape {}", to_string(asked)));
  if (shapes.size() != problems.size())
    return no(fmt::format("it has {} shapes instead of {}", shapes.size(), problems.size()));
  std::vector<std::string> has;
  for (const ManifestPipeline& p : manifest.pipelines) has.push_back(p.arch.substr(3));
  // "90a" may have been won by a portable kernel.
  const auto serves = [](const std::string& kernel, const std::string& asked) {
    return kernel == asked || kernel + "a" == asked;
  };
  for (const std::string& asked : archs)
    if (std::ranges::none_of(has, [&](const std::string& arch) { return serves(arch, asked); }))
      return no(fmt::format("it has no kernels for {}, only for {}", asked, fmt::join(has, ", ")));
  for (const std::string& arch : has)
    if (!archs.empty() && std::ranges::none_of(archs, [&](const std::string& asked) { return serves(arch, asked); }))
      return no(fmt::format("it has kernels for {}, too", arch));
  return {};
}

}  // namespace roofgen
