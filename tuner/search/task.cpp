#include "tuner/search/task.h"

#include "tuner/verify/l2_model.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// Times of the model closer than this are one time; the cheaper kernel is taken.
constexpr double kTie = 0.01;

/// Whether a variant's temporaries together fit the usable L2, and this stage touches one.
bool temporaries_in_l2(const ReportContext& context, const Task& task) {
  auto temps = temporaries(*task.candidate.variant, context.problem_scope);
  if (!temps || task.evaluation->temporary_bytes == 0) return false;
  double all = 0;
  for (const Buffer& b : *temps) all += static_cast<double>(b.bytes);
  return all <= kL2Usable * context.device.at("l2_bytes");
}

}  // namespace

const Timing* ranking_timing(const Measurement& m) { return m.cold ? &*m.cold : m.hot ? &*m.hot : nullptr; }

KernelReport kernel_report(const ReportContext& context, const Task& task) {
  const Evaluation& e = *task.evaluation;
  const Binary& b = task.candidate.binary;
  KernelReport k;
  k.schedule = task.candidate.schedule;
  k.stage = task.candidate.stage().name;
  k.digest = b.digest;
  k.registers = b.registers;
  k.spill_bytes = b.spill_bytes;
  k.smem_bytes = b.static_smem_bytes + task.launch.smem_bytes;
  k.threads = static_cast<int>(task.launch.block.count());
  k.advisories = b.advisories;
  k.occupancy = task.occupancy;
  k.intermediate_in_l2 = temporaries_in_l2(context, task);
  k.work = work_from_counts(e, task.launch, k.intermediate_in_l2);
  k.work.matrix = matrix_instruction(b.ptx);
  k.work.math = matrix_math(context.dtype);
  k.work_exact = e.exact;
  k.counts = e.counts;
  k.exps = static_cast<double>(e.counts.exps) * e.scale;
  k.compulsory_bytes = e.temporary_bytes + e.tensor_bytes;
  k.flops = k.work.mma_flops;
  k.arithmetic_intensity = k.work.dram_bytes > 0 ? k.flops / k.work.dram_bytes : 0;
  k.counted = e.counts.ctas > 0;
  if (k.counted) k.time = estimate(context.device, k.work, task.occupancy);
  k.seconds = k.time.seconds;
  k.measurement = task.measurement;
  if (k.measurement) k.seconds = 1e-9 * ranking_timing(*k.measurement)->median_ns;
  if (k.counted) {
    k.waste = k.time.work_seconds / context.floor_seconds;
    k.idle = k.time.kernel_seconds / k.time.work_seconds;
    k.stall = k.seconds / k.time.kernel_seconds;
  }
  k.verification = e.verification;
  return k;
}

const Task* winner(const ReportContext& context, const StagePlan& plan) {
  std::vector<std::pair<KernelReport, const Task*>> all;
  for (const Task& t : plan.tasks)
    if (t.verified()) all.emplace_back(kernel_report(context, t), &t);
  if (all.empty()) return nullptr;
  double least = all[0].first.time.seconds;
  for (const auto& [k, t] : all) least = std::min(least, k.time.seconds);
  const auto better = [](const KernelReport& a, const KernelReport& b) {
    if (a.registers != b.registers) return a.registers < b.registers;
    if (a.smem_bytes != b.smem_bytes) return a.smem_bytes < b.smem_bytes;
    return to_string(a.schedule) < to_string(b.schedule);
  };
  const std::pair<KernelReport, const Task*>* best = nullptr;
  for (const auto& entry : all)
    if (entry.first.time.seconds <= least * (1 + kTie) && (!best || better(entry.first, best->first))) best = &entry;
  return best->second;
}

std::vector<Schedule> ranked(const ReportContext& context, const StagePlan& plan) {
  std::vector<std::pair<double, const Task*>> all;
  for (const Task& t : plan.tasks)
    if (t.verified()) all.emplace_back(kernel_report(context, t).seconds, &t);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> out;
  for (const auto& [seconds, t] : all) out.push_back(t->candidate.schedule);
  return out;
}

}  // namespace roofgen
