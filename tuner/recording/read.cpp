#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/gzip.h"
#include "base/json_text.h"
#include "tuner/recording/recording.h"

namespace roofgen {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;  // of the text; the largest public file has 44 MB
constexpr double kMilli = 1e-3, kMicro = 1e-6;
/// The time of a failed point in cachefiles of Kernel Tuner that are older than its names of failures: no kernel takes
/// as long in any unit.
constexpr double kFailureMark = 1e20;
constexpr const char* kExpected =
    "expected a Kernel Tuner cachefile (\"cache\"), a T4 file (\"results\"), the output of KTT (\"Results\") or wisdom "
    "of Kernel Launcher (\"tunable_parameters\")";

/// Members of an item, or what is wrong with it. Throws Error.
class Checks {
 public:
  Checks(const JsonStream& stream, const JsonStream::Item& item) : stream_(stream), item_(item) {}
  [[noreturn]] void fail(const Json& at, std::string message, std::string_view member = "") const {
    throw stream_.fault(item_, at, std::move(message), member);
  }
  /// Fails with a message that is not empty.
  void accept(const std::string& message) const {
    if (!message.empty()) fail(item_.value, message);
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
  double time(const Json& number) const {
    const double out = number.get<double>();
    if (!(out > 0) || !std::isfinite(out)) fail(item_.value, "expected a time above 0");
    return out;
  }
  /// The text of a member that is one string.
  const std::string& text() const {
    if (!item_.value.is_string()) fail(item_.value, fmt::format("expected a string as \"{}\"", name()));
    return item_.value.get_ref<const std::string&>();
  }
  const std::string& name() const { return item_.key.empty() ? item_.member : item_.key; }

 private:
  const JsonStream& stream_;
  const JsonStream::Item& item_;
};

/// Adds an item of a list, or a value that stands alone.
void append(Json& to, const Json& value, bool in_list) {
  if (in_list)
    to.push_back(value);
  else
    to = value;
}

double unit_named(const Checks& check, const std::string& name) {
  // "miliseconds" is the spelling of the benchmark hub.
  static const std::map<std::string, double> kUnits = {
      {"seconds", 1},           {"milliseconds", kMilli}, {"miliseconds", kMilli},
      {"microseconds", kMicro}, {"nanoseconds", 1e-9},    {"Seconds", 1},
      {"Milliseconds", kMilli}, {"Microseconds", kMicro}, {"Nanoseconds", 1e-9}};
  const auto unit = kUnits.find(name);
  if (unit == kUnits.end())
    check.fail(Json(),
               fmt::format("expected seconds, milliseconds, microseconds or nanoseconds as \"{}\"", check.name()));
  return unit->second;
}

/// The three formats that are one JSON object.
class ObjectReader {
 public:
  explicit ObjectReader(const JsonStream& stream) : stream_(stream) {}

  Result<std::vector<Recording>> read() {
    ROOFGEN_CHECK(stream_.read([&](const JsonStream::Item& item) { take(item); }));
    if (!builder_) return stream_.fault(kExpected);
    Recording out = std::move(builder_->recording());
    if (format_ == Format::kKtt && !unit_) return stream_.fault("expected \"TimeUnit\" in \"Metadata\"");
    for (Recording::Point& p : out.points)
      for (double* const time : {&p.seconds, &p.predicted}) *time *= unit_.value_or(kMilli);
    out.device = device_;
    out.kernel = kernel_;
    out.problem = problem_;
    if (!origin_.empty()) out.origin = origin_;
    return std::vector<Recording>{std::move(out)};
  }

 private:
  enum class Format { kNone, kCachefile, kT4, kKtt };

  void take(const JsonStream::Item& item) {
    const Checks check(stream_, item);
    if (item.member == "cache")
      begin(check, Format::kCachefile, "Kernel Tuner cachefile"), take_cached(item, check);
    else if (item.member == "results")
      begin(check, Format::kT4, "T4"), take_result(item.value, check);
    else if (item.member == "Results")
      begin(check, Format::kKtt, "KTT"), take_ktt(item.value, check);
    else if (item.member == "tune_params_keys")
      names_.push_back(check.text());
    else if (item.member == "device_name")
      device_ = json_words(item.value);
    else if (item.member == "kernel_name")
      kernel_ = json_words(item.value);
    else if (item.member == "problem_size")
      append(problem_, item.value, item.in_list);
    else if (item.member == "metadata" || item.member == "Metadata" || item.member == "roofgen")
      take_metadata(item, check);
  }

