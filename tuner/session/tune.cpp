#include "tuner/session/tune.h"

#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "base/output_file.h"
#include "tuner/views/counters.h"
#include "tuner/views/json.h"
#include "tuner/views/page.h"
#include "tuner/views/t4.h"
#include "tuner/views/text.h"

namespace roofgen {
namespace {

/// Where the time of each kernel of the best variant goes, by the model of one SM, which reads their machine code.
Result<std::vector<profile::Report>> explain_times(const Workbench& bench, const TuneResult& result, double sm_mhz) {
  std::vector<profile::Report> out;
  const auto winners = result.winners.find(result.report.best_variant);
  if (winners == result.winners.end()) return out;
  const std::vector<KernelReport>& kernels = result.report.find(result.report.best_variant)->kernels;
  for (size_t i = 0; i < winners->second.size(); ++i) {
    const TunedKernel& k = winners->second[i];
    profile::GeneratedKernel generated{k.program, k.binary, k.launch, result.report.compiler,
                                       initial_contents(*bench.op, bench.problem, k.temporaries)};
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

/// What other judges of the hardware say of the best variant; each may be missing, which costs a warning.
void ask_others(const Session& session, const TuneRequest& request, TuneAnswer& answer) {
  const TuneReport& report = answer.result.report;
  if ((!request.counters && !request.sanitize) || report.best_variant.empty()) return;
  auto counting = counter_request(*answer.bench.files, *answer.bench.op, answer.result, report.best_variant);
  if (!counting) return session.warn("no counters: " + counting.error().message);
  counting->gpu = request.run.gpu;
  counting->stop = session.stop;
  if (request.counters) {
    if (auto counted = count_on_gpu(*counting))
      answer.counters = std::move(*counted);
    else
      session.warn("no counters: " + counted.error().message);
  }
  if (!request.sanitize) return;
  SanitizerRequest sanitizing;
  sanitizing.replay = counting->replay;
  for (const KernelReport& k : report.find(report.best_variant)->kernels)
    sanitizing.findings.insert(sanitizing.findings.end(), k.verification.findings.begin(),
                               k.verification.findings.end());
  sanitizing.gpu = request.run.gpu;
  sanitizing.stop = session.stop;
  answer.sanitizer = sanitize(sanitizing);
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

/// The result; of an earlier search, without kernels, where the report is all that is asked for.
Result<TuneResult> search(const Session& session, Workbench& bench, const TuneRequest& request) {
  const bool asks_more = request.explain || request.explain_time || request.counters || request.sanitize ||
                         !request.html.empty() || !request.run.record.empty() || request.kernels;
  if (!asks_more) {
    ROOFGEN_TRY(auto report, finished_report(session, bench, request.problem, request.run));
    if (report) return TuneResult{std::move(*report), {}, {}};
  }
  return run_search(session, bench, request.problem, request.run);
}

/// --counters and --sanitize ask a GPU.
Result<void> check_judges(const TuneRequest& request, const Workbench& bench) {
  if (!request.counters && !request.sanitize) return {};
  const char* const flag = request.counters ? "counters" : "sanitize";
  if (!bench.gpu) return Error{Exit::kUnavailable, fmt::format("--{} needs a GPU; none was found", flag)};
  if (bench.simulated_driver())
    return Error{Exit::kUnavailable, fmt::format("--{} asks the hardware, and the CUDA driver is simulated", flag)};
  return {};
}

}  // namespace

void TuneRequest::declare(FlagSet app) {
  problem.declare(app);
  run.declare(app);
  app.add("--html", html, "also write a self-contained page of figures here").group("Output");
  app.add_switch("--explain", explain, "list every rejection with its reason").group("Output");
  app.add_switch(
         "--explain-time", explain_time,
         "model the winner's time from its machine code: limiter, stalls by template line (docs/use/profile.md)")
      .group("Output");
  app.add("--sm-clock", sm_clock, "SM clock of --explain-time in MHz [the highest of the device, or its sustained one]")
      .group("Output");
  app.add("--min-score", min_score, "exit 4 when the score is below this").number_from(0, 1, "a score").group("Output");
  app.add_switch("--counters", counters, "count the winner's work with Nsight Compute (docs/use/counters.md)")
      .group("Measurement");
  app.add_switch("--sanitize", sanitize, "run the winner under compute-sanitizer").group("Measurement");
  family.declare(app, {"--html", "--explain", "--explain-time", "--counters", "--sanitize", "--record", "--min-score"});
}

std::vector<TunedKernel> TuneAnswer::kernels() const {
  std::vector<TunedKernel> out;
  if (family)
    for (const auto& kernels : family->kernels) out.insert(out.end(), kernels.begin(), kernels.end());
  if (const auto best = result.winners.find(result.report.best_variant); best != result.winners.end())
    out.insert(out.end(), best->second.begin(), best->second.end());
  return out;
}

Result<TuneAnswer> tune(const Session& session, const TuneRequest& request) {
  ROOFGEN_TRY(const Op* op, find_op(DataFiles(session.data_dirs), request.problem.op));
  ROOFGEN_TRY(std::vector<Problem> problems, request.problem.problems());
  TuneAnswer out;
  if (problems.size() > 1) {
    ROOFGEN_TRY(FamilyRun run, tune_family(session, request.problem, request.run, request.family, std::move(problems)));
    out.bench = std::move(run.bench);
    out.family = std::move(run.result);
    return out;
  }
  ROOFGEN_CHECK(check_no_family(request.family));
  ROOFGEN_TRY(out.bench, make_workbench(session, *op, std::move(problems.front()), request.problem, request.run));
  ROOFGEN_CHECK(check_judges(request, out.bench));
  // Places are tried before minutes are spent.
  if (!request.run.record.empty()) ROOFGEN_CHECK(make_directory(request.run.record));
  if (!request.html.empty()) ROOFGEN_CHECK(session.outputs().check({request.html}));
  ROOFGEN_TRY(out.result, search(session, out.bench, request));
  ask_others(session, request, out);
  return out;
}

Json answer_json(const TuneAnswer& answer) {
  if (answer.family) return dispatch_json(answer.family->table);
  Json out = tune_json(answer.result.report);
  if (answer.counters) out["counters"] = counters_json(*answer.counters);
  if (answer.sanitizer) out["sanitizer"] = sanitizer_json(*answer.sanitizer);
  return out;
}

std::string answer_text(const TuneAnswer& answer, bool details, bool color) {
  if (answer.family) return dispatch_text(answer.family->table);
  std::string out = details ? details_text(answer.result.report, color) : tune_text(answer.result.report, color);
  if (answer.counters) out += "\n" + counters_text(*answer.counters);
  if (answer.sanitizer) out += "\n" + sanitizer_text(*answer.sanitizer);
  return out;
}

Result<std::vector<profile::Report>> write_tuned(const Session& session, const TuneRequest& request,
                                                 const TuneAnswer& answer) {
  std::vector<profile::Report> explained;
  if (answer.family) return explained;
  const TuneReport& report = answer.result.report;
  const bool draws = !request.html.empty() && !report.best_variant.empty();
  if (request.explain_time || draws) {
    auto reports = explain_times(answer.bench, answer.result, request.sm_clock);
    if (reports)
      explained = std::move(*reports);
    else if (request.explain_time)
      return std::move(reports).error();
    else
      session.warn("the page does not explain the time: " + reports.error().message);
  }
  if (draws) {
    ROOFGEN_TRY(plot::Page page, tune_page(tune_json(report), "result", *answer.bench.files));
    add_explanations(explained, page);
    ROOFGEN_CHECK(session.write_page(request.html, page, *answer.bench.files));
  }
  if (!request.run.record.empty())
    for (const auto& [name, text] : t4_files(report))
      ROOFGEN_CHECK(session.write(request.run.record + "/" + name, text));
  if (!request.explain_time) explained.clear();
  return explained;
}

Result<void> conclusion(const TuneRequest& request, const TuneAnswer& answer) {
  if (answer.family) return {};
  const TuneReport& report = answer.result.report;
  std::string nothing;
  if (report.best_variant.empty())
    nothing = fmt::format(
        "nothing was verified{}{}", most_frequent_rejection(report),
        request.html.empty() && !request.counters && !request.sanitize ? "" : "; there is nothing to draw or to count");
  if (report.interrupted) return Error{Exit::kInterrupted, nothing};
  if (report.best_variant.empty() || (report.gpu && !report.gpu->lost_because.empty()))
    return Error{Exit::kFailed, nothing};
  if (report.score.value >= request.min_score) return {};
  return Error{Exit::kBelowScore,
               fmt::format("score {:.3f} is below --min-score {}", report.score.value, request.min_score)};
}

}  // namespace roofgen
