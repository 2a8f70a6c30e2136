#include "tuner/verify/l2_model.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "tuner/verify/tiles.h"

namespace roofgen {
namespace {

/// Of a line, which has four. A call of libgcc would take longer than the rest of a visit.
int count_sectors(int s) { return (s & 1) + (s >> 1 & 1) + (s >> 2 & 1) + (s >> 3 & 1); }

/// Least recently used lines of 128 bytes, sector-filled: a line holds only the sectors requested. Lines are numbered
/// from 0, so that the order is a list in two arrays: a replay visits millions.
class LineCache {
 public:
  LineCache(size_t capacity, uint32_t lines)
      : free_(std::max<size_t>(capacity, 1)), end_(lines), lines_(lines + size_t{1}) {
    lines_[end_] = {end_, end_, 0};
  }

  /// Returns the number of missing sectors among `sectors` (at least one).
  int touch(uint32_t line, uint8_t sectors) {
    Line& entry = lines_[line];
    const int missing = count_sectors(sectors & ~entry.sectors);
    unique_ += static_cast<uint64_t>(count_sectors(sectors & ~entry.known));
    entry.known |= sectors;
    if (entry.sectors != 0) {
      unlink(line);
    } else if (free_ > 0) {
      --free_;
    } else {
      const uint32_t oldest = lines_[end_].before;
      unlink(oldest);
      lines_[oldest].sectors = 0;
    }
    entry.sectors |= sectors;
    Line& end = lines_[end_];
    entry.before = end_;
    entry.after = end.after;
    lines_[end.after].before = line;
    end.after = line;
    return missing;
  }
  /// The distinct sectors touched.
  uint64_t unique() const { return unique_; }

  /// Most of the time of a replay is waiting for memory. Two steps: first the line, later its neighbours in the order.
  void prefetch(uint32_t line) const { __builtin_prefetch(&lines_[line], 1); }
  void prefetch_neighbours(uint32_t line) const {
    if (lines_[line].sectors == 0) return;
    __builtin_prefetch(&lines_[lines_[line].before], 1);
    __builtin_prefetch(&lines_[lines_[line].after], 1);
  }

