// Running kernels on a GPU through the CUDA driver. Synchronous and simple: one primary context, the
// default stream, one event pair per launch. Times are of single launches, not a tuned measurement.
#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "runtime/cuda/driver.h"

namespace roofgen {
namespace cuda {
namespace {

// Every byte of poison. 0xFFFF is a NaN in bf16 and fp16, 0xFFFFFFFF in fp32, so that a value never
// written cannot pass for a result.
constexpr unsigned char kPoison = 0xff;
constexpr size_t kStagingBytes = size_t{16} << 20;

struct Allocation {
  uint64_t bytes = 0;
  std::string label;
  bool poisoned = false;
};

struct Module {
  Handle module = nullptr;
  Handle function = nullptr;
  std::string entry;
};

class CudaExecutor : public GpuExecutor {
 public:
  static Result<std::unique_ptr<GpuExecutor>> open(const std::string& library, int ordinal) {
    auto self = std::unique_ptr<CudaExecutor>(new CudaExecutor);
    ROOFGEN_TRY(self->driver_, Driver::open(library));
    const Driver& cu = *self->driver_;
    int count = 0;
    ROOFGEN_CHECK(cu.check(cu.device_count(&count), "counting GPUs"));
    if (count == 0) return Error{Exit::kUnavailable, "the CUDA driver finds no GPU"};
    if (ordinal < 0 || ordinal >= count)
      return Error{Exit::kUsage,
                   fmt::format("there is no GPU {}; this machine has {}, counted from 0", ordinal, count)};
    ROOFGEN_CHECK(cu.check(cu.device(&self->device_, ordinal), "opening the GPU"));
    ROOFGEN_CHECK(self->describe());
    ROOFGEN_CHECK(cu.check(cu.retain_context(&self->context_, self->device_), "creating a context"));
    ROOFGEN_CHECK(self->enter());
    ROOFGEN_CHECK(cu.check(cu.create_event(&self->start_, 0), "creating an event"));
    ROOFGEN_CHECK(cu.check(cu.create_event(&self->stop_, 0), "creating an event"));
    return std::unique_ptr<GpuExecutor>(std::move(self));
  }

  ~CudaExecutor() override {
    if (!context_) return;
    // After a fault these fail one by one, and the context's release frees everything all the same.
    driver_->set_context(context_);
    for (auto& [id, module] : modules_) driver_->unload_module(module.module);
    for (auto& [address, allocation] : allocations_) driver_->free(address);
    if (start_) driver_->destroy_event(start_);
    if (stop_) driver_->destroy_event(stop_);
    driver_->release_context(device_);
  }

  ExecutorInfo info() const override { return info_; }
  Origin origin() const override { return Origin::kMeasured; }

  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override {
    ROOFGEN_CHECK(enter());
    Address address = 0;
    Status status = driver_->allocate(&address, std::max<uint64_t>(bytes, 1));
    ROOFGEN_CHECK(
        driver_->check(status, fmt::format("allocating {} bytes of GPU memory for {}", bytes, label)));
    allocations_[address] = {bytes, std::move(label), !fill && poisons_};
    Result<void> filled = fill ? copy_from(fill, address, bytes) : poisons_ ? poison({address}) : Result<void>();
    if (!filled) {
      release({address});
      return std::move(filled).error();
    }
    return DevicePtr{address};
  }

  void release(DevicePtr ptr) override {
    if (allocations_.erase(ptr.address) == 0 || !enter()) return;
    driver_->free(ptr.address);
  }

  Result<void> write(DevicePtr to, std::span<const std::byte> from) override {
    ROOFGEN_CHECK(enter());
    ROOFGEN_TRY(const Allocation* into, find(to, from.size()));
    return driver_->check(driver_->copy_in(to.address, from.data(), from.size()), "writing " + into->label);
  }

  /// The GPU keeps no record of writes: aligned words of four bytes that still are all poison count as
  /// unwritten. A stray unwritten 16-bit element beside a written one is missed here, and reads as a NaN.
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override {
    ROOFGEN_CHECK(enter());
    ROOFGEN_TRY(const Allocation* source, find(from, to.size()));
    ROOFGEN_CHECK(
        driver_->check(driver_->copy_out(to.data(), from.address, to.size()), "reading " + source->label));
    if (!written) return {};
    written->assign(to.size(), true);
    if (!source->poisoned) return {};
    for (size_t begin = 0; begin < to.size();) {
      size_t end = std::min<size_t>(to.size(), begin + 4 - (from.address + begin) % 4);
      if (std::all_of(&to[begin], &to[begin] + (end - begin),
                      [](std::byte b) { return b == std::byte{kPoison}; }))
        std::fill(written->begin() + static_cast<ptrdiff_t>(begin),
                  written->begin() + static_cast<ptrdiff_t>(end), false);
      begin = end;
    }
    return {};
  }

