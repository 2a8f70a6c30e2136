// roofgen tune --suite: the results of many problems.
#include "cli/suite.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"

namespace roofgen::cli {
namespace {

std::string suite_text(const std::vector<Json>& results) {
  TextTable table({"problem", "best", "time", "score", "verdict", "new evaluations"});
  table.left(0).left(1).left(4);
  std::string errors;
  for (const Json& r : results) {
    const std::string name = fmt::format("{} {}", r["op"].get<std::string>(), r["flags"].get<std::string>());
    if (r.contains("error")) {
      table.row({name, "-", "-", "-", "failed", "-"});
      errors += fmt::format("failed    {}: {}\n", name, r["error"].get<std::string>());
      continue;
    }
    const Json& report = r["result"];
    double us = 0;
    for (const Json& variant : report["variants"])
      if (variant["name"] == report["best_variant"]) variant["time_us"].get_to(us);
    table.row({name, report["best_variant"].get<std::string>(), time_text(1e-6 * us),
               fmt::format("{:.2f}", report["score"].get<double>()), report["verdict"]["decision"].get<std::string>(),
               std::to_string(report["fresh"]["simulated"].get<uint64_t>())});
  }
  return table.str() + (errors.empty() ? "" : "\n" + errors);
}

}  // namespace

Result<Exit> show_suite(const Terminal& terminal, const SuiteRequest& request, double min_score, bool json) {
  ROOFGEN_TRY(const std::optional<SuiteAnswer> answer, tune_suite(terminal, request));
  if (!answer) return Exit::kOk;
  const std::vector<Json>& results = answer->results;
  bool failed = false, below = false;
  for (const Json& result : results) {
    if (result.contains("error"))
      failed = true;
    else
      below |= result["result"]["score"].get<double>() < min_score;
  }
  print_out(json
                ? json_document({{"schema", "roofgen.suite-result.1"}, {"shard", request.shard}, {"problems", results}})
                : suite_text(results));
  if (answer->interrupted)
    return Error{Exit::kInterrupted, fmt::format("stopped after {} of {} problems; the same command goes on",
                                                 results.size(), answer->problems)};
  if (failed) return Exit::kFailed;
  if (!below) return Exit::kOk;
  return Error{Exit::kBelowScore, fmt::format("a score is below --min-score {}", min_score)};
}

}  // namespace roofgen::cli