 private:
  struct Line {
    uint32_t before = 0, after = 0;  ///< in the order of use, newest first; end_ closes the circle
    uint8_t sectors = 0;             ///< in the cache; 0: the line is not
    uint8_t known = 0;               ///< ever touched
  };
  void unlink(uint32_t line) {
    lines_[lines_[line].before].after = lines_[line].after;
    lines_[lines_[line].after].before = lines_[line].before;
  }
  size_t free_;
  uint32_t end_;
  uint64_t unique_ = 0;
  std::vector<Line> lines_;
};

/// The accesses of a traced CTA in order. Lines are numbered: first the common ones, which several traces touch, then
/// its own.
struct Visits {
  struct Visit {
    uint32_t line;
    uint8_t sectors;
  };
  std::vector<Visit> visits;
  uint32_t own_lines = 0;
};

struct Wave {
  std::vector<Visits> traced;
  uint32_t common = 0;  ///< lines that several traces touch
  uint64_t sample = 1;  ///< one line in so many is kept, with all of its visits
};

/// Keeps so few lines that a wave has about kReplayLimit accesses: a cache with as many times fewer lines has the same
/// miss ratio. Which lines depends on the order of their first touch: addresses depend on what was allocated before.
Wave sample_lines(const std::vector<std::vector<LineAccess>>& traces, uint64_t wave_ctas) {
  struct Line {
    uint32_t trace;  ///< the last one that touched it
    bool common;
    uint32_t number;
  };
  std::unordered_map<uint64_t, Line> lines;
  std::vector<Line*> by_first_touch;
  uint64_t accesses = 0;
  for (uint32_t t = 0; t < traces.size(); ++t)
    for (const LineAccess& a : traces[t]) {
      const auto [found, inserted] = lines.try_emplace(a.line, Line{t, false, 0});
      Line& line = found->second;
      if (inserted) by_first_touch.push_back(&line);
      line = {t, line.common || line.trace != t, 0};
      ++accesses;
    }
  Wave wave;
  wave.sample = accesses * wave_ctas / traces.size() / kReplayLimit + 1;
  constexpr uint32_t kLeftOut = ~0U;
  std::vector<uint32_t> own(traces.size(), 0);
  for (uint64_t i = 0; i < by_first_touch.size(); ++i) {
    Line& line = *by_first_touch[i];
    const bool kept = (i * 0x9e3779b97f4a7c15u >> 33) % wave.sample == 0;
    line.number = !kept ? kLeftOut : line.common ? wave.common++ : own[line.trace]++;
  }
  for (uint32_t t = 0; t < traces.size(); ++t) {
    Visits& visits = wave.traced.emplace_back();
    visits.own_lines = own[t];
    for (const LineAccess& a : traces[t])
      if (const Line& line = lines.find(a.line)->second; line.number != kLeftOut)
        visits.visits.push_back({line.common ? line.number : wave.common + line.number, a.sectors});
  }
  return wave;
}

}  // namespace

double wave_miss_ratio(const std::vector<std::vector<LineAccess>>& traces, uint64_t wave_ctas, uint64_t group_ctas,
                       double l2_bytes) {
  if (traces.empty() || wave_ctas == 0) return 1;
  const auto [traced, common, sample] = sample_lines(traces, wave_ctas);
  const auto visits_of = [&traced = traced](uint64_t cta) -> const std::vector<Visits::Visit>& {
    return traced[cta % traced.size()].visits;
  };
  // The lines of the wave: common ones once for each group, where one of its CTAs touches them, others once for each
  // CTA.
  std::vector<std::vector<uint32_t>> line_of(wave_ctas);
  std::vector<std::pair<uint64_t, uint32_t>> of_group(common,
                                                      {0, 0});  // the last group that touched it, and its line there
  uint32_t lines = 0;
  for (uint64_t cta = 0; cta < wave_ctas; ++cta) {
    const uint64_t group = cta / std::max<uint64_t>(group_ctas, 1) + 1;
    const uint32_t own = lines;
    lines += traced[cta % traced.size()].own_lines;
    line_of[cta].reserve(visits_of(cta).size());
    for (const auto& visit : visits_of(cta)) {
      if (visit.line < common && of_group[visit.line].first != group) of_group[visit.line] = {group, lines++};
      line_of[cta].push_back(visit.line < common ? of_group[visit.line].second : own + visit.line - common);
    }
  }
  const auto capacity = static_cast<size_t>(kL2Usable * l2_bytes / 128 / static_cast<double>(sample));
  if (lines <= capacity) return 1;  // nothing is evicted
  LineCache cache(capacity, lines);
  uint64_t missed = 0;
  std::vector<Visits::Visit> turns;
  const auto take_turns = [&] {
    for (size_t i = 0; i < turns.size(); ++i) {
      if (i + 32 < turns.size()) cache.prefetch(turns[i + 32].line);
      if (i + 16 < turns.size()) cache.prefetch_neighbours(turns[i + 16].line);
      missed += static_cast<uint64_t>(cache.touch(turns[i].line, turns[i].sectors));
    }
    turns.clear();
  };
  size_t longest = 0;
  for (const Visits& t : traced) longest = std::max(longest, t.visits.size());
  for (size_t step = 0; step < longest; ++step) {
    for (uint64_t cta = 0; cta < wave_ctas; ++cta)
      if (step < visits_of(cta).size()) turns.push_back({line_of[cta][step], visits_of(cta)[step].sectors});
    if (turns.size() >= 4096) take_turns();  // many steps together, so that most are prefetched
  }
  take_turns();
  return cache.unique() ? static_cast<double>(missed) / static_cast<double>(cache.unique()) : 1;
}

// ---- Tiled kernels ---------------------------------------------------------------------------------

namespace {

/// Pieces of a streamed panel: enough to model the LRU order along K, few enough for a millisecond per thousand CTAs.
constexpr uint64_t kPieces = 16;
/// Larger grids take coarser pieces.
constexpr uint64_t kTouchLimit = 4'000'000;

/// Least recently used units of different sizes, numbered densely.
class UnitCache {
 public:
  UnitCache(size_t units, double capacity)
      : capacity_(capacity), links_(units + 1, Link{0, 0, 0}), head_(static_cast<uint32_t>(units)) {
    links_[head_] = {head_, head_, 0};
  }

