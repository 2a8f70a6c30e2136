#include "tuner/replay/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/gzip.h"
#include "base/json_text.h"

namespace roofgen {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;  // of the text; the largest public file has 44 MB
constexpr size_t kMostAxes = 64, kMostValues = 4096, kMostPoints = 4'000'000;

/// The points of a file before their values are sorted. Throws Error.
class Points {
 public:
  explicit Points(const JsonFile& file) : file_(file) {}

  [[noreturn]] void fail(const Json& at, const std::string& message, const char* member = "") const {
    Error error{Exit::kUsage, message, file_.place(at, member)};
    error.notes = file_.excerpt(error.where);
    throw error;
  }
  const Json& member(const Json& of, const char* name) const {
    if (!of.is_object() || !of.contains(name)) fail(of, fmt::format("expected an object with \"{}\"", name));
    return of.at(name);
  }
  const Json& list(const Json& of, const char* name) const {
    const Json& out = member(of, name);
    if (!out.is_array()) fail(of, fmt::format("expected a list as \"{}\"", name), name);
    return out;
  }
  const std::string& text(const Json& of, const char* name) const {
    const Json& out = member(of, name);
    if (!out.is_string()) fail(of, fmt::format("expected a string as \"{}\"", name), name);
    return out.get_ref<const std::string&>();
  }

  /// A parameter's value of the point that is being read.
  void value(const Json& at, const std::string& name, const Json& value) {
    if (value.is_structured()) fail(at, fmt::format("expected a number, a string or a boolean as \"{}\"", name));
    const auto [axis, is_new] = axis_of_.try_emplace(name, names_.size());
    if (is_new) {
      if (!rows_.empty()) fail(at, fmt::format("\"{}\" is no parameter of the points before", name));
      if (names_.size() == kMostAxes) fail(at, fmt::format("more than {} parameters", kMostAxes));
      names_.push_back(name);
      values_.emplace_back();
    }
    auto& known = values_[axis->second];
    const auto [entry, unseen] = known.try_emplace(json_words(value), Value{known.size(), {}});
    if (unseen && known.size() > kMostValues) fail(at, fmt::format("more than {} values of \"{}\"", kMostValues, name));
    if (unseen && value.is_number()) entry->second.number = value.get<double>();
    row_.resize(names_.size(), SIZE_MAX);
    row_[axis->second] = entry->second.order;
  }
  void finish(const Json& at, const TrialResult& result, double predicted = 0) {
    row_.resize(names_.size(), SIZE_MAX);
    if (const auto gap = std::ranges::find(row_, SIZE_MAX); gap != row_.end())
      fail(at, fmt::format("this point has no \"{}\"", names_[static_cast<size_t>(gap - row_.begin())]));
    if (rows_.size() == kMostPoints) fail(at, fmt::format("more than {} points", kMostPoints));
    rows_[row_] = {result, predicted};
    row_.assign(names_.size(), SIZE_MAX);
  }
  TrialResult seconds(const Json& at, double number, double unit) const {
    if (!(number > 0) || !std::isfinite(number)) fail(at, "expected a time above 0");
    return {false, number * unit};
  }

