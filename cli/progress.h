// What a long command is doing, on standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tuner/session/session.h"

namespace roofgen::cli {

/// One phase of a command, and how far it is.
struct Phase {
  std::string name;
  uint64_t done = 0, total = 0;  ///< total 0: nobody counts
  double seconds = 0;            ///< since the phase began
  uint64_t done_first = 0;       ///< when it began: found in a store, not done here
  double later_seconds = 0;      ///< of the phases after it
};

/// "verifying: 12 of 80, 9 s left". The time left follows from the rate of this phase, and from what the later ones
/// took in an earlier run.
std::string progress_text(const Phase& phase);
/// The same with a bar in front of it where `columns` leave room for one.
std::string progress_bar(const Phase& phase, size_t columns);

/// The phases of a run in their order, with the seconds of each.
using PhaseTimes = std::vector<std::pair<std::string, double>>;
/// The seconds after `now`, the last phase of `run`, by a run of the same kind. Where that one was faster or slower in
/// the phases that are over, so it is taken to be in the others.
double seconds_after(const PhaseTimes& earlier, const PhaseTimes& run);

/// Shows the phase that is running: on a terminal in one line that changes each second, elsewhere in a line after 2 s
/// and every 10 s from then on. The times of phases are kept for the next run of the same kind, as "tune attention".
class Progress {
 public:
  Progress(const Session& session, std::string kind);
  ~Progress();  ///< clears the line
  /// From any thread.
  void show(const char* phase, uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();  ///< with mutex_ held
  void begin(const std::string& phase, uint64_t done);
  void keep() const;

  const Session& session_;
  const std::string kind_;
  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false, drawn_ = false;
  Phase phase_{.name = "preparing"};
  PhaseTimes earlier_, run_;
  Clock::time_point began_, last_;
  std::thread clock_;
};

}  // namespace roofgen::cli
