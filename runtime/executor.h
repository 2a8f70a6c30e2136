// Running kernels. Two executors implement this seam: runtime/cuda (libcuda by dlopen) and
// runtime/sim (the PTX simulator). The tuner uses both alike and never asks which it has, except
// through `origin()`, which labels every number that comes back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofgen/driver_facts.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Writes the initial bytes [offset, offset + out.size()) of a buffer. Deterministic and callable
/// from many threads; the simulator calls it lazily, only for the parts that are touched.
using Fill = std::function<void(uint64_t offset, std::span<std::byte> out)>;

/// Which CTAs of the grid to run, as sorted linear indices x + grid.x * (y + grid.y * z).
/// Only an executor whose origin is kSimulated can run a part; others run the whole grid.
struct CtaSelection {
  std::vector<uint64_t> ctas;
};

/// One 128-byte line request of a traced CTA, for the L2 model.
struct LineAccess {
  uint64_t line;        ///< device address / 128
  uint8_t sectors;      ///< bit i: 32-byte sector i requested
  bool write;
};

struct RunOptions {
  std::optional<CtaSelection> ctas;  ///< nullopt: the whole grid
  uint64_t max_warp_instructions = 0;  ///< per CTA; 0 = a generous default, so that a hang is a finding
  std::vector<std::vector<LineAccess>>* trace = nullptr;  ///< one list per CTA run, in order of `ctas`
  int max_findings = 8;  ///< stop the launch after this many
};

struct RunResult {
  std::vector<Finding> findings;     ///< empty: clean (sim); cuda reports faults as Error
  std::optional<Counts> counts;      ///< sim only
  std::optional<double> time_ns;     ///< cuda only: event time of this launch
};

/// A loaded binary, a device allocation. Values; 0 is never valid.
struct ModuleId { uint64_t id = 0; };
struct DevicePtr { uint64_t address = 0; };

/// What the device is and can do, from the driver or from the simulated device's JSON.
struct ExecutorInfo {
  std::string name;         ///< "sim" or "cuda"
  std::string device_name;  ///< "NVIDIA H200" or "h200-sxm (simulated)"
  std::string arch;         ///< "sm_90"
  DriverFacts driver;       ///< of a real GPU; empty in the simulator
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual ExecutorInfo info() const = 0;
  virtual Origin origin() const = 0;  ///< kSimulated or kMeasured
  /// 256-byte aligned. With `fill` the buffer is an input; without, it is poisoned and the
  /// simulator reports any byte read before it is written. `label` names it in findings.
  virtual Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill = nullptr) = 0;
  virtual void release(DevicePtr ptr) = 0;
  virtual Result<void> write(DevicePtr to, std::span<const std::byte> from) = 0;
  /// Copies out. The simulator sets `*written` (if given, one entry per byte) to whether it was ever written.
  virtual Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written = nullptr) = 0;
  /// Makes the buffer poisoned (unwritten) again.
  virtual Result<void> poison(DevicePtr ptr) = 0;
  virtual Result<ModuleId> load(const Binary& binary) = 0;
  virtual void unload(ModuleId module) = 0;
  /// Runs to completion. Buffer arguments in `launch.args` carry their device address in `bits`.
  virtual Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) = 0;
};

Result<std::unique_ptr<Executor>> make_sim_executor();
/// Error with Exit::kUnavailable and a plain reason when there is no driver or no GPU.
Result<std::unique_ptr<Executor>> make_cuda_executor(int ordinal = 0);

}  // namespace roofgen
