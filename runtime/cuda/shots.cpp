// Timed shots. The order in the stream: [L2 flush] gate stamp EVENT launches EVENT stamp. The host queues everything
// behind the gate while the gate is closed. Therefore neither the host's speed nor the flush affects the time between
// the two events, and the GPU does not idle between the two stamps. docs/start/gpu.md has the details.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cuda/executor.h"
#include "runtime/cuda/helpers.h"

namespace roofgen::cuda {
namespace {

// A launch takes the host 2 to 5 us. These lengths let the gate open even if nothing follows.
constexpr uint64_t kGateNs = 30'000, kGatePerLaunchNs = 5'000, kGatePerNodeNs = 200, kMaxGateNs = 100'000'000;
constexpr int kAttempts = 4;
// The flush changes one half of the scratch buffer and then reads the other half; each half has twice the size of L2.
// The reads evict the changed lines, so that no shot pays for their write-back.
constexpr uint64_t kSweptL2 = 2;
constexpr uint64_t kUnknownL2 = uint64_t{64} << 20, kSimulatedL2 = uint64_t{1} << 16;
constexpr unsigned kSweepThreads = 512, kSweepCtasPerSm = 4;

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A key for shots that can share one graph.
std::string key_of(const Shot& shot) {
  std::string key;
  for (const Step& step : shot.steps) {
    append(key, step.module.id);
    for (const Dim3* d : {&step.launch.grid, &step.launch.block, &step.launch.cluster}) {
      append(key, d->x);
      append(key, d->y);
      append(key, d->z);
    }
    append(key, step.launch.smem_bytes);
    append(key, step.launch.overlap);
    append(key, step.launch.args.size());
    for (const Arg& arg : step.launch.args) {
      append(key, arg.bits);
      append(key, arg.map.get());  // the shots of one call keep their maps alive
    }
  }
  return key;
}

}  // namespace

Result<void> CudaExecutor::set_up_shots() {
  if (!helpers_) {
    ROOFGEN_CHECK(check(driver_->load_module(&helpers_, helper_ptx().data(), 0, nullptr, nullptr),
                        "loading the timer's kernels"));
    for (const auto& [function, name] :
         {std::pair{&gate_, "roofgen_gate"}, {&stamp_, "roofgen_stamp"}, {&sweep_, "roofgen_sweep"}}) {
      ROOFGEN_CHECK(check(driver_->function(function, helpers_, name), fmt::format("finding {}", name)));
      if (driver_->load_function)
        ROOFGEN_CHECK(check(driver_->load_function(*function), fmt::format("loading {}", name)));
    }
  }
  if (!stamps_) {
    ROOFGEN_TRY(stamps_, take_memory(2 * kStamps * sizeof(Stamp), "the clock's stamps"));
  }
  return {};
}

Result<void> CudaExecutor::queue_helper(Handle function, unsigned ctas, unsigned threads,
                                        std::initializer_list<uint64_t> words, const char* doing) {
  uint64_t values[4] = {};
  void* pointers[4] = {};
  size_t count = 0;
  for (uint64_t word : words) {
    values[count] = word;
    pointers[count] = &values[count];
    ++count;
  }
  return check(driver_->launch(function, ctas, 1, 1, threads, 1, 1, 0, stream_, pointers, nullptr), doing);
}

Result<void> CudaExecutor::flush() {
  if (!scratch_) {
    // Caches do not affect a simulated driver's times: the same steps run on a small buffer, so that they are
    // exercised.
    const uint64_t l2 = driver_->simulated          ? kSimulatedL2
                        : info_.driver.l2_bytes > 0 ? static_cast<uint64_t>(info_.driver.l2_bytes)
                                                    : kUnknownL2;
    const uint64_t bytes = (2 * kSweptL2 * l2 + 511) / 512 * 512;
    ROOFGEN_TRY(scratch_, take_memory(bytes, "emptying L2"));
    scratch_bytes_ = bytes;
    ROOFGEN_CHECK(check(driver_->fill(scratch_, 0, bytes, stream_), "emptying L2"));
    // Only once: roofgen's kernels never create persisting lines, so only earlier work can have left some. A GPU that
    // cannot reset them is flushed anyway; a fault from earlier work appears in the next call.
    if (persisting_l2_ && driver_->reset_persisting_l2) driver_->reset_persisting_l2();
  }
  const auto ctas =
      driver_->simulated ? 1 : kSweepCtasPerSm * static_cast<unsigned>(std::max<int64_t>(info_.driver.sms, 1));
  const uint64_t half = scratch_bytes_ / 2;
  ROOFGEN_CHECK(queue_helper(sweep_, ctas, kSweepThreads, {scratch_, half / 16, 1}, "emptying L2"));
  return queue_helper(sweep_, ctas, kSweepThreads, {scratch_ + half, half / 16, 0}, "emptying L2");
}

Result<Handle> CudaExecutor::graph_of(const Shot& shot, std::vector<Prepared>& steps) {
  const std::string key = key_of(shot);
  if (auto at = graphs_.find(key); at != graphs_.end()) return at->second;
  if (!driver_->begin_capture || !driver_->end_capture || !driver_->instantiate_graph || !driver_->launch_graph ||
      !driver_->destroy_graph || !driver_->destroy_graph_exec) {
    const Error error = driver_->have<Status()>(nullptr, "CUDA graphs").error();
    return refuse(error.message, error.exit);
  }
  ROOFGEN_CHECK(check(driver_->begin_capture(stream_, kCaptureThreadLocal), "capturing a CUDA graph"));
  Result<void> queued;
  for (size_t i = 0; i < steps.size() && queued; ++i) queued = queue(steps[i], i == 0);
  Handle graph = nullptr, exec = nullptr;
  Status ended = driver_->end_capture(stream_, &graph);  // even after a failure, to end the capture mode of the stream
  if (!queued) {
    if (graph) driver_->destroy_graph(graph);
    return std::move(queued).error();
  }
  ROOFGEN_CHECK(check(ended, "capturing a CUDA graph"));
  Status made = driver_->instantiate_graph(&exec, graph, 0);
  driver_->destroy_graph(graph);
  ROOFGEN_CHECK(check(made, fmt::format("building a CUDA graph of {} launches", steps.size())));
  graphs_[key] = exec;
  // Without the upload, the first launch would do it.
  if (driver_->upload_graph) ROOFGEN_CHECK(check(driver_->upload_graph(exec, stream_), "uploading a CUDA graph"));
  return exec;
}

void CudaExecutor::drop_graphs() {
  for (const auto& [key, exec] : graphs_) driver_->destroy_graph_exec(exec);
  graphs_.clear();
}

/// Returns true when everything was queued before the gate opened.
Result<bool> CudaExecutor::fire_once(const Shot& shot, std::vector<Prepared>& steps, Handle graph, uint64_t gate_ns,
                                     Sample* sample) {
  const std::string doing = "running kernel " + steps.front().entry;
  const auto sms = static_cast<unsigned>(std::max<int64_t>(info_.driver.sms, 1));
  const Address after = stamps_ + kStamps * sizeof(Stamp);
  ROOFGEN_CHECK(check(driver_->fill(stamps_, 0, 2 * kStamps * sizeof(Stamp), stream_), "clearing the clock's stamps"));
  if (shot.flush) ROOFGEN_CHECK(flush());
  ROOFGEN_CHECK(queue_helper(gate_, 1, 1, {gate_ns}, "holding the stream"));
  ROOFGEN_CHECK(queue_helper(stamp_, sms, 1, {stamps_, kStamps}, "reading the clock"));
  ROOFGEN_CHECK(check(driver_->record_event(start_, stream_), doing));
  if (graph) {
    ROOFGEN_CHECK(check(driver_->launch_graph(graph, stream_), doing));
  } else {
    for (size_t i = 0; i < steps.size(); ++i) ROOFGEN_CHECK(queue(steps[i], i == 0));
  }
  ROOFGEN_CHECK(check(driver_->record_event(stop_, stream_), doing));
  const Status open = driver_->query_event(start_);
  ROOFGEN_CHECK(queue_helper(stamp_, sms, 1, {after, kStamps}, "reading the clock"));
  ROOFGEN_CHECK(synchronize(doing));
  float ms = 0;
  ROOFGEN_CHECK(check(driver_->elapsed_ms(&ms, start_, stop_), "timing kernel " + steps.front().entry));
  sample->time_ns = double{ms} * 1e6;
  return open == kNotReady;
}

/// Median over the SMs of cycles / time between the two stamps, in MHz. 0 when no SM has both stamps.
Result<double> CudaExecutor::mean_clock() {
  std::vector<Stamp> stamps(2 * kStamps);
  ROOFGEN_CHECK(
      check(driver_->copy_out(stamps.data(), stamps_, stamps.size() * sizeof(Stamp), stream_), "reading the clock"));
  ROOFGEN_CHECK(synchronize("reading the clock"));
  std::vector<double> mhz;
  for (size_t i = 0; i < kStamps; ++i) {
    const Stamp &a = stamps[i], &b = stamps[i + kStamps];
    if (a.time_ns == 0 || b.time_ns <= a.time_ns || b.clock <= a.clock) continue;
    mhz.push_back(1e3 * static_cast<double>(b.clock - a.clock) / static_cast<double>(b.time_ns - a.time_ns));
  }
  if (mhz.empty()) return 0.0;
  std::nth_element(mhz.begin(), mhz.begin() + static_cast<ptrdiff_t>(mhz.size() / 2), mhz.end());
  return mhz[mhz.size() / 2];
}

/// An NVML query takes from microseconds to milliseconds, during which the GPU would idle and cool. The reading is
/// renewed only after ten times the duration of the query; in between, the last reading is used.
void CudaExecutor::read_board(Sample& sample) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  if (begun >= board_due_) {
    board_.power_w = nvml_.power_w();
    board_.temperature_c = nvml_.temperature_c();
    board_.limits = nvml_.limits();
    const Clock::time_point ended = Clock::now();
    board_due_ = ended + std::min<Clock::duration>(10 * (ended - begun), std::chrono::milliseconds(100));
  }
  sample.power_w = board_.power_w;
  sample.temperature_c = board_.temperature_c;
  sample.limits = board_.limits;
}

