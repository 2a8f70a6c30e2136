// roofgen tune OP: search, verify, score, and say whether to fuse.
#include "tuner/session/tune.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/suite.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

/// Lines of a template that --explain-time lists.
constexpr size_t kExplainedLines = 10;

Result<Exit> run(const Terminal& terminal, const TuneRequest& request, bool json) {
  ROOFGEN_TRY(const TuneAnswer answer, tune(terminal, request));
  print_out(json ? json_document(answer_json(answer)) : answer_text(answer, terminal.use_color(1)));
  ROOFGEN_TRY(const auto times, write_tuned(terminal, request, answer));
  // With --json the explanation goes to standard error: the results stay one document.
  const auto explain = json ? print_err : print_out;
  if (request.explain && !answer.family) explain((json ? "" : "\n") + explain_text(answer.result.report));
  for (const profile::Report& r : times) explain("\n" + profile::profile_text(r, kExplainedLines));
  ROOFGEN_CHECK(conclusion(request, answer));
  return Exit::kOk;
}

}  // namespace

Run declare_tune(FlagSet app) {
  auto request = std::make_shared<TuneRequest>();
  auto suite = std::make_shared<SuiteRequest>();
  auto json = std::make_shared<bool>(false);
  request->declare(app);
  app.add_switch("--json", *json, "one JSON document (docs/tune-schema.json)").group("Output");
  suite->declare(app);
  app.footer("Example: roofgen tune attention --L 2048 --d 64");
  return [request, suite, json, app](const Terminal& terminal) -> Result<Exit> {
    if (suite->asked()) return show_suite(terminal, *suite, request->min_score, *json);
    if (app.find("--shard").given()) return Error{Exit::kUsage, "--shard needs --suite or --captured"};
    return run(terminal, *request, *json);
  };
}

}  // namespace roofgen::cli
