#include "generator/space/problem_json.h"

#include <fmt/format.h>

#include "generator/pointwise/formula.h"

namespace roofgen {

Json problem_json(const Problem& p) {
  Json j{{"op", p.op}, {"dtype", to_string(p.dtype)}};
  for (const auto& [name, v] : p.dims) j[name] = v;
  for (const auto& [name, v] : p.flags) j[name] = v;
  for (const auto& [name, v] : p.reals) j[name] = v;
  for (const auto& [name, v] : p.dtypes) j[name + "_dtype"] = to_string(v);
  for (const auto& [name, v] : p.texts) j[name] = v;
  if (!p.args.empty()) {
    j["args"] = Json::array();
    for (const TensorArg& arg : p.args) j["args"].push_back(to_string(arg));
  }
  return j;
}

Json params_json(const std::vector<std::pair<std::string, ParamValue>>& params) {
  Json out = Json::object();
  for (const auto& [name, value] : params) std::visit([&, n = name](const auto& v) { out[n] = v; }, value);
  return out;
}

std::optional<ParamValue> param_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

Result<Problem> ProblemReader::problem(const Json& j) const {
  Problem out;
  ROOFGEN_TRY(out.op, string(j, "op"));
  const auto format = [&](const char* key, const std::string& text) -> Result<DType> {
    if (const auto dtype = parse_dtype(text)) return *dtype;
    return bad_at(j, fmt::format("unknown number format \"{}\"", text), key);
  };
  for (const auto& [name, value] : j.items()) {
    if (name == "op") continue;
    if (value.is_boolean()) {
      out.flags[name] = value.get<bool>();
    } else if (value.is_number_integer()) {
      ROOFGEN_TRY(out.dims[name], integer(j, name.c_str(), kMostSize));
    } else if (value.is_number()) {
      out.reals[name] = value.get<double>();
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
      ROOFGEN_TRY(out.dtype, format("dtype", value.get<std::string>()));
    } else if (name.ends_with("_dtype")) {
      ROOFGEN_TRY(out.dtypes[name.substr(0, name.size() - 6)], format(name.c_str(), value.get<std::string>()));
    } else {
      out.texts[name] = value.get<std::string>();
    }
  }
  if (out.dims.empty()) return bad_at(j, "a problem with sizes was expected");
  return out;
}

Result<std::vector<std::pair<std::string, ParamValue>>> ProblemReader::params(const Json& object) const {
  ROOFGEN_TRY(const Json* params, member(object, "params", &Json::is_object, "an object"));
  std::vector<std::pair<std::string, ParamValue>> out;
  for (const auto& [name, value] : params->items()) {
    auto read = param_value(value);
    if (!read) return bad_at(*params, "a parameter is an integer, a string, true or false", name);
    out.emplace_back(name, std::move(*read));
  }
  return out;
}

}  // namespace roofgen
