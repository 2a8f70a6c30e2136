// Reads models/<name>.json. All names are checked on loading, so that a run fails only because of its request.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/suggest.h"
#include "generator/space/json_reader.h"
#include "roofline/analyses/model.h"

namespace roofgen {
namespace {

/// Names available to expressions besides params, let and `<role>_bytes`.
const std::vector<std::string> kRequestNames = {"batch", "kv", "seq", "tokens", "tp", "phase"};
constexpr const char* kCollectives[] = {"all_reduce", "all_gather"};

std::vector<std::string> names_of(const std::vector<WorkDim>& dims) {
  std::vector<std::string> out;
  for (const WorkDim& d : dims) out.push_back(d.name);
  return out;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class ModelReader : private JsonReader {
 public:
  ModelReader(const JsonFile& file, const DataFiles& files) : JsonReader(file), files_(files) {}

  Result<Model> read(const std::string& name) {
    const Json& root = file_.root();
    m_.file = file_.file();
    ROOFGEN_CHECK(only(root, {"schema", "name", "title", "source", "params", "let", "phases", "dtypes", "operators",
                              "kv_cache", "activations", "notes", "published"}));
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != "roofgen.model/1") return bad("schema must be \"roofgen.model/1\"", schema);
    ROOFGEN_TRY(m_.name, string(root, "name"));
    if (m_.name != name) return bad(fmt::format("\"name\" is {}, the file's is {}", m_.name, name), m_.name);
    ROOFGEN_TRY(m_.title, string(root, "title"));
    ROOFGEN_TRY(m_.source, string(root, "source"));
    ROOFGEN_TRY(m_.notes, strings(root, "notes"));
    ROOFGEN_CHECK(read_params(root));
    ROOFGEN_CHECK(read_dtypes(root));
    ROOFGEN_CHECK(read_let(root));
    ROOFGEN_CHECK(read_phases(root));
    ROOFGEN_TRY(const Json operators, list(root, "operators"));
    for (const Json& j : operators) ROOFGEN_CHECK(read_operator(j));
    if (m_.operators.empty()) return bad("\"operators\" must be a list of at least one operator", "operators");
    ROOFGEN_TRY(m_.kv_cache, storages(root, "kv_cache"));
    ROOFGEN_TRY(m_.activations, storages(root, "activations"));
    if (root.contains("published")) {
      const Json& p = root["published"];
      ROOFGEN_CHECK(only(p, {"parameters", "source"}));
      if (!p.contains("parameters") || !p["parameters"].is_number())
        return bad("\"parameters\" must be a number", "parameters");
      m_.published_parameters = p["parameters"].get<double>();
      ROOFGEN_TRY(m_.published_source, string(p, "source"));
    }
    return std::move(m_);
  }

 private:
  Result<void> read_params(const Json& root) {
    if (!root.contains("params") || !root["params"].is_object())
      return bad("\"params\" must be an object of integers", "params");
    for (const auto& [key, value] : root["params"].items()) {
      if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 0x1p40)
        return bad(fmt::format("\"{}\" must be an integer from 0 to 2^40", key), key);
      if (contains(kRequestNames, key))
        return bad(fmt::format("\"{}\" is given on the command line; it cannot be a param", key), key);
      m_.params[key] = value.get<int64_t>();
      known_.push_back(key);
    }
    known_.insert(known_.end(), kRequestNames.begin(), kRequestNames.end());
    return {};
  }

  Result<void> read_dtypes(const Json& root) {
    ROOFGEN_TRY(const Json items, list(root, "dtypes"));
    for (const Json& j : items) {
      ModelDtypes d;
      ROOFGEN_CHECK(only(j, {"name", "help", "roles"}));
      ROOFGEN_TRY(d.name, string(j, "name"));
      ROOFGEN_TRY(d.help, string_or(j, "help", ""));
      if (!j.contains("roles") || !j["roles"].is_object())
        return bad(fmt::format("\"roles\" of {} must be an object of number formats", d.name), d.name);
      for (const auto& [role, format] : j["roles"].items()) {
        if (!format.is_string()) return bad(fmt::format("\"{}\" must be the name of a number format", role), role);
        auto found = find_number_format(format.get<std::string>());
        if (!found) return bad(found.error().message, format.get<std::string>());
        d.roles[role] = *found;
      }
      if (!m_.dtypes.empty())
        for (const auto& [role, format] : m_.dtypes.front().roles)
          if (!d.roles.count(role))
            return bad(fmt::format("{} has no role \"{}\"; every entry of dtypes has the same roles", d.name, role),
                       d.name);
      m_.dtypes.push_back(std::move(d));
    }
    if (m_.dtypes.empty()) return bad("\"dtypes\" must be a list of at least one way to store the model", "dtypes");
    for (const auto& [role, format] : m_.dtypes.front().roles) {
      roles_.push_back(role);
      known_.push_back(role + "_bytes");
    }
    return {};
  }

