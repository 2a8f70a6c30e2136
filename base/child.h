// A worker process. It is started by exec, because threads and a loaded driver do not survive a fork. One end of a
// socket is its standard input; its standard error is kept for the message about a crash.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

inline constexpr int kWorkerSocket = 0;  ///< a worker's end of the socket is its standard input
inline constexpr int kWorkerMemory = 3;  ///< the file that start() shares with a worker

class Child {
 public:
  Child() = default;
  ~Child() { stop(); }
  Child(const Child&) = delete;

  /// Starts `<executable> <argument>`, which inherits the file `shared`, if one is given. Returns 0 or errno.
  int start(const std::string& executable, const std::string& argument, int shared = -1);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }
  std::chrono::nanoseconds cpu_time() const;
  bool died_while_idle() const;

  /// Sends as many bytes as the socket accepts and returns their number. After a failure, returns the full size: the
  /// next read finds the end of file.
  size_t send_some(std::string_view bytes) const;
  /// Appends the received bytes. False at end of file.
  bool receive_some(std::string& in) const;

  struct End {
    int status = 0;  ///< as from wait()
    rusage usage = {};
    std::vector<std::string> tail;  ///< the last lines of its standard error; may be empty
  };
  /// Waits for a process that has closed its end of the socket. A positive `patience` limits the wait: a process stuck
  /// in its exit is killed after that time, and abandoned after the same time again.
  End wait(std::chrono::milliseconds patience = {});

  /// Kills the process. A process stuck in a kernel driver may survive; after `patience` (if positive) it is abandoned
  /// and the result is false.
  bool stop(std::chrono::milliseconds patience = {});

 private:
  /// True when the process has been reaped; `patience` 0 waits without a limit.
  bool reap(std::chrono::milliseconds patience, int* status, rusage* usage);
  void close_all();

  pid_t pid_ = 0;
  int socket_ = -1, errors_ = -1;
};

/// "crashed: Segmentation fault", "ended unexpectedly, with status 3".
std::string ending_text(int status);

/// Ends the calling worker process when the other end of the socket closes, even during work.
void exit_with_parent();

}  // namespace roofgen
