// What the store tells people of a candidate.
#include "generator/space/problem_json.h"
#include "tuner/search/timing.h"
#include "tuner/search/trials.h"

namespace roofgen {

StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task) {
  const Candidate& c = task.candidate;
  StoredTrial out;
  out.op = run.problem.op;
  out.problem = to_string(run.problem);
  out.device = run.context.device.name;
  out.variant = c.variant->name;
  out.stage = c.stage().name;
  out.params = json_line(params_json(c.schedule.params));
  out.binary = c.binary.digest;
  out.executor = executor_text(run, run.place());
  out.outcome = task.rejected ? task.rejected->stage : StoredTrial::kVerified;
  if (task.rejected) out.reason = task.rejected->reason;
  out.floor_seconds = plan.score.floor.seconds;
  // "NVRTC 13.0 at <path>": paths are of one machine.
  out.compiler = run.context.compiler.description();
  out.compiler.resize(std::min(out.compiler.find(" at "), out.compiler.size()));
  return out;
}

StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task, const KernelReport& report) {
  StoredTrial out = stored_trial(run, plan, task);
  // Without counts, the time of the one launch that the GPU ran.
  if (report.measurement) {
    out.seconds = report.seconds;
    out.origin = to_string(run.context.gpu->origin());
  } else if (report.counted || !run.context.gpu) {
    out.seconds = report.seconds;
    out.origin = to_string(Origin::kModel);
    out.time_model = to_string(report.time.model);
  } else if (task.evaluation->measured_ns) {
    out.seconds = 1e-9 * *task.evaluation->measured_ns;
    out.origin = to_string(run.context.gpu->origin());
  }
  return out;
}

void note_times(const SearchRun& run, const SearchPlan& plan, const Timings& timings) {
  if (!run.context.store) return;
  for (const VariantTimes& variant : timings.variants)
    for (const StageTimes& stage : variant.stages)
      for (const TimedTask& t : stage.tasks)
        if (t.verified() && (t.report().measurement || t.report().code))
          run.context.store->note(stored_trial(run, plan, t.task(), t.report()));
}

}  // namespace roofgen
