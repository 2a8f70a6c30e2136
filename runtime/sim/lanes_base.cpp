#define ROOFGEN_LANES_NAMESPACE lanes_base
#include "runtime/sim/lanes.inc"

namespace roofgen::sim {
extern const LaneTable kLanes_base;
const LaneTable kLanes_base = {"base",
                               lanes_base::kEntries,
                               sizeof lanes_base::kEntries / sizeof(LaneEntry),
                               lanes_base::transpose8x8,
                               lanes_base::kRows,
                               lanes_base::kWgmma,
                               lanes_base::kTensor};
}  // namespace roofgen::sim
