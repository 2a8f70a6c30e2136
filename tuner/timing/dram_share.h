// One SM's share of DRAM in the event model. Reads go first: written sectors wait in L2, as many as fit.
#pragma once

#include <algorithm>

#include "tuner/timing/machine.h"

namespace roofgen::timing {

class DramShare {
 public:
  DramShare(const Machine& m, int active_sms)
      : cycles_of_sector_(32 * active_sms / m.dram_bytes_per_cycle),
        most_waiting_(kL2Share * m.l2_bytes / m.dram_bytes_per_cycle) {}

  /// The begin of a read. `busy`: cycles of the share so far.
  double read(double at, double sectors, double& busy) {
    write_until(at);
    const double begin = std::max(free_, at);
    busy += sectors * cycles_of_sector_;
    free_ = begin + sectors * cycles_of_sector_;
    return begin;
  }
  void write(double at, double sectors, double& busy) {
    write_until(at);
    busy += sectors * cycles_of_sector_;
    waiting_ += sectors * cycles_of_sector_;
    const double over = std::max(0.0, waiting_ - most_waiting_);
    free_ += over;
    waiting_ -= over;
  }
  /// When all is written.
  double end() const { return free_ + waiting_; }

 private:
  void write_until(double at) {
    const double cycles = std::clamp(at - free_, 0.0, waiting_);
    free_ += cycles;
    waiting_ -= cycles;
  }
  double cycles_of_sector_, most_waiting_;
  double free_ = 0, waiting_ = 0;  ///< waiting: cycles of the writes
};

}  // namespace roofgen::timing
