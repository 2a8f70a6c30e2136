// search_spaces/<op>/<variant>.json -> Variant. The format is docs/search-spaces.md; everything a
// file can get wrong is reported with its place.
#include <fmt/format.h>

#include <set>

#include "generator/generate.h"
#include "generator/json_reader.h"

namespace roofgen {
namespace {

/// A stage that another file describes: `"use": "stages/rows.json"`.
constexpr std::initializer_list<const char*> kStageMembers = {
    "name", "template", "entry", "output", "problem", "params", "derived", "constraints", "prunes",
    "grid", "assumes",  "block", "smem",   "args",    "panels", "work",    "formula"};

class SpaceReader : private JsonReader {
 public:
  SpaceReader(const JsonFile& file, const DataFiles& files) : JsonReader(file), files_(files) {}

  /// A file of search_spaces/stages/: one stage without a variant around it.
  Result<Stage> read_stage() {
    const Json& root = file_.root();
    ROOFGEN_TRY(std::string schema, string(root, "schema"));
    if (schema != "roofgen.stage.1") return bad("schema must be \"roofgen.stage.1\"", schema);
    Json body = root;
    body.erase("schema");
    body.erase("description");
    return stage(body);
  }

  Result<Variant> read() {
    Variant v;
    v.file = file_.file();
    const Json& root = file_.root();
    ROOFGEN_TRY(std::string schema, string(root, "schema"));
    if (schema != "roofgen.space.1") return bad("schema must be \"roofgen.space.1\"", schema);
    ROOFGEN_CHECK(only(root, {"schema", "op", "variant", "description", "fused", "temporaries", "stages"}));
    ROOFGEN_TRY(v.op, string(root, "op"));
    ROOFGEN_TRY(v.name, string(root, "variant"));
    ROOFGEN_TRY(v.description, string(root, "description"));
    if (root.contains("temporaries"))
      for (const Json& t : root["temporaries"]) {
        Variant::Temporary temp;
        ROOFGEN_TRY(temp.name, string(t, "name"));
        ROOFGEN_TRY(temp.dtype, expression(t, "dtype"));
        ROOFGEN_TRY(temp.bytes, expression(t, "bytes"));
        v.temporaries.push_back(std::move(temp));
      }
    if (!root.contains("stages") || !root["stages"].is_array() || root["stages"].empty())
      return bad("\"stages\" must be a list of at least one stage", "stages");
    for (const Json& s : root["stages"]) {
      ROOFGEN_TRY(Stage parsed, s.contains("use") ? shared_stage(s) : stage(s));
      v.stages.push_back(std::move(parsed));
    }
    v.fused = v.stages.size() == 1;
    if (root.contains("fused")) {
      if (!root["fused"].is_boolean()) return bad("\"fused\" must be true or false", "fused");
      v.fused = root["fused"].get<bool>();
    }
    return v;
  }

