// search_spaces/<op>/<variant>.json -> Variant (docs/internals/search-spaces.md). Errors carry the position in the
// file.
#include "generator/space/space.h"

#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "base/suggest.h"
#include "base/target.h"
#include "generator/space/problem_json.h"

namespace roofgen {

namespace {

constexpr size_t kMostVariants = 1000, kMostStages = 64;  // of a file, of a variant

class SpaceReader : private JsonReader {
 public:
  /// `shared`: the stages of other files that were read before.
  SpaceReader(const JsonFile& file, const DataFiles& files, std::map<std::string, Stage>& shared)
      : JsonReader(file), files_(files), shared_(shared) {}

  /// A file of search_spaces/stages/: a single stage.
  Result<Stage> read_stage() {
    const Json& root = file_.root();
    ROOFGEN_TRY(std::string schema, string(root, "schema"));
    if (schema != "roofgen.stage.1") return bad("schema must be \"roofgen.stage.1\"", schema);
    return stage(root, {"schema", "description"});
  }

  /// The variants of a file: one, or one for each row of its table.
  Result<std::vector<Variant>> read() {
    const Json& root = file_.root();
    ROOFGEN_TRY(std::string schema, string(root, "schema"));
    if (schema != "roofgen.space.1") return bad("schema must be \"roofgen.space.1\"", schema);
    const bool table = root.contains("variants");
    ROOFGEN_CHECK(only(root, {"schema", "op", "when", "fused", "instances", "problem", "temporaries", "stages"},
                       {table ? "variants" : "variant", table ? "variants" : "description"}));
    std::vector<Variant> out;
    if (!table) {
      ROOFGEN_TRY(out.emplace_back(), variant(root, root));
      return out;
    }
    ROOFGEN_TRY(const Json* rows, items(root, "variants", kMostVariants));
    for (const Json& row : *rows) {
      ROOFGEN_CHECK(only(row, {"variant", "description", "problem"}));
      ROOFGEN_TRY(out.emplace_back(), variant(root, row));
    }
    return out;
  }

 private:
  /// `row`: what the variant has for itself.
  Result<Variant> variant(const Json& root, const Json& row) {
    Variant v;
    v.file = file_.file();
    ROOFGEN_TRY(v.op, string(root, "op"));
    ROOFGEN_TRY(v.name, string(row, "variant"));
    ROOFGEN_TRY(v.description, string(row, "description"));
    let_.clear();
    ROOFGEN_TRY(v.problem, names(root, "problem"));
    if (&row != &root) {
      ROOFGEN_TRY(const auto own, names(row, "problem"));
      put_first(own, v.problem);
    }
    ROOFGEN_TRY(v.when, condition(root));
    if (root.contains("instances")) {
      ROOFGEN_TRY(v.instances, instances(root["instances"]));
    }
    if (root.contains("temporaries"))
      for (const Json& t : root["temporaries"]) {
        Variant::Temporary temp;
        ROOFGEN_TRY(temp.name, string(t, "name"));
        ROOFGEN_TRY(temp.dtype, expression(t, "dtype"));
        ROOFGEN_TRY(temp.bytes, expression(t, "bytes"));
        ROOFGEN_TRY(temp.when, condition(t));
        ROOFGEN_TRY(temp.zeroed, flag(t, "zeroed", false));
        v.temporaries.push_back(std::move(temp));
      }
    ROOFGEN_TRY(const Json* stages, items(root, "stages", kMostStages));
    for (const Json& s : *stages) {
      ROOFGEN_TRY(Stage parsed, s.contains("use") ? shared_stage(s) : stage(s));
      put_first(v.problem, parsed.problem);
      v.stages.push_back(std::move(parsed));
    }
    ROOFGEN_TRY(v.fused, flag(root, "fused", v.stages.size() == 1));
    return v;
  }

  Result<Variant::Instances> instances(const Json& j) const {
    Variant::Instances out;
    ROOFGEN_CHECK(only(j, {"name", "problem", "values", "when"}));
    ROOFGEN_TRY(out.name, string(j, "name"));
    ROOFGEN_TRY(out.problem, names(j, "problem"));
    ROOFGEN_TRY(out.values, expressions(j, "values"));
    ROOFGEN_TRY(out.when, expression(j, "when"));
    return out;
  }

  /// The member "when", if there is one.
  Result<std::optional<expr::Expr>> condition(const Json& j) const {
    if (!j.contains("when")) return std::optional<expr::Expr>();
    ROOFGEN_TRY(expr::Expr e, expression(j, "when"));
    return std::optional<expr::Expr>(std::move(e));
  }

