// A bundle (docs/use/emit.md): tuned kernels, or those of another bundle's manifest, with all that its files are made
// of.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tuner/bundle/manifest.h"
#include "tuner/dispatch/serving.h"
#include "tuner/tune.h"

namespace roofgen {

/// NVRTC for an architecture, with or without line numbers.
using MakeCompiler = std::function<Result<std::unique_ptr<Compiler>>(const std::string& arch, bool line_info)>;

/// One pipeline, and what it refers to.
struct BundlePipeline {
  ProblemVariants tuned_for;
  std::vector<TunedKernel> kernels;
  std::vector<Binary> binaries;  ///< as in the bundle
  EmittedPipeline emitted;
};

struct Bundle {
  std::string name;
  Problem problem;  ///< of a family the first shape
  std::vector<std::unique_ptr<BundlePipeline>> pipelines;
  std::vector<EmittedShape> shapes;
  std::string compiler;                                        ///< Compiler::description()
  std::string table;                                           ///< of a family, as JSON text
  std::vector<std::pair<std::string, Json>> test_shapes = {};  ///< EmitRequest::test_shapes
};

/// The kernels of a variant that were tuned for the device.
Result<std::unique_ptr<BundlePipeline>> bundle_pipeline(const DataFiles& files, const Device& device,
                                                        const Problem& problem, const std::string& variant,
                                                        std::vector<TunedKernel> kernels, const MakeCompiler& make);

/// The kernels of a manifest, generated and compiled again without a search. Their PTX must be that of the verified
/// kernels, else Exit::kFailed with the difference; `warn` gets a line for other machine code of the same PTX.
Result<Bundle> bundle_of(const DataFiles& files, const Manifest& manifest, const MakeCompiler& make,
                         const std::function<void(const std::string&)>& warn);

/// File name -> contents.
Result<std::map<std::string, std::string>> bundle_files(const DataFiles& files, const Bundle& bundle);

}  // namespace roofgen
