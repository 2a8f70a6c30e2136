// Interface for running kernels. Two executors implement it: runtime/cuda (libcuda by dlopen) and runtime/sim (the PTX
// simulator). The tuner treats both alike; only `origin()` tells them apart and labels every number they return.
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
class Doubles;
class Listener;
class Prerequisites;
/// A warp pauses before a thread of it takes its `count`-th lock, from 1, until the others of Pauses have come as far,
/// and again when the thread has it (runtime/sim/lock_order.h).
struct Pause {
  uint64_t thread;
  uint32_t count;
  bool operator==(const Pause&) const = default;
};
using Pauses = std::vector<Pause>;
}  // namespace sim

/// Writes the initial bytes [offset, offset + out.size()) of a buffer. Deterministic and thread-safe; the simulator
/// calls it lazily, for accessed parts only.
using Fill = std::function<void(uint64_t offset, std::span<std::byte> out)>;

/// The CTAs of a grid to run, as sorted linear indices x + grid.x * (y + grid.y * z). Requires `runs_parts`; executors
/// without it run the whole grid.
struct CtaSelection {
  std::vector<uint64_t> ctas;
};

/// One 128-byte line request of a traced CTA, for the L2 model.
struct LineAccess {
  uint64_t line;    ///< device address / 128
  uint8_t sectors;  ///< bit i: 32-byte sector i requested
  bool write;
};

/// Counts for one instruction of a kernel over a whole launch (simulator only).
struct SiteCounts {
  Where ptx, source;      ///< as in a Finding
  uint64_t executed = 0;  ///< warp-instructions
  uint64_t sectors = 0,
           ideal_sectors = 0;  ///< 32-byte device memory sectors; ideal: the minimum for the bytes of the lanes
  uint64_t wavefronts = 0, ideal_wavefronts = 0;  ///< shared memory wavefronts; ideal: without bank conflicts
  bool decides = false;  ///< reads strongly what other threads may change, and a predicate depends on the value
};

/// As much as the driver's own buffer holds unless it is emitted otherwise (cudaLimitPrintfFifoSize).
inline constexpr size_t kMaxPrintedBytes = size_t{1} << 20;

/// The state of a launch that has not ended.
struct Progress {
  double seconds = 0;
  uint64_t warp_instructions = 0;
  std::vector<SiteCounts> running;  ///< instructions executed just now, most often first; only `executed` is set
};

/// Ends the message of a finding that needs RunOptions::vain_waits.
inline constexpr const char* kWithVainWaits = "; so it is when a try_wait ends at its time limit, without success";

struct RunOptions {
  std::optional<CtaSelection> ctas;    ///< nullopt: the whole grid
  uint64_t max_warp_instructions = 0;  ///< per CTA; 0 = a generous default, so that a hang is a finding
  std::vector<std::vector<LineAccess>>* trace = nullptr;  ///< one list per CTA run, in order of `ctas`
  std::string* printed = nullptr;  ///< what printf writes is added here, up to kMaxPrintedBytes (simulator only)
  std::vector<SiteCounts>* sites = nullptr;    ///< those instructions that were executed, in the order of the PTX
  std::vector<SiteCounts>* not_run = nullptr;  ///< the others, without traps (simulator only)
  sim::Listener* listener =
      nullptr;  ///< emitted every event of the launch (runtime/sim/events.h); one core (simulator only)
  /// Receives the kernel's arithmetic in double beside its own (runtime/sim/doubles.h); one core (simulator only).
  sim::Doubles* doubles = nullptr;
  bool cooperative = false;  ///< the grid may wait for itself, as cooperative groups' grid.sync() does (simulator only)
  /// Called by another thread `progress_after_s` after the launch began, and in intervals that double (simulator only).
  std::function<void(const Progress&)> progress = {};
  double progress_after_s = 5;
  int max_findings = 8;  ///< stop the launch after this many CTAs that ended at a finding
  /// A CTA goes on after a finding where it can, and each place is reported once, with its count. False: a CTA ends at
  /// its first finding (simulator only).
  bool go_on = false;
  int threads =
      1;  ///< that CTAs are spread over where their order does not matter; what comes out is the same (simulator only)
  /// 0: CTAs, and the warps of each, take turns in order. Others: seeds of random orders and lengths of turns, on one
  /// core (simulator only).
  uint64_t schedule = 0;
  /// Of a warp's waits for phases that are not complete every other one ends without success, as mbarrier.try_wait may
  /// (simulator only).
  bool vain_waits = false;
  /// The launches of the stream before this one, to which it is added. Of a launch with `overlap`, accesses that
  /// conflict with theirs are findings unless griddepcontrol.wait comes first (simulator only).
  sim::Prerequisites* prerequisites = nullptr;
  sim::Pauses pauses = {};           ///< of warps that took a lock (simulator only)
  uint64_t worth_threads = 100'000;  ///< warp-instructions of a launch from which they are used: a few milliseconds
};