  void begin(const Checks& check, Format format, const char* name) {
    if (format_ != Format::kNone && format_ != format)
      check.fail(Json(), "expected one of \"cache\", \"results\" and \"Results\"");
    format_ = format;
    if (!builder_) builder_.emplace(name);
  }

  void take_metadata(const JsonStream::Item& item, const Checks& check) {
    if (item.key == "timeunit" || item.key == "TimeUnit") unit_ = unit_named(check, check.text());
    if (item.key == "device" || item.key == "Device") device_ = json_words(item.value);
    if (item.key == "kernel") kernel_ = json_words(item.value);
    if (item.key == "problem") problem_ = item.value;
    if (item.key == "time_origin") origin_ = check.text();
  }

  void take_cached(const JsonStream::Item& item, const Checks& check) {
    const Json& entry = item.value;
    if (item.key.empty()) check.fail(entry, "expected an object as \"cache\"");
    if (names_.empty()) check.fail(entry, "expected \"tune_params_keys\" before \"cache\"");
    for (const std::string& name : names_) check.accept(builder_->value(name, check.member(entry, name.c_str())));
    // A failed point has a string as its time in files of versions up to 1.0, "__error__" in those after.
    const Json& time = entry.contains("__error__") ? entry.at("__error__") : check.member(entry, "time");
    Recording::Point point;
    if (time.is_string()) {
      point.reason = time.get<std::string>();
      point.failure = point.reason == "CompilationFailedConfig" ? "compile"
                      : point.reason == "InvalidConfig"         ? "constraints"
                                                                : "runtime";
    } else if (time.is_number() && time.get<double>() >= kFailureMark) {
      point.reason = point.failure = "runtime";
    } else if (time.is_number()) {
      point.seconds = check.time(time);
    } else {
      check.fail(entry, "expected a number or a string as \"time\"", "time");
    }
    check.accept(builder_->finish(std::move(point)));
  }

  void take_result(const Json& result, const Checks& check) {
    const Json& configuration = check.member(result, "configuration");
    if (!configuration.is_object()) check.fail(result, "expected an object as \"configuration\"", "configuration");
    for (const auto& [name, value] : configuration.items()) check.accept(builder_->value(name, value));
    const std::string& invalidity = check.text(result, "invalidity");
    // Some writers leave both out of a failed point, which has no time to name.
    const Json objectives = result.contains("objectives") ? check.list(result, "objectives") : Json({"time"});
    if (objectives.size() != 1) check.fail(result, "expected one objective", "objectives");
    const Json* measured = nullptr;
    Recording::Point point;
    if (invalidity == "correct" || result.contains("measurements"))
      for (const Json& measurement : check.list(result, "measurements")) {
        const Json& name = check.member(measurement, "name");
        const Json& value = check.member(measurement, "value");
        if (name == objectives[0]) measured = &value;
        if (name == "predicted" && value.is_number()) point.predicted = check.time(value);
      }
    if (invalidity == "correct") {
      if (!measured || !measured->is_number())
        check.fail(result, fmt::format("expected a number as the measurement \"{}\"", json_words(objectives[0])),
                   "measurements");
      point.seconds = check.time(*measured);
    } else {
      static const std::vector<std::string> kWords = {"timeout", "compile", "runtime", "correctness", "constraints"};
      if (std::find(kWords.begin(), kWords.end(), invalidity) == kWords.end())
        check.fail(result, fmt::format("expected correct, {} as \"invalidity\"", fmt::join(kWords, ", ")),
                   "invalidity");
      point.failure = invalidity;
      point.reason = measured && measured->is_string() ? measured->get<std::string>() : invalidity;
    }
    check.accept(builder_->finish(std::move(point)));
  }

  void take_ktt(const Json& result, const Checks& check) {
    for (const Json& pair : check.list(result, "Configuration"))
      check.accept(builder_->value(check.text(pair, "Name"), check.member(pair, "Value")));
    const std::string& status = check.text(result, "Status");
    Recording::Point point;
    if (status == "Ok") {
      const Json& time = check.member(result, "TotalDuration");
      if (!time.is_number()) check.fail(result, "expected a number as \"TotalDuration\"", "TotalDuration");
      point.seconds = check.time(time);
    } else {
      point.failure = status == "CompilationFailed"      ? "compile"
                      : status == "ValidationFailed"     ? "correctness"
                      : status == "DeviceLimitsExceeded" ? "constraints"
                                                         : "runtime";
      point.reason = status;
    }
    if (kernel_.empty() && result.contains("KernelName")) kernel_ = json_words(result.at("KernelName"));
    check.accept(builder_->finish(std::move(point)));
  }

