// Writes a tuned kernel as files that another program embeds: CUDA source, PTX, CUBIN, a C header with the launch, a
// JSON manifest (docs/emit.md). The emitted code belongs to the user (README, licence).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// One kernel of the winning variant.
struct EmittedKernel {
  const Stage* stage = nullptr;
  const Program* program = nullptr;
  const Binary* binary = nullptr;
  const Launch* launch = nullptr;
  expr::Map scope;  ///< of the schedule: parameters and derived values
};

struct EmitRequest {
  std::string name;  ///< prefix of files and C functions: "gemm" gives gemm.h and gemm_launch
  const Problem* problem = nullptr;
  const Variant* variant = nullptr;
  std::vector<Buffer> buffers;         ///< of the problem, and the variant's temporaries
  expr::Map scope;                     ///< of the problem, without a stage
  std::vector<EmittedKernel> kernels;  ///< in launch order
  std::string facts;                   ///< JSON text for the manifest: score, device, origins
};

/// File name -> contents.
Result<std::map<std::string, std::string>> emit(const EmitRequest& request);

}  // namespace roofgen
