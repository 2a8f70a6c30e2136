#include "tuner/work.h"

#include <algorithm>

namespace roofgen {
namespace {

/// The share of PTX integer instructions that remains in SASS, where ptxas folds address arithmetic. Counted in an
/// attention kernel of 824 PTX and 680 SASS instructions.
constexpr double kIntegerSurvives = 0.65;

/// Shares of the prior's issue slots that go to each pipe. They affect only the order of points before compilation;
/// the instructions of executed candidates are counted.
constexpr double kPriorFp32Share = 0.4, kPriorAluShare = 0.25;

/// The work formula with the FLOPs of a family of matrix instructions.
const char* flops_formula(MatrixInstruction instruction) {
  const char* names[] = {"mma_flops", "wgmma_flops", "tcgen05_flops"};
  return names[static_cast<size_t>(instruction)];
}

}  // namespace

MatrixInstruction matrix_instruction(const Stage& stage) {
  for (MatrixInstruction instruction : kMatrixInstructions)
    if (std::any_of(stage.work.begin(), stage.work.end(),
                    [&](const auto& formula) { return formula.first == flops_formula(instruction); }))
      return instruction;
  return MatrixInstruction::kMmaSync;
}

WorkRequest work_request(const Problem& problem) {
  return {.dims = problem.dims, .flags = problem.flags, .dtypes = {{"", to_string(problem.dtype)}}};
}

Result<RequiredWork> required_work(const Op& op, const WorkFormula* formula, const Problem& problem) {
  if (const std::optional<RequiredWork> own = op.required(problem)) return *own;
  if (!formula) return Error{Exit::kFailed, problem.op + " has no formula of the work it requires"};
  ROOFGEN_TRY(const OpWork work, formula->evaluate(work_request(problem)));
  return RequiredWork{work.mma_flops(), work.exps(), work.dram_bytes()};
}

Work work_from_counts(const Evaluation& e, const Launch& launch, bool temporaries_in_l2) {
  const Counts& c = e.counts;
  const auto total = [&](double v) { return v * e.scale; };
  Work w;
  w.mma_flops = total(static_cast<double>(c.mma_flops));
  w.mufu_ops = total(32.0 * static_cast<double>(c.mufu));
  w.fp32_ops = total(32.0 * static_cast<double>(c.fp32 + c.half));
  w.alu_ops =
      total(32.0 * (kIntegerSurvives * static_cast<double>(c.int_alu) + static_cast<double>(c.predicate + c.convert)));
  w.issue_slots = total(static_cast<double>(c.warp_instructions - c.move) -
                        (1 - kIntegerSurvives) * static_cast<double>(c.int_alu));
  w.smem_wavefronts = total(static_cast<double>(c.smem_wavefronts));
  w.l2_bytes = total(32.0 * static_cast<double>(c.l2_read_sectors + c.l2_write_sectors));
  w.dram_bytes = e.unique_bytes * e.l2_miss_ratio;
  // Inputs and outputs still pass through DRAM once.
  if (temporaries_in_l2)
    w.dram_bytes = std::max(w.dram_bytes - e.temporary_bytes, std::min(e.unique_bytes, e.tensor_bytes));
  w.ctas = static_cast<double>(launch.grid.count());
  w.warps_per_cta = static_cast<int>((launch.block.count() + 31) / 32);
  w.dependent = launch.overlap;
  if (c.async_waits > 0) {
    w.async_waits = static_cast<double>(c.async_waits) / static_cast<double>(e.counted_ctas) / w.warps_per_cta;
    w.async_distance = static_cast<double>(c.async_distance) / static_cast<double>(c.async_waits);
  }
  return w;
}

Device ranking_device(Device device) {
  for (const char* cell : {"dram_gb_s", "dram_sustained_gb_s", "l2_gb_s", "l2_sustained_gb_s"})
    device.cells[cell].value = 1e12;
  return device;
}

Result<Prior> prior(const Device& device, const Stage& stage, const expr::Names& names, DType dtype) {
  std::map<std::string, double> value;
  for (const auto& [name, e] : stage.work) {
    ROOFGEN_TRY(value[name], names.eval_number(e));
  }
  ROOFGEN_TRY(Launch launch, make_launch(stage, names));
  Prior out;
  Work& w = out.work;
  w.matrix = matrix_instruction(stage);
  w.math = matrix_math(dtype);
  w.mma_flops = value[flops_formula(w.matrix)];
  w.mufu_ops = value["exps"];
  w.issue_slots = value["issue_slots"];
  w.fp32_ops = 32 * kPriorFp32Share * w.issue_slots;
  w.alu_ops = 32 * kPriorAluShare * w.issue_slots;
  w.smem_wavefronts = value["smem_wavefronts"];
  w.l2_bytes = value["l2_read_bytes"] + value["l2_write_bytes"];
  w.dram_bytes = value["dram_bytes"];
  w.ctas = static_cast<double>(launch.grid.count());
  w.warps_per_cta = static_cast<int>((launch.block.count() + 31) / 32);
  w.dependent = launch.overlap;
  w.async_waits = value["async_waits"];
  w.async_distance = value["async_distance"];
  const int registers = std::clamp(static_cast<int>(value["registers"]), 32, 255);
  out.seconds =
      estimate(device, w, occupancy(device, registers, launch.smem_bytes, static_cast<int>(launch.block.count())))
          .seconds;
  return out;
}

double default_ctas(const Device& device, const Variant& variant, const expr::Map& problem_scope, DType dtype) {
  Prior longest;
  for (Stage stage : variant.stages) {
    stage.constraints.clear();
    stage.prunes.clear();
    auto schedule = default_schedule(variant, stage, problem_scope, {});
    if (!schedule) return 0;
    const auto checked = check_schedule(variant, stage, std::move(*schedule), problem_scope);
    const Legal* point = std::get_if<Legal>(&checked);
    if (!point) return 0;
    auto predicted = prior(device, stage, *point, dtype);
    if (!predicted) return 0;
    if (predicted->seconds > longest.seconds) longest = std::move(*predicted);
  }
  return longest.work.ctas;
}

}  // namespace roofgen
