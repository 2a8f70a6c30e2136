// Times of compiled kernels from their machine code (tuner/timing): they need no GPU.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generator/ops/op.h"
#include "tuner/code_time.h"
#include "tuner/store/store.h"
#include "tuner/timing/launch_time.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// A launch as part of a key of the store, all of it.
std::string launch_text(const Launch& launch);

/// A kernel and one launch of it.
struct KernelLaunch {
  const Binary* binary = nullptr;
  const Launch* launch = nullptr;
  timing::ReadBuffer read;           ///< initial contents of its buffers
  std::string contents;              ///< names them in the store
  std::optional<double> dram_bytes;  ///< of the whole launch, both directions; nullopt: estimated
  /// Of a simulated run: they say how often a branch on an unknown value is taken. Null: nothing does.
  const std::vector<LineRuns>* lines = nullptr;
};

/// Initial contents of an op's inputs, and zeros in the temporaries that begin with zeros. `op` and `problem` must
/// outlive it; not thread-safe.
timing::ReadBuffer initial_contents(const Op& op, const Problem& problem, const std::vector<Buffer>& temporaries);

/// Thread-safe. The store must outlive it.
class KernelTimer {
 public:
  /// `store`: may be null.
  KernelTimer(const Device& device, Evaluations* store);
  /// Why no kernel has a time: no disassembler, or the device lacks a number. Empty: kernels have times.
  const std::string& unavailable() const { return unavailable_; }
  /// The stored time.
  std::optional<CodeTime> recall(const KernelLaunch& kernel, TimeModel model);
  /// nullptr: another process computes it now.
  std::unique_ptr<EvaluationClaim> claim(const KernelLaunch& kernel, TimeModel model);
  /// Disassembles kernels, all in one process, with what other threads ask for at the same time. Later calls of time()
  /// are then fast.
  void read(const std::vector<const Binary*>& binaries);
  /// Forgets the machine code of these.
  void forget(const std::vector<const Binary*>& binaries);
  /// Errors: of this kernel, which has unknown instructions, does not end, or needs what the models lack.
  Result<CodeTime> time(const KernelLaunch& kernel, TimeModel model);

 private:
  using Code = std::shared_ptr<const Result<sass::Code>>;
  StoreKey key_of(const KernelLaunch& kernel, TimeModel model) const;
  void read_unlocked(const std::vector<const Binary*>& binaries);
  Code code_of(const Binary& binary);
  static Result<sass::TakenShare> shares_of(const KernelLaunch& kernel, const sass::Code& code);

  Device device_;
  Evaluations* store_;
  std::string unavailable_;
  timing::Machine machine_;
  std::string device_key_;
  std::mutex wanted_mutex_;
  std::vector<const Binary*> wanted_;  ///< nobody reads them yet; each caller of read() waits for its own
  std::mutex mutex_;                   ///< of codes_, and while nvdisasm runs
  std::map<std::string, Code> codes_;  ///< by the digest of the binary
};

}  // namespace roofgen
