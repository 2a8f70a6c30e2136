#include "tuner/replay/recorded.h"

#include <algorithm>
#include <numeric>

#include "tuner/recording/recording.h"

namespace roofgen {
namespace {

/// A parameter with its values in ascending order where they are numbers, else in that of their occurrence.
struct SortedAxis {
  Axis axis;
  std::vector<uint16_t> place;  ///< by order of occurrence
};

SortedAxis sorted_axis(const std::string& name, const std::vector<Json>& values) {
  SortedAxis out{{name, {}, {}}, std::vector<uint16_t>(values.size())};
  const bool numbers = std::ranges::all_of(values, [](const Json& v) { return v.is_number(); });
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (numbers) std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i].get<double>(); });
  for (size_t k = 0; k < order.size(); ++k) {
    const Json& value = values[order[k]];
    out.place[order[k]] = static_cast<uint16_t>(k);
    out.axis.labels.push_back(json_words(value));
    if (numbers) out.axis.numbers.push_back(value.get<double>());
  }
  return out;
}

}  // namespace

Result<RecordedSpace> recorded_space(const Recording& recording) {
  RecordedSpace out;
  out.format = recording.format;
  out.device = recording.device;
  out.kernel = recording.kernel;
  std::vector<Axis> axes;
  std::vector<std::pair<size_t, std::vector<uint16_t>>> used;  // parameters of more than one value
  for (size_t i = 0; i < recording.names.size(); ++i) {
    if (recording.values[i].size() < 2) continue;
    SortedAxis sorted = sorted_axis(recording.names[i], recording.values[i]);
    axes.push_back(std::move(sorted.axis));
    used.emplace_back(i, std::move(sorted.place));
  }
  if (axes.empty()) return Error{Exit::kUsage, "expected points that differ in a parameter"};
  // Sorted by the places of the values, not in the order in which a search tried them.
  std::vector<const Recording::Point*> points;
  for (const Recording::Point& p : recording.points) points.push_back(&p);
  std::ranges::sort(points, {}, &Recording::Point::row);
  std::vector<uint16_t> rows;
  const bool predicted = std::ranges::all_of(points, [](const Recording::Point* p) { return p->predicted > 0; });
  for (const Recording::Point* p : points) {
    for (const auto& [i, place] : used) rows.push_back(place[p->row[i]]);
    const TrialResult result{!p->failure.empty(), p->seconds};
    out.results.push_back(result);
    if (predicted) out.space.predicted.push_back(p->predicted);
    out.failed += result.failed;
    if (!result.failed && (out.best == 0 || result.seconds < out.best)) out.best = result.seconds;
  }
  if (out.best == 0) return Error{Exit::kUsage, "no point has a time"};
  out.space.points = PointSpace(std::move(axes), std::move(rows));
  return out;
}

Result<RecordedSpace> read_recorded(std::string bytes, const std::string& file) {
  ROOFGEN_TRY(const std::vector<Recording> recordings, read_recordings(std::move(bytes), file));
  const auto most = std::ranges::max_element(recordings, {}, [](const Recording& r) { return r.points.size(); });
  if (most == recordings.end()) return Error{Exit::kUsage, "no point has a time", {file, 1, 1}};
  Result<RecordedSpace> space = recorded_space(*most);
  if (space) return space;
  Error error = std::move(space).error();
  error.where = {file, 1, 1};
  return error;
}

}  // namespace roofgen
