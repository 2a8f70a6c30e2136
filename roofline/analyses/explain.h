// One operator on one device: the binding roof, the attainable rate, and the next change to make.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roofline/lint/lint.h"
#include "roofline/roofs.h"
#include "roofline/work.h"

namespace roofgen {

/// The limit of an operator: one of six roofs, too few CTAs, or the launch.
enum class Regime { kMemory, kCompute, kSpecialFunction, kL2, kSharedMemory, kNvlink, kParallelism, kLaunch };
const char* to_string(Regime regime);  ///< "memory-bound", ...
Regime regime_of(Resource resource);

struct KernelExplanation {
  const KernelWork* work = nullptr;  ///< points into Explanation::work
  double flops = 0, arithmetic_intensity = 0;
  double smem_bytes = 0;         ///< the matrix units read from shared memory
  std::vector<RoofTime> bounds;  ///< the slowest first, without roofs that have no work
  double waves = 0;              ///< CTAs / SMs
  double efficiency = 1;         ///< share of the SMs' time in full waves
  double seconds = 0;            ///< launch + the slowest roof, stretched by missing CTAs. Origin: model
  Regime regime = Regime::kMemory;
};

struct Explanation {
  std::shared_ptr<const OpWork> work;
  std::string device;
  RoofSet roofs = RoofSet::kDatasheet;
  Roof compute;              ///< the ceiling of its FLOPs
  std::string compute_note;  ///< says how operands are widened, if they are
  double flops = 0, dram_bytes = 0, exps = 0, arithmetic_intensity = 0, ridge = 0;
  Regime regime = Regime::kMemory;    ///< of the largest part of the time
  std::string binding_roof;           ///< the roof of the largest part, apart from launches and waves
  double attainable_flops_per_s = 0;  ///< under all roofs, one kernel after another, on all SMs
  double seconds = 0;                 ///< launches + roofs + idle SMs. Origin: model
  std::vector<KernelExplanation> kernels;
  std::string next_lever;
  std::vector<Warning> warnings;
  bool below_ridge() const { return arithmetic_intensity < ridge; }
};

/// Exit::kUsage if the device has no units for the work's arithmetic.
Result<Explanation> explain(const Device& device, OpWork work, RoofSet roofs = RoofSet::kDatasheet);

/// The smallest value of the growing dimension at which the arithmetic intensity reaches the ridge. None if it never
/// does, or if several dimensions grow.
std::optional<int64_t> ridge_crossing(const WorkFormula& formula, WorkRequest request, const Explanation& explanation);

}  // namespace roofgen