  Result<bool> flag(const Json& j, const char* key, bool otherwise) const {
    if (!j.contains(key)) return otherwise;
    if (!j[key].is_boolean()) return bad_at(j, fmt::format("\"{}\" must be true or false", key), key);
    return j[key].get<bool>();
  }

  /// The member as pairs of a name and an expression, none where it is absent.
  Result<std::vector<std::pair<std::string, expr::Expr>>> names(const Json& j, const char* key) const {
    if (!j.contains(key)) return std::vector<std::pair<std::string, expr::Expr>>();
    ROOFGEN_TRY(const Json* list, member(j, key, &Json::is_array, "a list"));
    return pairs(*list, key);
  }

  /// First, because a stage's own names may use them.
  static void put_first(const std::vector<std::pair<std::string, expr::Expr>>& names,
                        std::vector<std::pair<std::string, expr::Expr>>& list) {
    list.insert(list.begin(), names.begin(), names.end());
  }

  /// A shared stage with its own name, formula and buffers.
  Result<Stage> shared_stage(const Json& j) const {
    ROOFGEN_CHECK(only(j, {"use", "when", "name", "output", "formula", "buffers", "problem"}));
    ROOFGEN_TRY(const std::string use, string(j, "use"));
    auto loaded = load_shared(use);
    if (!loaded && loaded.error().where.file.empty()) return bad(loaded.error().message, use);
    ROOFGEN_TRY(Stage s, std::move(loaded));
    ROOFGEN_TRY(s.name, string_or(j, "name", s.name));
    ROOFGEN_TRY(s.output, string_or(j, "output", s.output));
    ROOFGEN_TRY(s.formula, string_or(j, "formula", s.formula));
    ROOFGEN_TRY(s.when, condition(j));
    ROOFGEN_TRY(const auto given, names(j, "problem"));
    put_first(given, s.problem);
    if (j.contains("buffers")) {
      if (!j["buffers"].is_object()) return bad("\"buffers\" must be an object of names", "buffers");
      for (const auto& [from, to] : j["buffers"].items()) {
        if (!to.is_string()) return bad(fmt::format("\"buffers\": {} must be a name", from), from);
        s.buffers[from] = to.get<std::string>();
      }
    }
    return s;
  }

  Result<Param> param(const Json& j) const {
    Param p;
    ROOFGEN_CHECK(only(j, {"name", "values", "default", "when"}));
    ROOFGEN_TRY(p.name, string(j, "name"));
    if (!j.contains("values") || !j["values"].is_array() || j["values"].empty())
      return bad(fmt::format("parameter {} needs a list of values", p.name), p.name);
    for (const Json& v : j["values"]) {
      auto value = param_value(v);
      if (!value) return bad(fmt::format("values of {} must be integers, booleans or strings", p.name), p.name);
      p.values.push_back(std::move(*value));
    }
    ROOFGEN_TRY(p.preset, expression(j, "default"));
    ROOFGEN_TRY(p.when, condition(j));
    return p;
  }