  RecordedSpace space(const std::string& format) && {
    RecordedSpace out;
    out.format = format;
    std::vector<Axis> axes;
    std::vector<size_t> axis_of;                // names -> axes; SIZE_MAX: one value only
    std::vector<std::vector<uint16_t>> places;  // order of appearance -> sorted
    for (size_t i = 0; i < names_.size(); ++i) {
      std::vector<std::pair<std::string, Value>> sorted(values_[i].begin(), values_[i].end());
      const bool numbers = std::ranges::all_of(sorted, [](const auto& v) { return v.second.number.has_value(); });
      std::ranges::sort(
          sorted, {}, [&](const auto& v) { return numbers ? *v.second.number : static_cast<double>(v.second.order); });
      std::vector<uint16_t>& place = places.emplace_back(sorted.size());
      Axis axis{names_[i], {}, {}};
      for (size_t k = 0; k < sorted.size(); ++k) {
        place[sorted[k].second.order] = static_cast<uint16_t>(k);
        axis.labels.push_back(sorted[k].first);
        if (numbers) axis.numbers.push_back(*sorted[k].second.number);
      }
      axis_of.push_back(axis.size() > 1 ? axes.size() : SIZE_MAX);
      if (axis.size() > 1) axes.push_back(std::move(axis));
    }
    if (axes.empty()) fail(file_.root(), "expected points that differ in a parameter");
    std::vector<uint16_t> rows;
    const bool all_predicted = std::ranges::all_of(rows_, [](const auto& row) { return row.second.predicted > 0; });
    for (const auto& [row, point] : rows_) {
      const auto& [result, predicted] = point;
      if (all_predicted) out.space.predicted.push_back(predicted);
      for (size_t i = 0; i < row.size(); ++i)
        if (axis_of[i] != SIZE_MAX) rows.push_back(places[i][row[i]]);
      out.results.push_back(result);
      out.failed += result.failed;
      if (!result.failed && (out.best == 0 || result.seconds < out.best)) out.best = result.seconds;
    }
    if (out.best == 0) fail(file_.root(), "no point has a time");
    out.space.points = PointSpace(std::move(axes), std::move(rows));
    return out;
  }

 private:
  struct Value {
    size_t order;
    std::optional<double> number;
  };
  const JsonFile& file_;
  std::vector<std::string> names_;
  std::map<std::string, size_t> axis_of_;
  std::vector<std::map<std::string, Value>> values_;
  std::vector<size_t> row_;
  struct Point {
    TrialResult result;
    double predicted;  ///< seconds; 0: unknown
  };
  std::map<std::vector<size_t>, Point> rows_;
};

constexpr double kMilli = 1e-3, kMicro = 1e-6;

RecordedSpace read_cachefile(const JsonFile& file) {
  Points points(file);
  const Json& root = file.root();
  const Json& names = points.list(root, "tune_params_keys");
  const Json& cache = points.member(root, "cache");
  if (!cache.is_object()) points.fail(root, "expected an object as \"cache\"", "cache");
  for (const Json& entry : cache) {
    for (const Json& name : names) {
      if (!name.is_string()) points.fail(names, "expected names of parameters");
      points.value(entry, name.get<std::string>(), points.member(entry, name.get_ref<const std::string&>().c_str()));
    }
    // A failed point has a string as its time in files of versions up to 1.0, "__error__" in those after.
    const Json& time = entry.contains("__error__") ? entry.at("__error__") : points.member(entry, "time");
    if (!time.is_string() && !time.is_number()) points.fail(entry, "expected a number or a string as \"time\"", "time");
    points.finish(entry, time.is_string() ? TrialResult{true, 0} : points.seconds(entry, time.get<double>(), kMilli));
  }
  RecordedSpace out = std::move(points).space("Kernel Tuner cachefile");
  if (root.contains("device_name")) out.device = json_words(root.at("device_name"));
  if (root.contains("kernel_name")) out.kernel = json_words(root.at("kernel_name"));
  return out;
}

RecordedSpace read_t4(const JsonFile& file) {
  Points points(file);
  const Json& root = file.root();
  double unit = kMilli;
  if (root.contains("metadata") && root.at("metadata").contains("timeunit")) {
    // "miliseconds" is the spelling of the benchmark hub.
    static const std::map<std::string, double> kUnits = {{"seconds", 1},
                                                         {"milliseconds", kMilli},
                                                         {"miliseconds", kMilli},
                                                         {"microseconds", kMicro},
                                                         {"nanoseconds", 1e-9}};
    const auto known = kUnits.find(points.text(root.at("metadata"), "timeunit"));
    if (known == kUnits.end())
      points.fail(root.at("metadata"), "expected seconds, milliseconds, microseconds or nanoseconds", "timeunit");
    unit = known->second;
  }
  for (const Json& result : points.list(root, "results")) {
    const Json& configuration = points.member(result, "configuration");
    if (!configuration.is_object()) points.fail(result, "expected an object", "configuration");
    for (const auto& [name, value] : configuration.items()) points.value(result, name, value);
    const Json& measurements = points.list(result, "measurements");
    const auto value_of = [&](const Json& name) -> const Json* {
      for (const Json& measurement : measurements)
        if (points.member(measurement, "name") == name) return &points.member(measurement, "value");
      return nullptr;
    };
    const Json* const prediction = value_of("predicted");
    const double predicted =
        prediction && prediction->is_number() ? points.seconds(result, prediction->get<double>(), unit).seconds : 0;
    if (points.text(result, "invalidity") != "correct") {
      points.finish(result, {true, 0}, predicted);
      continue;
    }
    const Json& objectives = points.list(result, "objectives");
    if (objectives.size() != 1) points.fail(result, "expected one objective", "objectives");
    const Json* const measured = value_of(objectives[0]);
    if (!measured || !measured->is_number())
      points.fail(result, fmt::format("expected a number as the measurement \"{}\"", json_words(objectives[0])),
                  "measurements");
    points.finish(result, points.seconds(result, measured->get<double>(), unit), predicted);
  }
  return std::move(points).space("T4");
}

RecordedSpace read_ktt(const JsonFile& file) {
  Points points(file);
  const Json& root = file.root();
  const Json& metadata = points.member(root, "Metadata");
  static const std::map<std::string, double> kUnits = {
      {"Nanoseconds", 1e-9}, {"Microseconds", kMicro}, {"Milliseconds", kMilli}, {"Seconds", 1}};
  const auto unit = kUnits.find(points.text(metadata, "TimeUnit"));
  if (unit == kUnits.end())
    points.fail(metadata, "expected Nanoseconds, Microseconds, Milliseconds or Seconds", "TimeUnit");
  for (const Json& result : points.list(root, "Results")) {
    for (const Json& pair : points.list(result, "Configuration"))
      points.value(result, points.text(pair, "Name"), points.member(pair, "Value"));
    if (points.text(result, "Status") != "Ok") {
      points.finish(result, {true, 0});
      continue;
    }
    const Json& time = points.member(result, "TotalDuration");
    if (!time.is_number()) points.fail(result, "expected a number as \"TotalDuration\"", "TotalDuration");
    points.finish(result, points.seconds(result, time.get<double>(), unit->second));
  }
  RecordedSpace out = std::move(points).space("KTT");
  out.device = points.text(metadata, "Device");
  return out;
}

}  // namespace