  Result<void> read_let(const Json& root) {
    ROOFGEN_TRY(const Json let, list(root, "let"));
    ROOFGEN_TRY(m_.let, pairs(let, "let"));
    for (const auto& [name, e] : m_.let) {
      ROOFGEN_CHECK(names_known(e));
      known_.push_back(name);
    }
    return {};
  }

  Result<void> read_phases(const Json& root) {
    ROOFGEN_TRY(const Json items, list(root, "phases"));
    for (const Json& j : items) {
      ModelPhase p;
      ROOFGEN_CHECK(only(j, {"name", "help", "length", "default", "yields", "unit"}));
      ROOFGEN_TRY(p.name, string(j, "name"));
      ROOFGEN_TRY(p.help, string(j, "help"));
      ROOFGEN_TRY(p.length, string(j, "length"));
      if (p.length != "kv" && p.length != "seq")
        return bad("\"length\" is \"kv\" (one query against a cache) or \"seq\" (queries and keys)", p.length);
      if (!j.contains("default") || !j["default"].is_number_integer() || j["default"].get<int64_t>() < 1)
        return bad(fmt::format("\"default\" of {} must be a positive integer", p.name), p.name);
      p.preset = j["default"].get<int64_t>();
      ROOFGEN_TRY(p.yields, checked(j, "yields"));
      ROOFGEN_TRY(p.unit, string(j, "unit"));
      m_.phases.push_back(std::move(p));
    }
    if (m_.phases.empty()) return bad("\"phases\" must be a list of at least one phase", "phases");
    return {};
  }

  Result<void> read_operator(const Json& j) {
    ModelOperator o;
    ROOFGEN_CHECK(only(j, {"name", "op", "count", "when", "dims", "flags", "dtypes", "tp", "weights", "after"}));
    ROOFGEN_TRY(o.name, string(j, "name"));
    ROOFGEN_TRY(const std::string op, string(j, "op"));
    ROOFGEN_TRY(o.formula, formula(op));
    ROOFGEN_TRY(o.count, checked(j, "count"));
    if (j.contains("when")) {
      ROOFGEN_TRY(o.when, checked(j, "when"));
    }
    const std::vector<std::string> dims = names_of(o.formula->dims());
    ROOFGEN_TRY(o.dims, members(j, "dims", o, dims));
    ROOFGEN_TRY(o.flags, members(j, "flags", o, names_of(o.formula->flags())));
    for (const WorkDim& d : o.formula->dims())
      if (!d.preset && std::none_of(o.dims.begin(), o.dims.end(), [&](const auto& x) { return x.first == d.name; }))
        return bad(fmt::format("{} needs {} ({}): {}", o.name, d.name, op, d.help), o.name);
    if (j.contains("dtypes")) {
      const std::vector<std::string> operands = names_of(o.formula->dtypes());
      if (!j["dtypes"].is_object()) return bad(fmt::format("\"dtypes\" of {} must be an object", o.name), o.name);
      for (const auto& [operand, role] : j["dtypes"].items()) {
        if (!contains(operands, operand))
          return bad(fmt::format("{} has no operand dtype \"{}\"{}", op, operand, did_you_mean(operand, operands)),
                     operand);
        if (!role.is_string())
          return bad(fmt::format("dtype {} of {} must be a role or a number format", operand, o.name), o.name);
        ROOFGEN_TRY(o.dtypes[operand], dtype(role.get<std::string>()));
      }
    }
    ROOFGEN_TRY(o.sharded, strings(j, "tp"));
    for (const std::string& d : o.sharded)
      if (!contains(dims, d))
        return bad(
            fmt::format("\"tp\" of {} divides \"{}\", no dimension of {}{}", o.name, d, op, did_you_mean(d, dims)), d);
    if (j.contains("weights")) {
      const Json& weights = j["weights"];
      if (weights.is_object() && weights.contains("tp"))
        return bad(fmt::format("\"weights\" of {} have no \"tp\" of their own: the operator's divides them", o.name),
                   o.name);
      ROOFGEN_TRY(o.weights, storage(weights, o.name));
      o.weights->sharded = !o.sharded.empty();
    }
    if (j.contains("after")) {
      ROOFGEN_TRY(o.after, collective(j["after"], o.name));
    }
    m_.operators.push_back(std::move(o));
    return {};
  }

