#include "tuner/dispatch/cross.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/pool.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/search/trials.h"

namespace roofgen {

Result<std::unique_ptr<CrossRun>> CrossRun::make(const TuneContext& context, const Problem& problem,
                                                 const TuneOptions& options) {
  std::unique_ptr<CrossRun> out(new CrossRun(context, problem, options));
  ROOFGEN_TRY(out->plan_, plan_without_spaces(out->run_));
  ROOFGEN_TRY(out->reduced_scope_, problem_scope(context.op, context.op.reduced(problem), limits(context.device)));
  out->runner_.emplace(out->run_, out->plan_);
  return out;
}

TimeModel CrossRun::time_model() const {
  const KernelTimer* timer = run_.context.timer;
  return timer && timer->unavailable().empty() ? TimeModel::kEvent : TimeModel::kClosedForm;
}

/// Adds kernel `i` as it is launched here. Returns why it cannot be.
Result<std::string> CrossRun::add_task(Chain& chain, size_t i) const {
  const Implementation& own = *chain.of;
  const Implementation::Kernel& kernel = own.kernels[i];
  const Stage& stage = chain.variant->stages[i];
  const Schedule& schedule = kernel.program.schedule;
  if (stage.name != kernel.stage->name) return std::string("its kernels are others here");
  auto checked = check_schedule(*chain.variant, stage, schedule, plan_.scope);
  if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
  if (const auto* rejected = std::get_if<Rejected>(&checked)) return rejected->reason;
  const Legal& legal = std::get<Legal>(checked);
  const CompiledStage compiled{&own.tuned_for->problem, kernel.stage, &kernel.legal, &kernel.program.source};
  ROOFGEN_TRY(const std::string why, why_not_served(run_.context.files, compiled, run_.problem, stage, legal));
  if (!why.empty()) return why;
  // The checks run on the reduced problem, which the source must serve, too.
  auto reduced = check_schedule(*chain.variant, stage, schedule, reduced_scope_, false);
  if (auto* error = std::get_if<Error>(&reduced)) return std::move(*error);
  if (const auto* rejected = std::get_if<Rejected>(&reduced)) return kOnTheReducedProblem + rejected->reason;
  ROOFGEN_TRY(const bool served, serves(*kernel.stage, kernel.legal, std::get<Legal>(reduced)));
  if (!served) return std::string(kOnTheReducedProblem) + "its source relies on sizes that divide otherwise";
  Task task;
  task.candidate = {chain.variant, i, schedule, kernel.binary};
  task.program = kernel.program;
  auto launch = make_launch(stage, legal);
  if (!launch) return launch.error().message;
  task.launch = std::move(*launch);
  task.occupancy = occupancy(run_.context.device, kernel.binary, task.launch);
  if (task.occupancy.ctas_per_sm == 0) return std::string("not one CTA fits an SM");
  task.key = runner_->key_of(task, run_.place());
  chain.tasks.push_back(std::move(task));
  return std::string();
}

Result<CrossRun::Chain> CrossRun::chain_of(const Implementation& own) const {
  Chain out{&own};
  for (size_t v = 0; v < plan_.variants.size() && !out.variant; ++v)
    if (plan_.variants[v].name == own.variant) {
      out.variant = &plan_.variants[v];
      out.why_not = plan_.reports[v].rejected_because;
    }
  if (!out.variant)
    out.why_not = "no variant " + own.variant;
  else if (out.variant->stages.size() != own.kernels.size())
    out.why_not = "its kernels are others here";
  for (size_t i = 0; i < own.kernels.size() && out.why_not.empty(); ++i) {
    ROOFGEN_TRY(out.why_not, add_task(out, i));
  }
  return out;
}

Result<bool> CrossRun::ensure_fed(const Chain& chain, size_t stage) {
  ROOFGEN_TRY(const bool already, runner_->is_fed(*chain.variant, stage));
  if (already || stage == 0) return already;
  ROOFGEN_TRY(const bool before, ensure_fed(chain, stage - 1));
  if (!before) return false;
  return runner_->feed(chain.tasks[stage - 1].candidate);
}

/// Kernel by kernel of all chains, since a later one needs the outputs of one before it. Equal ones run once.
Result<void> CrossRun::evaluate(std::vector<Chain>& chains) {
  size_t longest = 0, kernels = 0;
  for (const Chain& c : chains) {
    longest = std::max(longest, c.tasks.size());
    kernels += c.tasks.size();
  }
  Pool pool(run_.threads());
  std::atomic<size_t> done{0};
  for (size_t i = 0; i < longest; ++i) {
    std::map<StoreKey, std::optional<Result<Evaluation>>> results;
    for (Chain& c : chains) {
      if (!c.why_not.empty() || i >= c.tasks.size() || run_.interrupted()) continue;
      const auto [result, is_new] = results.try_emplace(c.tasks[i].key);
      if (!is_new) continue;
      if (auto known = runner_->recall(result->first)) {
        result->second = std::move(*known);
        continue;
      }
      ROOFGEN_TRY(const bool fed, ensure_fed(c, i));
      if (!fed) {
        result->second = Error{Exit::kFailed, "nothing feeds it"};
        continue;
      }
      pool.push([this, &done, &task = c.tasks[i], &to = result->second] {
        if (!run_.interrupted()) to = runner_->evaluate(task);
        ++done;
      });
    }
    pool.drain([&] {
      if (run_.options.progress) run_.options.progress("cross evaluation", done, kernels);
    });
    for (Chain& c : chains) {
      if (!c.why_not.empty() || i >= c.tasks.size()) continue;
      const auto result = results.find(c.tasks[i].key);
      if (result == results.end() || !result->second)
        c.why_not = "interrupted";
      else if (!*result->second)
        c.why_not = result->second->error().message;
      else if (c.tasks[i].evaluation = **result->second; !c.tasks[i].verified())
        c.why_not = c.tasks[i].evaluation->verification.failure;
    }
  }
  return {};
}

void CrossRun::time_by_model(const std::vector<Chain>& chains, std::vector<Outcome>& out) const {
  std::deque<TimedTask> timed;
  std::vector<TimedTask*> wanted;
  for (const Chain& c : chains)
    for (const Task& t : c.tasks)
      if (c.why_not.empty()) wanted.push_back(&timed.emplace_back(run_, plan_, t));
  std::string failure;
  const bool by_code = time_model() == TimeModel::kEvent;
  if (by_code) {
    failure = time_code(run_, plan_, wanted, TimeModel::kEvent);
    forget_code(run_, wanted);
  }
  auto next = timed.begin();
  for (size_t c = 0; c < chains.size(); ++c) {
    out[c].why_not = chains[c].why_not;
    if (!out[c].why_not.empty()) continue;
    double sum = 0;
    for (size_t i = 0; i < chains[c].tasks.size(); ++i, ++next) {
      if (by_code && !next->report().code) out[c].why_not = failure;
      sum += next->report().seconds;
    }
    if (out[c].why_not.empty()) out[c].seconds = sum;
  }
}

Result<std::vector<CrossRun::Outcome>> CrossRun::time(const std::vector<const Implementation*>& all) {
  std::vector<Chain> chains;
  for (const Implementation* i : all) {
    ROOFGEN_TRY(chains.emplace_back(), chain_of(*i));
  }
  ROOFGEN_CHECK(evaluate(chains));
  std::vector<Outcome> out(chains.size());
  time_by_model(chains, out);
  return out;
}

Result<std::string> CrossRun::verify(const Implementation& one) {
  std::vector<Chain> chains;
  ROOFGEN_TRY(chains.emplace_back(), chain_of(one));
  ROOFGEN_CHECK(evaluate(chains));
  const Chain& chain = chains.front();
  if (!chain.why_not.empty()) return chain.why_not;
  VariantTimes winners{one.variant, {}, true, {}, std::nullopt};
  for (const Task& t : chain.tasks) {
    StageTimes& stage = winners.stages.emplace_back();
    stage.tasks.emplace_back(run_, plan_, t);
    stage.winner = 0;
  }
  Tally tally;
  if (verify_together(run_, *runner_, winners, tally)) return std::string();
  return tally.rejections.front().reason;
}

}  // namespace roofgen
