// The length of the gate that blocks the stream while the host queues a timed shot.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roofgen::cuda {

/// Multiplies a gate's length. Each late attempt at a shot doubles the gate for the next attempt at that shot. Two late
/// attempts in a row also double it for the following shots; a hundred in-time shots halve it again. A single pause of
/// the host must not lengthen all later gates, during which the GPU idles and cools.
class GateFactor {
 public:
  uint64_t of_attempt(int attempt) const { return kept_ << std::min(attempt, 20); }
  /// Ends a shot with `late` late attempts.
  void ended(int late) {
    if (late == 0) {
      late_in_a_row_ = 0;
      if (kept_ > 1 && ++in_time_ >= kForgets) kept_ /= 2, in_time_ = 0;
      return;
    }
    in_time_ = 0;
    late_in_a_row_ += late;
    if (late_in_a_row_ < 2) return;
    kept_ = std::min(2 * kept_, kMost);
    late_in_a_row_ = 0;
  }

 private:
  static constexpr int kForgets = 100;
  static constexpr uint64_t kMost = 64;
  uint64_t kept_ = 1;
  int late_in_a_row_ = 0, in_time_ = 0;
};

}  // namespace roofgen::cuda
