#include "runtime/measure/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace roofgen::measuring {
namespace {

constexpr double kL2Multiple = 3;     ///< sets together are at least this times L2
constexpr int kMaxSets = 64;
constexpr double kKeepFree = 0.1;     ///< of the free memory
constexpr double kMessageNs = 2e9;    ///< kernel time of one message; its time-out is some seconds

std::string size_text(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  return b >= 1e9 ? fmt::format("{:.1f} GB", b / 1e9) : b >= 1e6 ? fmt::format("{:.1f} MB", b / 1e6) : fmt::format("{} bytes", bytes);
}

const char* stage_of(Fault fault) {
  switch (fault) {
    case Fault::kKernel: return "gpu fault";
    case Fault::kTimeout: return "gpu timeout";
    case Fault::kMemory: return "gpu memory";
    default: return "gpu";
  }
}

}  // namespace

Bench::Bench(GpuExecutor& on, const Workload& with, const std::vector<Contender>& contenders, const Protocol& by, const BenchHooks& through)
    : gpu(on), workload(with), protocol(by), hooks(through), generation_(on.generation()) {
  for (const Contender& c : contenders) {
    entries.emplace_back();
    entries.back().contender = &c;
  }
}

Bench::~Bench() {
  release();
  for (Entry& e : entries)
    for (ModuleId m : e.modules) gpu.unload(m);
}

void Bench::note(const std::string& text, bool warn) {
  if (std::find(notes.begin(), notes.end(), text) != notes.end()) return;
  notes.push_back(text);
  if (warn && hooks.warn) hooks.warn(text);
}

void Bench::progress(const char* phase, uint64_t done, uint64_t total) const {
  if (hooks.progress) hooks.progress(phase, done, total);
}

void Bench::release() {
  for (const Addresses& set : buffers_)
    for (const auto& [name, ptr] : set) gpu.release(ptr);
  buffers_.clear();
}

Result<void> Bench::set_up() {
  uint64_t bytes = 0;
  for (const BenchBuffer& b : workload.buffers) bytes += b.bytes;
  bytes = std::max<uint64_t>(bytes, 1);
  ROOFGEN_TRY(const GpuState state, gpu.state());
  if (state.other_processes > 0)
    note(fmt::format("{} other process{} on the GPU: times may be too long", state.other_processes, state.other_processes == 1 ? " computes" : "es compute"), true);
  const double wanted_bytes = kL2Multiple * static_cast<double>(gpu.identity().l2_bytes);
  int wanted = static_cast<int>(std::clamp(std::ceil(wanted_bytes / static_cast<double>(bytes)), 1.0, double{kMaxSets}));
  if (state.free_bytes > 0) {
    const auto fit = static_cast<double>(state.free_bytes) * (1 - kKeepFree) / static_cast<double>(bytes);
    wanted = std::min(wanted, std::max(1, static_cast<int>(fit)));
  }
  Result<void> done = allocate(wanted);
  while (!done && gpu.fault() == Fault::kMemory && wanted > 1) {
    wanted /= 2;
    done = allocate(wanted);
  }
  if (!done) {
    Error error = std::move(done).error();
    if (gpu.fault() == Fault::kMemory) {
      error.message = fmt::format("the buffers need {} of GPU memory, {} are free: a smaller problem is needed (batch or length)", size_text(bytes), size_text(state.free_bytes));
    }
    return error;
  }
  if (static_cast<double>(bytes) * sets < wanted_bytes)
    note(fmt::format("{} set{} of buffers of {}, less than {:g} times L2: repetitions within one sample find their data in L2", sets, sets == 1 ? "" : "s", size_text(bytes), kL2Multiple));
  if (gpu.identity().default_sm_mhz <= 0) note("the GPU's default clock is unknown: samples at a throttled clock are not recognised");
  ROOFGEN_CHECK(load());
  return prepare();
}

Result<void> Bench::allocate(int wanted) {
  release();
  for (int i = 0; i < wanted; ++i) {
    buffers_.emplace_back();
    for (const BenchBuffer& b : workload.buffers) {
      auto ptr = gpu.allocate(b.bytes, b.name, b.fill);
      if (!ptr) {
        release();
        return std::move(ptr).error();
      }
      buffers_.back()[b.name] = *ptr;
    }
  }
  sets = wanted;
  return {};
}

