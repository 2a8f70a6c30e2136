#include "tests/support/fake_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace roofgen::test {
namespace {

constexpr int kTagShift = 56;

/// The largest allocation the simulator backs; beyond it addresses are made up, for tests of memory limits.
constexpr uint64_t kBacked = uint64_t{256} << 20;

}  // namespace

FakeGpu::FakeGpu(FakeScript with) : script(std::move(with)), random_(script.seed) {
  auto sim = make_sim_executor();
  if (!sim) std::abort();
  sim_ = std::move(*sim);
  gpu.name = "NVIDIA H200";
  gpu.uuid = "GPU-00000000-fake-0000-0000-000000000000";
  gpu.pci_bus_id = "0000:00:00.0";
  gpu.driver = "0.0.fake";
  gpu.cuda_version = 13000;
  gpu.max_sm_mhz = 1980;
  gpu.default_sm_mhz = 1980;
  gpu.max_memory_mhz = 3201;
  gpu.power_limit_w = 700;
  gpu.memory_bytes = memory_bytes;
  gpu.l2_bytes = uint64_t{60} << 20;
  described = {"cuda", gpu.name, "sm_90", {}};
  described.driver.name = gpu.name;
  described.driver.cc = 90;
  described.driver.sms = 132;
  described.driver.bus_bits = 6016;
  described.driver.l2_bytes = static_cast<int64_t>(gpu.l2_bytes);
  described.driver.memory_bytes = static_cast<int64_t>(memory_bytes);
}

BenchClock FakeGpu::clock() {
  return {[this] { return now_s; },
          [this](double s) {
            sleeps.push_back(s);
            now_s += s;
          }};
}

size_t FakeGpu::count(const std::string& prefix) const {
  return static_cast<size_t>(std::count_if(log.begin(), log.end(), [&](const std::string& line) { return line.starts_with(prefix); }));
}

Error FakeGpu::fail(Fault fault, std::string message) {
  fault_ = fault;
  if (fault == Fault::kKernel || fault == Fault::kTimeout) replace();
  if (fault == Fault::kLost) lost_ = true;
  return {Exit::kFailed, std::move(message)};
}

void FakeGpu::replace() {
  for (const auto& [address, bytes] : allocations_) sim_->release({address});
  for (const auto& [id, m] : modules_) sim_->unload(m.real);
  allocations_.clear();
  modules_.clear();
  used_ = 0;
  ++generation_;
  log.push_back("replaced");
}

Result<uint64_t> FakeGpu::strip(uint64_t address) {
  if (lost_) return fail(Fault::kLost, "the GPU is lost");
  if (address >> kTagShift != (generation_ & 0xff)) return fail(Fault::kRefused, fmt::format("address {:#x} is from before the worker was replaced", address));
  return address & ((uint64_t{1} << kTagShift) - 1);
}

Result<const FakeGpu::Module*> FakeGpu::module(ModuleId id) {
  if (lost_) return fail(Fault::kLost, "the GPU is lost");
  auto at = modules_.find(id.id);
  if (at == modules_.end()) return fail(Fault::kRefused, "the module is from before the worker was replaced");
  return &at->second;
}

Result<DevicePtr> FakeGpu::allocate(uint64_t bytes, std::string label, Fill fill) {
  if (lost_) return fail(Fault::kLost, "the GPU is lost");
  if (used_ + bytes > memory_bytes)
    return fail(Fault::kMemory, fmt::format("allocating {} bytes of GPU memory for {}: out of memory, {} free", bytes, label, memory_bytes - used_));
  uint64_t address = 0;
  if (script.functional && bytes <= kBacked) {
    ROOFGEN_TRY(const DevicePtr real, sim_->allocate(bytes, label, std::move(fill)));
    address = real.address;
  } else {
    address = (uint64_t{1} << 50) + next_address_;
    next_address_ += (bytes + 255) / 256 * 256;
  }
  allocations_[address] = bytes;
  used_ += bytes;
  log.push_back(fmt::format("allocate {} {}", label, bytes));
  return DevicePtr{address | (generation_ & 0xff) << kTagShift};
}

void FakeGpu::release(DevicePtr ptr) {
  if (lost_ || ptr.address >> kTagShift != (generation_ & 0xff)) return;
  const uint64_t address = ptr.address & ((uint64_t{1} << kTagShift) - 1);
  auto at = allocations_.find(address);
  if (at == allocations_.end()) return;
  used_ -= at->second;
  allocations_.erase(at);
  sim_->release({address});
}

Result<void> FakeGpu::write(DevicePtr to, std::span<const std::byte> from) {
  ROOFGEN_TRY(const uint64_t address, strip(to.address));
  return sim_->write({address}, from);
}

