// Writes tuned kernels as a folder that another program builds in: a C library with the binaries as data, its test, a
// manifest (docs/use/emit.md). The texts are templates/bundle/. The emitted code belongs to the user (README, licence).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "generator/generate.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Of manifest.json, from which tuner/bundle/ makes the folder again.
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestSchema = "roofgen.manifest.3";

/// One kernel of the winning variant.
struct EmittedKernel {
  const Stage* stage = nullptr;
  const Program* program = nullptr;
  const Binary* binary = nullptr;
  const Launch* launch = nullptr;
  expr::Map scope;  ///< of the schedule: parameters and derived values
};

/// Kernels for the devices of one architecture.
struct EmittedPipeline {
  std::string arch;  ///< "sm_90a": these devices alone; "sm_80": also later ones of the same major version
  const Variant* variant = nullptr;
  std::vector<Buffer> temporaries;
  expr::Map scope;                     ///< of the problem, without a stage
  std::vector<EmittedKernel> kernels;  ///< in launch order
  std::string evidence;                ///< JSON text for the manifest: device, times with origins, score, verification
};

/// A call takes the kernels of the nearest shape of its architecture whose conditions hold (docs/use/dispatch.md).
struct EmittedShape {
  std::map<std::string, int64_t> sizes;  ///< Problem::dims
  size_t pipeline = 0;                   ///< of the request
};

struct EmitRequest {
  std::string name;  ///< prefix of files and C functions: "gemm" gives gemm.h and gemm_launch
  const DataFiles* files = nullptr;
  const Problem* problem = nullptr;
  std::vector<Buffer> buffers;             ///< of the problem
  std::vector<EmittedPipeline> pipelines;  ///< the newest architecture first
  std::vector<EmittedShape> shapes;        ///< in the order of the pipelines' architectures
  std::string compiler;                    ///< "NVRTC 13.0"
  std::string table;                       ///< of several shapes: the dispatch table as JSON text
  /// Sizes that the self test tries, too: as the user wrote them, and as an object of expressions.
  std::vector<std::pair<std::string, Json>> test_shapes = {};
  bool self_test_cases = true;  ///< their references take seconds, and exist for kernels that compute the whole problem
};

/// The PTX without comments, line numbers and debug sections: equal for equal machine code.
std::string bare_ptx(const std::string& ptx);

/// Parts of a manifest: what expressions of search spaces know of the device; a kernel's schedule, and the digests by
/// which it is known again.
Json limits_json(const expr::Map& scope);
Json recorded_kernel_json(const std::string& stage, const Program& program, const Binary& binary);

/// Whether files and functions of a bundle can begin with it.
bool is_c_name(const std::string& name);

/// The files that every bundle of this name has.
std::vector<std::string> bundle_file_names(const std::string& name);

/// File name -> contents. The manifest has the digest of each other file, by which a later run knows them as roofgen's.
Result<std::map<std::string, std::string>> emit(const EmitRequest& request);

}  // namespace roofgen