  /// True when the unit had to be fetched.
  bool touch(uint32_t unit, double bytes) {
    const bool missed = links_[unit].bytes == 0;
    if (!missed) {
      unlink(unit);
    } else {
      used_ += links_[unit].bytes = bytes;
      while (used_ > capacity_ && links_[head_].before != head_) evict(links_[head_].before);
    }
    const uint32_t first = links_[head_].after;
    links_[unit].before = head_;
    links_[unit].after = first;
    links_[head_].after = links_[first].before = unit;
    return missed;
  }

 private:
  struct Link {
    uint32_t before, after;
    double bytes;  ///< 0: not there
  };
  void unlink(uint32_t unit) {
    links_[links_[unit].before].after = links_[unit].after;
    links_[links_[unit].after].before = links_[unit].before;
  }
  void evict(uint32_t unit) {
    unlink(unit);
    used_ -= links_[unit].bytes;
    links_[unit].bytes = 0;
  }
  double capacity_, used_ = 0;
  std::vector<Link> links_;
  uint32_t head_;  ///< of the ring: `after` it the newest, `before` it the oldest
};

/// One named position of a CTA, summed from the axes of that name.
struct Position {
  std::string name;
  int64_t step = 0;    ///< elements that one CTA covers
  int64_t tiles = 1;   ///< that the grid reaches
  int64_t extent = 0;  ///< elements there are
};

class Grid {
 public:
  Grid(const std::vector<GridAxis>& axes, const std::map<std::string, int64_t>& extents,
       const std::vector<int64_t>& groups, int64_t together)
      : axes_(axes) {
    std::stable_sort(axes_.begin(), axes_.end(), [](const GridAxis& a, const GridAxis& b) { return a.dim < b.dim; });
    for (const GridAxis& axis : axes_) {
      Position& p = position(axis.name);
      p.step = p.step ? std::min(p.step, axis.step) : axis.step;
      ctas_ *= axis.extent;
    }
    for (const GridAxis& axis : axes_)
      position(axis.name).tiles += (axis.extent - 1) * axis.step / position(axis.name).step;
    const auto rows = std::find_if(axes_.begin(), axes_.end(), [](const GridAxis& axis) { return axis.by_group; });
    if (rows != axes_.end() && !groups.empty()) {
      row_ = index(rows->name);
      tiles_ = group_tiles(groups, positions_[row_].step, together);
      positions_.push_back({"group", 1, static_cast<int64_t>(groups.size()) - 1});
    }
    for (Position& p : positions_) {
      const auto known = extents.find(p.name);
      p.extent = known == extents.end() ? p.tiles * p.step : known->second;
    }
    // Partial tiles count as whole ones.
    if (!tiles_.empty()) positions_[row_].extent = static_cast<int64_t>(tiles_.size()) * positions_[row_].step;
  }

  int64_t ctas() const { return ctas_; }
  const std::vector<Position>& positions() const { return positions_; }
  size_t index(const std::string& name) const {
    return static_cast<size_t>(
        std::find_if(positions_.begin(), positions_.end(), [&](const Position& p) { return p.name == name; }) -
        positions_.begin());
  }
  /// The first element of each position; false where the CTA has nothing to do.
  bool at(int64_t cta, std::vector<int64_t>& first) const {
    first.assign(positions_.size(), 0);
    for (const GridAxis& axis : axes_) {
      const int64_t i = cta % axis.extent;
      cta /= axis.extent;
      first[index(axis.name)] += (axis.reverse ? axis.extent - 1 - i : i) * axis.step;
    }
    if (!tiles_.empty()) {
      const auto tile = static_cast<size_t>(first[row_] / positions_[row_].step);
      if (tile >= tiles_.size()) return false;
      first.back() = tiles_[tile].group;
    }
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i] >= positions_[i].extent) return false;
    return true;
  }

