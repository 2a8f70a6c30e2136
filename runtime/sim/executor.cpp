// The simulator behind the executor seam.
#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "base/costs.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/ptx_parser.h"
#include "runtime/sim/schedule.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen {
namespace {

using namespace sim;

/// More than any practical CTA needs (a row block of a million keys takes 10^8), and under a minute of time.
constexpr uint64_t kDefaultInstructionLimit = 1'000'000'000;
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMostTensorThreads = 30 * kWarpSize;  ///< with the tensor core and the other CTAs of a cluster
constexpr uint32_t kMostWgmmaThreads = 25 * kWarpSize;   ///< with their groups at most SharedShadow's kMaxWarps readers
constexpr uint32_t kMaxSharedBytes = 227 * 1024;         ///< per CTA on sm_90, the most of any target here

struct Module {
  Kernel kernel;
  std::vector<ModuleVariable> variables;
};

class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(NotModelled not_modelled) : not_modelled_(not_modelled) {}
  Result<void> initialise(uint64_t max_bytes) { return memory_.initialise(max_bytes); }

  ExecutorInfo info() const override { return {"sim", "PTX simulator", "", {}}; }
  Origin origin() const override { return Origin::kSimulated; }
  bool runs_parts() const override { return true; }

  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override {
    ROOFGEN_TRY(uint64_t address, memory_.allocate(bytes, std::move(label), std::move(fill)));
    return DevicePtr{address};
  }
  Result<void> allow_writes(DevicePtr ptr) override { return memory_.allow_writes(ptr.address); }
  void release(DevicePtr ptr) override { memory_.release(ptr.address); }
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override { return memory_.write(to.address, from); }
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override {
    return memory_.read(from.address, to, written);
  }
  Result<void> poison(DevicePtr ptr) override { return memory_.poison(ptr.address); }

  Result<ModuleId> load(const Binary& binary) override;
  void unload(ModuleId id) override;
  std::vector<ModuleVariable> variables(ModuleId id) override;
  Result<RunResult> run(ModuleId id, const Launch& launch, const RunOptions& options) override;

 private:
  const NotModelled not_modelled_;
  DeviceMemory memory_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<const Module>> modules_;
  uint64_t next_module_ = 1;
};

Result<ModuleId> SimExecutor::load(const Binary& binary) {
  std::string file = binary.entry + ".ptx";
  ROOFGEN_TRY(PtxModule ptx, parse_ptx(binary.ptx, file));
  const PtxFunction* entry = nullptr;
  for (const PtxFunction& f : ptx.functions)
    if (f.is_entry && f.defined && f.name == binary.entry) entry = &f;
  if (!entry) return Error{Exit::kFailed, fmt::format("the PTX has no kernel '{}'", binary.entry), {file, 0, 0}};
  auto module = std::make_shared<Module>();
  auto place = [&](const PtxVar& v) -> Result<uint64_t> {
    ROOFGEN_TRY(uint64_t address, memory_.allocate(v.bytes(), std::string(v.name), nullptr));
    module->variables.push_back({std::string(v.name), {address}, v.bytes()});
    std::vector<std::byte> bytes(v.bytes());  // C++ zero-initialises globals
    std::ranges::copy(std::as_bytes(std::span(v.init)).first(std::min<size_t>(v.init.size(), bytes.size())),
                      bytes.begin());
    ROOFGEN_CHECK(memory_.write(address, bytes));
    return address;
  };
  auto kernel = decode_kernel(ptx, *entry, OpcodeTable::host(), place, file, not_modelled_);
  if (!kernel) {
    for (const ModuleVariable& v : module->variables) memory_.release(v.at.address);
    return std::move(kernel).error();
  }
  module->kernel = std::move(*kernel);
  std::lock_guard lock(mutex_);
  modules_[next_module_] = std::move(module);
  return ModuleId{next_module_++};
}

void SimExecutor::unload(ModuleId id) {
  std::shared_ptr<const Module> gone;
  {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(id.id);
    if (it == modules_.end()) return;
    gone = it->second;
    modules_.erase(it);
  }
  for (const ModuleVariable& v : gone->variables) memory_.release(v.at.address);
}

std::vector<ModuleVariable> SimExecutor::variables(ModuleId id) {
  std::lock_guard lock(mutex_);
  const auto it = modules_.find(id.id);
  return it == modules_.end() ? std::vector<ModuleVariable>{} : it->second->variables;
}

