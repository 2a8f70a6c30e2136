#include "tuner/verify/tiles.h"

#include <algorithm>
#include <limits>

namespace roofgen {
namespace {

/// A tile along one direction: its elements, the first element of its cluster, and its contribution to the linear CTA
/// index.
struct Tile {
  int64_t begin = 0, end = 1, cluster_begin = 0;
  uint64_t id = 0;
};

/// CTAs of a cluster along each axis.
std::vector<int64_t> cluster_extents(const Launch& launch) {
  const int64_t cluster[3] = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  int64_t faster[3] = {1, 1, 1};
  std::vector<int64_t> out;
  for (const GridAxis& axis : launch.axes) {
    out.push_back(std::clamp<int64_t>(cluster[axis.dim] / faster[axis.dim], 1, axis.extent));
    faster[axis.dim] *= axis.extent;
  }
  return out;
}

/// The difference in linear CTA index of one step along each axis.
std::vector<uint64_t> strides(const Launch& launch) {
  std::vector<uint64_t> out(launch.axes.size());
  uint64_t stride = 1;
  for (int dim = 0; dim < 3; ++dim)
    for (size_t i = 0; i < launch.axes.size(); ++i)
      if (launch.axes[i].dim == dim) {
        out[i] = stride;
        stride *= static_cast<uint64_t>(launch.axes[i].extent);
      }
  return out;
}

/// Every tile along the axes of one name that satisfies `keep`.
template <class Keep>
std::vector<Tile> tiles_along(const Launch& launch, const std::vector<uint64_t>& stride, std::string_view name,
                              const std::vector<int64_t>& groups, Keep keep) {
  const int64_t step = finest_step(launch, name);
  const std::vector<int64_t> together = cluster_extents(launch);
  bool by_group = false;
  std::vector<Tile> out{{}};
  for (size_t a = 0; a < launch.axes.size(); ++a) {
    const GridAxis& axis = launch.axes[a];
    if (axis.name != name) continue;
    by_group |= axis.by_group && !groups.empty();
    std::vector<Tile> next;
    next.reserve(out.size() * static_cast<size_t>(axis.extent));
    for (const Tile& t : out)
      for (int64_t i = 0; i < axis.extent; ++i) {
        const int64_t covers = axis.reverse ? axis.extent - 1 - i : i;
        next.push_back({t.begin + covers * axis.step, 0, t.cluster_begin + (covers - covers % together[a]) * axis.step,
                        t.id + static_cast<uint64_t>(i) * stride[a]});
      }
    out = std::move(next);
  }
  const std::vector<GroupTile> of_groups =
      by_group ? group_tiles(groups, step, rows_together(launch)) : std::vector<GroupTile>();
  if (by_group)
    std::erase_if(out, [&](const Tile& t) { return t.begin / step >= static_cast<int64_t>(of_groups.size()); });
  for (Tile& t : out) {
    const auto index = static_cast<size_t>(t.begin / step);
    if (by_group) t.cluster_begin = of_groups[index - index % rows_together(launch)].begin;
    if (by_group) t.begin = of_groups[index].begin;
    t.end = by_group ? of_groups[index].end : t.begin + step;
  }
  std::erase_if(out, [&](const Tile& t) { return !keep(t); });
  return out;
}

/// The clusters that these CTAs are in, whole: CTAs of a cluster run together.
std::vector<uint64_t> whole_clusters(const Launch& launch, const std::vector<uint64_t>& ctas) {
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  std::vector<uint64_t> out;
  for (const uint64_t cta : ctas) {
    const uint64_t x = cta % grid.x, y = cta / grid.x % grid.y, z = cta / grid.x / grid.y;
    for (uint64_t k = z - z % cluster.z; k < z - z % cluster.z + cluster.z; ++k)
      for (uint64_t j = y - y % cluster.y; j < y - y % cluster.y + cluster.y; ++j)
        for (uint64_t i = x - x % cluster.x; i < x - x % cluster.x + cluster.x; ++i)
          out.push_back(i + grid.x * (j + grid.y * k));
  }
  return out;
}

/// The launch with a CTA for each position of the axes.
Launch with_all_positions(Launch launch) {
  launch.grid.x = 1;
  for (const GridAxis& axis : launch.axes)
    if (axis.dim == 0) launch.grid.x *= static_cast<uint32_t>(axis.extent);
  return launch;
}

/// Positions along x of the tiles of a launch that numbers them, by their number.
std::vector<uint64_t> tile_positions(const Launch& launch, const Extent& extent) {
  Launch all = with_all_positions(launch);
  all.grid.y = all.grid.z = 1;
  std::erase_if(all.axes, [](const GridAxis& axis) { return axis.dim > 0; });
  std::vector<Region> regions;
  for (int64_t b = 0; b < std::max<int64_t>(1, extent.batch); ++b)
    for (int64_t h = 0; h < std::max<int64_t>(1, extent.heads); ++h)
      regions.push_back({b, h, 0, extent.rows, 0, extent.cols > 0 ? extent.cols : -1});
  return select_ctas(all, regions, extent);
}

}  // namespace

bool numbers_tiles(const Launch& launch) { return launch.grid.x != with_all_positions(launch).grid.x; }
uint64_t tile_count(const Launch& launch, const Extent& extent) { return tile_positions(launch, extent).size(); }

int64_t finest_step(const Launch& launch, std::string_view name) {
  int64_t out = std::numeric_limits<int64_t>::max();
  for (const GridAxis& axis : launch.axes)
    if (axis.name == name) out = std::min(out, axis.step);
  return out == std::numeric_limits<int64_t>::max() ? 1 : out;
}

std::vector<GroupTile> group_tiles(const std::vector<int64_t>& groups, int64_t step, int64_t together) {
  std::vector<GroupTile> out;
  for (size_t g = 0; g + 1 < groups.size(); ++g)
    for (int64_t first = groups[g]; first < groups[g + 1]; first += together * step)
      for (int64_t row = first; row < first + together * step; row += step)
        out.push_back({static_cast<int64_t>(g), row, std::min(row + step, groups[g + 1])});
  return out;
}

int64_t rows_together(const Launch& launch) {
  const std::vector<int64_t> together = cluster_extents(launch);
  int64_t out = 1;
  for (size_t a = 0; a < launch.axes.size(); ++a)
    if (launch.axes[a].name == "row") out *= together[a];
  return out;
}

std::vector<uint64_t> select_ctas(const Launch& launch, const std::vector<Region>& regions, const Extent& extent) {
  std::vector<uint64_t> out;
  if (numbers_tiles(launch)) {
    const std::vector<uint64_t> tiles = tile_positions(launch, extent);
    const Launch all = with_all_positions(launch);
    for (const uint64_t position : select_ctas(all, regions, extent)) {
      const auto tile = std::lower_bound(tiles.begin(), tiles.end(), position % all.grid.x);
      out.push_back(static_cast<uint64_t>(tile - tiles.begin()) % launch.grid.x +
                    position / all.grid.x * launch.grid.x);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  const std::vector<uint64_t> stride = strides(launch);
  for (const Region& region : regions) {
    std::vector<uint64_t> ids{0};
    const auto combine = [&](const std::vector<Tile>& tiles) {
      std::vector<uint64_t> next;
      next.reserve(ids.size() * tiles.size());
      for (const Tile& t : tiles)
        for (uint64_t id : ids) next.push_back(id + t.id);
      ids = std::move(next);
    };
    const int64_t col_end = region.col_end < 0 ? std::numeric_limits<int64_t>::max() : region.col_end;
    // Without an axis of that name, each CTA covers all.
    const auto has = [&](std::string_view name) {
      return std::any_of(launch.axes.begin(), launch.axes.end(), [&](const GridAxis& a) { return a.name == name; });
    };
    if (has("row"))
      combine(tiles_along(launch, stride, "row", extent.groups,
                          [&](const Tile& t) { return t.begin < region.row_end && t.end > region.row_begin; }));
    if (has("col"))
      combine(tiles_along(launch, stride, "col", {},
                          [&](const Tile& t) { return t.begin < col_end && t.end > region.col_begin; }));
    for (size_t a = 0; a < launch.axes.size(); ++a) {
      const GridAxis& axis = launch.axes[a];
      if (axis.name == "row" || axis.name == "col") continue;
      int64_t begin = 0, end = axis.extent;
      if (axis.name == "head" || axis.name == "batch") {
        // Several axes of heads are the digits of the head.
        begin = (axis.name == "head" ? region.head : region.batch) / axis.step % axis.extent;
        end = begin + 1;
      }
      std::vector<Tile> tiles;
      for (int64_t i = begin; i < end; ++i)
        tiles.push_back({0, 1, 0, static_cast<uint64_t>(axis.reverse ? axis.extent - 1 - i : i) * stride[a]});
      combine(tiles);
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }
  if (launch.cluster.count() > 1) out = whole_clusters(launch, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<Region> tiles_of(const Launch& launch, const Extent& extent, uint64_t cta) {
  const std::vector<uint64_t> positions = tile_positions(launch, extent);
  const int64_t rows = finest_step(launch, "row"), cols = finest_step(launch, "col");
  std::vector<Region> out;
  for (uint64_t tile = cta; tile < positions.size(); tile += launch.grid.x) {
    uint64_t rest = positions[tile];
    Region r{0, 0, 0, extent.rows, 0, extent.cols > 0 ? 0 : -1};
    bool by_group = false;
    for (const GridAxis& axis : launch.axes) {
      if (axis.dim != 0) continue;
      const auto digit = static_cast<int64_t>(rest % static_cast<uint64_t>(axis.extent));
      rest /= static_cast<uint64_t>(axis.extent);
      const int64_t covers = (axis.reverse ? axis.extent - 1 - digit : digit) * axis.step;
      if (axis.name == "batch") r.batch += covers;
      if (axis.name == "head") r.head += covers;
      if (axis.name == "col") r.col_begin += covers;
      if (axis.name == "row") r.row_begin += covers, by_group |= axis.by_group && !extent.groups.empty();
    }
    r.row_end = r.row_begin + rows;
    if (by_group) {
      const GroupTile t =
          group_tiles(extent.groups, rows, rows_together(launch))[static_cast<size_t>(r.row_begin / rows)];
      r.row_begin = t.begin, r.row_end = t.end;
    }
    r.row_end = std::min(r.row_end, extent.rows_of(r.batch));
    if (extent.cols > 0) r.col_end = std::min(r.col_begin + cols, extent.cols);
    if (r.row_begin < r.row_end && (extent.cols == 0 || r.col_begin < r.col_end)) out.push_back(r);
  }
  return out;
}

double busy_ctas(const Launch& launch, const Extent& extent) {
  const std::vector<uint64_t> stride = strides(launch);
  double out = 1;
  for (const GridAxis& axis : launch.axes)
    if (axis.name != "row" && axis.name != "col") out *= static_cast<double>(axis.extent);
  const auto busy = [&](std::string_view name, const std::vector<int64_t>& groups, int64_t end) {
    int64_t step = finest_step(launch, name), tile = step;
    for (const GridAxis& axis : launch.axes)
      if (axis.name == name && axis.step == step && axis.tile > 0) tile = axis.tile;
    int64_t tiles = 0;
    for (const Tile& t :
         tiles_along(launch, stride, name, groups, [&](const Tile& x) { return x.cluster_begin < end; }))
      tiles += (std::min(step, end - t.cluster_begin) + tile - 1) / tile;
    return static_cast<double>(tiles) / static_cast<double>(step / tile);
  };
  return out * busy("row", extent.groups, extent.rows) *
         busy("col", {}, extent.cols == 0 ? std::numeric_limits<int64_t>::max() : extent.cols);
}

}  // namespace roofgen
