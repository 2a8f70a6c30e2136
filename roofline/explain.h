// One operator on one device: which roof binds, how fast it can be, and what to change next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roofline/lint/lint.h"
#include "roofline/roofs.h"
#include "roofline/work.h"

namespace roofgen {

/// What limits an operator. The first six are roofs; the last two are what roofs do not see.
enum class Regime { kMemory, kCompute, kSpecialFunction, kL2, kSharedMemory, kNvlink, kParallelism, kLaunch };
const char* to_string(Regime regime);  ///< "memory-bound", ...
Regime regime_of(Resource resource);

struct KernelExplanation {
  const KernelWork* work = nullptr;  ///< points into Explanation::work
  double flops = 0, arithmetic_intensity = 0;
  double smem_bytes = 0;         ///< the matrix units read from shared memory
  std::vector<RoofTime> bounds;  ///< the slowest first; without those that have no work
  double waves = 0;              ///< CTAs / SMs
  double efficiency = 1;         ///< share of the SMs' time in full waves
  double seconds = 0;            ///< launch + the slowest roof, stretched by missing CTAs. Origin: model
  Regime regime = Regime::kMemory;
};

struct Explanation {
  std::shared_ptr<const OpWork> work;
  std::string device;
  RoofSet roofs = RoofSet::kDatasheet;
  Roof compute;              ///< the ceiling its FLOPs are held against
  std::string compute_note;  ///< when operands are widened
  double flops = 0, dram_bytes = 0, exps = 0, arithmetic_intensity = 0, ridge = 0;
  Regime regime = Regime::kMemory;    ///< of the largest part of the time
  std::string binding_roof;           ///< the roof with the largest part, launches and waves aside
  double attainable_flops_per_s = 0;  ///< under all roofs, kernel after kernel, on all SMs
  double seconds = 0;                 ///< n launches + roofs + missing CTAs. Origin: model
  std::vector<KernelExplanation> kernels;
  std::string next_lever;
  std::vector<Warning> warnings;
  bool below_ridge() const { return arithmetic_intensity < ridge; }
};

/// Exit::kUsage when the device has no units for the work's arithmetic.
Result<Explanation> explain(const Device& device, OpWork work, RoofSet roofs = RoofSet::kDatasheet);

/// The smallest value of the formula's growing dimension at which the arithmetic intensity reaches the ridge; none when
/// it never does, or grows by more than one dimension.
std::optional<int64_t> ridge_crossing(const WorkFormula& formula, WorkRequest request, const Explanation& explanation);

}  // namespace roofgen
