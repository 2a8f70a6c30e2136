#include "tests/support/fake_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace roofgen::test {

using Kind = FakeCall::Kind;

namespace {

/// A handle carries its generation in the top byte, like a GPU worker's handles.
constexpr int kTagShift = 56;
uint64_t tag(uint64_t value, uint64_t generation) { return (generation & 0xff) << kTagShift | value; }

const char* driver_message(Fault fault) {
  switch (fault) {
    case Fault::kMemory: return "out of memory (CUDA_ERROR_OUT_OF_MEMORY)";
    case Fault::kKernel: return "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
    case Fault::kTimeout: return "the kernel did not end in time";
    case Fault::kLost: return "GPU is lost";
    default: return "invalid argument (CUDA_ERROR_INVALID_VALUE)";
  }
}

}  // namespace

ExecutorInfo FakeScript::h200() {
  ExecutorInfo out;
  out.name = "cuda";
  out.device_name = "NVIDIA H200";
  out.arch = "sm_90";
  DriverFacts& d = out.driver;
  d.name = out.device_name;
  d.cc = 90;
  d.sms = 132;
  d.bus_bits = 6144;
  d.memory_clock_khz = 3'201'000;
  d.sm_clock_khz = 1'980'000;
  d.l2_bytes = int64_t{60} << 20;
  d.memory_bytes = int64_t{140} << 30;
  d.smem_per_sm = 233'472;
  d.smem_per_block = 232'448;
  d.smem_reserved_per_block = 1024;
  d.regs_per_sm = 65'536;
  d.max_threads_per_sm = 2048;
  d.max_ctas_per_sm = 32;
  return out;
}

GpuIdentity FakeScript::h200_identity() {
  GpuIdentity out;
  out.name = "NVIDIA H200";
  out.uuid = "GPU-00000000-0000-0000-0000-000000000001";
  out.pci_bus_id = "0000:3b:00.0";
  out.driver = "580.65.06";
  out.cuda_version = 13000;
  out.max_sm_mhz = out.default_sm_mhz = 1980;
  out.max_memory_mhz = 3201;
  out.power_limit_w = 700;
  out.memory_bytes = uint64_t{140} << 30;
  out.l2_bytes = uint64_t{60} << 20;
  return out;
}

FakeGpu::FakeGpu(FakeScript with, std::unique_ptr<Executor> functional)
    : script(std::move(with)), inner_(std::move(functional)), random_(script.seed) {
  if (inner_) return;
  auto made = make_sim_executor();
  if (made) inner_ = std::move(*made);
}

FakeGpu::~FakeGpu() = default;

BenchClock FakeGpu::clock() {
  BenchClock out;
  out.now_s = [this] { return now_s; };
  out.sleep_s = [this](double seconds) {
    record(Kind::kSleep).seconds = seconds;
    now_s += std::max(0.0, seconds);
  };
  return out;
}

void FakeGpu::lose(std::string why) { lost_ = std::move(why); }

std::vector<const FakeCall*> FakeGpu::calls_of(Kind kind) const {
  std::vector<const FakeCall*> out;
  for (const FakeCall& call : calls)
    if (call.kind == kind) out.push_back(&call);
  return out;
}

std::vector<std::string> FakeGpu::shot_order() const {
  std::vector<std::string> out;
  for (const FakeCall* shot : calls_of(Kind::kShot)) out.push_back(shot->label);
  return out;
}

std::string FakeGpu::label_of(uint64_t address) const {
  auto at = labels_.find(address);
  return at == labels_.end() ? "" : at->second;
}

uint64_t FakeGpu::bytes_in_use() const {
  uint64_t out = 0;
  for (const auto& [address, buffer] : buffers_) out += buffer.bytes;
  return out;
}

FakeCall& FakeGpu::record(Kind kind) {
  FakeCall& call = calls.emplace_back();
  call.kind = kind;
  call.now_s = now_s;
  call.generation = generation_;
  return call;
}

