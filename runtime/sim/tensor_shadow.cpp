#include "runtime/sim/tensor_shadow.h"

#include <algorithm>

namespace roofgen::sim {

void TensorShadow::begin(uint32_t warps) {
  core_ = warps;
  cells_.assign(size_t{kTensorColumns} * kTensorHalves, {});
  columns_.assign(kTensorColumns, {});
  for (auto& loads : loads_) loads.clear();
  for (auto* stamps : {&stored_, &befores_})
    for (auto& of_warp : *stamps) of_warp.clear();
  first_load_ = {};
  for (auto& row : fenced_) row.fill(0);
  issued_ = {};
  last_thread_ = ~0u;
}

void TensorShadow::forget(uint32_t first, uint32_t columns) {
  std::fill_n(columns_.begin() + first, columns, Column{});
  std::fill_n(cells_.begin() + first * kTensorHalves, columns * kTensorHalves, Cell{});
}

void TensorShadow::wait_loads(uint32_t warp, uint32_t load, uint32_t now) {
  std::vector<Load>& loads = loads_[warp];
  size_t& first = first_load_[warp];
  for (size_t i = first; i < loads.size(); ++i)
    if (!loads[i].over && (!load || loads[i].number == load)) loads[i].over = now;
  while (first < loads.size() && loads[first].over) ++first;
}

/// The stamp of the end of a warp's access; 0: it is not over.
uint32_t TensorShadow::over_at(uint32_t warp, uint32_t stamp, bool wrote) const {
  if (wrote) {
    const auto wait = std::ranges::lower_bound(stored_[warp], stamp);
    return wait == stored_[warp].end() ? 0 : *wait;
  }
  const auto load = std::ranges::lower_bound(loads_[warp], stamp, {}, &Load::stamp);
  return load == loads_[warp].end() || load->stamp != stamp ? stamp : load->over;
}

void TensorShadow::fence_after(uint32_t issuer, const uint32_t* known) {
  for (uint32_t v = 0; v <= core_; ++v) {
    uint32_t fenced = known[v] + 1;  // of the core: a commit is a fence, too
    if (v < core_) {
      const auto after = std::upper_bound(befores_[v].begin(), befores_[v].end(), known[v]);
      fenced = after == befores_[v].begin() ? 0 : *(after - 1) + 1;
    }
    fenced_[issuer][v] = std::max(fenced_[issuer][v], fenced);
  }
}

/// The cell takes over the core's accesses.
void TensorShadow::spread(Column& c, uint32_t column, uint32_t half) {
  c.of_core &= static_cast<uint8_t>(~(1u << half));
  Cell& to = cell(column, half);
  to.writer = core_;
  to.wrote_at = c.at[half];
  to.write_pc = c.pc;
  to.read_at = {};
}

TensorShadow::Problem TensorShadow::order_of(const Accessor& who, uint32_t other, uint32_t stamp, bool wrote) const {
  if (other == who.agent && other == core_) return Problem::kNone;
  const uint32_t over = other == core_ ? stamp : over_at(other, stamp, wrote);
  if (!over) return Problem::kPending;
  if (other == who.issuer) return Problem::kNone;
  if (stamp > who.known[other]) return Problem::kUnordered;
  if (over > who.known[other]) return Problem::kPending;
  if (stamp <= who.acquired[other] || stamp < fenced_[who.issuer][other]) return Problem::kNone;
  if (other == core_) return Problem::kNotAfter;
  const auto before = std::lower_bound(befores_[other].begin(), befores_[other].end(), stamp);
  return before == befores_[other].end() || *before > who.known[other] ? Problem::kNotBefore : Problem::kNotAfter;
}

TensorShadow::Outcome TensorShadow::conflict(const Accessor& who, uint32_t column, uint32_t half, bool writes) const {
  const Cell& c = cell(column, half);
  // A warp's stores to one place are in order, and so are its loads.
  const bool rewrites = writes && c.writer == who.agent;
  if (c.wrote_at && !rewrites)
    if (const Problem p = order_of(who, c.writer, c.wrote_at, true); p != Problem::kNone)
      return {p, column, half, c.writer, c.write_pc, true};
  for (uint32_t i = 0; writes && i < kAgents; ++i) {
    const uint32_t reader = i + 1 == kAgents ? core_ : 4 * i + half / 2;
    if (!c.read_at[i]) continue;
    if (const Problem p = order_of(who, reader, c.read_at[i], false); p != Problem::kNone)
      return {p, column, half, reader, c.read_pc, false};
  }
  return {};
}

TensorShadow::Outcome TensorShadow::access(const Accessor& who, uint32_t first, uint32_t columns,
                                           const std::array<uint32_t, 4>& lanes, bool reads, bool writes, bool lazily,
                                           uint32_t now, uint32_t pc) {
  const bool core = who.agent == core_;
  uint16_t of_half[kTensorHalves];
  uint8_t halves = 0;
  bool whole = true;
  for (uint32_t h = 0; h < kTensorHalves; ++h) {
    of_half[h] = static_cast<uint16_t>(lanes[h / 2] >> 16 * (h % 2));
    halves |= static_cast<uint8_t>((of_half[h] != 0) << h);
    whole &= of_half[h] == 0 || of_half[h] == 0xffff;
  }
  Outcome out;
  const auto note = [&](const Outcome& o) {
    if (out.problem == Problem::kNone) out = o;
  };
  for (uint32_t i = first; i < first + columns; ++i) {
    Column& c = columns_[i];
    if (core && whole && (c.of_core & halves) == halves) {  // the core's cells are wholly written
      for (uint32_t h = 0; h < kTensorHalves; ++h) c.at[h] = halves >> h & 1 ? now : c.at[h];
      c.pc = pc;
      continue;
    }
    for (uint32_t h = 0; h < kTensorHalves; ++h) {
      if (!(halves >> h & 1)) continue;
      if (c.of_core >> h & 1) spread(c, i, h);
      Cell& at = cell(i, h);
      if (reads && !lazily && of_half[h] & ~at.written) note({Problem::kUnwritten, i, h, 0, 0, false});
      note(conflict(who, i, h, writes));
      if (writes) {
        at.written |= of_half[h];
        at.writer = who.agent;
        at.wrote_at = now;
        at.write_pc = pc;
        at.read_at = {};
        if (core && at.written == 0xffff && of_half[h] == 0xffff) {
          c.of_core |= static_cast<uint8_t>(1u << h);
          c.at[h] = now;
          c.pc = pc;
        }
      } else {
        at.read_at[core ? kAgents - 1 : who.agent / 4] = now;
        at.read_pc = pc;
      }
    }
  }
  return out;
}

}  // namespace roofgen::sim
