// A scripted GPU for tests. Another executor (the simulator) computes the kernels' results; the script sets times,
// clocks, sensors and faults. Time is virtual: kernels, shots, sleeps and restarts advance it without waiting, so the
// same script always gives the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/measure/measure.h"

namespace roofgen::test {

/// One kernel launch, as passed to a script.
struct FakeStep {
  std::string entry, digest;  ///< of the binary
  const Launch& launch;
  bool cold = true;     ///< less than half of its buffers' bytes are in L2 (which evicts the least recently used)
  bool flushed = true;  ///< its shot requested a flush
  bool graph = false;
  double now_s = 0;   ///< at its start
  double sm_mhz = 0;  ///< at that time
};

/// A scripted fault: at the nth matching launch, counted from 1, or from that launch on.
struct FakeFault {
  Fault fault = Fault::kKernel;
  std::string entry = "";   ///< of the binary; empty: any
  std::string digest = "";  ///< of the binary; empty: any
  uint64_t nth = 1;
  bool always = false;
  enum class Where { kEither, kRun, kShot } where = Where::kEither;  ///< run() or time(); a shot counts once
  std::string message = "";                                          ///< empty: the driver's usual message
};

struct FakeScript {
  ExecutorInfo info = h200();
  GpuIdentity identity = h200_identity();
  /// Time of a launch in ns before noise; infinity is a hang.
  std::function<double(const FakeStep&)> step_ns = [](const FakeStep&) { return 10'000.0; };
  double noise = 0;   ///< standard deviation of the logarithm of a shot's time
  uint64_t seed = 1;  ///< of the noise
  std::function<double(double now_s)> sm_mhz = [](double) { return 1980.0; };
  std::function<double(double now_s)> power_w = [](double) { return 500.0; };
  std::function<double(double now_s)> temperature_c = [](double) { return 55.0; };
  std::function<uint64_t(double now_s)> limits = [](double) { return uint64_t{0}; };
  uint64_t memory_bytes = uint64_t{140} << 30;  ///< capacity for all allocations
  int other_processes = 0;
  double message_s = 50e-6;  ///< per call of time()
  double shot_s = 30e-6;     ///< per shot, in addition to its own time
  double flush_s = 40e-6;
  double restart_s = 0.5;  ///< for a new worker after a fault
  double timeout_s = 10;   ///< a longer launch or shot is a timeout
  std::vector<FakeFault> faults;

  static ExecutorInfo h200();
  static GpuIdentity h200_identity();
};

/// A call to the GPU, recorded in order.
struct FakeCall {
  enum class Kind {
    kAllocate,
    kRelease,
    kWrite,
    kRead,
    kPoison,
    kLoad,
    kUnload,
    kRun,
    kMessage,
    kShot,
    kState,
    kSleep
  };
  Kind kind{};
  double now_s = 0;  ///< time before the call
  uint64_t generation = 0;
  std::string label;     ///< buffer: its label; module, run and shot: entry of the (first) kernel
  std::string digest;    ///< of the (first) kernel
  uint64_t bytes = 0;    ///< allocate
  bool filled = false;   ///< allocate: with data
  uint64_t message = 0;  ///< shot: which call of time()
  size_t shots = 0;      ///< message: how many
  bool flush = false, graph = false;
  struct Step {
    std::string entry, digest;
    std::vector<uint64_t> addresses;  ///< of the buffer arguments, in order
    bool cold = false;
  };
  std::vector<Step> steps;  ///< run and shot
  double time_ns = 0;       ///< run and shot
  double seconds = 0;       ///< sleep
  Fault failed = Fault::kNone;
};

class FakeGpu final : public GpuExecutor {
 public:
  /// Without `functional`, the GPU creates a simulator. Binaries without PTX compute nothing and are only timed.
  explicit FakeGpu(FakeScript script = {}, std::unique_ptr<Executor> functional = nullptr);
  ~FakeGpu() override;

  FakeScript script;                           ///< may be changed between calls
  std::vector<FakeCall> calls;                 ///< all calls so far
  double now_s = 0;                            ///< virtual time
  BenchClock clock();                          ///< the virtual clock; sleeping advances it. Must not outlive the GPU
  void replace_worker();                       ///< as after a death between two calls: all handles are stale
  void lose(std::string why = "GPU is lost");  ///< all later calls are kLost

  std::vector<const FakeCall*> calls_of(FakeCall::Kind kind) const;
  std::vector<std::string> shot_order() const;   ///< entry of the first kernel of every shot
  std::string label_of(uint64_t address) const;  ///< of a buffer, even after its release
  uint64_t bytes_in_use() const;
  size_t buffers_in_use() const { return buffers_.size(); }

  ExecutorInfo info() const override { return script.info; }
  Origin origin() const override { return Origin::kMeasured; }
  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill = nullptr) override;
  Result<void> allow_writes(DevicePtr ptr) override;
  void release(DevicePtr ptr) override;
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override;
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written = nullptr) override;
  Result<void> poison(DevicePtr ptr) override;
  Result<ModuleId> load(const Binary& binary) override;
  void unload(ModuleId module) override;
  /// Always runs the whole grid. A simulator finding becomes a fault where a GPU would trap (out of bounds, misaligned,
  /// trap), a timeout where a GPU would hang, and is ignored where a GPU would not notice it.
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) override;
  GpuIdentity identity() const override { return script.identity; }
  Result<GpuState> state() override;
  Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done = nullptr) override;
  Fault fault() const override { return fault_; }
  uint64_t generation() const override { return generation_; }

 private:
  struct Buffer {
    uint64_t inner = 0, bytes = 0;
    std::string label;
  };
  struct Module {
    uint64_t inner = 0;  ///< 0: nothing to compute
    std::string entry, digest;
  };
  FakeCall& record(FakeCall::Kind kind);
  Error fail(Fault fault, std::string message);
  Result<const Buffer*> find(DevicePtr ptr);
  Result<uint64_t> base_of(DevicePtr ptr);
  Result<DevicePtr> inside(DevicePtr ptr);
  Result<const Module*> find(ModuleId id);
  Result<void> alive();
  const FakeFault* due(const std::vector<const Module*>& modules, FakeFault::Where where);
  Result<double> play(const Module& module, const Launch& launch, const Shot* shot, FakeCall& call);
  double random_normal();

  std::unique_ptr<Executor> inner_;
  std::map<uint64_t, Buffer> buffers_;  ///< by returned address
  std::map<uint64_t, Module> modules_;  ///< by returned id
  std::map<uint64_t, std::string> labels_;
  std::vector<uint64_t> l2_;         ///< buffers in L2, the most recently used last
  std::map<size_t, uint64_t> seen_;  ///< matching launches by index of the fault
  Fault fault_ = Fault::kNone;
  std::string lost_;
  uint64_t generation_ = 1, next_module_ = 1, messages_ = 0, random_ = 0;
};

}  // namespace roofgen::test