struct RunResult {
  std::vector<Finding> findings;  ///< empty: no error (simulator); the CUDA executor reports faults as Error
  std::optional<Counts> counts;   ///< sim only
  bool stopped = false;           ///< sim only: max_findings CTAs ended at a finding, others did not run
  /// Runs that may end in a deadlock of threads that take locks in different orders (simulator only).
  std::vector<sim::Pauses> lock_cycles = {};
  std::optional<double> time_ns;  ///< cuda only: event time of this launch
};

/// Handles of a loaded binary and a device allocation; 0 is never valid.
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

/// Identity and properties of the device, from the driver or from the simulated device's JSON.
struct ExecutorInfo {
  std::string name;         ///< "sim" or "cuda"
  std::string device_name;  ///< "NVIDIA H200" or "h200-sxm (simulated)"
  std::string arch;         ///< "sm_90"
  DriverFacts driver;       ///< facts of a real GPU; empty in the simulator
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual ExecutorInfo info() const = 0;
  virtual Origin origin() const = 0;  ///< kSimulated or kMeasured
  /// Whether `run` can run a subset of the CTAs. A simulated driver has origin kSimulated, but cannot.
  virtual bool runs_parts() const { return false; }
  /// Allocates 256-byte aligned memory. With `fill` the buffer is an input; otherwise it is poisoned, and the simulator
  /// reports reads of unwritten bytes. Findings name the buffer by `label`.
  virtual Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill = nullptr) = 0;
  /// Kernels may write to this buffer although it has a Fill. Before the first launch that takes it.
  virtual Result<void> allow_writes(DevicePtr) { return {}; }
  virtual void release(DevicePtr ptr) = 0;
  virtual Result<void> write(DevicePtr to, std::span<const std::byte> from) = 0;
  /// Copies to the host. The simulator reports in `*written` (if given, one entry per byte) whether each byte was
  /// written.
  virtual Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written = nullptr) = 0;
  /// Marks the buffer as unwritten (poisoned) again.
  virtual Result<void> poison(DevicePtr ptr) = 0;
  virtual Result<ModuleId> load(const Binary& binary) = 0;
  virtual void unload(ModuleId module) = 0;
  /// Variables that the module's kernel references (simulator only).
  virtual std::vector<ModuleVariable> variables(ModuleId) { return {}; }
  /// Runs the launch to completion. Buffer arguments in `launch.args` carry their device address in `bits`.
  virtual Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) = 0;
};

// ---- Real GPUs -----------------------------------------------------------------------------------

/// The kind of a failed GPU call: it identifies the cause and the remaining state.
enum class Fault {
  kNone,
  kRefused,  ///< the call was invalid or unsupported; the GPU's state is unchanged
  kMemory,   ///< out of GPU memory; the GPU's state is unchanged
  kKernel,   ///< illegal access, trap or launch failure; the context is lost
  kTimeout,  ///< the kernel exceeded its time limit; the context is lost
  kLost,     ///< the GPU is gone (fell off the bus, driver reset) or no worker starts any more
};
const char* to_string(Fault fault);  ///< "none", "refused", "out of memory", "kernel fault", "timeout", "lost"

