#include <fmt/format.h>

#include "generator/problem_json.h"
#include "tuner/recording/recording.h"
#include "tuner/views/json.h"
#include "tuner/views/views.h"

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

}  // namespace

std::map<std::string, std::string> t4_files(const TuneReport& report) {
  std::map<std::string, Json> files;
  if (!report.gpu || report.gpu->timed == 0) return {};  // without one time it is no recorded space
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
                {"gpu", gpu_json(*report.gpu)},
                {"compiler", report.compiler}}},
              {"results", Json::array()}};
    }
    return file;
  };
  for (const TimedPoint& p : report.timed) {
    const Timing* t = ranking_timing(p.measurement);
    if (!t) continue;
    file_of(p.schedule)["results"].push_back(
        {{"timestamp", report.gpu->started},
         {"configuration", params_json(p.schedule)},
         {"objectives", {"time"}},
         {"times", times(&p, t->times_ns)},
         {"invalidity", "correct"},
         {"correctness", 1},
         {"measurements",
          {{{"name", "time"}, {"value", 1e-6 * t->median_ns}, {"unit", "ms"}},
           {{"name", "registers"}, {"value", p.registers}, {"unit", "per thread"}},
           {{"name", "shared_memory"}, {"value", p.smem_bytes}, {"unit", "bytes"}}}}});
  }
  for (const Rejected& r : report.rejections) {
    if (r.schedule.params.empty()) continue;  // a whole variant
    file_of(r.schedule)["results"].push_back(
        {{"timestamp", report.gpu->started},
         {"configuration", params_json(r.schedule)},
         {"objectives", {"time"}},
         {"times", times(nullptr, {})},
         {"invalidity", t4_invalidity(r.stage)},
         {"correctness", 0},
         {"measurements", {{{"name", "time"}, {"value", r.stage + ": " + r.reason}, {"unit", ""}}}}});
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, json] : files) out[name] = json_document(json, 1);
  return out;
}

}  // namespace roofgen
