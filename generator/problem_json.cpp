#include "generator/problem_json.h"

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

}  // namespace roofgen
