// Runs and times kernels on a GPU through the CUDA driver, with one primary context and one stream. executor.cpp has
// memory and modules, launch.cpp the launches, shots.cpp the timing.
#pragma once

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/gate.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/nvml.h"

namespace roofgen::cuda {

class CudaExecutor final : public GpuExecutor {
 public:
  static Result<std::unique_ptr<GpuExecutor>> open(const std::string& library, int ordinal);
  ~CudaExecutor() override;

  ExecutorInfo info() const override { return info_; }
  Origin origin() const override { return driver_->simulated ? Origin::kSimulated : Origin::kMeasured; }
  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override;
  void release(DevicePtr ptr) override;
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override;
  /// The GPU does not record writes: an aligned 4-byte word that still holds the poison pattern counts as unwritten. A
  /// single unwritten 16-bit element beside a written one is not detected and reads as a NaN.
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override;
  Result<void> poison(DevicePtr ptr) override;
  /// Loads the CUBIN if the GPU accepts it, else the PTX, which the driver compiles.
  Result<ModuleId> load(const Binary& binary) override;
  void unload(ModuleId module) override;
  /// Always runs the whole grid; `options.ctas`, `trace` and the limits are for the simulator.
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) override;

  GpuIdentity identity() const override;
  Result<GpuState> state() override;
  Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done) override;
  Fault fault() const override { return fault_; }
  uint64_t generation() const override { return 0; }

  /// Like `time` for a single shot, for a worker that reports each sample.
  Result<Sample> fire(const Shot& shot);
  /// Frees the graphs that fire() kept, after a sequence of shots.
  void drop_graphs();

 private:
  struct Allocation {
    uint64_t bytes = 0;
    std::string label;
    bool poisoned = false;
  };
  struct Module {
    Handle module = nullptr;
    Handle function = nullptr;
    std::string entry;
    uint32_t smem_limit = 0;  ///< highest size requested from the driver so far
    bool big_clusters = false;
  };
  /// A launch ready to be queued: no look-ups happen between two events.
  struct Prepared {
    Handle function = nullptr;
    std::string entry;
    Launch launch;
    bool overlap = false;
    Parameters parameters;
    bool attributes() const { return overlap || launch.cluster.count() > 1; }
  };

  CudaExecutor() = default;

  Result<void> describe();
  /// Makes the context current on the calling thread. After a fault has destroyed the context, returns an error with
  /// the original cause.
  Result<void> enter();
  /// Driver::check that also records the fault.
  Result<void> check(Status status, const std::string& doing);
  Error refuse(std::string message, Exit exit = Exit::kFailed);
  Error not_allocated(uint64_t address, uint64_t bytes);
  Result<void> synchronize(const std::string& doing);
  Result<Address> take_memory(uint64_t bytes, const std::string& label);
  Result<Allocation*> find(DevicePtr ptr, uint64_t bytes);
  Result<void> fill_from(const Fill& fill, Address to, uint64_t bytes);
  Result<void> load_image(const std::string& image, const Binary& binary, Handle* module, Status* status);
  Error load_error(const Binary& binary, Status status, Error error);

  Result<Prepared> prepare(ModuleId module, const Launch& launch);
  Result<void> reserve(Module& kernel, const Launch& launch);
  Result<void> encode(const Arg& arg, const std::string& entry, TensorMapBytes* out);
  Result<void> queue(Prepared& kernel, bool first);

  Result<void> set_up_shots();
  Result<void> queue_helper(Handle function, unsigned ctas, unsigned threads, std::initializer_list<uint64_t> words,
                            const char* doing);
  Result<void> flush();
  Result<Handle> graph_of(const Shot& shot, std::vector<Prepared>& steps);
  Result<bool> fire_once(const Shot& shot, std::vector<Prepared>& steps, Handle graph, uint64_t gate_ns,
                         Sample* sample);
  Result<double> mean_clock();
  void read_board(Sample& sample);

  std::unique_ptr<Driver> driver_;
  Nvml nvml_;
  Device device_ = 0;
  Handle context_ = nullptr, stream_ = nullptr;
  Handle start_ = nullptr, stop_ = nullptr;
  ExecutorInfo info_;
  GpuIdentity identity_;
  uint32_t max_smem_ = 0;
  bool clusters_ = false, tensor_maps_ = false, persisting_l2_ = false;
  Fault fault_ = Fault::kNone;
  std::string lost_;  ///< the fault that destroyed the context; empty while the context is intact
  /// ROOFGEN_POISON=0 disables poisoning: compute-sanitizer's initcheck counts poison as a write and would find
  /// nothing.
  const bool poisons_ = !std::getenv("ROOFGEN_POISON") || std::string(std::getenv("ROOFGEN_POISON")) != "0";
  std::map<Address, Allocation> allocations_;
  std::map<uint64_t, Module> modules_;
  uint64_t last_module_ = 0;

  Handle helpers_ = nullptr, gate_ = nullptr, stamp_ = nullptr, sweep_ = nullptr;
  Address stamps_ = 0, scratch_ = 0;
  uint64_t scratch_bytes_ = 0;
  GateFactor gate_factor_;
  std::map<std::string, Handle> graphs_;
  Sample board_;  ///< last NVML reading: power, temperature, limits
  std::chrono::steady_clock::time_point board_due_;
};

}  // namespace roofgen::cuda
