// roofgen tune OP: search, verify, score, and say whether to fuse.
#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"
#include "base/output_file.h"
#include "cli/family.h"
#include "cli/problem_flags.h"
#include "cli/suite.h"
#include "profile/profile.h"
#include "tuner/evidence/counters.h"
#include "tuner/evidence/sanitizer.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/views/page.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

struct TuneFlags {
  ProblemFlags problem;
  RunFlags run;
  FamilyFlags family;
  SuiteFlags suite;
  bool json = false, explain = false, counters = false, sanitize = false;
  std::string html;
  double min_score = 0, sm_clock = 0;
  bool explain_time = false;
};

/// Lines of a template that --explain-time lists.
constexpr size_t kExplainedLines = 10;

/// Where the time of each kernel of the best variant goes, by the model of one SM, which reads their machine code.
Result<std::vector<profile::Report>> explain_times(const Workbench& bench, const TuneResult& result, double sm_mhz) {
  std::vector<profile::Report> out;
  const auto winners = result.winners.find(result.report.best_variant);
  if (winners == result.winners.end()) return out;
  const std::vector<KernelReport>& kernels = result.report.find(result.report.best_variant)->kernels;
  for (size_t i = 0; i < winners->second.size(); ++i) {
    const TunedKernel& k = winners->second[i];
    profile::GeneratedKernel generated{k.program, k.binary, k.launch, result.report.compiler,
                                       initial_contents(*bench.op, bench.problem, {})};
    generated.sites = site_counts(k.lines);
    if (kernels[i].counted) generated.dram_bytes = kernels[i].work.dram_bytes;
    ROOFGEN_TRY(out.emplace_back(), profile::profile_generated(bench.device, generated, {sm_mhz}));
  }
  return out;
}

void add_explanations(const std::vector<profile::Report>& reports, plot::Page& page) {
  for (const profile::Report& r : reports) {
    page.facts.push_back({"limiter of " + r.kernel, fmt::format("{}; next lever: {}", r.limiter, r.next)});
    for (const std::string& d : r.doubts) page.warnings.push_back(fmt::format("{}: {}", r.kernel, d));
    const std::vector<plot::Block> blocks = profile::time_blocks(r, r.kernel + ": ");
    page.blocks.insert(page.blocks.end(), blocks.begin(), blocks.end());
  }
}

/// What other judges of the hardware say of the best variant; each may be missing, which costs a line.
struct SecondOpinions {
  std::optional<CounterReport> counters;
  std::optional<SanitizerReport> sanitizer;
};

SecondOpinions second_opinions(const Session& session, const Workbench& bench, const TuneResult& result,
                               const TuneFlags& flags) {
  SecondOpinions out;
  const TuneReport& report = result.report;
  if ((!flags.counters && !flags.sanitize) || report.best_variant.empty()) return out;
  auto request = counter_request(*bench.files, *bench.op, result, report.best_variant);
  if (!request) {
    session.warn("no counters: " + request.error().message);
    return out;
  }
  request->gpu = flags.run.gpu;
  request->stop = session.stop;
  if (flags.counters) {
    if (auto counted = count_on_gpu(*request))
      out.counters = std::move(*counted);
    else
      session.warn("no counters: " + counted.error().message);
  }
  if (flags.sanitize) {
    SanitizerRequest sanitizer;
    sanitizer.replay = request->replay;
    for (const KernelReport& k : report.find(report.best_variant)->kernels)
      sanitizer.findings.insert(sanitizer.findings.end(), k.verification.findings.begin(),
                                k.verification.findings.end());
    sanitizer.gpu = flags.run.gpu;
    sanitizer.stop = session.stop;
    out.sanitizer = sanitize(sanitizer);
  }
  return out;
}

/// ": stage: reason" of what most candidates that ran or were compiled fell by, or what ended the search before that.
std::string most_frequent_rejection(const TuneReport& report) {
  std::map<std::string, size_t> count;
  const Rejected* most = nullptr;
  for (const Rejected& r : report.rejections) {
    if (r.stage == "constraint" || r.stage == "launch" || r.stage == "feeder") continue;
    ++count[r.stage];
    // Among equals a wrong result says more than a spill.
    const auto rank = [&](const Rejected& x) { return std::pair(count[x.stage], x.stage == "verify"); };
    if (!most || rank(r) > rank(*most)) most = &r;
  }
  if (!most) return report.ended.empty() ? "" : ": " + report.ended;
  return fmt::format(": {}: {}", most->stage, most->reason.substr(0, most->reason.find('\n')));
}

std::string whole_json(const TuneReport& report, const SecondOpinions& opinions) {
  std::string text = tune_json(report);
  if (!opinions.counters && !opinions.sanitizer) return text;
  auto j = parse_json(text);
  if (opinions.counters) j["counters"] = parse_json(counters_json(*opinions.counters));
  if (opinions.sanitizer) j["sanitizer"] = parse_json(sanitizer_json(*opinions.sanitizer));
  return json_document(j);
}

/// The result; of an earlier run, without kernels, where the report is all that is asked for.
Result<TuneResult> search(const Session& session, Workbench& bench, const TuneFlags& flags) {
  const bool asks_more = flags.explain || flags.explain_time || flags.counters || flags.sanitize ||
                         !flags.html.empty() || !flags.run.record.empty() || session.kernels;
  if (!asks_more) {
    ROOFGEN_TRY(auto report, finished_report(session, bench, flags.problem, flags.run));
    if (report) return TuneResult{std::move(*report), {}, {}};
  }
  return run_tune(session, bench, flags.problem, flags.run);
}