Result<Sample> CudaExecutor::fire(const Shot& shot) {
  ROOFGEN_CHECK(enter());
  if (shot.steps.empty()) return refuse("a shot without a launch cannot be timed");
  ROOFGEN_CHECK(set_up_shots());
  std::vector<Prepared> steps;
  steps.reserve(shot.steps.size());
  for (const Step& step : shot.steps) {
    ROOFGEN_TRY(Prepared prepared, prepare(step.module, step.launch));
    steps.push_back(std::move(prepared));
  }
  Handle graph = nullptr;
  if (shot.graph) {
    ROOFGEN_TRY(graph, graph_of(shot, steps));
  }
  const uint64_t gate_ns = kGateNs + steps.size() * (graph ? kGatePerNodeNs : kGatePerLaunchNs);
  Sample sample;
  int late = 0;
  while (late < kAttempts) {
    ROOFGEN_TRY(bool gated,
                fire_once(shot, steps, graph, std::min(gate_ns * gate_factor_.of_attempt(late), kMaxGateNs), &sample));
    if (gated) break;
    // The host was late: launches may have waited for the host between the events. The shot is repeated with a longer
    // gate; after the last attempt the sample is kept, whose time can only be too long.
    ++late;
  }
  gate_factor_.ended(late);
  ROOFGEN_TRY(sample.sm_mhz, mean_clock());
  read_board(sample);
  return sample;
}

Result<std::vector<Sample>> CudaExecutor::time(std::span<const Shot> shots, size_t* done) {
  std::vector<Sample> samples;
  if (done) *done = 0;
  for (const Shot& shot : shots) {
    Result<Sample> sample = fire(shot);
    if (!sample) {
      drop_graphs();
      return std::move(sample).error();
    }
    samples.push_back(*sample);
    if (done) ++*done;
  }
  drop_graphs();
  return samples;
}

}  // namespace roofgen::cuda