 private:
  Position& position(const std::string& name) {
    const size_t i = index(name);
    if (i == positions_.size()) positions_.push_back({name});
    return positions_[i];
  }
  std::vector<GridAxis> axes_;  ///< fastest first
  std::vector<Position> positions_;
  std::vector<GroupTile> tiles_;  ///< of rows, where groups decide where they begin
  size_t row_ = 0;                ///< their position
  int64_t ctas_ = 1;
};

/// Panels of one kind, numbered by the positions they depend on.
struct Family {
  std::vector<size_t> positions;
  double bytes;
  uint64_t pieces, first_unit;

  uint64_t number(const Grid& grid, const std::vector<int64_t>& first) const {
    uint64_t n = 0;
    for (size_t p : positions)
      n = n * static_cast<uint64_t>(grid.positions()[p].tiles) +
          static_cast<uint64_t>(first[p] / grid.positions()[p].step);
    return n;
  }
  double piece_bytes(const Grid& grid, const std::vector<int64_t>& first) const {
    double size = bytes / static_cast<double>(pieces);
    for (size_t p : positions) {
      const Position& at = grid.positions()[p];
      size *= static_cast<double>(std::min(at.step, at.extent - first[p])) / static_cast<double>(at.step);
    }
    return size;
  }
};

/// A CTA's share of one family.
struct Use {
  uint32_t first_unit = 0;
  double piece_bytes = 0;
};

}  // namespace

TileTraffic tile_traffic(const std::vector<GridAxis>& axes, const std::map<std::string, int64_t>& extents,
                         const std::vector<Panel>& panels, uint64_t wave_ctas, double l2_bytes,
                         const std::vector<int64_t>& groups, int64_t together) {
  const Grid grid(axes, extents, groups, together);
  const uint64_t uses = std::max<uint64_t>(1, static_cast<uint64_t>(grid.ctas()) * panels.size());
  const uint64_t pieces = std::clamp<uint64_t>(kTouchLimit / uses, 1, kPieces);
  std::vector<Family> families;
  uint64_t units = 0;
  for (const Panel& panel : panels) {
    Family f{{}, panel.bytes, panel.streamed ? pieces : 1, units};
    uint64_t count = 1;
    for (const std::string& name : panel.axes) {
      const size_t p = grid.index(name);
      if (p == grid.positions().size()) continue;  // no grid axis of that name: the same for all CTAs
      f.positions.push_back(p);
      count *= static_cast<uint64_t>(grid.positions()[p].tiles);
    }
    units += count * f.pieces;
    families.push_back(std::move(f));
  }

  TileTraffic out;
  UnitCache cache(units, kL2Usable * l2_bytes);
  std::vector<bool> seen(units);
  const auto touch = [&](const Use& use, uint64_t piece) {
    const uint32_t unit = use.first_unit + static_cast<uint32_t>(piece);
    if (cache.touch(unit, use.piece_bytes)) out.dram_bytes += use.piece_bytes;
    if (!seen[unit]) out.compulsory_bytes += use.piece_bytes;
    seen[unit] = true;
  };
  std::vector<Use> wave;
  std::vector<int64_t> first;
  const auto run_wave = [&] {
    for (uint64_t piece = 0; piece < pieces; ++piece)
      for (size_t i = 0; i < wave.size(); ++i)
        if (panels[i % panels.size()].streamed) touch(wave[i], piece);
    for (size_t i = 0; i < wave.size(); ++i)
      if (!panels[i % panels.size()].streamed) touch(wave[i], 0);
    wave.clear();
  };
  for (int64_t cta = 0; cta < grid.ctas(); ++cta) {
    if (!grid.at(cta, first)) continue;
    for (const Family& f : families)
      wave.push_back(
          {static_cast<uint32_t>(f.first_unit + f.number(grid, first) * f.pieces), f.piece_bytes(grid, first)});
    if (wave.size() >= std::max<uint64_t>(wave_ctas, 1) * panels.size()) run_wave();
  }
  run_wave();
  return out;
}

}  // namespace roofgen