/// Records the fault for the current call and drops the state that is lost with the context.
Error FakeGpu::fail(Fault fault, std::string message) {
  fault_ = fault;
  if (!calls.empty()) calls.back().failed = fault;
  if (message.empty()) message = driver_message(fault);
  if (fault == Fault::kTimeout) now_s += script.timeout_s;
  if (fault == Fault::kKernel || fault == Fault::kTimeout) replace_worker();
  if (fault == Fault::kLost && lost_.empty()) lost_ = message;
  return Error{fault == Fault::kLost ? Exit::kUnavailable : Exit::kFailed, std::move(message)};
}

void FakeGpu::replace_worker() {
  for (auto& [address, buffer] : buffers_) inner_->release({buffer.inner});
  for (auto& [id, module] : modules_)
    if (module.inner) inner_->unload({module.inner});
  buffers_.clear();
  modules_.clear();
  l2_.clear();
  ++generation_;
  now_s += script.restart_s;
}

Result<void> FakeGpu::alive() {
  if (!lost_.empty()) return fail(Fault::kLost, lost_);
  return {};
}

Result<const FakeGpu::Buffer*> FakeGpu::find(DevicePtr ptr) {
  ROOFGEN_TRY(const uint64_t base, base_of(ptr));
  return &buffers_.at(base);
}

/// The base address of the allocation that `ptr` points into.
Result<uint64_t> FakeGpu::base_of(DevicePtr ptr) {
  auto after = buffers_.upper_bound(ptr.address);
  if (after != buffers_.begin()) {
    const auto& [base, buffer] = *std::prev(after);
    if (ptr.address - base < std::max<uint64_t>(buffer.bytes, 1)) return base;
  }
  return fail(Fault::kRefused, fmt::format("{:#x} is in no allocation of this generation", ptr.address));
}

Result<DevicePtr> FakeGpu::inside(DevicePtr ptr) {
  ROOFGEN_TRY(const uint64_t base, base_of(ptr));
  return DevicePtr{buffers_.at(base).inner + (ptr.address - base)};
}

Result<const FakeGpu::Module*> FakeGpu::find(ModuleId id) {
  auto at = modules_.find(id.id);
  if (at != modules_.end()) return &at->second;
  return fail(Fault::kRefused, fmt::format("{:#x} is not a module of this generation", id.id));
}

Result<DevicePtr> FakeGpu::allocate(uint64_t bytes, std::string label, Fill fill) {
  FakeCall& call = record(Kind::kAllocate);
  call.label = label;
  call.bytes = bytes;
  call.filled = fill != nullptr;
  ROOFGEN_CHECK(alive());
  if (bytes > script.memory_bytes - std::min(bytes_in_use(), script.memory_bytes))
    return fail(Fault::kMemory, fmt::format("allocating {} bytes of GPU memory for {}: {}", bytes, label,
                                            driver_message(Fault::kMemory)));
  auto inner = inner_->allocate(bytes, label, std::move(fill));
  if (!inner) return fail(Fault::kMemory, inner.error().message);
  uint64_t address = tag(inner->address, generation_);
  buffers_[address] = {inner->address, bytes, label};
  labels_[address] = std::move(label);
  return DevicePtr{address};
}

Result<void> FakeGpu::allow_writes(DevicePtr ptr) {
  const auto at = buffers_.find(ptr.address);
  return at == buffers_.end() ? Result<void>() : inner_->allow_writes({at->second.inner});
}

void FakeGpu::release(DevicePtr ptr) {
  record(Kind::kRelease).label = label_of(ptr.address);
  auto at = buffers_.find(ptr.address);
  if (at == buffers_.end()) return;
  inner_->release({at->second.inner});
  buffers_.erase(at);
  std::erase(l2_, ptr.address);
}

Result<void> FakeGpu::write(DevicePtr to, std::span<const std::byte> from) {
  record(Kind::kWrite).label = label_of(to.address);
  ROOFGEN_CHECK(alive());
  ROOFGEN_TRY(const DevicePtr real, inside(to));
  return inner_->write(real, from);
}