Result<void> FakeGpu::read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) {
  ROOFGEN_TRY(const uint64_t address, strip(from.address));
  return sim_->read({address}, to, written);
}

Result<void> FakeGpu::poison(DevicePtr ptr) {
  ROOFGEN_TRY(const uint64_t address, strip(ptr.address));
  return sim_->poison({address});
}

Result<ModuleId> FakeGpu::load(const Binary& binary) {
  if (lost_) return fail(Fault::kLost, "the GPU is lost");
  Module m{binary.entry, binary.digest, {}};
  if (script.functional) {
    ROOFGEN_TRY(m.real, sim_->load(binary));
  }
  modules_[next_module_] = std::move(m);
  log.push_back("load " + binary.entry);
  return ModuleId{next_module_++};
}

void FakeGpu::unload(ModuleId id) {
  auto at = modules_.find(id.id);
  if (at == modules_.end()) return;
  if (script.functional) sim_->unload(at->second.real);
  modules_.erase(at);
}

Result<Launch> FakeGpu::bind(const Launch& launch) {
  Launch out = launch;
  for (Arg& arg : out.args)
    if (arg.is_buffer && arg.bits != 0) {
      ROOFGEN_TRY(arg.bits, strip(arg.bits));
    }
  return out;
}

Result<void> FakeGpu::maybe_fault(const Module& module, const Launch& launch, bool cold, bool timed) {
  const Fault fault = script.fault({module.entry, module.digest, &launch, cold, timed, uses_[module.digest]++, now_s});
  switch (fault) {
    case Fault::kNone:
      return {};
    case Fault::kTimeout:
      now_s += 10;
      return fail(fault, fmt::format("{} did not end within 10 s", module.entry));
    case Fault::kLost:
      return fail(fault, "running kernel " + module.entry + ": the GPU has fallen off the bus");
    case Fault::kMemory:
      return fail(fault, "running kernel " + module.entry + ": out of memory");
    default:
      return fail(fault, "running kernel " + module.entry + ": an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  }
}

Result<RunResult> FakeGpu::run(ModuleId id, const Launch& launch, const RunOptions&) {
  ROOFGEN_TRY(const Module* m, module(id));
  ROOFGEN_TRY(const Launch bound, bind(launch));
  log.push_back("run " + m->entry);
  const Module copy = *m;
  now_s += script.run_s;
  ROOFGEN_CHECK(maybe_fault(copy, launch, false, false));
  RunResult out;
  if (script.functional) {
    ROOFGEN_TRY(out, sim_->run(copy.real, bound, {}));
    out.findings.clear();  // a GPU sees none of them
    out.counts.reset();
  }
  out.time_ns = script.time_ns({copy.entry, copy.digest, &launch, false, false, uses_[copy.digest], now_s});
  return out;
}

Result<GpuState> FakeGpu::state() {
  if (lost_) return fail(Fault::kLost, "the GPU is lost");
  GpuState out = now;
  out.free_bytes = memory_bytes - used_;
  return out;
}

Result<std::vector<Sample>> FakeGpu::time(std::span<const Shot> shots, size_t* done) {
  std::vector<Sample> out;
  if (done) *done = 0;
  for (const Shot& shot : shots) {
    if (shot.steps.empty()) return fail(Fault::kRefused, "a shot without a launch cannot be timed");
    Sample sample;
    std::string line;
    for (const Step& step : shot.steps) {
      ROOFGEN_TRY(const Module* m, module(step.module));
      ROOFGEN_TRY(const Launch bound, bind(step.launch));
      const Module copy = *m;
      if (line.empty()) {
        line = fmt::format("shot {}{} {} x{}", shot.flush ? "cold" : "hot", shot.graph ? " graph" : "", copy.digest, shot.steps.size());
        for (const Arg& arg : bound.args)
          if (arg.is_buffer) {
            line += fmt::format(" @{:#x}", arg.bits);
            break;
          }
        log.push_back(line);
      }
      ROOFGEN_CHECK(maybe_fault(copy, step.launch, shot.flush, true));
      sample.time_ns += script.time_ns({copy.entry, copy.digest, &step.launch, shot.flush, true, uses_[copy.digest], now_s});
    }
    if (script.noise > 0) sample.time_ns *= std::max(0.5, 1 + script.noise * std::normal_distribution<double>()(random_));
    now_s += 1e-9 * sample.time_ns + script.shot_s;
    sample.sm_mhz = 1755;
    sample.power_w = 500;
    sample.temperature_c = 50;
    script.conditions(now_s, sample);
    out.push_back(sample);
    if (done) ++*done;
  }
  return out;
}

}  // namespace roofgen::test