  Result<ModelOperator::Collective> collective(const Json& j, const std::string& owner) {
    ModelOperator::Collective out;
    ROOFGEN_CHECK(only(j, {"op", "elements", "dtype"}));
    ROOFGEN_TRY(const std::string op, string(j, "op"));
    const std::vector<std::string> legal(std::begin(kCollectives), std::end(kCollectives));
    if (!contains(legal, op))
      return bad(fmt::format("\"after\" of {} is not a collective: \"{}\"{}", owner, op, did_you_mean(op, legal)), op);
    ROOFGEN_TRY(out.formula, formula(op));
    ROOFGEN_TRY(out.elements, checked(j, "elements"));
    ROOFGEN_TRY(const std::string role, string(j, "dtype"));
    ROOFGEN_TRY(out.dtype, dtype(role));
    return out;
  }

  Result<ModelStorage> storage(const Json& j, const std::string& owner) {
    if (!j.is_object())
      return bad(fmt::format("{}: an object with \"elements\" and \"dtype\" was expected", owner), owner);
    ROOFGEN_CHECK(only(j, {"elements", "dtype", "tp"}));
    ROOFGEN_TRY(expr::Expr elements, checked(j, "elements"));
    ROOFGEN_TRY(const std::string role, string(j, "dtype"));
    ROOFGEN_TRY(const std::string name, dtype(role));
    if (j.contains("tp") && !j["tp"].is_boolean()) return bad("\"tp\" of stored elements must be true or false", owner);
    return ModelStorage{std::move(elements), name, j.value("tp", false)};
  }

  Result<std::vector<ModelStorage>> storages(const Json& root, const char* key) {
    std::vector<ModelStorage> out;
    ROOFGEN_TRY(const Json items, list(root, key));
    for (const Json& j : items) {
      ROOFGEN_TRY(ModelStorage s, storage(j, key));
      out.push_back(std::move(s));
    }
    return out;
  }

  Result<std::vector<std::pair<std::string, expr::Expr>>> members(const Json& j, const char* key,
                                                                  const ModelOperator& o,
                                                                  const std::vector<std::string>& legal) {
    std::vector<std::pair<std::string, expr::Expr>> out;
    if (!j.contains(key)) return out;
    const Json& object = j[key];
    if (!object.is_object()) return bad(fmt::format("\"{}\" of {} must be an object", key, o.name), o.name);
    for (const auto& [name, value] : object.items()) {
      if (!contains(legal, name))
        return bad(
            fmt::format("{} of {}: {} has no \"{}\"{}", key, o.name, o.formula->op(), name, did_you_mean(name, legal)),
            name);
      ROOFGEN_TRY(expr::Expr e, checked(object, name.c_str()));
      out.emplace_back(name, std::move(e));
    }
    return out;
  }

  Result<std::shared_ptr<const WorkFormula>> formula(const std::string& op) {
    auto& slot = formulas_[op];
    if (!slot) {
      auto loaded = WorkFormula::load(files_, op);
      if (!loaded && loaded.error().exit == Exit::kUsage) return bad(loaded.error().message, op);
      ROOFGEN_TRY(WorkFormula f, std::move(loaded));
      slot = std::make_shared<const WorkFormula>(std::move(f));
    }
    return slot;
  }

  Result<std::string> dtype(const std::string& name) const {
    if (contains(roles_, name) || find_number_format(name)) return name;
    return bad(
        fmt::format("\"{}\" is neither a role of dtypes nor a number format{}", name, did_you_mean(name, roles_)),
        name);
  }

  Result<expr::Expr> checked(const Json& object, const char* key) const {
    ROOFGEN_TRY(expr::Expr e, expression(object, key));
    ROOFGEN_CHECK(names_known(e));
    return e;
  }

  Result<void> names_known(const expr::Expr& e) const {
    for (const std::string& name : e.names())
      if (!contains(known_, name))
        return bad(fmt::format("undefined name \"{}\"{}", name, did_you_mean(name, known_)), e.text());
    return {};
  }

  const DataFiles& files_;
  Model m_;
  std::vector<std::string> known_, roles_;
  std::map<std::string, std::shared_ptr<const WorkFormula>> formulas_;
};

}  // namespace

std::vector<std::string> model_names(const DataFiles& files) { return json_names(files, "models/"); }

Result<Model> load_model(const DataFiles& files, const std::string& name) {
  const std::vector<std::string> all = model_names(files);
  if (!contains(all, name))
    return Error{Exit::kUsage, fmt::format("unknown model \"{}\"{}", name, did_you_mean(name, all))};
  const std::string path = "models/" + name + ".json";
  ROOFGEN_TRY(std::string text, files.load(path));
  ROOFGEN_TRY(JsonFile file, JsonFile::parse(std::move(text), files.origin(path)));
  return ModelReader(file, files).read(name);
}

}  // namespace roofgen
