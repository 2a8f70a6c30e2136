// A tuned pipeline in a CUDA context: what roofgen_launch runs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generator/launch_checks.h"
#include "generator/launch_code.h"
#include "roofgen/roofgen.h"
#include "runtime/cuda/driver.h"
#include "tuner/dispatch/serving.h"
#include "tuner/session/launcher/capture.h"
#include "tuner/session/session.h"
#include "tuner/session/suite/file.h"
#include "tuner/tune.h"

namespace roofgen {

/// The kernels of the best variant of a problem, and what they were made of.
struct Winner {
  std::unique_ptr<DataFiles> files;
  const Op* op = nullptr;
  Device device;
  ProblemVariants tuned;
  const Variant* variant = nullptr;  ///< of `tuned`
  std::vector<Legal> legal;          ///< by stage
  std::vector<TunedKernel> kernels;  ///< by stage
  FlagValues flags;                  ///< of the problem and the device, as the request has them
  double seconds = 0;                ///< of the search
  bool measured = false;             ///< else a model or the simulated driver gave the time
};

/// What a call gives beside the pointers: sizes, strides and numbers, each at its place in Pipeline::parameters.
using Numbers = std::vector<std::optional<uint64_t>>;

class Pipeline {
 public:
  /// In the current context.
  static Result<std::unique_ptr<Pipeline>> load(std::shared_ptr<const cuda::Driver> driver, Winner winner);
  ~Pipeline();

  Result<void> launch(cuda::Handle stream, const roofgen_argument* arguments, size_t count, uint64_t workspace,
                      uint64_t workspace_bytes);
  Result<uint64_t> workspace_bytes(const roofgen_argument* arguments, size_t count);
  /// JSON: variant, time, kernels, parameters.
  const std::string& description() const { return description_; }

 private:
  class Live;
  struct Tensor {
    size_t parameter = 0;
    launch_tensor known;  ///< all but its address
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
    Sizes sizes;                           ///< those that are parameters
    std::atomic<bool> seen = false;        ///< its first launch is captured
    std::atomic<uint64_t> uncaptured = 0;  ///< launches
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
  void capture_launches();
  void capture_locked();  ///< by a caller that holds mutex_
  bool enter() const;
  void leave(bool entered) const;

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Handle context_ = nullptr;
  Winner winner_;
  std::optional<Interface> interface_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<LaunchCode::Condition>> conditions_;  ///< by stage
  std::vector<Parameter> parameters_;
  Numbers defaults_;
  std::vector<cuda::Handle> modules_, functions_;
  std::string description_;
  const std::string capture_file_ = capture_file();
  std::mutex mutex_;
  std::map<Numbers, std::shared_ptr<Prepared>> prepared_;
};

/// The best kernels of a problem, from the cache, the store or a search, in the current context. The device is the
/// context's, unless the problem names another one.
Result<std::unique_ptr<Pipeline>> load_pipeline(const Session& session, SuiteProblem problem);

}  // namespace roofgen
