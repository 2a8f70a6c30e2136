// roofgen tune OP: search, verify, score, and say whether to fuse.
#include "tuner/session/tune.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/suite.h"
#include "tuner/views/text.h"

namespace roofgen::cli {
namespace {

/// Lines of a template that --explain-time lists.
constexpr size_t kExplainedLines = 10;

/// How the result is printed.
struct Form {
  bool json = false, details = false;
};

Result<Exit> run(const Terminal& terminal, const TuneRequest& request, const Form& form) {
  ROOFGEN_TRY(const TuneAnswer answer, tune(terminal, request));
  print_out(form.json ? json_document(answer_json(answer)) : answer_text(answer, form.details, terminal.use_color(1)));
  ROOFGEN_TRY(const auto times, write_tuned(terminal, request, answer));
  // With --json the explanation goes to standard error: the results stay one document.
  const auto explain = form.json ? print_err : print_out;
  if (request.explain && !answer.family) explain((form.json ? "" : "\n") + explain_text(answer.result.report));
  for (const profile::Report& r : times) explain("\n" + profile::profile_text(r, kExplainedLines));
  ROOFGEN_CHECK(conclusion(request, answer));
  return Exit::kOk;
}

}  // namespace

Run declare_tune(FlagSet app) {
  auto request = std::make_shared<TuneRequest>();
  auto suite = std::make_shared<SuiteRequest>();
  auto form = std::make_shared<Form>();
  request->declare(app);
  app.add_switch("--json", form->json, "one JSON document (docs/tune-schema.json)").group("Output");
  app.add_switch("--details", form->details, "all tables: registers, waves, factors of the time, what was verified")
      .group("Output");
  suite->declare(app);
  app.footer("Example: roofgen tune attention --L 2048 --d 64");
  return [request, suite, form, app](const Terminal& terminal) -> Result<Exit> {
    if (suite->asked()) return show_suite(terminal, *suite, request->min_score, form->json);
    if (app.find("--shard").given()) return Error{Exit::kUsage, "--shard needs --suite or --captured"};
    return run(terminal, *request, *form);
  };
}

}  // namespace roofgen::cli
