// A progress bar with the time left, on a terminal only.
#pragma once

#include <chrono>
#include <cstdint>

namespace roofgen::cli {

class Progress {
 public:
  Progress();
  ~Progress();  ///< clears the line
  void show(const char* phase, uint64_t done, uint64_t total);

 private:
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point started_, last_;
};

}  // namespace roofgen::cli
