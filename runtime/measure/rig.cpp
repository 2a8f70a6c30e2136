#include "runtime/measure/rig.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen {
namespace {

// All sets together have three times the size of L2. The other sets then evict a set even if L2 does not replace the
// oldest line first.
constexpr uint64_t kTimesL2 = 3;
// Limit for tiny problems; the flush before each shot covers the rest.
constexpr uint64_t kMostSets = 64;

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

Rig::~Rig() {
  if (gpu_.generation() != generation_) return;  // the handles ended with their worker
  for (auto& set : sets_) release(set);
  for (auto& [binary, module] : modules_) gpu_.unload(module);
}

uint64_t Rig::set_bytes() const {
  uint64_t out = 0;
  for (const BenchBuffer& buffer : workload_.buffers) out += buffer.bytes;
  return out;
}

uint64_t Rig::l2_bytes() const {
  uint64_t known = gpu_.identity().l2_bytes;
  return known ? known : static_cast<uint64_t>(std::max<int64_t>(0, gpu_.info().driver.l2_bytes));
}

bool Rig::enough_sets() const { return set_bytes() * sets_.size() >= kTimesL2 * l2_bytes(); }

void Rig::release(std::vector<DevicePtr>& set) {
  for (DevicePtr ptr : set) gpu_.release(ptr);
  set.clear();
}

Result<void> Rig::add_set() {
  std::vector<DevicePtr> set;
  for (const BenchBuffer& buffer : workload_.buffers) {
    auto ptr = gpu_.allocate(buffer.bytes, fmt::format("{} #{}", buffer.name, sets_.size()), buffer.fill);
    if (!ptr) {
      release(set);
      return std::move(ptr).error();
    }
    set.push_back(*ptr);
  }
  sets_.push_back(std::move(set));
  return {};
}

Result<void> Rig::set_up() {
  generation_ = gpu_.generation();
  ROOFGEN_TRY(GpuState state, gpu_.state());
  const uint64_t bytes = std::max<uint64_t>(set_bytes(), 1), free = state.free_bytes;
  const uint64_t usable = free - free / 10;  // a tenth stays free for the flush buffer and other processes
  const uint64_t unknown_l2 = l2_bytes() == 0 ? uint64_t{64} << 20 : l2_bytes();
  uint64_t wanted = std::clamp<uint64_t>((kTimesL2 * unknown_l2 + bytes - 1) / bytes, 1, kMostSets);
  if (!rotates_) wanted = 1;
  if (free > 0) wanted = std::min(wanted, std::max<uint64_t>(usable / bytes, 1));
  while (sets_.size() < wanted) {
    auto added = add_set();
    if (added) continue;
    if (gpu_.fault() != Fault::kMemory) return added;
    if (!sets_.empty()) break;
    std::string fits = usable > 0 && usable < bytes
                           ? fmt::format("a problem of {:.0f} % of this size would fit",
                                         100.0 * static_cast<double>(usable) / static_cast<double>(bytes))
                           : "a smaller problem is needed";
    return Error{Exit::kUnavailable,
                 fmt::format("one set of buffers takes {:.1f} MiB of GPU memory and {:.1f} MiB are free; {}",
                             mib(bytes), mib(free), fits),
                 {},
                 {added.error().message}};
  }
  for (size_t set = 0; set < sets_.size(); ++set)
    for (const Contender::Kernel& kernel : workload_.prepare) {
      ROOFGEN_TRY(Step step, bind(kernel, set));
      ROOFGEN_CHECK(gpu_.run(step.module, step.launch, {}));
    }
  return {};
}

Result<void> Rig::refresh() {
  if (gpu_.generation() == generation_) return {};
  sets_.clear();
  modules_.clear();
  return set_up();
}

Result<Step> Rig::bind(const Contender::Kernel& kernel, size_t set) {
  auto at = modules_.find(kernel.binary);
  if (at == modules_.end()) {
    ROOFGEN_TRY(ModuleId module, gpu_.load(*kernel.binary));
    at = modules_.emplace(kernel.binary, module).first;
  }
  Step out{at->second, kernel.launch};
  for (Arg& arg : out.launch.args) {
    if (!arg.is_buffer) continue;
    auto same = [&](const BenchBuffer& buffer) { return buffer.name == arg.name; };
    auto found = std::find_if(workload_.buffers.begin(), workload_.buffers.end(), same);
    if (found == workload_.buffers.end())
      return Error{Exit::kFailed,
                   fmt::format("{}: argument '{}' names no buffer of the problem", kernel.binary->entry, arg.name)};
    arg.bits = sets_[set][static_cast<size_t>(found - workload_.buffers.begin())].address;
  }
  return out;
}

Result<std::vector<Step>> Rig::steps(const Contender& contender, size_t set) {
  std::vector<Step> out;
  for (const Contender::Kernel& kernel : contender.kernels) {
    ROOFGEN_TRY(Step step, bind(kernel, set));
    out.push_back(std::move(step));
  }
  return out;
}

}  // namespace roofgen
