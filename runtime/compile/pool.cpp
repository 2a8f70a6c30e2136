#include "runtime/compile/pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/child.h"

namespace roofgen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWallFactor = 10;
/// Then a request is compiled here, too: the other process may be stopped.
constexpr auto kMostWait = std::chrono::seconds(30);
constexpr int kLook_ms = 10;  ///< between looks for the result of another process

}  // namespace

/// A worker process and its current request.
class WorkerPool::Worker {
 public:
  explicit Worker(const PoolOptions& options) : options_(options) {}

  bool busy() const { return busy_; }
  bool running() const { return child_.running(); }
  int pid() const { return child_.pid(); }
  int socket() const { return child_.socket(); }
  bool has_output() const { return !out_.empty(); }
  size_t index() const { return index_; }
  /// The remaining time of the request. The limit is CPU time, so that a busy machine accepts the same candidates as an
  /// idle one; the wall-clock limit only catches processes that do nothing.
  std::chrono::milliseconds time_left() const {
    auto of_cpu = options_.timeout - (child_.cpu_time() - cpu_started_);
    auto of_wall = kWallFactor * options_.timeout - (Clock::now() - started_);
    return std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(of_cpu, of_wall));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  Result<void> begin(size_t index, const CompileRequest& request) {
    if (running() && child_.died_while_idle()) stop();
    if (!running()) ROOFGEN_CHECK(start());
    busy_ = true;
    index_ = index;
    started_ = Clock::now();
    cpu_started_ = child_.cpu_time();
    out_ += encode_frame(encode_request(request));
    return {};
  }

  /// Transfers bytes. Returns the complete reply, or an Error when the process has ended.
  std::optional<Result<CompileReply>> serve(short events) {
    if (events & POLLOUT) out_.erase(0, child_.send_some(out_));
    if (!(events & (POLLIN | POLLHUP | POLLERR))) return std::nullopt;
    bool open = child_.receive_some(in_);
    bool bad = false;
    if (std::optional<Fields> fields = take_frame(in_, &bad)) {
      busy_ = false;
      if (auto reply = decode_reply(*fields)) return Result<CompileReply>(std::move(*reply));
      bad = true;
    }
    if (bad) {
      stop();
      return Error{Exit::kFailed, "the compiler process sent nonsense"};
    }
    if (!open) return died();
    return std::nullopt;
  }

  Error abandon(const std::string& why) {
    stop();
    return {Exit::kFailed, "waiting for the compiler process failed: " + why};
  }

  Error time_out() {
    bool of_cpu = child_.cpu_time() - cpu_started_ >= options_.timeout;
    std::chrono::duration<double> limit = options_.timeout * (of_cpu ? 1 : kWallFactor);
    stop();
    return {Exit::kFailed,
            fmt::format("compiling took longer than {} s {}", limit.count(), of_cpu ? "of CPU time" : "by the clock")};
  }

  void stop() {
    child_.stop();
    forget();
  }

 private:
  Result<void> start() {
    if (int failed = child_.start(options_.executable, "__compile-worker"); failed != 0)
      return Error{Exit::kUnavailable, fmt::format("cannot start a compiler process: {}", std::strerror(failed))};
    out_ = encode_frame({options_.library, std::to_string(options_.memory_limit_bytes)});
    return {};
  }

  Error died() {
    Child::End end = child_.wait();
    Error error{Exit::kFailed, "the compiler process " + ending_text(end.status)};
    uint64_t peak = static_cast<uint64_t>(end.usage.ru_maxrss) * 1024;
    if (options_.memory_limit_bytes != 0 && peak > options_.memory_limit_bytes / 2)
      error.message +=
          fmt::format("; it had used {} MiB of its limit of {} MiB", peak >> 20, options_.memory_limit_bytes >> 20);
    error.notes = std::move(end.tail);
    forget();
    return error;
  }

  void forget() {
    busy_ = false;
    in_.clear();
    out_.clear();
  }

  const PoolOptions& options_;
  Child child_;
  bool busy_ = false;
  size_t index_ = 0;
  Clock::time_point started_;
  std::chrono::nanoseconds cpu_started_{0};
  std::string in_, out_;
};

/// Serves the workers on a separate thread while `run` delivers results, so that a slow `done` never leaves a worker
/// idle.
class WorkerPool::Service {
 public:
  struct Completion {
    size_t index = 0;
    Result<CompileReply> reply;
    double seconds = 0;
  };

  Service(std::vector<std::unique_ptr<Worker>>& workers, const std::vector<CompileRequest>& requests, const Look& look)
      : workers_(workers), requests_(requests), look_(look), stop_event_(eventfd(0, EFD_CLOEXEC)) {
    for (size_t i = 0; i < requests.size(); ++i) waiting_.push_back(i);
    thread_ = std::thread([this] { loop(); });
  }

