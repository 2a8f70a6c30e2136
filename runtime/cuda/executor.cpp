#include "runtime/cuda/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/staging.h"

namespace roofgen {
namespace cuda {
namespace {

// The poison byte. 0xFFFF is a NaN in bf16 and fp16, 0xFFFFFFFF in fp32, so that unwritten values cannot pass for
// results.
constexpr unsigned char kPoison = 0xff;
constexpr size_t kStagingBytes = Staging::kBytes;  // a client makes no more of an input at once

/// "sm_90a" -> "sm_90": the suffix restricts where code runs; it does not describe the GPU.
std::string plain_arch(const std::string& arch) {
  return !arch.empty() && (arch.back() == 'a' || arch.back() == 'f') ? arch.substr(0, arch.size() - 1) : arch;
}

}  // namespace

Result<std::unique_ptr<GpuExecutor>> CudaExecutor::open(const std::string& library, int ordinal) {
  auto self = std::unique_ptr<CudaExecutor>(new CudaExecutor);
  ROOFGEN_TRY(self->driver_, Driver::open(library));
  const Driver& cu = *self->driver_;
  int count = 0;
  ROOFGEN_CHECK(cu.check(cu.device_count(&count), "counting GPUs"));
  if (count == 0) return no_gpu();
  if (ordinal < 0 || ordinal >= count)
    return Error{Exit::kUsage, fmt::format("there is no GPU {}; this machine has {}, counted from 0", ordinal, count)};
  ROOFGEN_CHECK(cu.check(cu.device(&self->device_, ordinal), "opening the GPU"));
  ROOFGEN_CHECK(self->describe());
  ROOFGEN_CHECK(cu.check(cu.retain_context(&self->context_, self->device_), "creating a context"));
  ROOFGEN_CHECK(self->enter());
  // Independent of the default stream.
  ROOFGEN_CHECK(cu.check(cu.create_stream(&self->stream_, kStreamNonBlocking), "creating a stream"));
  ROOFGEN_CHECK(cu.check(cu.create_event(&self->start_, 0), "creating an event"));
  ROOFGEN_CHECK(cu.check(cu.create_event(&self->stop_, 0), "creating an event"));
  return std::unique_ptr<GpuExecutor>(std::move(self));
}

CudaExecutor::~CudaExecutor() {
  if (!context_) return;
  // After a fault these calls fail one by one; releasing the context frees everything anyway.
  driver_->set_context(context_);
  drop_graphs();
  for (auto& [id, module] : modules_) driver_->unload_module(module.module);
  for (auto& [address, allocation] : allocations_) driver_->free(address);
  if (helpers_) driver_->unload_module(helpers_);
  if (stamps_) driver_->free(stamps_);
  if (scratch_) driver_->free(scratch_);
  if (start_) driver_->destroy_event(start_);
  if (stop_) driver_->destroy_event(stop_);
  if (stream_) driver_->destroy_stream(stream_);
  driver_->release_context(device_);
}

Result<void> CudaExecutor::describe() {
  const Driver& cu = *driver_;
  char name[256] = {};
  int major = 0, minor = 0, smem = 0;
  ROOFGEN_CHECK(cu.check(cu.device_name(name, sizeof name - 1, device_), "asking for the GPU's name"));
  ROOFGEN_CHECK(cu.check(cu.device_attribute(&major, kAttributeMajor, device_), "asking for the arch"));
  ROOFGEN_CHECK(cu.check(cu.device_attribute(&minor, kAttributeMinor, device_), "asking for the arch"));
  ROOFGEN_CHECK(
      cu.check(cu.device_attribute(&smem, kAttributeMaxSmemOptIn, device_), "asking for the shared memory size"));
  info_ = {"cuda", name, fmt::format("sm_{}{}", major, minor), {}};
  info_.driver.name = name;
  info_.driver.cc = 10 * major + minor;
  info_.driver.smem_per_block = smem;
  // Values of CUdevice_attribute. Facts unknown to the driver stay unset; the catalogue may have them.
  const std::pair<int, int64_t DriverFacts::*> facts[] = {
      {13, &DriverFacts::sm_clock_khz},     {16, &DriverFacts::sms},
      {36, &DriverFacts::memory_clock_khz}, {37, &DriverFacts::bus_bits},
      {38, &DriverFacts::l2_bytes},         {39, &DriverFacts::max_threads_per_sm},
      {81, &DriverFacts::smem_per_sm},      {82, &DriverFacts::regs_per_sm},
      {106, &DriverFacts::max_ctas_per_sm}, {111, &DriverFacts::smem_reserved_per_block}};
  for (const auto& [attribute, member] : facts)
    if (int value = 0; cu.device_attribute(&value, attribute, device_) == 0) info_.driver.*member = value;
  if (size_t bytes = 0; cu.total_memory(&bytes, device_) == 0) info_.driver.memory_bytes = static_cast<int64_t>(bytes);
  max_smem_ = static_cast<uint32_t>(std::max(smem, 0));
  auto can = [&](int attribute) {
    int value = 0;
    return cu.device_attribute(&value, attribute, device_) == 0 && value > 0;
  };
  clusters_ = can(kAttributeClusterLaunch);
  tensor_maps_ = can(kAttributeTensorMaps);
  persisting_l2_ = can(kAttributeMaxPersistingL2);

  Uuid uuid;
  char bus_id[32] = {};
  if (cu.device_uuid && cu.device_uuid(&uuid, device_) == 0) identity_.uuid = uuid_text(uuid);
  if (cu.device_bus_id && cu.device_bus_id(bus_id, sizeof bus_id - 1, device_) == 0) identity_.pci_bus_id = bus_id;
  nvml_.open(identity_.uuid, identity_.pci_bus_id);
  identity_.name = name;
  identity_.cuda_version = cu.version;
  identity_.driver = nvml_.driver();
  identity_.max_sm_mhz = nvml_.max_sm_mhz();
  if (identity_.max_sm_mhz == 0) identity_.max_sm_mhz = static_cast<double>(info_.driver.sm_clock_khz) / 1000;
  identity_.default_sm_mhz = nvml_.default_sm_mhz();
  // nvmlDeviceGetDefaultApplicationsClock is deprecated since CUDA 13.0 and will be removed in 14.0 (NVML's API
  // reference, "Deprecation and/or Removal Notices"). An unlocked GPU targets its highest clock.
  if (identity_.default_sm_mhz == 0) identity_.default_sm_mhz = identity_.max_sm_mhz;
  identity_.max_memory_mhz = nvml_.max_memory_mhz();
  if (identity_.max_memory_mhz == 0)
    identity_.max_memory_mhz = static_cast<double>(info_.driver.memory_clock_khz) / 1000;
  identity_.power_limit_w = nvml_.power_limit_w();
  identity_.memory_bytes = static_cast<uint64_t>(info_.driver.memory_bytes);
  identity_.l2_bytes = static_cast<uint64_t>(info_.driver.l2_bytes);
  return {};
}

// ---- Faults --------------------------------------------------------------------------------------

Result<void> CudaExecutor::enter() {
  if (!lost_.empty()) {
    Error error{Exit::kFailed, "the GPU context was lost by an earlier fault"};
    error.notes.push_back("earlier: " + lost_);
    return error;
  }
  return check(driver_->set_context(context_), "selecting the GPU");
}

Result<void> CudaExecutor::check(Status status, const std::string& doing) {
  Result<void> checked = driver_->check(status, doing);
  if (checked) return checked;
  if (!lost_.empty()) return checked;  // keeps the first cause
  fault_ = fault_of(status);
  if (fault_ != Fault::kRefused && fault_ != Fault::kMemory) lost_ = checked.error().message;
  return checked;
}

Error CudaExecutor::refuse(std::string message, Exit exit) {
  if (lost_.empty()) fault_ = Fault::kRefused;
  return {exit, std::move(message)};
}

Error CudaExecutor::not_allocated(uint64_t address, uint64_t bytes) {
  return refuse(fmt::format("{} bytes at {:#x} are in no allocation", bytes, address));
}

Result<void> CudaExecutor::synchronize(const std::string& doing) { return check(driver_->wait_stream(stream_), doing); }

// ---- Memory --------------------------------------------------------------------------------------

Result<Address> CudaExecutor::take_memory(uint64_t bytes, const std::string& label) {
  Address address = 0;
  Status status = driver_->allocate(&address, std::max<uint64_t>(bytes, 1));
  auto checked = check(status, fmt::format("allocating {} bytes of GPU memory for {}", bytes, label));
  if (checked) return address;
  Error error = checked.error();
  size_t free = 0, total = 0;
  if (status == kOutOfMemory && driver_->memory_info && driver_->memory_info(&free, &total) == 0)
    error.message += fmt::format("; {} of {} bytes are free", free, total);
  return error;
}

Result<DevicePtr> CudaExecutor::allocate(uint64_t bytes, std::string label, Fill fill) {
  ROOFGEN_CHECK(enter());
  ROOFGEN_TRY(Address address, take_memory(bytes, label));
  allocations_[address] = {bytes, std::move(label), !fill && poisons_};
  Result<void> filled = fill ? fill_from(fill, address, bytes) : poisons_ ? poison({address}) : Result<void>();
  if (!filled) {
    release({address});
    return std::move(filled).error();
  }
  return DevicePtr{address};
}

void CudaExecutor::release(DevicePtr ptr) {
  if (allocations_.erase(ptr.address) == 0 || !enter()) return;
  driver_->free(ptr.address);
}

Result<void> CudaExecutor::write(DevicePtr to, std::span<const std::byte> from) {
  ROOFGEN_CHECK(enter());
  ROOFGEN_TRY(Allocation * into, find(to, from.size()));
  // A copy from pageable memory may return before the data has arrived; the next launch must see the data.
  ROOFGEN_CHECK(check(driver_->copy_in(to.address, from.data(), from.size(), stream_), "writing " + into->label));
  return synchronize("writing " + into->label);
}

Result<void> CudaExecutor::read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) {
  ROOFGEN_CHECK(enter());
  ROOFGEN_TRY(Allocation * source, find(from, to.size()));
  const std::string doing = "reading " + source->label;
  ROOFGEN_CHECK(check(driver_->copy_out(to.data(), from.address, to.size(), stream_), doing));
  ROOFGEN_CHECK(synchronize(doing));
  if (!written) return {};
  written->assign(to.size(), true);
  if (!source->poisoned) return {};
  for (size_t begin = 0; begin < to.size();) {
    size_t end = std::min<size_t>(to.size(), begin + 4 - (from.address + begin) % 4);
    if (std::all_of(&to[begin], &to[begin] + (end - begin), [](std::byte b) { return b == std::byte{kPoison}; }))
      std::fill(written->begin() + static_cast<ptrdiff_t>(begin), written->begin() + static_cast<ptrdiff_t>(end),
                false);
    begin = end;
  }
  return {};
}

Result<void> CudaExecutor::poison(DevicePtr ptr) {
  ROOFGEN_CHECK(enter());
  auto at = allocations_.find(ptr.address);
  if (at == allocations_.end()) return not_allocated(ptr.address, 0);
  at->second.poisoned = true;
  const std::string doing = "poisoning " + at->second.label;
  ROOFGEN_CHECK(check(driver_->fill(ptr.address, kPoison, std::max<uint64_t>(at->second.bytes, 1), stream_), doing));
  return synchronize(doing);
}

Result<void> CudaExecutor::fill_from(const Fill& fill, Address to, uint64_t bytes) {
  std::vector<std::byte> staging(std::min<uint64_t>(bytes, kStagingBytes));
  for (uint64_t offset = 0; offset < bytes; offset += staging.size()) {
    std::span<std::byte> part(staging.data(), std::min<uint64_t>(staging.size(), bytes - offset));
    fill(offset, part);
    ROOFGEN_CHECK(check(driver_->copy_in(to + offset, part.data(), part.size(), stream_), "filling a buffer"));
    ROOFGEN_CHECK(synchronize("filling a buffer"));
  }
  return {};
}

/// The allocation that contains [ptr, ptr + bytes).
Result<CudaExecutor::Allocation*> CudaExecutor::find(DevicePtr ptr, uint64_t bytes) {
  auto after = allocations_.upper_bound(ptr.address);
  if (after == allocations_.begin()) return not_allocated(ptr.address, bytes);
  auto& [base, allocation] = *std::prev(after);
  uint64_t offset = ptr.address - base;
  if (offset > allocation.bytes || bytes > allocation.bytes - offset) return not_allocated(ptr.address, bytes);
  return &allocation;
}

// ---- Modules -------------------------------------------------------------------------------------

Result<ModuleId> CudaExecutor::load(const Binary& binary) {
  ROOFGEN_CHECK(enter());
  Module loaded;
  loaded.entry = binary.entry;
  Status status = kNoBinaryForGpu;
  const Fault before = fault_;
  Result<void> done = Error{};
  if (!binary.cubin.empty()) done = load_image(binary.cubin, binary, &loaded.module, &status);
  const bool wrong_image = status == kNoBinaryForGpu || status == kInvalidImage;
  if (!done && wrong_image && !binary.ptx.empty()) done = load_image(binary.ptx, binary, &loaded.module, &status);
  if (done) fault_ = before;  // falling back from the CUBIN to PTX is not a fault
  if (!done && binary.cubin.empty() && binary.ptx.empty())
    return refuse(fmt::format("loading kernel {}: there is neither a CUBIN nor PTX", binary.entry));
  if (!done) return load_error(binary, status, std::move(done).error());
  auto found =
      check(driver_->function(&loaded.function, loaded.module, binary.entry.c_str()), "finding kernel " + binary.entry);
  // Lazy loading would otherwise load the kernel at its first launch, between two events.
  if (found && driver_->load_function)
    found = check(driver_->load_function(loaded.function), "loading kernel " + binary.entry);
  if (!found) {
    driver_->unload_module(loaded.module);
    return std::move(found).error();
  }
  uint64_t id = ++last_module_;
  modules_[id] = std::move(loaded);
  return ModuleId{id};
}

Result<void> CudaExecutor::load_image(const std::string& image, const Binary& binary, Handle* module, Status* status) {
  std::string log(4096, '\0');
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  *status = driver_->load_module(module, image.c_str(), 2, options, values);
  Result<void> checked = check(*status, "loading kernel " + binary.entry);
  if (checked) return {};
  Error error = checked.error();
  error.notes.push_back(fmt::format("compiled for {}; {} is {}, its driver supports CUDA {}", binary.arch,
                                    info_.device_name, info_.arch, version_text(driver_->version)));
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  if (!log.empty()) error.notes.push_back(log);
  return error;
}

/// Messages for the common causes: code for another GPU, or a toolkit newer than the driver.
Error CudaExecutor::load_error(const Binary& binary, Status status, Error error) {
  if (status == kUnsupportedPtxVersion) {
    error.notes.insert(error.notes.begin(), error.message);
    error.message = fmt::format(
        "loading kernel {}: its PTX is newer than the driver, which supports CUDA {}; a newer driver or an older NVRTC "
        "helps",
        binary.entry, version_text(driver_->version));
  } else if ((status == kNoBinaryForGpu || status == kInvalidImage) && plain_arch(binary.arch) != info_.arch) {
    error.notes.insert(error.notes.begin(), error.message);
    error.message = fmt::format("loading kernel {}: it is compiled for {}; {} is {}", binary.entry, binary.arch,
                                info_.device_name, info_.arch);
  }
  return error;
}

void CudaExecutor::unload(ModuleId module) {
  auto at = modules_.find(module.id);
  if (at == modules_.end()) return;
  if (enter()) driver_->unload_module(at->second.module);
  modules_.erase(at);
}

// ---- Identity and state ----------------------------------------------------------------------------

GpuIdentity CudaExecutor::identity() const { return identity_; }

Result<GpuState> CudaExecutor::state() {
  ROOFGEN_CHECK(enter());
  GpuState out;
  size_t free = 0, total = 0;
  if (driver_->memory_info && driver_->memory_info(&free, &total) == 0) out.free_bytes = free;
  // The count includes this process. Process ids are useless here: in a container, NVML reports the host's ids.
  out.other_processes = std::max(0, nvml_.processes() - 1);
  out.sm_mhz = nvml_.sm_mhz();
  out.memory_mhz = nvml_.memory_mhz();
  out.power_w = nvml_.power_w();
  out.temperature_c = nvml_.temperature_c();
  out.limits = nvml_.limits();
  return out;
}

Result<std::unique_ptr<GpuExecutor>> make_executor(const std::string& library, int ordinal) {
  return CudaExecutor::open(library, ordinal);
}

}  // namespace cuda

Result<std::unique_ptr<GpuExecutor>> make_cuda_executor(int ordinal) {
  return cuda::make_executor(cuda::default_library(), ordinal);
}

}  // namespace roofgen
