// The client of a GPU worker: an executor that forwards its calls to the worker. It survives its workers: a worker's
// death fails the current call and loses the data on the GPU; the next call starts a new worker.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/child.h"
#include "base/frame.h"
#include "base/paths.h"
#include "base/pool.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/staging.h"
#include "runtime/cuda/wire.h"
#include "runtime/executor.h"

namespace roofgen {
namespace {

using namespace wire;
using Clock = std::chrono::steady_clock;

constexpr double kMoreForCopies = 60;                 ///< seconds; also for starting, loading and allocating
constexpr auto kPatience = std::chrono::seconds(10);  ///< limit for a killed worker to exit
constexpr uint64_t kChunk = uint64_t{32} << 20;
// Virtual addresses on GPUs have at most 57 bits, so the top byte of an address is free. It holds a tag of the worker's
// generation. With 255 tags, a stale handle is mistaken for a current one only after 255 further workers.
constexpr int kTagShift = 56;
constexpr int kModuleShift = 40;

/// Bytes of a fill that one thread makes at once.
constexpr size_t kFilledAtOnce = size_t{1} << 20;

/// `fill` is a function of the offset alone, so its parts are independent.
void fill_on_all_cores(const Fill& fill, uint64_t offset, std::span<std::byte> to) {
  const size_t parts = (to.size() + kFilledAtOnce - 1) / kFilledAtOnce;
  const int threads = static_cast<int>(std::min<size_t>(parts, std::max(1u, std::thread::hardware_concurrency())));
  if (threads <= 1) return fill(offset, to);
  (void)for_each_index(threads, parts, [&](size_t i) -> Result<void> {
    const size_t begin = i * kFilledAtOnce;
    fill(offset + begin, to.subspan(begin, std::min(kFilledAtOnce, to.size() - begin)));
    return {};
  });
}

class RemoteGpu final : public GpuExecutor {
 public:
  explicit RemoteGpu(GpuWorkerOptions options) : options_(std::move(options)) {
    if (options_.executable.empty()) options_.executable = worker_program();
  }

  Result<void> open() {
    if (options_.executable.empty()) {
      // Whether there is a GPU at all comes first.
      if (const auto driver = cuda::Driver::open(cuda::default_library()); !driver) return driver.error();
      return Error{
          Exit::kUnavailable,
          "the program roofgen, in whose process candidates run, is not in the library's folder; ROOFGEN_PROGRAM "
          "can name it"};
    }
    ROOFGEN_CHECK(staging_.create());
    ROOFGEN_CHECK(start());
    if (options_.warn && at_open_.other_processes > 0)
      options_.warn(fmt::format("{} other {} on {}; measured times may vary", at_open_.other_processes,
                                at_open_.other_processes == 1 ? "process computes" : "processes compute",
                                info_.device_name));
    return {};
  }

  ExecutorInfo info() const override { return info_; }
  Origin origin() const override { return simulated_ ? Origin::kSimulated : Origin::kMeasured; }
  GpuIdentity identity() const override { return identity_; }
  Fault fault() const override { return fault_; }
  uint64_t generation() const override { return generation_; }

  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override {
    ROOFGEN_CHECK(ensure());
    Packer out;
    out.put(bytes).put(label).put(fill != nullptr);
    Call call{"allocating " + label, copies()};
    send(kAllocate, out);
    for (;;) {
      ROOFGEN_TRY(Fields reply, receive(call));
      Unpacker in(reply[1]);
      if (reply[0] == kWant && fill) {
        uint64_t offset = 0, size = 0;
        in.get(offset).get(size);
        if (!in.done() || offset > bytes || size > bytes - offset || size > Staging::kBytes) return nonsense(call);
        fill_on_all_cores(fill, offset, staging_.bytes().first(size));
        out_ += encode_frame({});
        continue;
      }
      uint64_t address = 0;
      in.get(address);
      if (reply[0] != kOk || !in.done() || address >> kTagShift) return nonsense(call);
      return DevicePtr{address | tag() << kTagShift};
    }
  }

  void release(DevicePtr ptr) override {
    if (!child_.running() || ptr.address >> kTagShift != tag() || !ensure()) return;
    if (ptr.address >> kTagShift != tag()) return;
    Packer out;
    out.put(strip(ptr.address));
    (void)ask(kRelease, out, {"releasing memory", copies()});
  }

