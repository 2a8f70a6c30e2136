// manifest.json of a bundle, read: the problem, and of each kernel the schedule and the digests (docs/use/emit.md).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generator/emit.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {

struct ManifestKernel {
  std::string name, arch;  ///< `arch`: for which it was compiled
  std::vector<std::pair<std::string, ParamValue>> params;
  std::string digest;  ///< Binary::digest of the verified kernel
  std::string source_sha256, ptx_sha256, cubin_sha256;
  Where where;
};

struct ManifestPipeline {
  std::string arch, variant;
  expr::Map limits;  ///< of the device for which it was tuned
  std::vector<ManifestKernel> kernels;
  std::string result;  ///< as EmittedPipeline::evidence
  Where where;
};

struct Manifest {
  std::string name, compiler;
  Problem problem;  ///< as Op::complete() leaves it; of a family the first shape
  std::vector<ManifestPipeline> pipelines;
  std::optional<DispatchTable> table;
  std::string table_text;  ///< as it was written
  /// Of each pipeline, the problem for which it was tuned.
  const Problem& tuned_for(size_t pipeline) const {
    return table ? table->shapes[table->kernels[pipeline].tuned_for].problem : problem;
  }
  std::vector<Problem> shapes() const;
  std::string file;
};

/// Errors: file:line:col, Exit::kFailed. The text may be a stranger's: at most 4 MiB, 64 pipelines of 64 kernels.
Result<Manifest> read_manifest(std::string text, std::string file, const DataFiles& files = DataFiles());

/// The digests of a bundle's files as roofgen wrote them, by its manifest, which is one of them; none: no manifest.
std::set<std::string> written_digests(const std::string& manifest);

/// An error with the first difference where the bundle is not that of these problems and architectures ("80", "90a";
/// none: any).
Result<void> check_fits(const Manifest& manifest, const std::vector<Problem>& problems,
                        const std::vector<std::string>& archs);

}  // namespace roofgen
