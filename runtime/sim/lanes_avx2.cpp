#define ROOFGEN_LANES_NAMESPACE lanes_avx2
#include "runtime/sim/lanes.inc"

namespace roofgen::sim {
extern const LaneTable kLanes_avx2;
const LaneTable kLanes_avx2 = {"avx2",
                               lanes_avx2::kEntries,
                               sizeof lanes_avx2::kEntries / sizeof(LaneEntry),
                               lanes_avx2::transpose8x8,
                               lanes_avx2::kRows,
                               lanes_avx2::kWgmma,
                               lanes_avx2::kTensor};
}  // namespace roofgen::sim