  Result<void> poison(DevicePtr ptr) override {
    ROOFGEN_CHECK(enter());
    auto at = allocations_.find(ptr.address);
    if (at == allocations_.end()) return not_allocated(ptr.address, 0);
    at->second.poisoned = true;
    return driver_->check(driver_->fill(ptr.address, kPoison, std::max<uint64_t>(at->second.bytes, 1)),
                          "poisoning " + at->second.label);
  }

  /// The CUBIN when the GPU takes it, else the PTX, compiled by the driver.
  Result<ModuleId> load(const Binary& binary) override {
    ROOFGEN_CHECK(enter());
    Module loaded;
    loaded.entry = binary.entry;
    Result<void> done = load_image(binary.cubin, binary, &loaded.module);
    if (!done && wrong_image_ && !binary.ptx.empty()) done = load_image(binary.ptx, binary, &loaded.module);
    if (!done) return std::move(done).error();
    Status status = driver_->function(&loaded.function, loaded.module, binary.entry.c_str());
    if (Result<void> found = driver_->check(status, "finding kernel " + binary.entry); !found) {
      driver_->unload_module(loaded.module);
      return std::move(found).error();
    }
    uint64_t id = ++last_module_;
    modules_[id] = std::move(loaded);
    return ModuleId{id};
  }

  void unload(ModuleId module) override {
    auto at = modules_.find(module.id);
    if (at == modules_.end()) return;
    if (enter()) driver_->unload_module(at->second.module);
    modules_.erase(at);
  }

  /// Always the whole grid: `options.ctas`, `trace` and the limits are the simulator's.
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& options) override {
    ROOFGEN_CHECK(enter());
    auto at = modules_.find(module.id);
    if (at == modules_.end()) return Error{Exit::kFailed, fmt::format("module {} is not loaded", module.id)};
    const Module& kernel = at->second;
    if (launch.smem_bytes > max_smem_)
      return Error{Exit::kFailed, fmt::format("kernel {} needs {} bytes of shared memory; {} has {}",
                                              kernel.entry, launch.smem_bytes, info_.device_name, max_smem_)};
    // Without this opt-in a launch is limited to 48 KiB.
    ROOFGEN_CHECK(driver_->check(driver_->set_function_attribute(kernel.function, kFunctionMaxDynamicSmem,
                                                                 static_cast<int>(launch.smem_bytes)),
                                 fmt::format("reserving {} bytes of shared memory", launch.smem_bytes)));
    std::vector<uint64_t> values;  // little-endian, so a 4-byte argument is the first half of its word
    for (const Arg& arg : launch.args) values.push_back(arg.bits);
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);

    std::string doing = "running kernel " + kernel.entry;
    ROOFGEN_CHECK(driver_->check(driver_->record_event(start_, nullptr), doing));
    ROOFGEN_CHECK(driver_->check(
        driver_->launch(kernel.function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                        launch.block.y, launch.block.z, launch.smem_bytes, nullptr, pointers.data(), nullptr),
        doing));
    ROOFGEN_CHECK(driver_->check(driver_->record_event(stop_, nullptr), doing));
    if (Result<void> waited = driver_->check(driver_->wait_event(stop_), doing); !waited) {
      fault_ = waited.error().message;
      return std::move(waited).error();
    }
    float ms = 0;
    ROOFGEN_CHECK(driver_->check(driver_->elapsed_ms(&ms, start_, stop_), "timing kernel " + kernel.entry));
    RunResult result;
    result.time_ns = double{ms} * 1e6;
    return result;
  }

  GpuIdentity identity() const override {
    GpuIdentity out;
    out.name = info_.device_name;
    out.cuda_version = driver_->version;
    return out;
  }
  Result<GpuState> state() override { return GpuState{}; }
  Result<std::vector<Sample>> time(std::span<const Shot>, size_t*) override {
    return Error{Exit::kUnavailable, "timing is not built yet"};
  }
  Fault fault() const override { return fault_.empty() ? Fault::kNone : Fault::kKernel; }
  uint64_t generation() const override { return 0; }

 private:
  CudaExecutor() = default;

  /// Makes the context current on the calling thread. A kernel that faulted took the context with it:
  /// what comes after says so instead of failing for an unrelated reason.
  Result<void> enter() const {
    if (!fault_.empty()) {
      Error error{Exit::kFailed, "the GPU context was lost by an earlier fault"};
      error.notes.push_back("earlier: " + fault_);
      return error;
    }
    return driver_->check(driver_->set_context(context_), "selecting the GPU");
  }

