#include "tuner/search/trials.h"
#include "tuner/verify/l2_model.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// Whether a variant's temporaries together fit the usable L2, and this stage touches one.
bool temporaries_in_l2(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& evaluation) {
  if (evaluation.temporary_bytes == 0) return false;
  double all = 0;
  for (const Buffer& b : plan.temporaries.at(task.candidate.variant)) all += static_cast<double>(b.bytes);
  return all <= kL2Usable * run.context.device.at("l2_bytes");
}

}  // namespace

TimedTask::TimedTask(const SearchRun& run, const SearchPlan& plan, const Task& verified)
    : run_(&run), plan_(&plan), task_(&verified), evaluation_(*verified.evaluation) {
  const Binary& b = verified.candidate.binary;
  KernelReport& k = report_;
  k.schedule = verified.candidate.schedule;
  k.stage = verified.candidate.stage().name;
  k.digest = b.digest;
  k.registers = b.registers;
  k.spill_bytes = b.spill_bytes;
  k.smem_bytes = b.static_smem_bytes + verified.launch.smem_bytes;
  k.threads = static_cast<int>(verified.launch.block.count());
  k.advisories = b.advisories;
  k.occupancy = verified.occupancy;
  count();
}

void TimedTask::count() {
  const Evaluation& e = evaluation_;
  KernelReport& k = report_;
  k.intermediate_in_l2 = temporaries_in_l2(*run_, *plan_, *task_, e);
  work_ = work_from_counts(e, task_->launch, k.intermediate_in_l2);
  work_.matrix = matrix_instruction(task_->candidate.binary.ptx);
  work_.math = matrix_math(run_->problem.dtype);
  k.work_exact = e.exact;
  k.counts = e.counts;
  k.exps = static_cast<double>(e.counts.exps) * e.scale;
  k.compulsory_bytes = e.temporary_bytes + e.tensor_bytes;
  k.flops = work_.mma_flops;
  const double operations = k.flops > 0 ? k.flops : work_.fp32_ops;
  k.arithmetic_intensity = work_.dram_bytes > 0 ? operations / work_.dram_bytes : 0;
  k.counted = e.counts.ctas > 0;
  k.verification = e.verification;
  set_time();
}

void TimedTask::set_time() {
  report_.work = work_;
  if (report_.code) count_by_code(*report_.code, run_->context.device, report_.work);
  estimate_time(report_, run_->context.device, plan_->score.floor.seconds);
}

double TimedTask::closed_form_seconds() const {
  return report_.counted ? estimate(run_->context.device, work_, report_.occupancy).seconds : 0;
}

void TimedTask::set_evaluation(Evaluation evaluation) {
  evaluation_ = std::move(evaluation);
  count();
}

void TimedTask::set_verification(Verification verification) {
  report_.verification = evaluation_.verification = std::move(verification);
}

void TimedTask::set_code(std::optional<CodeTime> code) {
  report_.code = std::move(code);
  set_time();
}

void TimedTask::set_measurement(std::optional<Measurement> measured) {
  report_.measurement = std::move(measured);
  set_time();
}

}  // namespace roofgen
