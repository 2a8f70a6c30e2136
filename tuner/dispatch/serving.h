// Which sizes a compiled kernel serves. Kernels take most sizes at run time; the rest, and what their source relies on,
// must be as for the problem they were compiled for.
#pragma once

#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofline/device.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {

/// A stage as it was compiled.
struct CompiledStage {
  const Problem* problem = nullptr;
  const Stage* stage = nullptr;
  const Legal* legal = nullptr;
  const std::string* source = nullptr;
};

/// Why the compiled stage gives no correct result for another problem, of which `legal` is the same schedule. Empty: it
/// does. It does where the schedule has the same source there; or where only sizes differ that kernels take at run
/// time, and all that the source relies on holds.
Result<std::string> why_not_served(const DataFiles& files, const CompiledStage& compiled, const Problem& problem,
                                   const Stage& stage, const Legal& legal);

/// What the source of a stage relies on, as conditions in C over the sizes in `varied` and over strides; other sizes
/// have the values of the problem.
Result<std::vector<std::string>> requirements_of(const Stage& stage, const Legal& legal,
                                                 const std::vector<std::string>& varied);

/// Whether a kernel of the table gives correct results for a problem.
Result<bool> serves(const DataFiles& files, const Op& op, const Device& device, const DispatchTable& table,
                    size_t kernel, const Problem& problem);

}  // namespace roofgen