/// Modules of all contenders that are still in. One that cannot be loaded is out.
Result<void> Bench::load() {
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& e = entries[i];
    e.modules.clear();
    if (e.out()) continue;
    for (const Contender::Kernel& k : e.contender->kernels) {
      auto module = gpu.load(*k.binary);
      if (!module) {
        if (gpu.fault() == Fault::kLost) return std::move(module).error();
        blame(i, module.error());
        break;
      }
      e.modules.push_back(*module);
    }
  }
  return {};
}

Result<void> Bench::prepare() {
  for (const Contender::Kernel& k : workload.prepare) {
    ROOFGEN_TRY(const ModuleId module, gpu.load(*k.binary));
    for (size_t set = 0; set < buffers_.size(); ++set) {
      auto ran = gpu.run(module, bind(k.launch, set), {});
      if (!ran) return std::move(ran).error();
    }
    gpu.unload(module);
  }
  return {};
}

/// After the worker was replaced: everything anew. False when the GPU is lost.
Result<bool> Bench::restore() {
  if (gpu.generation() == generation_) return true;
  buffers_.clear();  // they went with the old worker
  generation_ = gpu.generation();
  const auto failed = [&](const Error& error) {
    lost = true;
    lost_because = error.message;
    return false;
  };
  if (auto done = allocate(sets); !done) return failed(done.error());
  if (auto done = load(); !done) return failed(done.error());
  if (auto done = prepare(); !done) return failed(done.error());
  return true;
}

Launch Bench::bind(const Launch& launch, size_t set) const {
  Launch out = launch;
  for (Arg& arg : out.args) {
    if (!arg.is_buffer) continue;
    auto at = buffers_[set].find(arg.name);
    if (at != buffers_[set].end()) arg.bits = at->second.address;  // else not asked for: a null pointer
  }
  return out;
}

/// Cold repetitions each take the next set of buffers; hot ones always the first.
Shot Bench::shot_of(const Entry& e, bool cold, uint64_t index) const {
  Shot shot;
  shot.flush = cold;
  shot.graph = e.batch > 1;
  for (int r = 0; r < e.batch; ++r) {
    const size_t set = cold ? (index + static_cast<uint64_t>(r)) % buffers_.size() : 0;
    for (size_t k = 0; k < e.modules.size(); ++k) shot.steps.push_back({e.modules[k], bind(e.contender->kernels[k].launch, set)});
  }
  return shot;
}

void Bench::blame(size_t entry, const Error& error) {
  entries[entry].rejected = Rejected{{}, stage_of(gpu.fault()), to_string(error)};
}

std::vector<Bench::Fired> Bench::fire(const std::vector<size_t>& who, bool cold, uint64_t index) {
  std::vector<Fired> out;
  for (size_t begin = 0; begin < who.size() && !over();) {
    std::vector<Shot> shots;
    std::vector<size_t> owners;
    double expected_ns = 0;
    if (auto restored = restore(); !restored || !*restored) return {};
    size_t end = begin;
    for (; end < who.size() && (shots.empty() || expected_ns < kMessageNs); ++end) {
      const Entry& e = entries[who[end]];
      if (e.out()) continue;
      shots.push_back(shot_of(e, cold, index));
      owners.push_back(who[end]);
      expected_ns += e.screened_ns * e.batch;
    }
    if (shots.empty()) break;
    size_t done = 0;
    auto samples = gpu.time(shots, &done);
    if (!samples) {
      if (gpu.fault() == Fault::kLost) {
        lost = true;
        lost_because = samples.error().message;
        return {};
      }
      blame(owners[std::min(done, owners.size() - 1)], samples.error());
      continue;  // the same ones again, without it
    }
    for (size_t i = 0; i < owners.size(); ++i) {
      Sample s = (*samples)[i];
      s.time_ns /= entries[owners[i]].batch;
      out.push_back({owners[i], s});
    }
    begin = end;
  }
  return out;
}

}  // namespace roofgen::measuring
