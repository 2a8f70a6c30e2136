#include "tuner/recording/recording.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen {

Json Recording::configuration(const Point& point) const {
  Json out = Json::object();
  for (size_t i = 0; i < names.size(); ++i) out[names[i]] = values[i][point.row[i]];
  return out;
}

std::string RecordingBuilder::value(const std::string& name, const Json& value) {
  if (value.is_structured() || value.is_null())
    return fmt::format("expected a number, a string or a boolean as \"{}\"", name);
  const auto [axis, is_new] = name_of_.try_emplace(name, out_.names.size());
  if (is_new) {
    if (!out_.points.empty()) return fmt::format("\"{}\" is not a parameter of the points before", name);
    if (out_.names.size() == kMostNames) return fmt::format("more than {} parameters", kMostNames);
    out_.names.push_back(name);
    out_.values.emplace_back();
    value_of_.emplace_back();
  }
  std::vector<Json>& known = out_.values[axis->second];
  // Of equal words a number and a string are one value: a file that mixes them means the same.
  const auto [place, unseen] =
      value_of_[axis->second].try_emplace(json_words(value), static_cast<uint16_t>(known.size()));
  if (unseen) {
    if (known.size() == kMostValues) return fmt::format("more than {} values of \"{}\"", kMostValues, name);
    known.push_back(value);
  }
  row_.resize(out_.names.size(), -1);
  row_[axis->second] = place->second;
  return {};
}

std::string RecordingBuilder::finish(Recording::Point result) {
  row_.resize(out_.names.size(), -1);
  if (const auto gap = std::ranges::find(row_, -1); gap != row_.end())
    return fmt::format("this point has no \"{}\"", out_.names[static_cast<size_t>(gap - row_.begin())]);
  result.row.assign(row_.begin(), row_.end());
  row_.assign(out_.names.size(), -1);
  const auto [place, is_new] = point_of_.try_emplace(result.row, out_.points.size());
  if (is_new) {
    if (out_.points.size() == kMostPoints) return fmt::format("more than {} points", kMostPoints);
    out_.points.push_back(std::move(result));
  } else {
    out_.points[place->second] = std::move(result);
  }
  return {};
}

const char* t4_invalidity(const std::string& step) {
  if (step == "compile") return "compile";
  if (step == "verify") return "correctness";
  if (step == "gpu timeout") return "timeout";
  if (step == "gpu fault" || step == "gpu memory" || step == "run" || step == "gpu") return "runtime";
  return "constraints";
}

}  // namespace roofgen
