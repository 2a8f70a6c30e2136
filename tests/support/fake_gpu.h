// A GPU for tests: kernels really run, in the simulator, whose findings are dropped as a GPU would; time,
// clocks and faults follow a script. It behaves like the worker: after a fault all handles are stale.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/measure/measure.h"

namespace roofgen::test {

/// One launch as the script sees it.
struct FakeLaunch {
  std::string entry, digest;
  const Launch* launch = nullptr;
  bool cold = false;   ///< of a shot with a flush before it
  bool timed = false;  ///< of a shot; else run()
  uint64_t use = 0;    ///< how often this digest was launched before
  double now_s = 0;    ///< of the virtual clock
};

struct FakeScript {
  std::function<double(const FakeLaunch&)> time_ns = [](const FakeLaunch&) { return 10e3; };
  double noise = 0;   ///< standard deviation of a sample, relative; from `seed`
  uint64_t seed = 1;
  std::function<Fault(const FakeLaunch&)> fault = [](const FakeLaunch&) { return Fault::kNone; };
  /// Fills in clock, power, temperature and limits of a sample by the virtual clock.
  std::function<void(double now_s, Sample&)> conditions = [](double, Sample&) {};
  bool functional = true;  ///< false: kernels do nothing at all
  double shot_s = 20e-6;   ///< what a shot costs beside its own time
  double run_s = 1e-3;     ///< what a run() costs
};

class FakeGpu final : public GpuExecutor {
 public:
  explicit FakeGpu(FakeScript script = {});
  FakeScript script;
  GpuIdentity gpu;         ///< an H200's, made up
  ExecutorInfo described;  ///< the same
  GpuState now;            ///< free_bytes is worked out; the rest may be set
  uint64_t memory_bytes = uint64_t{141} << 30;

  /// The protocol's time.
  BenchClock clock();
  double now_s = 0;
  std::vector<double> sleeps;  ///< as asked for

  /// What was done, in order: "run ENTRY", "shot cold ENTRY x4 @ADDRESS", "load ENTRY", "replaced", ...
  std::vector<std::string> log;
  size_t count(const std::string& prefix) const;  ///< lines of the log that begin so
  uint64_t allocated() const { return used_; }

  ExecutorInfo info() const override { return described; }
  Origin origin() const override { return Origin::kMeasured; }
  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override;
  void release(DevicePtr ptr) override;
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override;
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override;
  Result<void> poison(DevicePtr ptr) override;
  Result<ModuleId> load(const Binary& binary) override;
  void unload(ModuleId module) override;
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) override;
  GpuIdentity identity() const override { return gpu; }
  Result<GpuState> state() override;
  Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done) override;
  Fault fault() const override { return fault_; }
  uint64_t generation() const override { return generation_; }

 private:
  struct Module {
    std::string entry, digest;
    ModuleId real;
  };
  Error fail(Fault fault, std::string message);
  Result<uint64_t> strip(uint64_t address);
  Result<const Module*> module(ModuleId id);
  Result<Launch> bind(const Launch& launch);
  Result<void> maybe_fault(const Module& module, const Launch& launch, bool cold, bool timed);
  void replace();

  std::unique_ptr<Executor> sim_;
  std::map<uint64_t, uint64_t> allocations_;  ///< untagged address -> bytes
  std::map<uint64_t, Module> modules_;
  std::map<std::string, uint64_t> uses_;
  uint64_t used_ = 0, next_module_ = 1, next_address_ = 1 << 20;
  uint64_t generation_ = 0;
  Fault fault_ = Fault::kNone;
  bool lost_ = false;
  std::mt19937_64 random_;
};

}  // namespace roofgen::test
