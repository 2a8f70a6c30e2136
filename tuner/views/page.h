// A tuning result as a page of figures, from its JSON, for `tune --html` and `report`.
#pragma once

#include <fmt/format.h>

#include <set>

#include "base/json.h"
#include "base/units.h"
#include "generator/generate.h"
#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/plot/figure.h"

namespace roofgen {

/// `result` is a document of schema roofgen.tune.1; `file` is its name in messages. Exit::kUsage when it is not one, or
/// when its device is not in the catalogue (its roofs are needed).
Result<plot::Page> tune_page(const Json& result, const std::string& file, const DataFiles& files);

/// The base of the builders of such pages. Members are read with Json::at, which throws where one is missing; page_of
/// then names it.
class ResultPage {
 public:
  ResultPage(const Json& result, const Device& device, const DataFiles& files)
      : result_(result), device_(device), files_(files) {}

 protected:
  static double number(const Json& j, const char* key) { return j.at(key).get<double>(); }
  static std::string text(const Json& j, const char* key) { return j.at(key).get<std::string>(); }
  static std::string fixed(const Json& j, const char* key) { return fmt::format("{:.2f}", number(j, key)); }
  static std::string percent(const Json& j, const char* key) { return fmt::format("{:.0f} %", 100 * number(j, key)); }
  static std::string bytes(const Json& j, const char* key) { return bytes_text(number(j, key)); }
  static std::string microseconds(const Json& j, const char* key) { return time_text(1e-6 * number(j, key)); }
  static std::string time_factors(const Json& j) {
    return fmt::format("{} x {} x {}", fixed(j, "waste"), fixed(j, "idle"), fixed(j, "stall"));
  }
  /// "L=2048 d=64 causal=true": without the members that stand elsewhere on the page.
  static std::string words(const Json& object, const std::set<std::string>& without = {}) {
    std::string out;
    for (const auto& [name, value] : object.items())
      if (!without.contains(name)) out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, json_words(value));
    return out;
  }
  std::string dtype() const { return text(result_.at("problem"), "dtype"); }

  const Json& result_;
  const Device& device_;
  const DataFiles& files_;
};

/// The device of a result, from its member "device": of the catalogue, or from the cells in a measured result.
Result<Device> result_device(const Json& device, const DataFiles& files);

/// The page of a result of this schema, by a Builder of the result and its device. `what` names the result in messages.
template <class Builder>
Result<plot::Page> page_of(const Json& result, const char* schema, const char* what, const std::string& file,
                           const DataFiles& files) {
  try {
    if (result.at("schema") != schema)
      return Error{Exit::kUsage, fmt::format("schema {} was expected", schema), {file}};
    ROOFGEN_TRY(const Device device, result_device(result.at("device"), files));
    return Builder(result, device, files).build();
  } catch (const Json::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole {}: {}", what, e.what()), {file}};
  }
}

}  // namespace roofgen
