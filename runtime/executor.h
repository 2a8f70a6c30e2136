// Running kernels. Two executors implement this seam: runtime/cuda (libcuda by dlopen) and
// runtime/sim (the PTX simulator). The tuner uses both alike and never asks which it has, except
// through `origin()`, which labels every number that comes back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofgen/driver_facts.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {
namespace sim {
class Listener;
}

/// Writes the initial bytes [offset, offset + out.size()) of a buffer. Deterministic and callable
/// from many threads; the simulator calls it lazily, only for the parts that are touched.
using Fill = std::function<void(uint64_t offset, std::span<std::byte> out)>;

/// Which CTAs of the grid to run, as sorted linear indices x + grid.x * (y + grid.y * z).
/// Only an executor that says so (`runs_parts`) can run a part; others run the whole grid.
struct CtaSelection {
  std::vector<uint64_t> ctas;
};

/// One 128-byte line request of a traced CTA, for the L2 model.
struct LineAccess {
  uint64_t line;    ///< device address / 128
  uint8_t sectors;  ///< bit i: 32-byte sector i requested
  bool write;
};

/// What one instruction of a kernel did over a whole launch (simulator only).
struct SiteCounts {
  Where ptx, source;      ///< as in a Finding
  uint64_t executed = 0;  ///< warp-instructions
  uint64_t sectors = 0,
           ideal_sectors = 0;  ///< of device memory, 32 bytes each; ideal: as few as the bytes of its lanes need
  uint64_t wavefronts = 0, ideal_wavefronts = 0;  ///< of shared memory; ideal: without bank conflicts
};

/// As much as the driver's own buffer holds unless it is emitted otherwise (cudaLimitPrintfFifoSize).
inline constexpr size_t kMaxPrintedBytes = size_t{1} << 20;

struct RunOptions {
  std::optional<CtaSelection> ctas;    ///< nullopt: the whole grid
  uint64_t max_warp_instructions = 0;  ///< per CTA; 0 = a generous default, so that a hang is a finding
  std::vector<std::vector<LineAccess>>* trace = nullptr;  ///< one list per CTA run, in order of `ctas`
  std::string* printed = nullptr;  ///< what printf writes is added here, up to kMaxPrintedBytes (simulator only)
  std::vector<SiteCounts>* sites = nullptr;  ///< those instructions that were executed, in the order of the PTX
  sim::Listener* listener =
      nullptr;               ///< emitted every event of the launch (runtime/sim/events.h); one core (simulator only)
  bool cooperative = false;  ///< the grid may wait for itself, as cooperative groups' grid.sync() does (simulator only)
  int max_findings = 8;      ///< stop the launch after this many
  int threads =
      1;  ///< that CTAs are spread over where their order does not matter; what comes out is the same (simulator only)
  uint64_t worth_threads = 100'000;  ///< warp-instructions of a launch from which they are used: a few milliseconds
};

struct RunResult {
  std::vector<Finding> findings;  ///< empty: clean (sim); cuda reports faults as Error
  std::optional<Counts> counts;   ///< sim only
  std::optional<double> time_ns;  ///< cuda only: event time of this launch
};

/// A loaded binary, a device allocation. Values; 0 is never valid.
struct ModuleId {
  uint64_t id = 0;
};
struct DevicePtr {
  uint64_t address = 0;
};

/// A __device__ or __constant__ variable.
struct ModuleVariable {
  std::string name;  ///< in the PTX
  DevicePtr at;
  uint64_t bytes = 0;
};

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
  /// Whether `run` can run some CTAs of a grid. A simulated driver's origin is kSimulated, but it cannot.
  virtual bool runs_parts() const { return false; }
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
  /// Those that the module's kernel mentions (simulator only).
  virtual std::vector<ModuleVariable> variables(ModuleId) { return {}; }
  /// Runs to completion. Buffer arguments in `launch.args` carry their device address in `bits`.
  virtual Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) = 0;
};

// ---- Real GPUs -----------------------------------------------------------------------------------