  /// `more`: further members that the object may have.
  Result<Stage> stage(const Json& j, std::initializer_list<const char*> more = {}) {
    Stage s;
    ROOFGEN_CHECK(only(j,
                       {"name",        "template", "entry",     "target",  "output", "let",  "problem",    "params",
                        "derived",     "prunes",   "grid",      "assumes", "block",  "smem", "cluster",    "ctas",
                        "constraints", "overlap",  "dependent", "args",    "panels", "work", "persistent", "formula"},
                       more));
    ROOFGEN_TRY(s.name, string(j, "name"));
    ROOFGEN_TRY(s.template_name, string(j, "template"));
    ROOFGEN_TRY(s.entry, string(j, "entry"));
    ROOFGEN_TRY(s.target, string_or(j, "target", ""));
    if (!s.target.empty() && !is_specific(s.target))
      return bad_at(j, fmt::format("unknown target \"{}\"; a name like \"sm_90a\" was expected", s.target), "target");
    ROOFGEN_TRY(s.output, string(j, "output"));
    ROOFGEN_TRY(s.formula, string_or(j, "formula", ""));
    for (const char* list :
         {"let", "problem", "params", "derived", "constraints", "prunes", "grid", "assumes", "args", "panels"})
      if (j.contains(list) && !j[list].is_array()) return bad(fmt::format("\"{}\" must be a list", list), list);
    ROOFGEN_CHECK(read_let(j));
    std::set<std::string> known;
    for (const Json& p : list_of(j, "params")) {
      ROOFGEN_TRY(Param parsed, param(p));
      if (!known.insert(parsed.name).second)
        return bad(fmt::format("parameter {} is declared twice", parsed.name), parsed.name);
      s.params.push_back(std::move(parsed));
    }
    ROOFGEN_TRY(s.problem, pairs(list_of(j, "problem"), "problem"));
    ROOFGEN_TRY(s.derived, pairs(list_of(j, "derived"), "derived"));
    for (const auto* list : {&s.problem, &s.derived})
      for (const auto& [name, value] : *list) known.insert(name);
    for (const auto& [name, meaning] : let_)
      if (known.contains(name)) return bad(fmt::format("\"let\": {} has another meaning in this stage", name), name);
    ROOFGEN_TRY(s.prunes, expressions(j, "prunes"));
    ROOFGEN_TRY(s.constraints, expressions(j, "constraints"));
    ROOFGEN_TRY(s.assumes, expressions(j, "assumes"));
    ROOFGEN_TRY(s.axes, axes(j));
    for (const auto& [key, ctas] : {std::pair{"persistent", &s.persistent}, std::pair{"ctas", &s.ctas}})
      if (j.contains(key)) {
        ROOFGEN_TRY(*ctas, expression(j, key));
      }
    ROOFGEN_TRY(s.block, expression(j, "block"));
    ROOFGEN_TRY(s.smem, expression(j, "smem"));
    if (j.contains("cluster")) {
      ROOFGEN_TRY(s.cluster, expressions(j, "cluster"));
      if (s.cluster.empty() || s.cluster.size() > 3)
        return bad_at(j, "\"cluster\" needs one to three sizes: x, y, z", "cluster");
    }
    if (j.contains("overlap")) {
      ROOFGEN_TRY(s.overlap, expression(j, "overlap"));
    }
    ROOFGEN_TRY(s.dependent, flag(j, "dependent", false));
    if (s.dependent && s.overlap) return bad_at(j, "a stage has \"dependent\" or \"overlap\", not both", "dependent");
    for (const Json& a : list_of(j, "args")) {
      if (a.is_object() && a.contains("when")) {
        ROOFGEN_CHECK(conditional(a, s.args));
        continue;
      }
      ROOFGEN_TRY(Stage::ArgSpec arg, argument(a));
      s.args.push_back(std::move(arg));
    }
    ROOFGEN_TRY(s.panels, panels(j));
    ROOFGEN_TRY(s.work, work(j));
    return s;
  }

  /// The names of this stage for parts of its expressions. Each may use those before it.
  Result<void> read_let(const Json& j) {
    let_.clear();
    for (const Json& one : list_of(j, "let")) {
      ROOFGEN_TRY(auto read, pair(one, "let"));
      if (!let_.insert(std::move(read)).second) return bad_at(one, "\"let\" has this name twice");
    }
    return {};
  }

  /// The member, or an empty list. Part of the file's tree, so that errors find their place.
  static const Json& list_of(const Json& j, const char* key) {
    static const Json kEmpty = Json::array();
    return j.contains(key) ? j[key] : kEmpty;
  }

  Result<std::vector<Stage::AxisSpec>> axes(const Json& j) const {
    std::vector<Stage::AxisSpec> out;
    const Json& grid = list_of(j, "grid");
    if (grid.empty() || grid.size() > 3) return bad("\"grid\" needs one to three dimensions", "grid");
    for (size_t dim = 0; dim < grid.size(); ++dim) {
      if (!grid[dim].is_array()) return bad("a grid dimension is a list of axes", "grid");
      for (const Json& a : grid[dim]) {
        ROOFGEN_CHECK(only(a, {"axis", "extent", "step", "tile", "reverse", "by_group"}));
        Stage::AxisSpec axis;
        axis.dim = static_cast<int>(dim);
        ROOFGEN_TRY(axis.name, string(a, "axis"));
        ROOFGEN_TRY(axis.extent, expression(a, "extent"));
        ROOFGEN_TRY(axis.step, a.contains("step") ? expression(a, "step") : expr::Expr::parse("1"));
        ROOFGEN_TRY(axis.tile, a.contains("tile") ? expression(a, "tile") : expr::Expr::parse("0"));
        ROOFGEN_TRY(axis.reverse, flag(a, "reverse", false));
        ROOFGEN_TRY(axis.by_group, flag(a, "by_group", false));
        out.push_back(std::move(axis));
      }
    }
    return out;
  }