  const JsonStream& stream_;
  Format format_ = Format::kNone;
  std::optional<RecordingBuilder> builder_;
  std::vector<std::string> names_;
  // Metadata may come after the results.
  std::optional<double> unit_;
  std::string device_, kernel_, origin_;
  Json problem_;
};

/// Wisdom: an object a line, the first one the header. Rows of each problem and device are one recording.
class WisdomReader {
 public:
  Result<std::vector<Recording>> read(std::string_view text, const std::string& file) {
    int line = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string one(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line;
      if (one.find_first_not_of(" \t\r") == std::string::npos || one[0] == '#') continue;
      const JsonStream stream(one, file, line);
      row_ = {};
      config_ = Json::array();
      size_ = Json();
      device_.clear();
      origin_ = "recorded";
      ROOFGEN_CHECK(stream.read([&](const JsonStream::Item& item) { take(item, Checks(stream, item)); }));
      if (line_of_header_ == 0) {
        if (names_.empty()) return stream.fault("expected \"tunable_parameters\"");
        line_of_header_ = line;
        continue;
      }
      ROOFGEN_CHECK(finish(stream));
    }
    std::vector<Recording> out;
    for (const std::string& key : order_) out.push_back(std::move(builders_.at(key).recording()));
    return out;
  }

 private:
  void take(const JsonStream::Item& item, const Checks& check) {
    if (line_of_header_ == 0) {
      if (item.member == "version" && item.value != "1.0") check.fail(item.value, "expected the version \"1.0\"");
      if (item.member == "objective" && item.value != "time") check.fail(item.value, "expected the objective \"time\"");
      if (item.member == "tunable_parameters") names_.push_back(check.text());
      if (item.member == "key") kernel_ = check.text();
    } else if (item.member == "config") {
      config_.push_back(item.value);
    } else if (item.member == "problem_size") {
      if (size_.is_null()) size_ = Json::array();
      size_.push_back(item.value);
    } else if (item.member == "environment") {
      if (item.key == "device_name") device_ = check.text();
      if (item.key == "time_origin") origin_ = check.text();
    } else if (item.member == "time") {
      if (!item.value.is_number()) check.fail(item.value, "expected a number as \"time\"");
      row_.seconds = kMilli * check.time(item.value);
    }
  }

  Result<void> finish(const JsonStream& stream) {
    if (config_.size() != names_.size())
      return stream.fault(fmt::format("expected {} values as \"config\"", names_.size()));
    if (row_.seconds == 0) return stream.fault("expected an object with \"time\"");
    const std::string key = json_line(Json{size_, device_, origin_});
    const auto [place, is_new] = builders_.try_emplace(key, "Kernel Launcher wisdom");
    RecordingBuilder& builder = place->second;
    if (is_new) {
      order_.push_back(key);
      builder.recording().device = device_;
      builder.recording().kernel = kernel_;
      builder.recording().problem = size_;
      builder.recording().origin = origin_;
    }
    for (size_t i = 0; i < names_.size(); ++i)
      if (std::string wrong = builder.value(names_[i], config_[i]); !wrong.empty())
        return stream.fault(std::move(wrong));
    if (std::string wrong = builder.finish(row_); !wrong.empty()) return stream.fault(std::move(wrong));
    return {};
  }

  int line_of_header_ = 0;
  std::vector<std::string> names_, order_;
  std::string kernel_, device_, origin_;
  Json config_, size_;
  Recording::Point row_;
  std::map<std::string, RecordingBuilder> builders_;
};

}  // namespace

Result<std::vector<Recording>> read_recordings(std::string bytes, const std::string& file) {
  ROOFGEN_TRY(std::string text, unpack(std::move(bytes), file, kMostBytes));
  if (text.size() > kMostBytes) return Error{Exit::kUsage, fmt::format("larger than {} MiB", kMostBytes >> 20), {file}};
  const size_t first_line = std::min(text.find('\n'), text.size());
  if (std::string_view(text).substr(0, first_line).find("\"tunable_parameters\"") != std::string_view::npos)
    return WisdomReader().read(text, file);
  const JsonStream whole(text, file);
  Result<std::vector<Recording>> read = ObjectReader(whole).read();
  if (read || text.find("\"cache\"") == std::string::npos) return read;
  // Kernel Tuner appends to its file, and writes the last brackets when it ends.
  text.resize(text.find_last_not_of(" \t\r\n,") + 1);
  for (const char* end : {"}}", "}"}) {
    const JsonStream mended(text + end, file);
    if (Result<std::vector<Recording>> again = ObjectReader(mended).read()) return again;
  }
  return read;
}

}  // namespace roofgen