  Result<void> describe() {
    char name[256] = {};
    int major = 0, minor = 0, smem = 0;
    ROOFGEN_CHECK(
        driver_->check(driver_->device_name(name, sizeof name - 1, device_), "asking for the GPU's name"));
    ROOFGEN_CHECK(
        driver_->check(driver_->device_attribute(&major, kAttributeMajor, device_), "asking for the arch"));
    ROOFGEN_CHECK(
        driver_->check(driver_->device_attribute(&minor, kAttributeMinor, device_), "asking for the arch"));
    ROOFGEN_CHECK(driver_->check(driver_->device_attribute(&smem, kAttributeMaxSmemOptIn, device_),
                                 "asking for the shared memory size"));
    info_ = {"cuda", name, fmt::format("sm_{}{}", major, minor), {}};
    info_.driver.name = name;
    info_.driver.cc = 10 * major + minor;
    info_.driver.smem_per_block = smem;
    // Numbers of CUdevice_attribute. What a driver does not know stays unknown: the catalogue has it too.
    const std::pair<int, int64_t DriverFacts::*> facts[] = {
        {13, &DriverFacts::sm_clock_khz},         {16, &DriverFacts::sms},         {36, &DriverFacts::memory_clock_khz},
        {37, &DriverFacts::bus_bits},             {38, &DriverFacts::l2_bytes},    {39, &DriverFacts::max_threads_per_sm},
        {81, &DriverFacts::smem_per_sm},          {82, &DriverFacts::regs_per_sm}, {106, &DriverFacts::max_ctas_per_sm},
        {111, &DriverFacts::smem_reserved_per_block}};
    for (const auto& [attribute, member] : facts)
      if (int value = 0; driver_->device_attribute(&value, attribute, device_) == 0) info_.driver.*member = value;
    if (size_t bytes = 0; driver_->total_memory(&bytes, device_) == 0) info_.driver.memory_bytes = static_cast<int64_t>(bytes);
    max_smem_ = static_cast<uint32_t>(std::max(smem, 0));
    return {};
  }

  Result<void> load_image(const std::string& image, const Binary& binary, Handle* module) {
    std::string log(4096, '\0');
    int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    Status status = driver_->load_module(module, image.c_str(), 2, options, values);
    wrong_image_ = status == kNoBinaryForGpu || status == kInvalidImage;
    Result<void> checked = driver_->check(status, "loading kernel " + binary.entry);
    if (checked) return {};
    Error error = checked.error();
    error.notes.push_back(fmt::format("compiled for {}; {} is {}, its driver supports CUDA {}", binary.arch,
                                      info_.device_name, info_.arch, version_text(driver_->version)));
    log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
    if (!log.empty()) error.notes.push_back(log);
    return error;
  }

  Result<void> copy_from(const Fill& fill, Address to, uint64_t bytes) {
    std::vector<std::byte> staging(std::min<uint64_t>(bytes, kStagingBytes));
    for (uint64_t offset = 0; offset < bytes; offset += staging.size()) {
      std::span<std::byte> part(staging.data(), std::min<uint64_t>(staging.size(), bytes - offset));
      fill(offset, part);
      ROOFGEN_CHECK(
          driver_->check(driver_->copy_in(to + offset, part.data(), part.size()), "filling a buffer"));
    }
    return {};
  }

  /// The allocation that holds all of [ptr, ptr + bytes).
  Result<const Allocation*> find(DevicePtr ptr, uint64_t bytes) const {
    auto after = allocations_.upper_bound(ptr.address);
    if (after == allocations_.begin()) return not_allocated(ptr.address, bytes);
    const auto& [base, allocation] = *std::prev(after);
    uint64_t offset = ptr.address - base;
    if (offset > allocation.bytes || bytes > allocation.bytes - offset)
      return not_allocated(ptr.address, bytes);
    return &allocation;
  }

  static Error not_allocated(uint64_t address, uint64_t bytes) {
    return {Exit::kFailed, fmt::format("{} bytes at {:#x} are in no allocation", bytes, address)};
  }

  std::unique_ptr<Driver> driver_;
  Device device_ = 0;
  Handle context_ = nullptr;
  Handle start_ = nullptr, stop_ = nullptr;
  ExecutorInfo info_;
  uint32_t max_smem_ = 0;
  bool wrong_image_ = false;  ///< why the last load_image failed: the GPU cannot take this binary
  std::string fault_;
  /// Poison looks like a write to compute-sanitizer's initcheck, which would then find nothing: ROOFGEN_POISON=0.
  const bool poisons_ = !std::getenv("ROOFGEN_POISON") || std::string(std::getenv("ROOFGEN_POISON")) != "0";
  std::map<Address, Allocation> allocations_;
  std::map<uint64_t, Module> modules_;
  uint64_t last_module_ = 0;
};

}  // namespace

Result<std::unique_ptr<GpuExecutor>> make_executor(const std::string& library, int ordinal) {
  return CudaExecutor::open(library, ordinal);
}

}  // namespace cuda

Result<std::unique_ptr<GpuExecutor>> make_cuda_executor(int ordinal) {
  const char* chosen = std::getenv("ROOFGEN_LIBCUDA");
  return cuda::make_executor(chosen && *chosen ? chosen : "libcuda.so.1", ordinal);
}

}  // namespace roofgen
