#include "tuner/session/suite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/json.h"
#include "tuner/session/suite/queue.h"
#include "tuner/session/suite/ranks.h"
#include "tuner/session/winner.h"
#include "tuner/session/workbench.h"
#include "tuner/tune.h"
#include "tuner/views/json.h"

namespace roofgen {
namespace {

/// A problem of the suite with its flags.
struct Job {
  explicit Job(const Session& session) : request("tune", session.data_dirs) {}
  RequestFlags request;  ///< which `run` refers to
  ProblemFlags problem;
  RunFlags run;
  std::string flags;  ///< as for a shell
  std::string text;   ///< of the problem
};

Result<std::unique_ptr<Job>> read_job(const Session& session, SuiteProblem problem, const FlagValues& given) {
  auto job = std::make_unique<Job>(session);
  const FlagSet flags = job->request.flags();
  job->problem.declare(flags);
  job->run.declare(flags);
  for (const auto& flag : given) {
    const bool own = std::ranges::any_of(problem.flags, [&](const auto& f) { return f.first == flag.first; });
    if (!own && flags.has(flag.first)) problem.flags.push_back(flag);
  }
  ROOFGEN_CHECK(job->request.read(problem));
  const auto op = find_op(DataFiles(session.data_dirs), job->problem.op);
  if (!op) return at(problem, op.error());
  auto complete = job->problem.problem();
  if (complete) complete = (*op)->complete(std::move(*complete));
  if (!complete) return at(problem, complete.error());
  job->flags = shell_words(problem.flags);
  job->text = to_string(*complete);
  return job;
}

/// The result of one problem as one line of JSON.
Json tune_job(const Session& session, Job& job, const std::set<std::string>& siblings, SuiteQueue& queue) {
  Json out{{"op", job.problem.op}, {"flags", job.flags}};
  job.run.open_store = [&] { return queue.store(); };
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
  if (result) out["result"] = tune_json(result->report);
  return out;
}

/// Each rank has a GPU and a share of the cores of its machine.
void share_machine(const Ranks& ranks, RunFlags& run) {
  run.gpu = ranks.node_rank();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // those that the launcher left to this rank
  const int all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (run.jobs == 0) run.jobs = std::max(1, std::min(cores, all / ranks.node_size()));
}

}  // namespace

void SuiteRequest::declare(FlagSet app) {
  given = [app] { return app.given(); };
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

Result<std::optional<SuiteAnswer>> tune_suite(const Session& session, const SuiteRequest& request) {
  const FlagValues given = request.given();
  ROOFGEN_TRY(const Shard shard, parse_shard(request.shard));
  const bool captured = request.file.empty();
  ROOFGEN_TRY(std::string text, read_input(captured ? request.captured : request.file));
  ROOFGEN_TRY(std::vector<SuiteProblem> problems,
              captured ? read_captured(text, request.captured) : read_suite(std::move(text), request.file));
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<size_t> chosen;
  for (SuiteProblem& p : problems) {
    ROOFGEN_TRY(jobs.emplace_back(), read_job(session, std::move(p), given));
    if (shard.has(jobs.size() - 1)) chosen.push_back(jobs.size() - 1);
  }
  // No problem begins with schedules of another one: the results do not depend on the order of the ranks.
  std::set<std::string> siblings;
  for (const auto& job : jobs) siblings.insert(job->text);
  ROOFGEN_TRY(const std::unique_ptr<Ranks> ranks, join_ranks());

  const auto work = [&](SuiteQueue& queue) {
    while (const auto problem = queue.next()) {
      Job& job = *jobs[*problem];
      if (ranks) share_machine(*ranks, job.run);
      queue.finish(*problem, json_line(tune_job(session, job, siblings, queue)));
    }
  };
  if (ranks && ranks->rank() > 0) {
    work(*remote_queue(*ranks));
    return std::optional<SuiteAnswer>();
  }
  const bool no_store = std::ranges::any_of(given, [](const auto& flag) { return flag.first == "--no-store"; });
  LocalQueue queue(
      chosen, [&] { return no_store ? nullptr : open_store(session); },
      [&] { return session.stop && session.stop->load(); });
  const ShowPhase progress = session.progress("suite");
  const auto show = [&] { progress("problems", queue.finished(), chosen.size()); };
  std::atomic<bool> working = true;
  std::thread worker([&] {
    work(queue);
    working = false;
  });
  if (ranks) ranks->serve([&](const std::string& question) { return queue.answer(question); }, show);
  while (working) {
    show();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  worker.join();

  std::optional<SuiteAnswer> out(std::in_place);
  out->problems = chosen.size();
  out->interrupted = session.stop && session.stop->load();
  for (const auto& [problem, line] : queue.results()) out->results.push_back(parse_json(line));
  return out;
}

}  // namespace roofgen
