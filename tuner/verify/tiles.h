// The output elements that each CTA of a launch covers, from the grid axes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "generator/ops/op.h"
#include "roofgen/pipeline.h"

namespace roofgen {

/// Elements that one CTA covers along "row" or "col": the smallest step of the axes of that name. 1 when there is none.
int64_t finest_step(const Launch& launch, std::string_view axis);

/// The tiles of rows of a launch whose axes have GridAxis::by_group, in their order. A group has a multiple of
/// `together` tiles; the last ones may be after its rows (begin >= end).
struct GroupTile {
  int64_t group, begin, end;
};
std::vector<GroupTile> group_tiles(const std::vector<int64_t>& groups, int64_t step, int64_t together);
/// CTAs of a cluster along its row axes.
int64_t rows_together(const Launch& launch);

/// Linear indices of the CTAs that cover a part of any region, ascending. Every position along other axes (splits of
/// the sum) is included. `extent`: of the problem; only its groups count unless the launch numbers its tiles.
std::vector<uint64_t> select_ctas(const Launch& launch, const std::vector<Region>& regions, const Extent& extent = {});

/// Whether the CTAs along x are not one for each position of its axes. The tiles inside the output are numbered in
/// the order of the axes, and CTA i has the tiles i, i + grid.x, ...
bool numbers_tiles(const Launch& launch);
/// Of such a launch: tiles of the CTAs along x.
uint64_t tile_count(const Launch& launch, const Extent& extent);

/// The tiles that a CTA of such a launch computes one after another, each with the rows and columns that it covers.
std::vector<Region> tiles_of(const Launch& launch, const Extent& extent, uint64_t cta);

/// CTAs whose tile begins inside the output; a rasterised grid may have others, which exit at once. Of a CTA with
/// several tiles, the share that begins inside counts. The CTAs of a cluster do as much as its first one.
double busy_ctas(const Launch& launch, const Extent& extent);

}  // namespace roofgen
