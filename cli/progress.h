// What a long command is doing, on standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "cli/cli.h"

namespace roofgen::cli {

/// One phase of a command, and how far it is.
struct Phase {
  std::string name;
  uint64_t done = 0, total = 0;
  double seconds = 0;       ///< since the phase began
  uint64_t done_first = 0;  ///< when it began: found in a store, not done here
};

/// "verifying: 12 of 80, 9 s left". The time left follows from the rate of this phase alone.
std::string progress_text(const Phase& phase);
/// The same with a bar in front of it where `columns` leave room for one.
std::string progress_bar(const Phase& phase, size_t columns);

/// Shows the phase that is running: on a terminal in one line that changes each second, elsewhere in a line every 10 s.
class Progress {
 public:
  explicit Progress(const Session& session);
  ~Progress();  ///< clears the line
  /// From any thread.
  void show(const char* phase, uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();  ///< with mutex_ held

  const Session& session_;
  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false, drawn_ = false;
  Phase phase_;
  Clock::time_point began_, last_;
  std::thread clock_;
};

}  // namespace roofgen::cli