/// The GPU and its driver: the provenance of every measurement. Empty or 0: unknown.
struct GpuIdentity {
  std::string name, uuid, pci_bus_id;  ///< "GPU-6f1c...", "0000:3b:00.0"
  std::string driver;                  ///< "580.65.06", from NVML
  int cuda_version = 0;                ///< CUDA version of the driver, 13000 for CUDA 13.0
  double max_sm_mhz = 0, default_sm_mhz = 0, max_memory_mhz = 0, power_limit_w = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
};

/// The current state of the GPU. 0: unknown.
struct GpuState {
  uint64_t free_bytes = 0;
  int other_processes = 0;  ///< compute processes other than this one
  double sm_mhz = 0, memory_mhz = 0, power_w = 0, temperature_c = 0;
  uint64_t limits = 0;  ///< NVML's clocks event reasons
};

/// The subset of NVML's clocks event reasons (nvml.h, nvmlClocksEventReason...) that the measurement protocol uses.
inline constexpr uint64_t kLimitIdle = 0x1, kLimitPowerCap = 0x4, kLimitHwSlowdown = 0x8, kLimitThermalSw = 0x20,
                          kLimitThermalHw = 0x40, kLimitPowerBrake = 0x80;

struct Step {
  ModuleId module;
  Launch launch;  ///< buffer arguments carry their device address in `bits`
};

/// Launches timed together: the kernels of a variant in order, or one kernel repeated.
struct Shot {
  std::vector<Step> steps;
  bool flush = true;   ///< evict all data from L2 before the shot, outside the timed region
  bool graph = false;  ///< launch as one CUDA graph, so that the host's launch rate does not affect the time
};

/// An executor on real hardware, with timing. A kKernel or kTimeout fault invalidates all modules and pointers and
/// increments `generation()`; calls with invalid handles return kRefused.
class GpuExecutor : public Executor {
 public:
  virtual GpuIdentity identity() const = 0;
  virtual Result<GpuState> state() = 0;
  /// Executes the shots in order, one sample each, until the first failure. `*done` is the number of successful shots,
  /// so shots[*done] is the failed one.
  virtual Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done = nullptr) = 0;
  virtual Fault fault() const = 0;  ///< of the last failed call
  virtual uint64_t generation() const = 0;
};

/// An instruction that the simulator does not know: the kernel is refused when it is loaded; or a CTA that comes to the
/// instruction ends there, with the finding `not-modelled`.
enum class NotModelled { kRefused, kEndsCta };
/// `max_memory_bytes`: limit for the memory that launches touch; 0: as much as the system provides, up to 32 GiB.
Result<std::unique_ptr<Executor>> make_sim_executor(uint64_t max_memory_bytes = 0,
                                                    NotModelled not_modelled = NotModelled::kRefused);
/// Runs in this process: a fault destroys the context, and a hang blocks the process. Exit::kUnavailable with a reason
/// when there is no driver or no GPU.
Result<std::unique_ptr<GpuExecutor>> make_cuda_executor(int ordinal = 0);

struct GpuWorkerOptions {
  int ordinal = 0;
  std::string executable;  ///< started as `<executable> __gpu-worker`; empty: the running program
  double timeout_s = 10;   ///< for one launch or shot; loading and copies have 60 s more
  std::function<void(const std::string&)> warn;
};
/// A GPU executor in a worker process, started by exec (never only forked) and replaced after a fault, a hang or a
/// crash, so that a faulty candidate cannot affect others.
Result<std::unique_ptr<GpuExecutor>> make_gpu_worker(GpuWorkerOptions options);
/// The worker's main, for `__gpu-worker`.
int gpu_worker_main();

}  // namespace roofgen