Result<RecordedSpace> read_recorded(std::string bytes, const std::string& file) {
  ROOFGEN_TRY(std::string text, unpack(std::move(bytes), file, kMostBytes));
  // Kernel Tuner appends to its file, and writes the last brackets when it ends.
  std::string_view body = text;
  while (!body.empty() && std::string_view(" \t\r\n,").find(body.back()) != std::string_view::npos)
    body.remove_suffix(1);
  Result<JsonFile> parsed = JsonFile::parse(text, file, kMostBytes);
  if (!parsed && text.find("\"cache\"") != std::string::npos)
    if (Result<JsonFile> mended = JsonFile::parse(std::string(body) + "}}", file, kMostBytes))
      parsed = std::move(mended);
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.exit = Exit::kUsage;
    return error;
  }
  const Json& root = parsed->root();
  try {
    if (root.is_object() && root.contains("cache")) return read_cachefile(*parsed);
    if (root.is_object() && root.contains("results")) return read_t4(*parsed);
    if (root.is_object() && root.contains("Results")) return read_ktt(*parsed);
  } catch (const Error& error) {
    return error;
  }
  return Error{Exit::kUsage,
               "expected a Kernel Tuner cachefile (\"cache\"), a T4 file (\"results\") or the output of KTT "
               "(\"Results\")",
               parsed->place(root)};
}

}  // namespace roofgen