  Result<void> write(DevicePtr to, std::span<const std::byte> from) override {
    ROOFGEN_CHECK(ensure());
    ROOFGEN_CHECK(fresh(to.address));
    for (uint64_t offset = 0; offset < from.size() || offset == 0;) {
      const auto part = from.subspan(offset, std::min<uint64_t>(kChunk, from.size() - offset));
      Packer out;
      out.put(strip(to.address) + offset)
          .put(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
      ROOFGEN_CHECK(finish(ask(kWrite, out, {"writing to the GPU", copies()})));
      offset += part.size();
      if (part.empty()) break;
    }
    return {};
  }

  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override {
    ROOFGEN_CHECK(ensure());
    ROOFGEN_CHECK(fresh(from.address));
    if (written) written->clear();
    for (uint64_t offset = 0; offset < to.size() || offset == 0;) {
      const uint64_t address = strip(from.address) + offset;
      // Chunks end on whole words, because written data is detected word by word.
      const uint64_t size = std::min<uint64_t>(kChunk - address % 16, to.size() - offset);
      Packer out;
      out.put(address).put(size).put(written != nullptr);
      const Call call{"reading from the GPU", copies()};
      ROOFGEN_TRY(Fields reply, ask(kRead, out, call));
      Unpacker in(reply[1]);
      std::string bytes, map;
      in.get(bytes).get(map);
      if (!in.done() || bytes.size() != size || map.size() != (written ? size : 0)) return nonsense(call);
      std::memcpy(to.data() + offset, bytes.data(), size);
      for (char c : map) written->push_back(c != 0);
      offset += size;
      if (size == 0) break;
    }
    return {};
  }

  Result<void> poison(DevicePtr ptr) override {
    ROOFGEN_CHECK(ensure());
    ROOFGEN_CHECK(fresh(ptr.address));
    Packer out;
    out.put(strip(ptr.address));
    return finish(ask(kPoison, out, {"poisoning a buffer", copies()}));
  }

  Result<ModuleId> load(const Binary& binary) override {
    ROOFGEN_CHECK(ensure());
    Packer out;
    pack(out, binary);
    const Call call{"loading kernel " + binary.entry, copies()};
    ROOFGEN_TRY(Fields reply, ask(kLoad, out, call));
    Unpacker in(reply[1]);
    uint64_t id = 0;
    in.get(id);
    if (!in.done() || id >> kModuleShift) return nonsense(call);
    entries_[id] = binary.entry;
    return ModuleId{id | generation_ << kModuleShift};
  }

  void unload(ModuleId module) override {
    if (!child_.running() || module.id >> kModuleShift != generation_ || !ensure()) return;
    if (module.id >> kModuleShift != generation_) return;
    Packer out;
    const uint64_t id = module.id & ((uint64_t{1} << kModuleShift) - 1);
    out.put(id);
    entries_.erase(id);
    (void)ask(kUnload, out, {"unloading a kernel", copies()});
  }

  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions&) override {
    ROOFGEN_CHECK(ensure());
    ROOFGEN_TRY(Step step, translate({module, launch}));
    Packer out;
    out.put(step.module.id);
    pack(out, step.launch);
    Call call = running({&step, 1});
    ROOFGEN_TRY(Fields reply, ask(kRun, out, call));
    Unpacker in(reply[1]);
    double time_ns = 0;
    in.get(time_ns);
    if (!in.done()) return nonsense(call);
    RunResult result;
    result.time_ns = time_ns;
    return result;
  }

  Result<GpuState> state() override {
    ROOFGEN_CHECK(ensure());
    Packer out;
    const Call call{"asking the GPU how it is", copies()};
    ROOFGEN_TRY(Fields reply, ask(kState, out, call));
    Unpacker in(reply[1]);
    GpuState state;
    unpack(in, state);
    if (!in.done()) return nonsense(call);
    return state;
  }

  Result<std::vector<Sample>> time(std::span<const Shot> shots, size_t* done) override {
    size_t count = 0;
    if (!done) done = &count;
    *done = 0;
    ROOFGEN_CHECK(ensure());
    std::vector<Shot> translated;
    for (const Shot& shot : shots) {
      Shot& out = translated.emplace_back();
      out.flush = shot.flush;
      out.graph = shot.graph;
      for (const Step& step : shot.steps) {
        ROOFGEN_TRY(Step one, translate(step));
        out.steps.push_back(std::move(one));
      }
    }
    Packer out;
    pack(out, std::span<const Shot>(translated));
    send(kTime, out);
    std::vector<Sample> samples;
    for (;;) {
      const bool last = *done == shots.size();
      const Call call = last ? Call{"freeing the graphs", copies()} : running(translated[*done].steps);
      ROOFGEN_TRY(Fields reply, receive(call));
      if (reply[0] == kOk && last) return samples;
      Unpacker in(reply[1]);
      Sample sample;
      unpack(in, sample);
      if (reply[0] != kSample || last || !in.done()) return nonsense(call);
      samples.push_back(sample);
      ++*done;
    }
  }