 private:
  /// The stage of another file under a name, a formula and buffers of its own.
  Result<Stage> shared_stage(const Json& j) const {
    ROOFGEN_CHECK(only(j, {"use", "name", "output", "formula", "buffers", "problem"}));
    ROOFGEN_TRY(const std::string use, string(j, "use"));
    auto loaded = load_stage(files_, use);
    if (!loaded && loaded.error().where.file.empty()) return bad(loaded.error().message, use);
    ROOFGEN_TRY(Stage s, std::move(loaded));
    ROOFGEN_TRY(s.name, string_or(j, "name", s.name));
    ROOFGEN_TRY(s.output, string_or(j, "output", s.output));
    ROOFGEN_TRY(s.formula, string_or(j, "formula", s.formula));
    // Before the stage's own, which may build on them.
    ROOFGEN_TRY(auto names, pairs(j.value("problem", Json::array()), "problem"));
    s.problem.insert(s.problem.begin(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
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
    ROOFGEN_CHECK(only(j, {"name", "values", "default"}));
    ROOFGEN_TRY(p.name, string(j, "name"));
    if (!j.contains("values") || !j["values"].is_array() || j["values"].empty())
      return bad(fmt::format("parameter {} needs a list of values", p.name), p.name);
    for (const Json& v : j["values"]) {
      if (v.is_boolean())
        p.values.emplace_back(v.get<bool>());
      else if (v.is_number_integer())
        p.values.emplace_back(v.get<int64_t>());
      else if (v.is_string())
        p.values.emplace_back(v.get<std::string>());
      else
        return bad(fmt::format("values of {} must be integers, booleans or strings", p.name), p.name);
    }
    ROOFGEN_TRY(p.preset, expression(j, "default"));
    return p;
  }

  Result<Stage> stage(const Json& j) const {
    Stage s;
    ROOFGEN_CHECK(only(j, kStageMembers));
    ROOFGEN_TRY(s.name, string(j, "name"));
    ROOFGEN_TRY(s.template_name, string(j, "template"));
    ROOFGEN_TRY(s.entry, string(j, "entry"));
    ROOFGEN_TRY(s.output, string(j, "output"));
    ROOFGEN_TRY(s.formula, string_or(j, "formula", ""));
    for (const char* list : {"problem", "params", "derived", "constraints", "prunes", "grid", "assumes", "args"})
      if (j.contains(list) && !j[list].is_array()) return bad(fmt::format("\"{}\" must be a list", list), list);
    std::set<std::string> names;
    for (const Json& p : j.value("params", Json::array())) {
      ROOFGEN_TRY(Param parsed, param(p));
      if (!names.insert(parsed.name).second)
        return bad(fmt::format("parameter {} is declared twice", parsed.name), parsed.name);
      s.params.push_back(std::move(parsed));
    }
    ROOFGEN_TRY(s.problem, pairs(j.value("problem", Json::array()), "problem"));
    ROOFGEN_TRY(s.derived, pairs(j.value("derived", Json::array()), "derived"));
    for (const Json& c : j.value("prunes", Json::array())) {
      if (!c.is_string()) return bad("a rule is a string", "prunes");
      ROOFGEN_TRY(expr::Expr e, parse(c.get<std::string>()));
      s.prunes.push_back(std::move(e));
    }
    for (const Json& c : j.value("constraints", Json::array())) {
      if (!c.is_string()) return bad("a constraint is a string", "constraints");
      ROOFGEN_TRY(expr::Expr e, parse(c.get<std::string>()));
      s.constraints.push_back(std::move(e));
    }
    const Json grid = j.value("grid", Json::array());
    if (grid.empty() || grid.size() > 3) return bad("\"grid\" needs one to three dimensions", "grid");
    for (size_t dim = 0; dim < grid.size(); ++dim) {
      if (!grid[dim].is_array()) return bad("a grid dimension is a list of axes", "grid");
      for (const Json& a : grid[dim]) {
        ROOFGEN_CHECK(only(a, {"axis", "extent", "step", "reverse"}));
        Stage::AxisSpec axis;
        axis.dim = static_cast<int>(dim);
        ROOFGEN_TRY(axis.name, string(a, "axis"));
        ROOFGEN_TRY(axis.extent, expression(a, "extent"));
        ROOFGEN_TRY(axis.step, a.contains("step") ? expression(a, "step") : expr::Expr::parse("1"));
        if (a.contains("reverse")) {
          if (!a["reverse"].is_boolean()) return bad("\"reverse\" must be true or false", "reverse");
          axis.reverse = a["reverse"].get<bool>();
        }
        s.axes.push_back(std::move(axis));
      }
    }
    for (const Json& a : j.value("assumes", Json::array())) {
      if (!a.is_string()) return bad("an assumption is a string", "assumes");
      ROOFGEN_TRY(expr::Expr e, parse(a.get<std::string>()));
      s.assumes.push_back(std::move(e));
    }
    ROOFGEN_TRY(s.block, expression(j, "block"));
    ROOFGEN_TRY(s.smem, expression(j, "smem"));
    for (const Json& a : j.value("args", Json::array())) {
      Stage::ArgSpec arg;
      if (a.is_string()) {
        arg.name = a.get<std::string>();
        arg.type = "ptr";
      } else if (a.is_object() && a.contains("each")) {
        ROOFGEN_CHECK(only(a, {"each"}));
        ROOFGEN_TRY(arg.name, string(a, "each"));
        arg.type = "each";
        if (arg.name != "tensors" && arg.name != "outputs" && arg.name != "scalars")
          return bad(fmt::format("\"each\": \"{}\" is not one of tensors, outputs, scalars", arg.name), arg.name);
      } else {
        ROOFGEN_CHECK(only(a, {"name", "type", "value"}));
        ROOFGEN_TRY(arg.name, string(a, "name"));
        ROOFGEN_TRY(arg.type, string(a, "type"));
        if (arg.type != "i32" && arg.type != "i64" && arg.type != "f32")
          return bad(fmt::format("argument type \"{}\" is not one of i32, i64, f32", arg.type), arg.type);
        ROOFGEN_TRY(arg.value, expression(a, "value"));
      }
      s.args.push_back(std::move(arg));
    }
    if (j.contains("panels") && !j["panels"].is_array()) return bad("\"panels\" must be a list", "panels");
    for (const Json& p : j.value("panels", Json::array())) {
      ROOFGEN_CHECK(only(p, {"name", "axes", "bytes", "streamed"}));
      Stage::PanelSpec panel;
      ROOFGEN_TRY(panel.name, string(p, "name"));
      ROOFGEN_TRY(panel.axes, strings(p, "axes"));
      ROOFGEN_TRY(panel.bytes, expression(p, "bytes"));
      if (p.contains("streamed")) {
        if (!p["streamed"].is_boolean()) return bad("\"streamed\" must be true or false", "streamed");
        panel.streamed = p["streamed"].get<bool>();
      }
      s.panels.push_back(std::move(panel));
    }
    const Json work = j.value("work", Json::object());
    if (!work.is_object()) return bad("\"work\" must be an object of formulas", "work");
    static const std::set<std::string> kWork = {"mma_flops",      "wgmma_flops",    "tcgen05_flops", "exps",
                                                "l2_read_bytes",  "l2_write_bytes", "dram_bytes",    "smem_wavefronts",
                                                "issue_slots",    "registers",      "ctas",          "async_waits",
                                                "async_distance", "amount",         "fp32_flops"};
    for (const auto& [key, value] : work.items()) {
      if (!kWork.count(key)) return bad(fmt::format("unknown work formula \"{}\"", key), key);
      if (!value.is_string()) return bad("a work formula is a string", key);
      ROOFGEN_TRY(expr::Expr e, parse(value.get<std::string>()));
      s.work.emplace_back(key, std::move(e));
    }
    return s;
  }

  const DataFiles& files_;
};

}  // namespace

Result<Stage> load_stage(const DataFiles& files, const std::string& name) {
  const std::string path = "search_spaces/" + name;
  ROOFGEN_TRY(const std::string text, files.load(path));
  ROOFGEN_TRY(JsonFile file, JsonFile::parse(text, files.origin(path)));
  return SpaceReader(file, files).read_stage();
}

Result<std::vector<Variant>> load_variants(const DataFiles& files, const std::string& op) {
  std::vector<Variant> out;
  const std::string prefix = "search_spaces/" + op + "/";
  for (const std::string& name : files.list(prefix)) {
    if (!name.ends_with(".json")) continue;
    const auto text = files.read(name);
    if (!text) continue;
    ROOFGEN_TRY(JsonFile file, JsonFile::parse(*text, files.origin(name)));
    ROOFGEN_TRY(Variant v, SpaceReader(file, files).read());
    out.push_back(std::move(v));
  }
  if (out.empty())
    return Error{Exit::kUnavailable, fmt::format("no search space for {}: {} holds no .json file", op, prefix)};
  return out;
}

}  // namespace roofgen
