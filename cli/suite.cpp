#include "cli/suite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/progress.h"
#include "cli/winner.h"
#include "tuner/suite/desk.h"
#include "tuner/suite/ranks.h"
#include "tuner/suite/suite.h"
#include "tuner/views/views.h"

namespace roofgen::cli {
namespace {

/// A problem of the suite with its flags, as if it were a command line of its own.
struct Job {
  CommandLine line{"roofgen", "", ""};  ///< which `run` refers to
  ProblemFlags problem;
  RunFlags run;
  std::string flags;  ///< as for a shell
  std::string text;   ///< of the problem
};

Result<std::unique_ptr<Job>> parse_job(const SuiteProblem& problem, const FlagValues& given) {
  auto job = std::make_unique<Job>();
  const FlagSet flags = job->line.add_command("tune", "");
  job->problem.declare(flags);
  job->run.declare(flags);
  FlagValues all = problem.flags;
  for (const auto& flag : given) {
    const bool own = std::ranges::any_of(problem.flags, [&](const auto& f) { return f.first == flag.first; });
    if (!own && flags.has(flag.first)) all.push_back(flag);
  }
  const auto parsed = job->line.parse(command_words("tune", problem.op, all));
  if (!parsed) return at(problem, parsed.error());
  const auto op = find_op(job->problem.op);
  if (!op) return at(problem, op.error());
  auto complete = job->problem.problem();
  if (complete) complete = (*op)->complete(std::move(*complete));
  if (!complete) return at(problem, complete.error());
  job->flags = shell_words(all);
  job->text = to_string(*complete);
  return job;
}

/// The result of one problem as one line of JSON.
Json tune_job(const Session& session, Job& job, const std::set<std::string>& siblings, SuiteDesk& desk) {
  Json out{{"op", job.problem.op}, {"flags", job.flags}};
  job.run.open_store = [&] { return desk.store(); };
  auto bench = make_workbench(session, job.problem, job.run);
  auto options = bench ? tune_options(session, *bench, job.problem, job.run) : Result<TuneOptions>(bench.error());
  if (options) options->siblings = siblings;
  auto result =
      options ? tune({bench->resources(), *bench->op}, bench->problem, *options) : Result<TuneResult>(options.error());
  if (!result)
    out["error"] = result.error().message;
  else if (result->report.best_variant.empty())
    out["error"] = "nothing was verified";
  if (result && !job.run.no_store) keep_winner(session, *bench, *options, result->report);
  if (result) out["result"] = parse_json(tune_json(result->report));
  return out;
}

/// Each rank has a GPU and a share of the cores of its machine.
void share_machine(const Ranks& ranks, RunFlags& run) {
  run.gpu = ranks.node_rank();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // those that the launcher left to this rank
  const int all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (run.jobs == 0) run.jobs = std::max(1, std::min(cores, all / ranks.node_size()));
}

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
      if (variant["name"] == report["best_variant"]) us = variant["time_us"];
    table.row({name, report["best_variant"], time_text(1e-6 * us), fmt::format("{:.2f}", report["score"].get<double>()),
               report["verdict"]["decision"], std::to_string(report["fresh"]["simulated"].get<uint64_t>())});
  }
  return table.str() + (errors.empty() ? "" : "\n" + errors);
}

}  // namespace

void SuiteFlags::declare(FlagSet app) {
  const Flag suite =
      app.add("--suite", file,
              "tune the problems of this JSON file instead of one (docs/use/suite.md); under mpirun, by all "
              "processes")
          .group("Suite");
  const Flag launched = app.add("--captured", captured,
                                "the same for the problems that programs launched under ROOFGEN_CAPTURE=FILE "
                                "(docs/use/library.md), most launches first")
                            .group("Suite")
                            .excludes(suite);
  app.add("--shard", shard, "only part I of N of the suite, as in 2/8, for arrays of jobs [1/1]").group("Suite");
  for (const char* other :
       {"op", "--html", "--explain", "--explain-time", "--counters", "--sanitize", "--record", "--table", "--within"})
    for (const Flag& many : {suite, launched}) many.excludes(app.find(other));
}

Result<Exit> tune_suite(const Session& session, const SuiteFlags& flags, const FlagValues& given, double min_score,
                        bool json) {
  ROOFGEN_TRY(const Shard shard, parse_shard(flags.shard));
  const bool captured = flags.file.empty();
  ROOFGEN_TRY(std::string text, read_input(captured ? flags.captured : flags.file));
  ROOFGEN_TRY(const std::vector<SuiteProblem> problems,
              captured ? read_captured(text, flags.captured) : read_suite(std::move(text), flags.file));
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<size_t> chosen;
  for (const SuiteProblem& p : problems) {
    ROOFGEN_TRY(jobs.emplace_back(), parse_job(p, given));
    if (shard.has(jobs.size() - 1)) chosen.push_back(jobs.size() - 1);
  }
  // No problem begins with schedules of another one: the results do not depend on the order of the ranks.
  std::set<std::string> siblings;
  for (const auto& job : jobs) siblings.insert(job->text);
  ROOFGEN_TRY(const std::unique_ptr<Ranks> ranks, join_ranks());

  const auto work = [&](SuiteDesk& desk) {
    while (const auto problem = desk.next()) {
      Job& job = *jobs[*problem];
      if (ranks) share_machine(*ranks, job.run);
      desk.finish(*problem, json_line(tune_job(session, job, siblings, desk)));
    }
  };
  if (ranks && ranks->rank() > 0) {
    work(*remote_desk(*ranks));
    return Exit::kOk;
  }
  const bool no_store = std::ranges::any_of(given, [](const auto& flag) { return flag.first == "--no-store"; });
  LocalDesk desk(
      chosen, [&] { return no_store ? nullptr : open_store(session); }, [&] { return session.stop->load(); });
  std::optional<Progress> progress(std::in_place, session, "suite");
  const auto show = [&] { progress->show("problems", desk.finished(), chosen.size()); };
  std::atomic<bool> working = true;
  std::thread worker([&] {
    work(desk);
    working = false;
  });
  if (ranks) ranks->serve([&](const std::string& question) { return desk.answer(question); }, show);
  while (working) {
    show();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  worker.join();
  progress.reset();

  std::vector<Json> results;
  bool failed = false, below = false;
  for (const auto& [problem, line] : desk.results()) {
    const Json& result = results.emplace_back(parse_json(line));
    if (result.contains("error"))
      failed = true;
    else
      below |= result["result"]["score"].get<double>() < min_score;
  }
  if (json) {
    fmt::print("{}",
               json_document({{"schema", "roofgen.suite-result.1"}, {"shard", flags.shard}, {"problems", results}}));
  } else {
    fmt::print("{}", suite_text(results));
  }
  if (session.stop->load()) {
    fmt::print(stderr, "roofgen: stopped after {} of {} problems; the same command goes on\n", results.size(),
               chosen.size());
    return Exit::kInterrupted;
  }
  if (failed) return Exit::kFailed;
  if (!below) return Exit::kOk;
  fmt::print(stderr, "roofgen: a score is below --min-score {}\n", min_score);
  return Exit::kBelowScore;
}

}  // namespace roofgen::cli