  ~Service() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(stop_event_, &one, sizeof one);
    thread_.join();
    close(stop_event_);
    // Abandoned requests need no results.
    for (auto& worker : workers_)
      if (worker->busy()) worker->stop();
  }

  Completion next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !finished_.empty(); });
    Completion completion = std::move(finished_.front());
    finished_.pop_front();
    return completion;
  }

 private:
  void finish(size_t index, Result<CompileReply> reply, double seconds) {
    std::lock_guard lock(mutex_);
    finished_.push_back({index, std::move(reply), seconds});
    ready_.notify_one();
  }

  void dispatch() {
    for (auto& worker : workers_) {
      for (auto next = waiting_.begin(); !worker->busy() && next != waiting_.end();) {
        const size_t index = *next;
        Elsewhere elsewhere = look_ ? look_(index) : Elsewhere{};
        if (elsewhere.wait && Clock::now() - waits_.try_emplace(index, Clock::now()).first->second < kMostWait) {
          ++next;
          continue;
        }
        next = waiting_.erase(next);
        if (elsewhere.reply) {
          finish(index, std::move(*elsewhere.reply), 0);
        } else if (Result<void> begun = worker->begin(index, requests_[index]); !begun) {
          finish(index, std::move(begun).error(), 0);
        }
      }
    }
  }

  /// Milliseconds to the first time-out, rounded up, or to the next look; -1 when there is nothing to wait for.
  int poll_timeout() const {
    const bool all_busy = std::ranges::all_of(workers_, [](const auto& worker) { return worker->busy(); });
    int timeout = waiting_.empty() || all_busy ? -1 : kLook_ms;
    for (const auto& worker : workers_) {
      if (!worker->busy()) continue;
      int ms = static_cast<int>(std::clamp<int64_t>(worker->time_left().count(), 0, 60'000));
      timeout = timeout < 0 ? ms : std::min(timeout, ms);
    }
    return timeout;
  }

  void loop() {
    for (;;) {
      dispatch();
      std::vector<pollfd> polled{{stop_event_, POLLIN, 0}};
      std::vector<Worker*> busy;
      for (auto& worker : workers_) {
        if (!worker->busy()) continue;
        short events = worker->has_output() ? POLLIN | POLLOUT : POLLIN;
        polled.push_back({worker->socket(), events, 0});
        busy.push_back(worker.get());
      }
      if (busy.empty() && waiting_.empty()) return;
      if (poll(polled.data(), polled.size(), poll_timeout()) < 0) {
        if (errno == EINTR) continue;
        std::string why = std::strerror(errno);
        for (Worker* worker : busy) finish(worker->index(), worker->abandon(why), worker->seconds());
        continue;
      }
      if (polled[0].revents) return;
      for (size_t i = 0; i < busy.size(); ++i) {
        Worker& worker = *busy[i];
        if (auto reply = worker.serve(polled[i + 1].revents)) {
          finish(worker.index(), std::move(*reply), worker.seconds());
        } else if (worker.time_left().count() <= 0) {
          finish(worker.index(), worker.time_out(), worker.seconds());
        }
      }
    }
  }

  std::vector<std::unique_ptr<Worker>>& workers_;
  const std::vector<CompileRequest>& requests_;
  const Look& look_;
  std::list<size_t> waiting_;                  ///< requests that have not begun
  std::map<size_t, Clock::time_point> waits_;  ///< since when, of those that another process compiles
  int stop_event_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Completion> finished_;
  std::thread thread_;  // last member: the thread uses all others
};

WorkerPool::WorkerPool(PoolOptions options) : options_(std::move(options)) {}
WorkerPool::~WorkerPool() = default;

/// Without worker processes: a compilation has no limit of time or memory, cannot be abandoned once it runs, and is not
/// left to another process.
void WorkerPool::run_here(const std::vector<CompileRequest>& requests, const Done& done) const {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<Service::Completion> finished;
  std::atomic<size_t> next = 0;
  const Result<Nvrtc> library = Nvrtc::open(options_.library);
  const auto work = [&] {
    // As a worker process does: NVRTC writes the working directory into line tables. That of this thread becomes its
    // own. Where the kernel forbids it, line tables name the process's, and all else is the same.
    if (unshare(CLONE_FS) == 0) [[maybe_unused]]
      const int changed = chdir("/");
    for (size_t index = next++; index < requests.size(); index = next++) {
      const Clock::time_point started = Clock::now();
      Result<CompileReply> reply = Error{Exit::kFailed, "out of memory"};
      try {
        reply = library ? Result<CompileReply>(library->compile(requests[index])) : library.error();
      } catch (const std::bad_alloc&) {
      }
      const std::lock_guard lock(mutex);
      finished.push_back({index, std::move(reply), std::chrono::duration<double>(Clock::now() - started).count()});
      ready.notify_one();
    }
  };
  std::vector<std::jthread> threads;  // joined at each end of this function, after the next line's object
  const struct EndsThem {
    std::atomic<size_t>& next;
    size_t end;
    ~EndsThem() { next = end; }
  } ends_them{next, requests.size()};
  while (threads.size() < std::min<size_t>(requests.size(), static_cast<size_t>(std::max(1, options_.jobs))))
    threads.emplace_back(work);
  for (size_t left = requests.size(); left > 0; --left) {
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return !finished.empty(); });
    Service::Completion completion = std::move(finished.front());
    finished.pop_front();
    lock.unlock();
    if (!done(completion.index, std::move(completion.reply), completion.seconds)) break;
  }
}

void WorkerPool::run(const std::vector<CompileRequest>& requests, const Done& done, const Look& look) {
  if (requests.empty()) return;
  if (options_.executable.empty()) return run_here(requests, done);
  size_t wanted = std::min<size_t>(requests.size(), static_cast<size_t>(std::max(1, options_.jobs)));
  while (workers_.size() < wanted) workers_.push_back(std::make_unique<Worker>(options_));
  Service service(workers_, requests, look);
  for (size_t left = requests.size(); left > 0; --left) {
    Service::Completion completion = service.next();
    if (!done(completion.index, std::move(completion.reply), completion.seconds)) return;
  }
}

std::vector<int> WorkerPool::worker_pids() const {
  std::vector<int> pids;
  for (const auto& worker : workers_)
    if (worker->running()) pids.push_back(worker->pid());
  return pids;
}

}  // namespace roofgen
