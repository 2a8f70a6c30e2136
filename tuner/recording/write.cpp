#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "tuner/recording/recording.h"

namespace roofgen {
namespace {

constexpr size_t kWisdomRows = 5;  // as Kernel Launcher's own script
constexpr double kMillisecond = 1e-3;

/// The number of milliseconds that the reader turns into exactly these seconds, where there is one.
double milliseconds(double seconds) {
  const double near = seconds / kMillisecond;
  for (const double ms : {near, std::nextafter(near, 0), std::nextafter(near, INFINITY)})
    if (ms * kMillisecond == seconds) return ms;
  return near;
}

/// As Python prints it: the cachefile's keys and T1's lists are such text.
std::string python_text(const Json& value, bool quoted) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string() && quoted) return "'" + value.get<std::string>() + "'";
  return json_words(value);
}

std::string lines(const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, ",\n")); }

Json tune_params(const Recording& r) {
  Json out = Json::object();
  for (size_t i = 0; i < r.names.size(); ++i) out[r.names[i]] = r.values[i];
  return out;
}

/// Kernel Tuner reads the times of compilation and the like as numbers; they are not known here.
std::string cachefile(const Recording& r) {
  std::vector<std::string> entries;
  for (const Recording::Point& p : r.points) {
    std::vector<std::string> key;
    for (size_t i = 0; i < r.names.size(); ++i) key.push_back(python_text(r.values[i][p.row[i]], false));
    Json entry = r.configuration(p);
    if (p.failure.empty()) {
      entry["time"] = milliseconds(p.seconds);
      entry["times"] = {milliseconds(p.seconds)};
    } else {
      entry["time"] = p.failure == "compile"       ? "CompilationFailedConfig"
                      : p.failure == "constraints" ? "InvalidConfig"
                                                   : "RuntimeFailedConfig";
    }
    for (const char* unknown :
         {"compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"})
      entry[unknown] = 0;
    entries.push_back(fmt::format("{}: {}", json_line(Json(fmt::format("{}", fmt::join(key, ",")))), json_line(entry)));
  }
  const Json head = {{"device_name", r.device},
                     {"kernel_name", r.kernel},
                     {"problem_size", r.problem},
                     {"tune_params_keys", r.names},
                     {"tune_params", tune_params(r)},
                     {"objective", "time"},
                     {"roofgen", {{"time_origin", r.origin}}}};
  const std::string object = json_line(head);
  return fmt::format("{},\n\"cache\": {{\n{}}}\n}}\n", object.substr(0, object.size() - 1), lines(entries));
}

std::string t4(const Recording& r) {
  std::vector<std::string> results;
  for (const Recording::Point& p : r.points) {
    const bool timed = p.failure.empty();
    Json measurements = Json::array();
    const Json time = timed ? Json(milliseconds(p.seconds)) : Json(p.reason);
    measurements.push_back({{"name", "time"}, {"value", time}, {"unit", timed ? "ms" : ""}});
    if (p.predicted > 0)
      measurements.push_back({{"name", "predicted"}, {"value", milliseconds(p.predicted)}, {"unit", "ms"}});
    results.push_back(json_line(Json{{"configuration", r.configuration(p)},
                                     {"objectives", {"time"}},
                                     {"times", {{"runtimes", timed ? Json::array({time}) : Json::array()}}},
                                     {"invalidity", timed ? "correct" : p.failure},
                                     {"correctness", timed ? 1 : 0},
                                     {"measurements", measurements}}));
  }
  const Json metadata = {{"timeunit", "milliseconds"},
                         {"device", r.device},
                         {"kernel", r.kernel},
                         {"problem", r.problem},
                         {"time_origin", r.origin}};
  return fmt::format("{{\"schema_version\": \"1.0.0\",\n\"metadata\": {},\n\"results\": [\n{}]}}\n",
                     json_line(metadata), lines(results));
}

std::string t1(const Recording& r) {
  Json parameters = Json::array();
  for (size_t i = 0; i < r.names.size(); ++i) {
    const std::vector<Json>& values = r.values[i];
    const auto all = [&](auto is) { return std::ranges::all_of(values, is); };
    const char* type = all([](const Json& v) { return v.is_boolean(); })           ? "bool"
                       : all([](const Json& v) { return v.is_number_unsigned(); }) ? "uint"
                       : all([](const Json& v) { return v.is_number_integer(); })  ? "int"
                       : all([](const Json& v) { return v.is_number(); })          ? "float"
                                                                                   : "string";
    std::vector<std::string> texts;
    for (const Json& v : values)
      texts.push_back(python_text(v.is_string() || type != std::string("string") ? v : Json(json_words(v)), true));
    parameters.push_back(
        {{"Name", r.names[i]}, {"Type", type}, {"Values", fmt::format("[{}]", fmt::join(texts, ", "))}});
  }
  return json_document(Json{{"ConfigurationSpace", {{"TuningParameters", parameters}}},
                            {"General", {{"FormatVersion", 1}, {"TimeUnit", "Milliseconds"}}},
                            {"KernelSpecification",
                             {{"Language", "CUDA"},
                              {"Device", {{"Name", r.device}}},
                              {"KernelName", r.kernel},
                              {"KernelFile", ""},
                              {"GlobalSize", {{"X", ""}}},
                              {"LocalSize", {{"X", ""}}}}}},
                       2);
}

/// The sizes of a problem: of another tool's as they are, of ours the numbers of its text in their order.
Json sizes(const Json& problem) {
  if (problem.is_number()) return Json::array({problem});
  if (!problem.is_string()) return problem.is_array() ? problem : Json::array();
  Json out = Json::array();
  const std::string& text = problem.get_ref<const std::string&>();
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    const Json number = parse_json(text.substr(at + 1, text.find(' ', at) - at - 1));
    if (number.is_number_integer()) out.push_back(number);
  }
  return out;
}

std::string wisdom(const Recording& r) {
  std::vector<const Recording::Point*> best;
  for (const Recording::Point& p : r.points)
    if (p.failure.empty()) best.push_back(&p);
  std::ranges::stable_sort(best, {}, [](const Recording::Point* p) { return p->seconds; });
  best.resize(std::min(best.size(), kWisdomRows));
  std::string out =
      json_line(Json{{"version", "1.0"}, {"objective", "time"}, {"tunable_parameters", r.names}, {"key", r.kernel}});
  for (const Recording::Point* p : best) {
    Json config = Json::array();
    for (size_t i = 0; i < r.names.size(); ++i) config.push_back(r.values[i][p->row[i]]);
    out += "\n" + json_line(Json{{"config", config},
                                 {"problem_size", sizes(r.problem)},
                                 {"environment", {{"device_name", r.device}, {"time_origin", r.origin}}},
                                 {"time", milliseconds(p->seconds)}});
  }
  return out + "\n";
}

}  // namespace

const std::vector<std::string>& recording_formats() {
  static const std::vector<std::string> kNames = {"cachefile", "t4", "t1", "wisdom"};
  return kNames;
}

Result<std::string> write_recording(const Recording& recording, const std::string& format) {
  if (format == "cachefile") return cachefile(recording);
  if (format == "t4") return t4(recording);
  if (format == "t1") return t1(recording);
  if (format == "wisdom") return wisdom(recording);
  return Error{Exit::kUsage, fmt::format("unknown format \"{}\"{}", format, did_you_mean(format, recording_formats()))};
}

}  // namespace roofgen
