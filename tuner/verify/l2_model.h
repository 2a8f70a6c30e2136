// The L2 model: which requests of a wave reach DRAM. An LRU cache of 0.8 of the L2's capacity replays the lines of one
// wave of CTAs that run side by side. Origin: model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/executor.h"

namespace roofgen {

/// Share of the L2 that holds a kernel's data in practice (assumption, of trace replays in simulators).
inline constexpr double kL2Usable = 0.8;

/// Accesses of a wave that are replayed. Of longer traces a sample of the lines is replayed, in a cache scaled alike.
inline constexpr uint64_t kReplayLimit = 4'000'000;

/// Replays `wave_ctas` CTAs side by side (one line each in turn) and returns DRAM-side bytes over
/// distinct bytes, at least 1. `traces` are sampled CTAs of one (batch, head) group; CTA i of the
/// wave repeats trace i mod n. Lines that two or more sampled CTAs touch are shared by all CTAs of
/// a group of `group_ctas`; the others are private to their CTA.
double wave_miss_ratio(const std::vector<std::vector<LineAccess>>& traces, uint64_t wave_ctas, uint64_t group_ctas,
                       double l2_bytes);

// ---- tiled kernels --------------------------------------------------------------------------------
// When CTAs share panels of the operands, the launch order of all CTAs determines which panels are still in L2 for the
// next wave. The traces of a few CTAs do not contain that order.

/// Data shared by the CTAs of equal positions along `axes`: the rows of A of a tile ("row"), the columns of B ("col"),
/// with split K those of the slice ("row", "split"), or an output tile ("row", "col"). Position "group" is the group
/// of a row tile: each has its own B ("col", "group").
struct Panel {
  std::string name;
  std::vector<std::string> axes;
  double bytes = 0;      ///< of a whole tile; partial tiles at the end of an axis have fewer
  bool streamed = true;  ///< read in pieces along K, in step with the other CTAs of the wave; else at once after K
};

struct TileTraffic {
  double dram_bytes = 0;        ///< of all panels, repeated fetches after an eviction included
  double compulsory_bytes = 0;  ///< each panel once
  /// DRAM bytes over distinct bytes of a launch. Data outside the panels are fetched once.
  double miss_ratio(double unique_bytes) const {
    return unique_bytes > 0 ? 1 + (dram_bytes - compulsory_bytes) / unique_bytes : 1;
  }
};

/// Walks the CTAs in launch order, `wave_ctas` at a time, through an LRU of kL2Usable of the L2. `extents` gives the
/// sizes of axes in elements, by name (default: the reach of the grid); CTAs that begin beyond one do nothing.
/// `groups`: Extent::groups; `together`: as of group_tiles.
TileTraffic tile_traffic(const std::vector<GridAxis>& axes, const std::map<std::string, int64_t>& extents,
                         const std::vector<Panel>& panels, uint64_t wave_ctas, double l2_bytes,
                         const std::vector<int64_t>& groups = {}, int64_t together = 1);

}  // namespace roofgen