/// Refuses a launch that contradicts the kernel's declaration, as a driver does.
Result<void> check_launch(const Kernel& kernel, const Launch& launch) {
  auto refuse = [&](std::string message) {
    return Error{Exit::kFailed, fmt::format("{}: {}", kernel.name, message), {}};
  };
  const uint32_t block[3] = {launch.block.x, launch.block.y, launch.block.z};
  if (launch.block.count() == 0 || launch.block.count() > kMaxThreads)
    return refuse(fmt::format("a block of {} x {} x {} threads cannot be launched", block[0], block[1], block[2]));
  if (kernel.has_wgmma && launch.block.count() > kMostWgmmaThreads)
    return refuse(fmt::format("{} threads: the simulator runs wgmma in blocks of up to {} threads",
                              launch.block.count(), kMostWgmmaThreads));
  if (kernel.has_tensor_memory && launch.block.count() > kMostTensorThreads)
    return refuse(fmt::format("{} threads: the simulator runs tcgen05 in blocks of up to {} threads",
                              launch.block.count(), kMostTensorThreads));
  uint64_t limit = uint64_t{kernel.max_threads[0]} * kernel.max_threads[1] * kernel.max_threads[2];
  if (kernel.max_threads[0] && launch.block.count() > limit)
    return refuse(fmt::format("{} threads are over the kernel's declared maximum of {}", launch.block.count(), limit));
  for (int i = 0; i < 3; ++i)
    if (kernel.required_threads[0] && block[i] != kernel.required_threads[i])
      return refuse(fmt::format("the kernel requires {} x {} x {} threads", kernel.required_threads[0],
                                kernel.required_threads[1], kernel.required_threads[2]));
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0 || launch.grid.x > 0x7fffffff ||
      launch.grid.y > 65535 || launch.grid.z > 65535)
    return refuse(
        fmt::format("a grid of {} x {} x {} CTAs cannot be launched", launch.grid.x, launch.grid.y, launch.grid.z));
  const Dim3& cluster = launch.cluster;
  if (cluster.count() == 0 || cluster.count() > kMaxClusterCtas || launch.grid.x % cluster.x ||
      launch.grid.y % cluster.y || launch.grid.z % cluster.z)
    return refuse(fmt::format("clusters of {} x {} x {} CTAs cannot be launched with this grid", cluster.x, cluster.y,
                              cluster.z));
  if (kernel.static_shared > kMostStaticSmem)
    return refuse(fmt::format("{} bytes of static shared memory are over the limit of {}", kernel.static_shared,
                              kMostStaticSmem));
  if (uint64_t{kernel.static_shared} + launch.smem_bytes > kMaxSharedBytes)
    return refuse(fmt::format("{} bytes of shared memory are over the limit of {}",
                              uint64_t{kernel.static_shared} + launch.smem_bytes, kMaxSharedBytes));
  if (launch.args.size() != kernel.params.size())
    return refuse(fmt::format("{} arguments given, the kernel takes {}", launch.args.size(), kernel.params.size()));
  return {};
}

/// An argument that is a tensor map, as the parameter holds it.
Result<void> encode_map(const Kernel& kernel, const Arg& arg, std::byte* out) {
  const TensorMap& map = *arg.map;
  if (const std::string why = fault_in(map, arg.bits); !why.empty())
    return Error{Exit::kFailed, fmt::format("{}: tensor map {}: {}", kernel.name, arg.name, why), {}};
  view_of(map, arg.bits).encode(out);
  return {};
}

/// Reports the progress of a launch from a thread of its own, so that the machine needs no clock.
class Watch {
 public:
  Watch(const RunOptions& options, const Kernel& kernel, Counter& counter)
      : options_(options), kernel_(kernel), issues_(counter.issues()) {
    if (options.progress) thread_ = std::thread([this] { watch(); });
  }
  ~Watch() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;

 private:
  static constexpr double kSample = 0.2;  ///< seconds

  bool ends_within(double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ended_; });
  }

  /// The machine counts meanwhile: a count may be some instructions old.
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> out(kernel_.code.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::atomic_ref(issues_[i]).load(std::memory_order_relaxed);
    return out;
  }

  void watch() {
    Progress p;
    for (double wait = options_.progress_after_s;; wait = p.seconds) {
      if (ends_within(wait - kSample)) return;
      const std::vector<uint64_t> before = counts();
      if (ends_within(kSample)) return;
      const std::vector<uint64_t> after = counts();
      p.seconds += wait;
      p.warp_instructions = 0;
      p.running.clear();
      for (size_t i = 0; i < after.size(); ++i) {
        p.warp_instructions += after[i];
        if (after[i] == before[i]) continue;
        SiteCounts& site = p.running.emplace_back();
        site.ptx = {kernel_.file, static_cast<int>(kernel_.code[i].line), 0};
        site.source = kernel_.sources[i];
        site.executed = after[i] - before[i];
      }
      std::stable_sort(p.running.begin(), p.running.end(),
                       [](const SiteCounts& a, const SiteCounts& b) { return a.executed > b.executed; });
      options_.progress(p);
    }
  }

  const RunOptions& options_;
  const Kernel& kernel_;
  uint64_t* issues_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