  /// Arguments of kernels for some problems only.
  Result<void> conditional(const Json& a, std::vector<Stage::ArgSpec>& out) const {
    ROOFGEN_CHECK(only(a, {"when", "args"}));
    ROOFGEN_TRY(const expr::Expr when, expression(a, "when"));
    if (!a.contains("args") || !a["args"].is_array()) return bad_at(a, "\"when\" needs a list \"args\"", "when");
    for (const Json& each : a["args"]) {
      ROOFGEN_TRY(Stage::ArgSpec arg, argument(each));
      arg.when = when;
      out.push_back(std::move(arg));
    }
    return {};
  }

  Result<Stage::ArgSpec> argument(const Json& a) const {
    Stage::ArgSpec arg;
    if (a.is_string()) {
      arg.name = a.get<std::string>();
      arg.type = "ptr";
      return arg;
    }
    if (a.is_object() && a.contains("each")) {
      if (a.contains("dims")) {
        ROOFGEN_TRY(arg, tensor_map(a));
      } else {
        ROOFGEN_CHECK(only(a, {"each"}));
      }
      ROOFGEN_TRY(arg.name, string(a, "each"));
      arg.type = "each";
      const std::vector<std::string> kinds{"tensors", "matrices", "vectors", "outputs", "scalars"};
      if (std::find(kinds.begin(), kinds.end(), arg.name) == kinds.end())
        return bad(fmt::format("\"each\": \"{}\" is not one of {}", arg.name, fmt::join(kinds, ", ")), arg.name);
      return arg;
    }
    const std::string type =
        a.is_object() && a.contains("type") && a["type"].is_string() ? a["type"].get<std::string>() : "";
    if (type == "tensor_map") return tensor_map(a);
    if (type == "struct") return structure(a);
    return scalar(a, {"i32", "i64", "f32", "struct", "tensor_map"});
  }

  Result<Stage::ArgSpec> scalar(const Json& a, const std::vector<std::string>& types) const {
    Stage::ArgSpec arg;
    ROOFGEN_CHECK(only(a, {"name", "type", "value"}));
    ROOFGEN_TRY(arg.name, string(a, "name"));
    ROOFGEN_TRY(arg.type, string(a, "type"));
    if (std::find(types.begin(), types.end(), arg.type) == types.end())
      return bad_at(a, fmt::format("unknown argument type \"{}\"{}", arg.type, did_you_mean(arg.type, types)), "type");
    ROOFGEN_TRY(arg.value, expression(a, "value"));
    return arg;
  }

  Result<Stage::ArgSpec> structure(const Json& a) const {
    Stage::ArgSpec arg;
    ROOFGEN_CHECK(only(a, {"name", "type", "fields"}));
    arg.type = "struct";
    ROOFGEN_TRY(arg.name, string(a, "name"));
    if (!a.contains("fields") || !a["fields"].is_array() || a["fields"].empty())
      return bad_at(a, fmt::format("struct {} needs a list of fields", arg.name), "fields");
    std::set<std::string> names;
    for (const Json& f : a["fields"]) {
      ROOFGEN_TRY(Stage::ArgSpec field, scalar(f, {"i32", "i64", "f32"}));
      if (!names.insert(field.name).second)
        return bad_at(f, fmt::format("field {} is declared twice", field.name), "name");
      arg.fields.push_back(std::move(field));
    }
    return arg;
  }

  Result<Stage::ArgSpec> tensor_map(const Json& a) const {
    Stage::ArgSpec arg;
    ROOFGEN_CHECK(only(a, {"each", "name", "type", "buffer", "dtype", "dims", "strides", "box", "swizzle", "nan_fill",
                           "l2_promotion"}));
    if (!a.contains("each")) {
      arg.type = "tensor_map";
      ROOFGEN_TRY(arg.name, string(a, "name"));
      ROOFGEN_TRY(arg.buffer, string(a, "buffer"));
    }
    Stage::MapSpec& map = arg.map.emplace();
    ROOFGEN_TRY(map.dims, expressions(a, "dims"));
    ROOFGEN_TRY(map.strides, expressions(a, "strides"));
    ROOFGEN_TRY(map.box, expressions(a, "box"));
    if (map.dims.empty() || map.dims.size() > 5)
      return bad_at(a, fmt::format("\"dims\" has {} dimensions; 1 to 5 were expected", map.dims.size()), "dims");
    if (map.box.size() != map.dims.size())
      return bad_at(a, fmt::format("\"box\" has {} sizes for {} dims", map.box.size(), map.dims.size()), "box");
    if (map.strides.size() + 1 != map.dims.size())
      return bad_at(a,
                    fmt::format("\"strides\" has {} sizes for {} dims; {} were expected: dimension 0 is contiguous",
                                map.strides.size(), map.dims.size(), map.dims.size() - 1),
                    "strides");
    const auto optional = [&](const char* key, const char* otherwise) {
      return a.contains(key) ? expression(a, key) : expr::Expr::parse(otherwise);
    };
    ROOFGEN_TRY(map.dtype, optional("dtype", "dtype"));
    ROOFGEN_TRY(map.swizzle, optional("swizzle", "0"));
    ROOFGEN_TRY(map.nan_fill, optional("nan_fill", "false"));
    ROOFGEN_TRY(map.l2_promotion, optional("l2_promotion", "0"));
    return arg;
  }