Result<Exit> run(const Session& session, const TuneFlags& flags) {
  ROOFGEN_TRY(Workbench bench, make_workbench(session, flags.problem, flags.run));
  if ((flags.counters || flags.sanitize) && !bench.gpu)
    return Error{Exit::kUnavailable,
                 fmt::format("--{} needs a GPU; none was found", flags.counters ? "counters" : "sanitize")};
  if ((flags.counters || flags.sanitize) && bench.simulated_driver())
    return Error{Exit::kUnavailable, fmt::format("--{} asks the hardware, and the CUDA driver is simulated",
                                                 flags.counters ? "counters" : "sanitize")};
  // Places are tried before minutes are spent.
  if (!flags.run.record.empty()) ROOFGEN_CHECK(make_directory(flags.run.record));
  if (!flags.html.empty()) ROOFGEN_CHECK(session.outputs().check({flags.html}));
  ROOFGEN_TRY(const TuneResult result, search(session, bench, flags));
  const TuneReport& report = result.report;
  if (const auto best = result.winners.find(report.best_variant); best != result.winners.end() && session.kernels)
    session.kernels(best->second);
  const SecondOpinions opinions = second_opinions(session, bench, result, flags);
  if (flags.json) {
    session.out(whole_json(report, opinions));
  } else {
    session.out(tune_text(report, session.use_color(1)));
    if (opinions.counters) session.out("\n" + counters_text(*opinions.counters));
    if (opinions.sanitizer) session.out("\n" + sanitizer_text(*opinions.sanitizer));
  }
  std::vector<profile::Report> explained;
  const bool draws = !flags.html.empty() && !report.best_variant.empty();
  if (flags.explain_time || draws) {
    auto reports = explain_times(bench, result, flags.sm_clock);
    if (reports)
      explained = std::move(*reports);
    else if (flags.explain_time)
      return std::move(reports).error();
    else
      session.warn("the page does not explain the time: " + reports.error().message);
  }
  if (draws) {
    ROOFGEN_TRY(plot::Page page, tune_page(parse_json(tune_json(report)), "result", *bench.files));
    add_explanations(explained, page);
    ROOFGEN_CHECK(show_page(page, flags.html, *bench.files, session));
  }
  if (!flags.run.record.empty())
    for (const auto& [name, text] : t4_files(report)) ROOFGEN_CHECK(session.write(flags.run.record + "/" + name, text));
  // With --json the explanation goes beside the results, which stay one document.
  const Say& explain = flags.json ? session.err : session.out;
  if (flags.explain) explain((flags.json ? "" : "\n") + explain_text(report));
  if (flags.explain_time)
    for (const profile::Report& r : explained) explain("\n" + profile::profile_text(r, kExplainedLines));
  if (report.best_variant.empty())
    session.err(fmt::format(
        "roofgen: nothing was verified{}{}\n", most_frequent_rejection(report),
        flags.html.empty() && !flags.counters && !flags.sanitize ? "" : "; there is nothing to draw or to count"));
  if (report.interrupted) return Exit::kInterrupted;
  if (report.best_variant.empty() || (report.gpu && !report.gpu->lost_because.empty())) return Exit::kFailed;
  if (report.score.value >= flags.min_score) return Exit::kOk;
  session.err(fmt::format("roofgen: score {:.3f} is below --min-score {}\n", report.score.value, flags.min_score));
  return Exit::kBelowScore;
}

}  // namespace

Run declare_tune(FlagSet app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->problem.declare(app);
  flags->run.declare(app);
  app.add_switch("--json", flags->json, "one JSON document (docs/tune-schema.json)").group("Output");
  app.add("--html", flags->html, "also write a self-contained page of figures here").group("Output");
  app.add_switch("--explain", flags->explain, "list every rejection with its reason").group("Output");
  app.add_switch(
         "--explain-time", flags->explain_time,
         "model the winner's time from its machine code: limiter, stalls by template line (docs/use/profile.md)")
      .group("Output");
  app.add("--sm-clock", flags->sm_clock,
          "SM clock of --explain-time in MHz [the highest of the device, or its sustained one]")
      .group("Output");
  app.add("--min-score", flags->min_score, "exit 4 when the score is below this")
      .number_from(0, 1, "a score")
      .group("Output");
  app.add_switch("--counters", flags->counters, "count the winner's work with Nsight Compute (docs/use/counters.md)")
      .group("Measurement");
  app.add_switch("--sanitize", flags->sanitize, "run the winner under compute-sanitizer").group("Measurement");
  flags->family.declare(
      app, {"--html", "--explain", "--explain-time", "--counters", "--sanitize", "--record", "--min-score"});
  flags->suite.declare(app);
  app.footer("Example: roofgen tune attention --L 2048 --d 64");
  return [flags, app](const Session& session) -> Result<Exit> {
    if (flags->suite.given()) return tune_suite(session, flags->suite, app.given(), flags->min_score, flags->json);
    if (app.find("--shard").given()) return Error{Exit::kUsage, "--shard needs --suite or --captured"};
    if (const auto op = find_op(flags->problem.op); !op) return op.error();
    ROOFGEN_TRY(std::vector<Problem> problems, flags->problem.problems());
    if (problems.size() > 1) {
      ROOFGEN_TRY(const FamilyRun family,
                  tune_family(session, flags->problem, flags->run, flags->family, std::move(problems)));
      if (session.kernels)
        for (const auto& kernels : family.result.kernels) session.kernels(kernels);
      session.out(flags->json ? dispatch_json(family.result.table) : dispatch_text(family.result.table));
      return Exit::kOk;
    }
    ROOFGEN_CHECK(check_no_family(flags->family));
    return run(session, *flags);
  };
}

}  // namespace roofgen::cli