Result<RunResult> SimExecutor::run(ModuleId id, const Launch& asked, const RunOptions& options) {
  std::shared_ptr<const Module> module;
  {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(id.id);
    if (it == modules_.end()) return Error{Exit::kFailed, "no such module", {}};
    module = it->second;
  }
  const Kernel& kernel = module->kernel;
  Launch launch = asked;
  if (kernel.required_cluster[0] && launch.cluster.count() == 1)
    launch.cluster = {kernel.required_cluster[0], kernel.required_cluster[1], kernel.required_cluster[2]};
  if (kernel.counts_clusters) launch.grid = kernel.ctas_of(launch.grid);
  ROOFGEN_CHECK(check_launch(kernel, launch));
  uint64_t total = launch.grid.count();
  uint64_t n = options.ctas ? options.ctas->ctas.size() : total;
  for (uint64_t i = 0; options.ctas && i < n; ++i)
    if (options.ctas->ctas[i] >= total)
      return Error{Exit::kFailed, fmt::format("CTA {} is not in the grid of {}", options.ctas->ctas[i], total), {}};
  if (options.ctas && launch.cluster.count() > 1 &&
      cluster_numbers(launch, options.ctas->ctas).size() * launch.cluster.count() != n)
    return Error{Exit::kFailed, kernel.name + ": the CTAs to run are not whole clusters", {}};
  if (n > 0xffffffffu) return Error{Exit::kFailed, fmt::format("{} CTAs are too many for one run", n), {}};

  // As cudaLaunchCooperativeKernel gives it: the barrier's counter.
  struct Workspace {
    DeviceMemory& memory;
    uint64_t address = 0;
    ~Workspace() {
      if (address) memory.release(address);
    }
  } workspace{memory_};
  if (options.cooperative) {
    ROOFGEN_TRY(workspace.address, memory_.allocate(8, "the grid's barrier", nullptr));
    ROOFGEN_CHECK(memory_.write(workspace.address, std::vector<std::byte>(8)));
  }
  LaunchState state{kernel, launch, {}, memory_, memory_.buffers(), 0};
  state.max_instructions = options.max_warp_instructions ? options.max_warp_instructions : kDefaultInstructionLimit;
  if (options.go_on) state.go_on = GoOn::kAlways;
  state.printed = options.printed;
  state.listener = options.listener;
  if ((state.doubles = options.doubles)) state.doubles->begin(kernel, OpcodeTable::host());
  state.grid_workspace = workspace.address;
  state.params.resize(kernel.param_bytes);
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (!arg.data.empty()) {
      if (arg.data.size() != kernel.params[i].bytes)
        return Error{Exit::kFailed,
                     fmt::format("{}: argument '{}' has {} bytes, the parameter {}", kernel.name, arg.name,
                                 arg.data.size(), kernel.params[i].bytes),
                     {}};
      std::copy(arg.data.begin(), arg.data.end(), state.params.begin() + kernel.params[i].offset);
      continue;
    }
    if (arg.map && kernel.params[i].bytes == kTensorMapBytes) {
      ROOFGEN_CHECK(encode_map(kernel, arg, state.params.data() + kernel.params[i].offset));
      continue;
    }
    if (arg.bytes > 8 || arg.bytes != kernel.params[i].bytes)
      return Error{Exit::kFailed,
                   fmt::format("{}: argument '{}' has {} bytes, the parameter {}", kernel.name, arg.name, arg.bytes,
                               kernel.params[i].bytes),
                   {}};
    std::memcpy(state.params.data() + kernel.params[i].offset, &arg.bits, arg.bytes);
  }

  Prerequisites::Conduct conduct;
  std::optional<AccessHistory> accesses;
  if (options.prerequisites) state.accesses = &accesses;
  if (options.prerequisites && launch.overlap) state.prerequisites = options.prerequisites, state.conduct = &conduct;
  Counter counter(kernel);
  RunResult result;
  if (options.trace) options.trace->clear();
  {
    const Watch watch(options, kernel, counter);
    run_ctas(state, counter, n, options, result.findings);
  }
  result.lock_cycles = std::move(state.lock_cycles);
  if (accesses) options.prerequisites->add(kernel.name, *accesses, *state.buffers, state.conduct);
  spend(Cost::kSimulated, counter.warp_instructions());
  result.counts = counter.finish();
  result.stopped = result.counts->ctas < n && state.stopped >= static_cast<uint64_t>(std::max(options.max_findings, 1));
  if (options.sites) *options.sites = counter.sites(true);
  if (options.not_run) *options.not_run = counter.sites(false);
  return result;
}

}  // namespace

Result<std::unique_ptr<Executor>> make_sim_executor(uint64_t max_memory_bytes, NotModelled not_modelled) {
  auto executor = std::make_unique<SimExecutor>(not_modelled);
  ROOFGEN_CHECK(executor->initialise(max_memory_bytes));
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace roofgen
