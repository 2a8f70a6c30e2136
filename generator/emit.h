// A tuned kernel as files another program embeds: CUDA source, PTX, CUBIN, a C header with the
// launch, a JSON manifest (docs/emit.md). The emitted code is the user's own (README, licence).
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

struct EmitRequest {
  std::string name;  ///< what files and C functions are called: "gemm" gives gemm.h and gemm_launch
  const Problem* problem = nullptr;
  const Variant* variant = nullptr;
  std::vector<Buffer> buffers;         ///< the problem's and the variant's temporaries
  expr::Map scope;                     ///< the problem's, without a stage
  std::vector<EmittedKernel> kernels;  ///< in launch order
  std::string
      facts;  ///< what the manifest says beside the problem and the schedules (score, device, origins), as JSON text
};

/// File name -> contents.
Result<std::map<std::string, std::string>> emit(const EmitRequest& request);

}  // namespace roofgen