 private:
  /// The purpose of a call, for messages, and its time limit.
  struct Call {
    std::string doing;
    double limit_s = 0;
    std::string kernel = "";  ///< set while a kernel runs; errors then name the kernel
  };

  double copies() const { return options_.timeout_s + kMoreForCopies; }
  uint64_t tag() const { return generation_ % 255 + 1; }
  static uint64_t strip(uint64_t address) { return address & ((uint64_t{1} << kTagShift) - 1); }

  Call running(std::span<const Step> steps) const {
    std::string names;
    std::vector<uint64_t> seen;
    for (const Step& step : steps) {
      if (std::find(seen.begin(), seen.end(), step.module.id) != seen.end()) continue;
      seen.push_back(step.module.id);
      auto at = entries_.find(step.module.id);
      names += (names.empty() ? "" : " + ") + (at == entries_.end() ? std::string("an unknown kernel") : at->second);
    }
    return {"running kernel " + names, options_.timeout_s, names};
  }

  // ---- Handles -----------------------------------------------------------------------------------

  Error stale(const char* what) {
    fault_ = Fault::kRefused;
    return {Exit::kFailed,
            fmt::format("{} is of an earlier GPU worker{}", what, ended_.empty() ? "" : "; that ended: " + ended_)};
  }
  Result<void> fresh(uint64_t address) {
    if (address >> kTagShift == tag()) return {};
    return address >> kTagShift == 0 ? refuse(fmt::format("{:#x} is not an address of this GPU worker", address))
                                     : stale("the buffer");
  }
  Error refuse(std::string message) {
    fault_ = Fault::kRefused;
    return {Exit::kFailed, std::move(message)};
  }
  Result<Step> translate(Step step) {
    if (step.module.id >> kModuleShift != generation_) return stale("the kernel");
    step.module.id &= (uint64_t{1} << kModuleShift) - 1;
    for (Arg& arg : step.launch.args) {
      if (!arg.is_buffer || arg.bits == 0) continue;
      ROOFGEN_CHECK(fresh(arg.bits));
      arg.bits = strip(arg.bits);
    }
    return step;
  }

  // ---- The worker's life -----------------------------------------------------------------------------

  Error lose(const std::string& why) {
    lost_ = why;
    fault_ = Fault::kLost;
    return gone();
  }
  Error gone() const { return {Exit::kUnavailable, "the GPU is lost: " + lost_}; }

  /// Ensures that a worker runs. The death of an idle worker is noticed here, before handles are checked.
  Result<void> ensure() {
    if (!lost_.empty()) {
      fault_ = Fault::kLost;
      return gone();
    }
    if (child_.running() && child_.died_while_idle())
      retire("the GPU worker " + ending_text(child_.wait(kPatience).status) + " between two calls");
    if (child_.running()) return {};
    if (options_.warn) options_.warn("the GPU worker is replaced: " + ended_);
    Result<void> started = start();
    if (!started) return lose(fmt::format("no new worker starts ({})", started.error().message));
    return {};
  }

  /// Ends the worker; all data on the GPU is lost.
  void retire(const std::string& why) {
    if (!child_.stop(kPatience) && options_.warn)
      options_.warn("a killed GPU worker does not go away; the driver may be stuck");
    in_.clear();
    forget_sent();
    entries_.clear();
    ended_ = why;
    ++generation_;
  }

  Result<void> start() {
    in_.clear();
    forget_sent();
    if (int failed = child_.start(options_.executable, "__gpu-worker", staging_.file()); failed != 0)
      return Error{Exit::kUnavailable, fmt::format("cannot start a GPU worker: {}", std::strerror(failed))};
    Packer out;
    out.put(options_.ordinal);
    send(kOpen, out);
    starting_ = true;
    Result<Fields> reply = receive({"opening the GPU", copies()});
    starting_ = false;
    if (!reply) {
      child_.stop(kPatience);
      return std::move(reply).error();
    }
    Unpacker in((*reply)[1]);
    bool simulated = false;
    in.get(simulated);
    simulated_ |= simulated;  // of any worker: measured times cannot be separated afterwards
    unpack(in, info_);
    unpack(in, identity_);
    unpack(in, at_open_);
    if ((*reply)[0] != kOk || !in.done()) {
      child_.stop(kPatience);
      return Error{Exit::kFailed, "the GPU worker sent nonsense"};
    }
    return {};
  }

  // ---- Talking -----------------------------------------------------------------------------------------

  /// Sent parts are skipped, not erased: an input may have many megabytes.
  void forget_sent() {
    out_.clear();
    sent_ = 0;
  }