Result<void> FakeGpu::read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) {
  record(Kind::kRead).label = label_of(from.address);
  ROOFGEN_CHECK(alive());
  ROOFGEN_TRY(const DevicePtr real, inside(from));
  return inner_->read(real, to, written);
}

Result<void> FakeGpu::poison(DevicePtr ptr) {
  record(Kind::kPoison).label = label_of(ptr.address);
  ROOFGEN_CHECK(alive());
  ROOFGEN_TRY(const Buffer* buffer, find(ptr));
  return inner_->poison({buffer->inner});
}

Result<ModuleId> FakeGpu::load(const Binary& binary) {
  FakeCall& call = record(Kind::kLoad);
  call.label = binary.entry;
  call.digest = binary.digest;
  ROOFGEN_CHECK(alive());
  Module module{0, binary.entry, binary.digest};
  if (!binary.ptx.empty()) {
    auto inner = inner_->load(binary);
    if (!inner) return fail(Fault::kRefused, inner.error().message);
    module.inner = inner->id;
  }
  uint64_t id = tag(next_module_++, generation_);
  modules_[id] = std::move(module);
  return ModuleId{id};
}

void FakeGpu::unload(ModuleId id) {
  FakeCall& call = record(Kind::kUnload);
  auto at = modules_.find(id.id);
  if (at == modules_.end()) return;
  call.label = at->second.entry;
  call.digest = at->second.digest;
  if (at->second.inner) inner_->unload({at->second.inner});
  modules_.erase(at);
}

/// The fault scripted for this launch, if any; counts the launch in either case.
const FakeFault* FakeGpu::due(const std::vector<const Module*>& modules, FakeFault::Where where) {
  const FakeFault* out = nullptr;
  for (size_t i = 0; i < script.faults.size(); ++i) {
    const FakeFault& fault = script.faults[i];
    if (fault.where != FakeFault::Where::kEither && fault.where != where) continue;
    bool matches = std::any_of(modules.begin(), modules.end(), [&](const Module* m) {
      return (fault.entry.empty() || fault.entry == m->entry) && (fault.digest.empty() || fault.digest == m->digest);
    });
    if (!matches) continue;
    uint64_t seen = ++seen_[i];
    if (!out && (seen == fault.nth || (fault.always && seen > fault.nth))) out = &fault;
  }
  return out;
}

/// The time of one launch; afterwards its buffers are in L2.
Result<double> FakeGpu::play(const Module& module, const Launch& launch, const Shot* shot, FakeCall& call) {
  FakeCall::Step& step = call.steps.emplace_back();
  step.entry = module.entry;
  step.digest = module.digest;
  const uint64_t l2_bytes = script.identity.l2_bytes;
  uint64_t resident = 0, total = 0;
  std::set<uint64_t> touched;
  for (const Arg& arg : launch.args) {
    if (!arg.is_buffer || arg.bits == 0) continue;  // 0: an unused buffer
    step.addresses.push_back(arg.bits);
    ROOFGEN_TRY(const uint64_t base, base_of(DevicePtr{arg.bits}));
    if (!touched.insert(base).second) continue;
    total += buffers_.at(base).bytes;
    if (std::find(l2_.begin(), l2_.end(), base) != l2_.end()) resident += buffers_.at(base).bytes;
  }
  step.cold = total == 0 ? (shot && shot->flush && call.steps.size() == 1) : 2 * resident < total;
  for (uint64_t address : touched) {
    std::erase(l2_, address);
    if (buffers_[address].bytes <= l2_bytes) l2_.push_back(address);
  }
  uint64_t held = 0;
  for (uint64_t address : l2_) held += buffers_[address].bytes;
  while (held > l2_bytes) {
    held -= buffers_[l2_.front()].bytes;
    l2_.erase(l2_.begin());
  }
  return script.step_ns({module.entry, module.digest, launch, step.cold, shot && shot->flush, shot && shot->graph,
                         now_s, script.sm_mhz(now_s)});
}

