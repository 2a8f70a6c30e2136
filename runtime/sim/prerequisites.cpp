#include "runtime/sim/prerequisites.h"

#include <algorithm>
#include <mutex>

namespace roofgen::sim {

bool Prerequisites::all_end() const {
  return std::all_of(grids_.begin(), grids_.end(), [](const Entry& e) { return e.ends; });
}

Prerequisites::Conflict Prerequisites::conflict(uint64_t address, uint32_t bytes, bool writes, bool waited) const {
  // An access lies in one line.
  const auto begin = static_cast<uint32_t>(address % kLineBytes);
  const LineBits bits = LineBits::of(begin, begin + bytes);
  for (const Entry& e : grids_) {
    if (waited && e.ends) continue;
    const auto line = std::lower_bound(e.grid->lines.begin(), e.grid->lines.end(), address / kLineBytes,
                                       [](const Grid::Line& l, uint64_t number) { return l.number < number; });
    if (line == e.grid->lines.end() || line->number != address / kLineBytes) continue;
    if (const bool written = line->written.meets(bits); written || (writes && line->read.meets(bits)))
      return {e.grid.get(), written, e.ends};
  }
  return {};
}

void Prerequisites::add(const std::string& kernel, const AccessHistory& history, const BufferList& buffers,
                        const Conduct* conduct) {
  // The next launch begins when all CTAs of this one have triggered it or ended. If one of them waits before, the
  // launches before this one have ended by then.
  if (!conduct) grids_.clear();
  if (conduct && conduct->waited && !conduct->triggered_early)
    std::erase_if(grids_, [](const Entry& e) { return e.ends; });
  for (Entry& e : grids_) e.ends &= conduct->waited;
  auto grid = std::make_shared<Grid>();
  grid->kernel = kernel;
  for (const auto& buffer : buffers) {
    if (buffer->is_input()) continue;
    std::lock_guard lock(buffer->mutex);
    for (const Buffer::Line& l : buffer->lines) {
      Grid::Line line{buffer->base / kLineBytes + l.line, {}, {}};
      history.any_record(l.slot, [&](const AccessRecord& r) {
        (writes(r.what) ? line.written : line.read).add(r.bits);
        return false;
      });
      if (line.read.any() || line.written.any()) grid->lines.push_back(line);
    }
  }
  std::sort(grid->lines.begin(), grid->lines.end(),
            [](const Grid::Line& a, const Grid::Line& b) { return a.number < b.number; });
  grids_.push_back({std::move(grid), true});
}

}  // namespace roofgen::sim