  void send(const char* op, Packer& packed) { out_ += encode_frame({op, packed.take()}); }

  Result<Fields> ask(const char* op, Packer& packed, const Call& call) {
    send(op, packed);
    return receive(call);
  }
  static Result<void> finish(Result<Fields> reply) { return reply ? Result<void>() : std::move(reply).error(); }

  /// The next frame of the worker. The worker's errors are returned; any other failure ends the worker.
  Result<Fields> receive(const Call& call) {
    const auto deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(call.limit_s));
    for (;;) {
      bool bad = false;
      if (auto fields = take_frame(in_, &bad)) {
        if (fields->size() != 2) return nonsense(call);
        if ((*fields)[0] == kError) return failed(call, (*fields)[1]);
        return *fields;
      }
      if (bad) return nonsense(call);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return timed_out(call);
      pollfd polled{child_.socket(), static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
      const int ready = poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (ready < 0 && errno != EINTR)
        return crashed(call, std::string("waiting for it failed: ") + std::strerror(errno), {});
      if (ready <= 0) continue;
      if (polled.revents & POLLOUT) {
        sent_ += child_.send_some(std::string_view(out_).substr(sent_));
        if (sent_ == out_.size()) forget_sent();
      }
      if (!(polled.revents & (POLLIN | POLLHUP | POLLERR))) continue;
      if (child_.receive_some(in_)) continue;
      if (in_.empty()) {
        Child::End end = child_.wait(kPatience);
        return crashed(call, ending_text(end.status), std::move(end.tail));
      }
      // The final bytes may form a complete frame; otherwise the next iteration sees the end again.
      std::string rest = in_;
      if (!take_frame(rest, &bad)) in_.clear();
    }
  }

  Error failed(const Call& call, const std::string& packed) {
    Unpacker in(packed);
    int fault = 0;
    Error error;
    in.get(fault);
    unpack(in, error);
    if (!in.done() || fault < static_cast<int>(Fault::kNone) || fault > static_cast<int>(Fault::kLost))
      return nonsense(call);
    fault_ = static_cast<Fault>(fault);
    if (starting_) return error;
    if (fault_ == Fault::kKernel || fault_ == Fault::kTimeout) retire(error.message);
    if (fault_ == Fault::kLost) {
      // An error that suggests a lost GPU may concern the context only; a new process decides.
      retire(error.message);
      if (Result<void> again = start(); !again) {
        lost_ = fmt::format("{}; no new worker starts ({})", error.message, again.error().message);
        fault_ = Fault::kLost;
        Error lost = gone();
        lost.notes = error.notes;
        return lost;
      }
      if (options_.warn) options_.warn("the GPU worker is replaced: " + ended_);
      fault_ = Fault::kKernel;
    }
    return error;
  }

  Error timed_out(const Call& call) {
    Error error{Exit::kFailed, fmt::format("{} did not end within {} s", call.kernel.empty() ? call.doing : call.kernel,
                                           call.limit_s)};
    fault_ = Fault::kTimeout;
    if (!starting_) retire(error.message);
    return error;
  }

  Error crashed(const Call& call, const std::string& how, std::vector<std::string> tail) {
    Error error{Exit::kFailed, fmt::format("{}: the GPU worker {}", call.doing, how), {}, std::move(tail)};
    fault_ = call.kernel.empty() ? Fault::kRefused : Fault::kKernel;
    if (!starting_) retire(error.message);
    return error;
  }

  Error nonsense(const Call& call) {
    Error error{Exit::kFailed, call.doing + ": the GPU worker sent nonsense"};
    fault_ = call.kernel.empty() ? Fault::kRefused : Fault::kKernel;
    if (!starting_) retire(error.message);
    return error;
  }

  GpuWorkerOptions options_;
  Staging staging_;  ///< outlives the workers
  Child child_;
  std::string in_, out_;
  size_t sent_ = 0;  ///< of out_
  ExecutorInfo info_;
  bool simulated_ = false;
  GpuIdentity identity_;
  GpuState at_open_;
  std::map<uint64_t, std::string> entries_;  ///< of loaded kernels, by the worker's module number
  std::string ended_;                        ///< exit status of the last worker
  std::string lost_;                         ///< the reason why no further worker starts
  Fault fault_ = Fault::kNone;
  uint64_t generation_ = 0;
  bool starting_ = false;
};

}  // namespace

Result<std::unique_ptr<GpuExecutor>> make_gpu_worker(GpuWorkerOptions options) {
  auto gpu = std::make_unique<RemoteGpu>(std::move(options));
  ROOFGEN_CHECK(gpu->open());
  return std::unique_ptr<GpuExecutor>(std::move(gpu));
}

}  // namespace roofgen
