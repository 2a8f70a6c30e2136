#define ROOFGEN_LANES_NAMESPACE lanes_rare
#define ROOFGEN_OPCODES "runtime/sim/opcodes_rare.def"
#include "runtime/sim/lanes.inc"

namespace roofgen::sim {
extern const LaneEntry* const kRareLanes;
extern const uint32_t kRareLaneCount;
const LaneEntry* const kRareLanes = lanes_rare::kEntries;
const uint32_t kRareLaneCount = sizeof lanes_rare::kEntries / sizeof(LaneEntry);
}  // namespace roofgen::sim