Result<RunResult> FakeGpu::run(ModuleId id, const Launch& launch, const RunOptions& options) {
  record(Kind::kRun);
  ROOFGEN_CHECK(alive());
  ROOFGEN_TRY(const Module* module, find(id));
  calls.back().label = module->entry;
  calls.back().digest = module->digest;
  ROOFGEN_TRY(double time_ns, play(*module, launch, nullptr, calls.back()));
  if (const FakeFault* fault = due({module}, FakeFault::Where::kRun)) return fail(fault->fault, fault->message);
  if (time_ns > script.timeout_s * 1e9) return fail(Fault::kTimeout, "");
  RunResult out;
  if (module->inner) {
    Launch plain = launch;
    for (Arg& arg : plain.args)
      if (arg.is_buffer && arg.bits != 0) {
        ROOFGEN_TRY(const DevicePtr real, inside(DevicePtr{arg.bits}));
        arg.bits = real.address;
      }
    RunOptions whole = options;
    whole.ctas = std::nullopt;
    whole.trace = nullptr;
    auto ran = inner_->run({module->inner}, plain, whole);
    if (!ran) return fail(Fault::kRefused, ran.error().message);
    for (const Finding& finding : ran->findings) {
      if (finding.kind == "out-of-bounds" || finding.kind == "misaligned" || finding.kind == "trap")
        return fail(Fault::kKernel, "");
      if (finding.kind == "deadlock" || finding.kind == "instruction-limit") return fail(Fault::kTimeout, "");
    }
  }
  now_s += time_ns / 1e9;
  calls.back().time_ns = time_ns;
  out.time_ns = time_ns;
  return out;
}

Result<GpuState> FakeGpu::state() {
  record(Kind::kState);
  ROOFGEN_CHECK(alive());
  GpuState out;
  out.free_bytes = script.memory_bytes - std::min(script.memory_bytes, bytes_in_use());
  out.other_processes = script.other_processes;
  out.sm_mhz = script.sm_mhz(now_s);
  out.memory_mhz = script.identity.max_memory_mhz;
  out.power_w = script.power_w(now_s);
  out.temperature_c = script.temperature_c(now_s);
  out.limits = script.limits(now_s);
  return out;
}

Result<std::vector<Sample>> FakeGpu::time(std::span<const Shot> shots, size_t* done) {
  size_t ignored = 0;
  size_t& well = done ? *done : ignored;
  well = 0;
  record(Kind::kMessage).shots = shots.size();
  const uint64_t message = messages_++;
  ROOFGEN_CHECK(alive());
  now_s += script.message_s;
  std::vector<Sample> out;
  for (const Shot& shot : shots) {
    FakeCall& call = record(Kind::kShot);
    call.message = message;
    call.flush = shot.flush;
    call.graph = shot.graph;
    if (shot.steps.empty()) return fail(Fault::kRefused, "a shot of no kernels");
    now_s += script.shot_s;
    if (shot.flush) {
      now_s += script.flush_s;
      l2_.clear();
    }
    std::vector<const Module*> modules;
    double time_ns = 0;
    for (const Step& step : shot.steps) {
      ROOFGEN_TRY(const Module* module, find(step.module));
      if (modules.empty()) {
        call.label = module->entry;
        call.digest = module->digest;
      }
      modules.push_back(module);
      ROOFGEN_TRY(double step_ns, play(*module, step.launch, &shot, call));
      time_ns += step_ns;
    }
    if (const FakeFault* fault = due(modules, FakeFault::Where::kShot)) return fail(fault->fault, fault->message);
    if (script.noise > 0) time_ns *= std::exp(script.noise * random_normal());
    if (!(time_ns <= script.timeout_s * 1e9)) return fail(Fault::kTimeout, "");
    call.time_ns = time_ns;
    now_s += time_ns / 1e9;
    out.push_back(
        {time_ns, script.sm_mhz(now_s), script.power_w(now_s), script.temperature_c(now_s), script.limits(now_s)});
    ++well;
  }
  return out;
}

/// splitmix64 and Box-Muller give the same numbers with every standard library.
double FakeGpu::random_normal() {
  auto uniform = [&] {
    uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
  };
  double u = uniform(), v = uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

}  // namespace roofgen::test
