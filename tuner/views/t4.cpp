#include "tuner/views/t4.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "generator/space/problem_json.h"
#include "tuner/recording/recording.h"
#include "tuner/views/measured.h"

namespace roofgen {
namespace {

Json times(const TimedPoint* point, const std::vector<double>& runtimes_ns) {
  Json ms = Json::array();
  for (double ns : runtimes_ns) ms.push_back(1e-6 * ns);
  return {{"compilation", point ? 1e3 * point->compile_s : 0},
          {"framework", 0},
          {"search_algorithm", 0},
          {"validation", point ? 1e3 * point->check_s : 0},
          {"runtimes", ms}};
}

/// Of a point that the model timed.
bool has_time(const TimedPoint& point) { return point.seconds > 0; }

}  // namespace

std::map<std::string, std::string> t4_files(const TuneReport& report) {
  std::map<std::string, Json> files;
  // Without one time it is no recorded space.
  if (report.gpu ? report.gpu->timed == 0 : std::ranges::none_of(report.timed, &has_time)) return {};
  const std::string timestamp = report.gpu ? report.gpu->started : "";
  std::map<std::string, double> predicted;  // milliseconds, by schedule
  const auto file_of = [&](const Schedule& s) -> Json& {
    Json& file =
        files[fmt::format("{}-{}{}{}.t4.json", report.problem.op, s.variant,
                          s.stage.empty() || s.stage == s.variant ? "" : "-", s.stage == s.variant ? "" : s.stage)];
    if (file.is_null()) {
      const Json problem = problem_json(report.problem);
      file = {{"schema_version", "1.0.0"},
              {"metadata",
               {{"timeunit", "milliseconds"},
                {"problem", problem},
                {"variant", s.variant},
                {"stage", s.stage},
                {"compiler", report.compiler}}},
              {"results", Json::array()}};
      Json& metadata = file["metadata"];
      if (report.gpu)
        metadata["gpu"] = gpu_json(*report.gpu);
      else
        metadata.update({{"origin", to_string(Origin::kModel)},
                         {"model", to_string(TimeModel::kInterval)},
                         {"device", report.device.name}});
    }
    return file;
  };
  for (const TimedPoint& p : report.timed) {
    if (p.predicted > 0) predicted[to_string(p.schedule)] = 1e3 * p.predicted;
    const Timing* t = p.measurement ? ranking_timing(*p.measurement) : nullptr;
    if (!t && !has_time(p)) continue;
    Json& results = file_of(p.schedule)["results"];
    results.push_back({{"timestamp", timestamp},
                       {"configuration", params_json(p.schedule.params)},
                       {"objectives", {"time"}},
                       {"times", times(&p, t ? t->times_ns : std::vector<double>())},
                       {"invalidity", "correct"},
                       {"correctness", 1},
                       {"measurements",
                        {{{"name", "time"}, {"value", t ? 1e-6 * t->median_ns : 1e3 * p.seconds}, {"unit", "ms"}},
                         {{"name", "predicted"}, {"value", 1e3 * p.predicted}, {"unit", "ms"}},
                         {{"name", "registers"}, {"value", p.registers}, {"unit", "per thread"}},
                         {{"name", "shared_memory"}, {"value", p.smem_bytes}, {"unit", "bytes"}}}}});
    if (!t) continue;
    // A time model needs the clock of a time, which the power limit sets.
    Json& measurements = results.back()["measurements"];
    for (const auto& [name, value, unit] :
         {std::tuple("sm_clock", p.measurement->sm_mhz, "MHz"), std::tuple("power", p.measurement->power_w, "W")})
      if (value > 0) measurements.push_back({{"name", name}, {"value", value}, {"unit", unit}});
  }
  for (const Rejected& r : report.rejections) {
    // A whole variant, or points that no search would try.
    if (r.schedule.params.empty() || r.stage == "constraint" || r.stage == "launch") continue;
    file_of(r.schedule)["results"].push_back(
        {{"timestamp", timestamp},
         {"configuration", params_json(r.schedule.params)},
         {"objectives", {"time"}},
         {"times", times(nullptr, {})},
         {"invalidity", t4_invalidity(r.stage)},
         {"correctness", 0},
         {"measurements", {{{"name", "time"}, {"value", r.stage + ": " + r.reason}, {"unit", ""}}}}});
    if (const auto known = predicted.find(to_string(r.schedule)); known != predicted.end())
      file_of(r.schedule)["results"].back()["measurements"].push_back(
          {{"name", "predicted"}, {"value", known->second}, {"unit", "ms"}});
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, json] : files) out[name] = json_document(json, 1);
  return out;
}

}  // namespace roofgen
