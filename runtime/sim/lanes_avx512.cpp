#define ROOFGEN_LANES_NAMESPACE lanes_avx512
#include "runtime/sim/lanes.inc"

namespace roofgen::sim {
extern const LaneTable kLanes_avx512;
const LaneTable kLanes_avx512 = {"avx512",
                                 lanes_avx512::kEntries,
                                 sizeof lanes_avx512::kEntries / sizeof(LaneEntry),
                                 lanes_avx512::transpose8x8,
                                 lanes_avx512::kRows,
                                 lanes_avx512::kWgmma,
                                 lanes_avx512::kTensor};
}  // namespace roofgen::sim