  Result<std::vector<Stage::PanelSpec>> panels(const Json& j) const {
    std::vector<Stage::PanelSpec> out;
    for (const Json& p : list_of(j, "panels")) {
      ROOFGEN_CHECK(only(p, {"name", "axes", "bytes", "streamed"}));
      Stage::PanelSpec panel;
      ROOFGEN_TRY(panel.name, string(p, "name"));
      ROOFGEN_TRY(panel.axes, strings(p, "axes"));
      ROOFGEN_TRY(panel.bytes, expression(p, "bytes"));
      ROOFGEN_TRY(panel.streamed, flag(p, "streamed", true));
      out.push_back(std::move(panel));
    }
    return out;
  }

  Result<std::vector<std::pair<std::string, expr::Expr>>> work(const Json& j) const {
    std::vector<std::pair<std::string, expr::Expr>> out;
    if (!j.contains("work")) return out;
    if (!j["work"].is_object()) return bad("\"work\" must be an object of formulas", "work");
    static const std::vector<std::string> kWork = {
        "mma_flops",      "wgmma_flops", "tcgen05_flops",   "exps",        "l2_read_bytes",
        "l2_write_bytes", "dram_bytes",  "smem_wavefronts", "issue_slots", "registers",
        "ctas",           "async_waits", "async_distance",  "amount",      "fp32_flops"};
    for (const auto& [key, value] : j["work"].items()) {
      if (std::find(kWork.begin(), kWork.end(), key) == kWork.end())
        return bad(fmt::format("unknown work formula \"{}\"{}", key, did_you_mean(key, kWork)), key);
      ROOFGEN_TRY(expr::Expr e, expression(value));
      out.emplace_back(key, std::move(e));
    }
    return out;
  }

  /// A shared stage, read once for all variants.
  Result<Stage> load_shared(const std::string& name) const {
    if (const auto known = shared_.find(name); known != shared_.end()) return known->second;
    ROOFGEN_TRY(Stage loaded, load_stage(files_, name));
    return shared_.emplace(name, std::move(loaded)).first->second;
  }

  const DataFiles& files_;
  std::map<std::string, Stage>& shared_;
};

}  // namespace

Result<Stage> load_stage(const DataFiles& files, const std::string& name) {
  const std::string path = "search_spaces/" + name;
  ROOFGEN_TRY(std::string text, files.load(path));
  ROOFGEN_TRY(JsonFile file, JsonFile::parse(without_comments(std::move(text)), files.origin(path)));
  std::map<std::string, Stage> none;
  return SpaceReader(file, files, none).read_stage();
}

Result<std::vector<Variant>> load_variants(const DataFiles& files, const std::string& op) {
  const std::string prefix = "search_spaces/" + op + "/";
  // Reading them takes 0.1 s of an op with many variants, and a family or a program that launches asks for each shape.
  static std::mutex mutex;
  static std::map<std::pair<std::string, uint64_t>, std::vector<Variant>> known;
  std::string texts;
  for (const std::string& folder : {prefix, std::string("search_spaces/stages/")})
    for (const std::string& name : files.list(folder))
      texts += files.origin(name) + '\n' + files.read(name).value_or("");
  const std::pair key(op, llvm::xxHash64(texts));
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  std::vector<Variant> out;
  std::map<std::string, Stage> shared;
  for (const std::string& name : files.list(prefix)) {
    if (!name.ends_with(".json")) continue;
    auto text = files.read(name);
    if (!text) continue;
    ROOFGEN_TRY(JsonFile file, JsonFile::parse(without_comments(std::move(*text)), files.origin(name)));
    ROOFGEN_TRY(std::vector<Variant> read, SpaceReader(file, files, shared).read());
    std::ranges::move(read, std::back_inserter(out));
  }
  std::ranges::sort(out, {}, &Variant::name);
  if (out.empty())
    return Error{Exit::kUnavailable, fmt::format("no search space for {}: {} holds no .json file", op, prefix)};
  const std::lock_guard lock(mutex);
  known[key] = out;
  return out;
}

}  // namespace roofgen