/// What a call to a GPU failed of, and so who is to blame and what is left.
enum class Fault {
  kNone,
  kRefused,  ///< the call itself was wrong or not supported; the GPU is as it was
  kMemory,   ///< out of GPU memory; the GPU is as it was
  kKernel,   ///< illegal access, trap, launch failure: the context went with it
  kTimeout,  ///< the kernel did not end in time: the context went with it
  kLost,     ///< the GPU is gone (fell off the bus, driver reset, no worker starts any more)
};
const char* to_string(Fault fault);  ///< "none", "refused", "out of memory", "kernel fault", "timeout", "lost"

/// Which GPU this is and what it runs under: the provenance of everything measured on it. Empty or 0: unknown.
struct GpuIdentity {
  std::string name, uuid, pci_bus_id;  ///< "GPU-6f1c...", "0000:3b:00.0"
  std::string driver;                  ///< "580.65.06", from NVML
  int cuda_version = 0;                ///< of the driver, 13000 for CUDA 13.0
  double max_sm_mhz = 0, default_sm_mhz = 0, max_memory_mhz = 0, power_limit_w = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
};

/// How the GPU is right now. 0: unknown.
struct GpuState {
  uint64_t free_bytes = 0;
  int other_processes = 0;  ///< compute processes that are not ours
  double sm_mhz = 0, memory_mhz = 0, power_w = 0, temperature_c = 0;
  uint64_t limits = 0;  ///< NVML's clocks event reasons
};

/// NVML's clocks event reasons (nvml.h, nvmlClocksEventReason...), those that the protocol knows.
inline constexpr uint64_t kLimitIdle = 0x1, kLimitPowerCap = 0x4, kLimitHwSlowdown = 0x8, kLimitThermalSw = 0x20,
                          kLimitThermalHw = 0x40, kLimitPowerBrake = 0x80;

struct Step {
  ModuleId module;
  Launch launch;  ///< buffer arguments carry their device address in `bits`
};

/// Launches timed as one: the kernels of a variant in order, or one kernel many times over.
struct Shot {
  std::vector<Step> steps;
  bool flush = true;   ///< before it, outside the timed region, push everything else out of L2
  bool graph = false;  ///< as one CUDA graph, so that the host's launch rate does not show
};

/// An executor on real hardware: it also times. After a kKernel or kTimeout fault every module and
/// pointer from before is gone and `generation()` has grown; calls with an old one are kRefused.
class GpuExecutor : public Executor {
 public:
  virtual GpuIdentity identity() const = 0;
  virtual Result<GpuState> state() = 0;
  /// Fires the shots in order, one sample each. The first failure ends it: `*done` is how many went
  /// well before, so the shot to blame is shots[*done].
  virtual Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done = nullptr) = 0;
  virtual Fault fault() const = 0;  ///< of the last call that failed
  virtual uint64_t generation() const = 0;
};

/// `max_memory_bytes`: of all that launches touch; 0: as much as the system gives, up to 32 GiB.
Result<std::unique_ptr<Executor>> make_sim_executor(uint64_t max_memory_bytes = 0);
/// In this process: a fault or a hang takes the context (and with a hang the process) along. Error with
/// Exit::kUnavailable and a plain reason when there is no driver or no GPU.
Result<std::unique_ptr<GpuExecutor>> make_cuda_executor(int ordinal = 0);

struct GpuWorkerOptions {
  int ordinal = 0;
  std::string executable;  ///< started as `<executable> __gpu-worker`; empty: this very program
  double timeout_s = 10;   ///< for one launch or shot; loading and copies have a minute more
  std::function<void(const std::string&)> warn;
};
/// The same in a process of its own, started anew (never forked) and replaced after a fault, a hang or
/// a crash, so that a candidate can take down nothing but itself.
Result<std::unique_ptr<GpuExecutor>> make_gpu_worker(GpuWorkerOptions options);
/// The worker's main, for `__gpu-worker`.
int gpu_worker_main();

}  // namespace roofgen
