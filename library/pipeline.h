// A tuned pipeline in a CUDA context: what roofgen_launch runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generator/interface.h"
#include "roofgen/roofgen.h"
#include "runtime/cuda/driver.h"
#include "tuner/dispatch/serving.h"
#include "tuner/tune.h"

namespace roofgen::library {

/// The kernels of the best variant of a problem, and what they were made of.
struct Winner {
  std::unique_ptr<DataFiles> files;
  const Op* op = nullptr;
  Device device;
  ProblemVariants tuned;
  const Variant* variant = nullptr;  ///< of `tuned`
  std::vector<Legal> legal;          ///< by stage
  std::vector<TunedKernel> kernels;  ///< by stage
};

/// What a call gives beside the pointers: sizes, strides and numbers, each at its place in Pipeline::parameters.
using Numbers = std::vector<uint64_t>;

class Pipeline {
 public:
  /// In the current context.
  static Result<std::unique_ptr<Pipeline>> load(std::shared_ptr<const cuda::Driver> driver, Winner winner);
  ~Pipeline();

  Result<void> launch(cuda::Handle stream, const roofgen_argument* arguments, size_t count, uint64_t workspace,
                      uint64_t workspace_bytes);
  Result<uint64_t> workspace_bytes(const roofgen_argument* arguments, size_t count);
  /// JSON: variant, kernels, parameters.
  const std::string& description() const { return description_; }

 private:
  struct Tensor {
    size_t parameter = 0;
    bool writes = false;
    DType dtype;
    Interface::Extent extent;
  };
  /// Where the pointer of a kernel's argument comes from: a parameter, a temporary, or nowhere: null.
  struct Source {
    enum { kParameter, kTemporary, kNull } kind;
    size_t index = 0;
  };
  /// All of a call but pointers.
  struct Prepared {
    std::vector<Launch> launches;
    std::vector<std::vector<Source>> sources;  ///< by launch and argument
    std::vector<Buffer> temporaries;
    std::vector<uint64_t> offsets;  ///< in the workspace
    uint64_t workspace = 0;
    std::vector<Tensor> tensors;
    Sizes sizes;
    uint64_t calls = 0;  ///< not yet captured
  };
  struct Call {
    std::vector<uint64_t> pointers;  ///< by parameter
    Numbers numbers;                 ///< by parameter
  };

  explicit Pipeline(std::shared_ptr<const cuda::Driver> driver) : driver_(std::move(driver)) {}
  Result<void> describe();
  Result<void> load_modules();
  Result<Call> read(const roofgen_argument* arguments, size_t count) const;
  Result<void> set(Call& call, const roofgen_argument& argument) const;
  Result<std::shared_ptr<Prepared>> prepared(const Numbers& numbers);
  Result<std::shared_ptr<Prepared>> prepare(const Numbers& numbers) const;
  Result<void> check(const Prepared& prepared, const Call& call, uint64_t workspace, uint64_t workspace_bytes) const;
  Result<void> run(const Prepared& prepared, const Call& call, cuda::Handle stream, uint64_t workspace) const;
  bool enter() const;
  void leave(bool entered) const;

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Handle context_ = nullptr;
  Winner winner_;
  std::optional<Interface> interface_;
  std::vector<Buffer> buffers_;
  std::vector<Parameter> parameters_;
  Numbers defaults_;
  std::vector<cuda::Handle> modules_, functions_;
  std::string description_;
  std::mutex mutex_;
  std::map<Numbers, std::shared_ptr<Prepared>> prepared_;
};

}  // namespace roofgen::library
