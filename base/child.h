// A worker process: a program started anew (never forked: threads and a loaded driver do not survive
// that), one end of a socket as its standard input, what it writes on standard error kept for the case
// that it dies.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

inline constexpr int kWorkerSocket = 0;  ///< a worker's end of the socket is its standard input

class Child {
 public:
  Child() = default;
  ~Child() { stop(); }
  Child(const Child&) = delete;

  /// `<executable> <argument>`. 0, or what errno says.
  int start(const std::string& executable, const std::string& argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }
  std::chrono::nanoseconds cpu_time() const;
  bool died_while_idle() const;

  /// Sends what the socket takes now; how much of it needs no sending any more. After a failure that is all
  /// of it: the next read finds the end of file.
  size_t send_some(std::string_view bytes) const;
  /// Appends what has arrived. False at end of file.
  bool receive_some(std::string& in) const;

  struct End {
    int status = 0;  ///< as from wait()
    rusage usage = {};
    std::vector<std::string> tail;  ///< the last of its standard error; empty when it wrote none
  };
  /// Waits for a process that has closed its end of the socket. With a positive `patience`, one that is
  /// stuck on its way out is killed after that, and left alone after as long again.
  End wait(std::chrono::milliseconds patience = {});

  /// Kills it. A process stuck in a kernel driver may outlive even that: after `patience` (if positive) it
  /// is left alone, and false returned.
  bool stop(std::chrono::milliseconds patience = {});

 private:
  /// True when it is reaped; `patience` 0: waits as long as that takes.
  bool reap(std::chrono::milliseconds patience, int* status, rusage* usage);
  void close_all();

  pid_t pid_ = 0;
  int socket_ = -1, errors_ = -1;
};

/// "crashed: Segmentation fault", "ended unexpectedly, with status 3".
std::string ending_text(int status);

/// In a worker: ends the process when the other end of the socket closes, also in the middle of work.
void exit_with_parent();

}  // namespace roofgen
