#include "runtime/compile/pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

extern char** environ;

namespace roofgen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWallFactor = 10;

/// What a dead worker left on its standard error: the last lines, for the notes of an Error.
std::vector<std::string> tail_of(int fd) {
  constexpr size_t kTail = 2000;
  off_t size = lseek(fd, 0, SEEK_END);
  if (size <= 0) return {};
  std::string text(std::min<size_t>(static_cast<size_t>(size), kTail), '\0');
  ssize_t got = pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

/// One worker's socket and standard error, and the spawn attributes that connect them.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnPlan(int socket, int errors) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, kWorkerSocket);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // A process group of its own: Ctrl-C is for the parent, which then decides what to do with its workers.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
};

}  // namespace

/// One process and what it is doing.
class WorkerPool::Worker {
 public:
  explicit Worker(const PoolOptions& options) : options_(options) {}
  ~Worker() { stop(); }

  bool busy() const { return busy_; }
  bool running() const { return pid_ > 0; }
  int pid() const { return pid_; }
  int socket() const { return socket_; }
  bool has_output() const { return !out_.empty(); }
  size_t index() const { return index_; }
  /// What is left of the request's time. CPU time, so that a busy machine rejects no candidate that an
  /// idle one accepts; wall clock only as a far bound, for a process that does nothing at all.
  std::chrono::milliseconds time_left() const {
    auto of_cpu = options_.timeout - (cpu_time() - cpu_started_);
    auto of_wall = kWallFactor * options_.timeout - (Clock::now() - started_);
    return std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(of_cpu, of_wall));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  Result<void> begin(size_t index, const CompileRequest& request) {
    if (running() && died_while_idle()) stop();
    if (!running()) ROOFGEN_CHECK(start());
    busy_ = true;
    index_ = index;
    started_ = Clock::now();
    cpu_started_ = cpu_time();
    out_ += encode_frame(encode_request(request));
    return {};
  }

  /// Moves bytes; the reply when it is complete, an Error when the process is gone.
  std::optional<Result<CompileReply>> serve(short events) {
    if (events & POLLOUT) send_some();
    if (!(events & (POLLIN | POLLHUP | POLLERR))) return std::nullopt;
    bool open = receive_some();
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
    bool of_cpu = cpu_time() - cpu_started_ >= options_.timeout;
    std::chrono::duration<double> limit = options_.timeout * (of_cpu ? 1 : kWallFactor);
    stop();
    return {Exit::kFailed, fmt::format("compiling took longer than {} s {}", limit.count(),
                                       of_cpu ? "of CPU time" : "by the clock")};
  }

  void stop() {
    if (running()) {
      kill(pid_, SIGKILL);
      rusage usage;
      reap(&usage);
    }
    close_all();
  }

 private:
  Result<void> start() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return cannot_start(errno);
    socket_ = pair[0];
    errors_ = memfd_create("roofgen-compile-worker", MFD_CLOEXEC);
    SpawnPlan plan(pair[1], errors_);
    std::string program = "roofgen", argument = "__compile-worker";
    char* argv[] = {program.data(), argument.data(), nullptr};
    int failed =
        posix_spawn(&pid_, options_.executable.c_str(), &plan.actions, &plan.attributes, argv, environ);
    close(pair[1]);
    if (failed != 0) {
      pid_ = 0;
      close_all();
      return cannot_start(failed);
    }
    out_ = encode_frame({options_.library, std::to_string(options_.memory_limit_bytes)});
    return {};
  }

  std::chrono::nanoseconds cpu_time() const {
    clockid_t clock;
    timespec used = {};
    if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }

  Error cannot_start(int code) const {
    return {Exit::kUnavailable, fmt::format("cannot start a compiler process: {}", std::strerror(code))};
  }

  bool died_while_idle() const {
    char byte;
    return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  void send_some() {
    ssize_t sent = send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // A failure shows as end of file on the next read.
    if (sent > 0) out_.erase(0, static_cast<size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) out_.clear();
  }

  /// False at end of file.
  bool receive_some() {
    char buffer[65536];
    for (;;) {
      ssize_t got = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) {
        in_.append(buffer, static_cast<size_t>(got));
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      return got < 0 && errno == EAGAIN;
    }
  }

  Error died() {
    rusage usage = {};
    int status = reap(&usage);
    Error error{Exit::kFailed, "the compiler process "};
    error.message += WIFSIGNALED(status)
                         ? fmt::format("crashed: {}", strsignal(WTERMSIG(status)))
                         : fmt::format("ended unexpectedly, with status {}", WEXITSTATUS(status));
    uint64_t peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    if (options_.memory_limit_bytes != 0 && peak > options_.memory_limit_bytes / 2)
      error.message += fmt::format("; it had used {} MiB of its limit of {} MiB", peak >> 20,
                                   options_.memory_limit_bytes >> 20);
    error.notes = tail_of(errors_);
    close_all();
    return error;
  }

  int reap(rusage* usage) {
    int status = 0;
    while (wait4(pid_, &status, 0, usage) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  void close_all() {
    if (socket_ >= 0) close(socket_);
    if (errors_ >= 0) close(errors_);
    socket_ = errors_ = -1;
    busy_ = false;
    in_.clear();
    out_.clear();
  }

  const PoolOptions& options_;
  pid_t pid_ = 0;
  int socket_ = -1, errors_ = -1;
  bool busy_ = false;
  size_t index_ = 0;
  Clock::time_point started_;
  std::chrono::nanoseconds cpu_started_{0};
  std::string in_, out_;
};

/// Serves the workers on a thread of its own while `run` hands out what is finished, so that a slow
/// `done` never leaves a worker idle.
class WorkerPool::Service {
 public:
  struct Completion {
    size_t index = 0;
    Result<CompileReply> reply;
    double seconds = 0;
  };

  Service(std::vector<std::unique_ptr<Worker>>& workers, const std::vector<CompileRequest>& requests)
      : workers_(workers),
        requests_(requests),
        stop_event_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { loop(); }) {}

  ~Service() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(stop_event_, &one, sizeof one);
    thread_.join();
    close(stop_event_);
    // Abandoned: nobody wants what they are still at.
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
      while (!worker->busy() && next_ < requests_.size()) {
        size_t index = next_++;
        if (Result<void> begun = worker->begin(index, requests_[index]); !begun)
          finish(index, std::move(begun).error(), 0);
      }
    }
  }

  /// Milliseconds to the first time-out, rounded up; -1 when no worker is busy.
  int poll_timeout() const {
    int timeout = -1;
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
      if (busy.empty()) return;
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
  size_t next_ = 0;
  int stop_event_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Completion> finished_;
  std::thread thread_;  // last: it uses all of the above
};

WorkerPool::WorkerPool(PoolOptions options) : options_(std::move(options)) {}
WorkerPool::~WorkerPool() = default;

void WorkerPool::run(const std::vector<CompileRequest>& requests, const Done& done) {
  if (requests.empty()) return;
  size_t wanted = std::min<size_t>(requests.size(), static_cast<size_t>(std::max(1, options_.jobs)));
  while (workers_.size() < wanted) workers_.push_back(std::make_unique<Worker>(options_));
  Service service(workers_, requests);
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
