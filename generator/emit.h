// A tuned kernel as files another program embeds: CUDA source, PTX, CUBIN, a C header with the
// launch, a JSON manifest. The emitted code is the user's own (README, licence).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// One kernel of the winner, ready to be written.
struct EmittedKernel {
  const Stage* stage = nullptr;
  const Program* program = nullptr;
  const Binary* binary = nullptr;
  const Launch* launch = nullptr;
  expr::Map scope;  ///< the schedule's scope: parameters and derived values
};

/// File name -> contents. `facts` is what the manifest says beside the problem and the schedules
/// (score, device, origins), already as JSON text.
Result<std::map<std::string, std::string>> emit(const Problem& problem, const std::string& variant,
                                                const std::vector<EmittedKernel>& kernels, const std::string& facts);

}  // namespace roofgen
