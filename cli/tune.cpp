// roofgen tune OP: search, verify, score, and say whether to fuse.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/problem_flags.h"
#include "tuner/views/page.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

struct Flags {
  ProblemFlags problem;
  RunFlags run;
  bool json = false, explain = false;
  std::string html;
  double min_score = 0;
};

Result<Exit> run(const Session& session, const Flags& flags) {
  ROOFGEN_TRY(Workbench bench, make_workbench(session, flags.problem, flags.run));
  ROOFGEN_TRY(TuneResult result, run_tune(session, bench, flags.problem, flags.run));
  const TuneReport& report = result.report;
  fmt::print("{}", flags.json ? tune_json(report) : tune_text(report, session.use_color(1)));
  if (!flags.html.empty() && !report.best_variant.empty()) {
    ROOFGEN_TRY(const plot::Page page, tune_page(nlohmann::ordered_json::parse(tune_json(report)), "result", *bench.files));
    ROOFGEN_CHECK(show_page(page, flags.html, *bench.files, session));
  }
  // With --json the explanation goes to stderr, so that stdout stays one document.
  if (flags.explain) fmt::print(flags.json ? stderr : stdout, "{}{}", flags.json ? "" : "\n", explain_text(report));
  if (report.interrupted) return Exit::kInterrupted;
  if (report.best_variant.empty()) return Exit::kFailed;
  if (report.score >= flags.min_score) return Exit::kOk;
  fmt::print(stderr, "roofgen: score {:.3f} is below --min-score {}\n", report.score, flags.min_score);
  return Exit::kBelowScore;
}

}  // namespace

Run declare_tune(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->problem.declare(app);
  flags->run.declare(app);
  app.add_flag("--json", flags->json, "one JSON document (docs/tune-schema.json)")->group("Output");
  app.add_option("--html", flags->html, "also write a self-contained page of figures here")->group("Output");
  app.add_flag("--explain", flags->explain, "list every rejection with its reason")->group("Output");
  app.add_option("--min-score", flags->min_score, "exit 4 when the score is below this")->check(CLI::Range(0.0, 1.0))->group("Output");
  app.footer("Example: roofgen tune attention --L 2048 --d 64");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli
