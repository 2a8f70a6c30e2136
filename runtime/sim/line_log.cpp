#include "runtime/sim/line_log.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace roofgen::sim {
namespace {

/// The lane of each byte of a request of 32 elements, by the logarithm of their size.
constexpr auto kLaneOfByte = [] {
  std::array<std::array<uint8_t, 16 * kWarpSize>, 5> lanes{};
  for (uint32_t log = 0; log < lanes.size(); ++log)
    for (uint32_t i = 0; i < 16 * kWarpSize; ++i) lanes[log][i] = static_cast<uint8_t>(i >> log & 31);
  return lanes;
}();
const uint8_t* lanes_of(uint32_t begin, uint32_t bytes) {
  return kLaneOfByte[static_cast<uint32_t>(__builtin_ctz(bytes))].data() + begin;
}

bool test(LineBits bits, uint32_t i) { return (i < 64 ? bits.low : bits.high) >> (i & 63) & 1; }

}  // namespace

void LineLog::reset() {
  for (uint32_t w = 0; w < kMaxWarps; ++w) begin_[w] = log_.stamp(w);
}

uint64_t LineLog::bytes() const {
  uint64_t n = 0;
  for (uint32_t w = 0; w < kMaxWarps; ++w)
    n += written_[w].capacity() * sizeof(Written) + read_[w].capacity() * sizeof(Read);
  return n;
}

bool LineLog::is_unwritten(uint32_t warp, uint64_t line, LineBits bits) const {
  const Written* const l = find(written_[warp], warp, line);
  return !l || !l->bytes.meets(bits);
}

uint32_t* LineLog::Read::lanes() {
  if (!has_masks_) {
    std::memset(lanes_, 0, sizeof lanes_);
    record(row_);
    has_masks_ = true;
  }
  return lanes_;
}

void LineLog::Read::record(const Row& row) {
  const uint8_t* const lane = row.n ? lanes_of(row.begin, row.bytes) : nullptr;
  for (uint32_t i = 0; i < row.n; ++i) lanes_[row.at + i] |= 1u << lane[i];
}

void LineLog::Read::add(const Row& row) {
  if (!has_masks_ && (row_.n == 0 || row_ == row)) {
    row_ = row;
    return;
  }
  lanes();
  record(row);
}

WordLog::Other LineLog::check(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const {
  const Written* line = find(written_[t.warp], t.warp, address);
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  for (uint32_t i = at; line && i < at + bytes; ++i)
    if (test(line->bytes, i) && !(strong && test(line->strong, i)) && !log_.in_order(t, line->lane[i], line->stamp))
      return {line->lane[i], line->pc, true, true};
  return {};
}

/// Strong reads, and those of the whole warp, leave no record.
WordLog::Other LineLog::read(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) {
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  if (!strong && !t.collective) {
    uint32_t* const lanes = readers(t.warp, address, t.pc);
    for (uint32_t i = at; i < at + bytes; ++i) lanes[i] |= 1u << t.lane;
  }
  return check(t, address, bytes, strong);
}

WordLog::Other LineLog::write(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) {
  WordLog::Other other = check(t, address, bytes, strong);
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  Read* const read = find(read_[t.warp], t.warp, address);
  for (uint32_t i = at; read && !other.is && i < at + bytes; ++i)
    for (uint32_t others = read->lanes()[i] & ~(1u << t.lane); others && !other.is; others &= others - 1) {
      const auto lane = static_cast<uint32_t>(__builtin_ctz(others));
      if (!log_.in_order(t, lane, read->stamp)) other = {lane, read->pc, true, false, (others & (others - 1)) != 0};
    }
  Written& line = make(written_[t.warp], t.warp, address, t.pc);
  const LineBits bits = LineBits::of(at, at + bytes);
  line.bytes.add(bits);
  strong ? line.strong.add(bits) : line.strong.remove(bits);
  std::memset(line.lane + at, static_cast<int>(t.lane), bytes);
  return other;
}

/// Whether each lane of a row wrote last what it accesses now, as far as something was written.
bool LineLog::is_own_row(uint32_t warp, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) const {
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  return is_unwritten(warp, address, LineBits::of(at, at + n)) ||
         std::memcmp(written_[warp][home(address)].lane + at, lanes_of(begin, bytes), n) == 0;
}

bool LineLog::read_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) {
  if (!is_own_row(warp, address, n, begin, bytes)) return false;
  make(read_[warp], warp, address, pc).add({static_cast<uint32_t>(address % kLineBytes), n, begin, bytes});
  return true;
}

bool LineLog::write_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) {
  if (!is_own_row(warp, address, n, begin, bytes)) return false;
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  const uint8_t* const row = lanes_of(begin, bytes);
  if (Read* const read = find(read_[warp], warp, address); read && !read->is_only({at, n, begin, bytes})) {
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; ++i) others |= read->lanes()[at + i] & ~(1u << row[i]);
    if (others) return false;
  }
  Written& line = make(written_[warp], warp, address, pc);
  const LineBits bits = LineBits::of(at, at + n);
  line.bytes.add(bits);
  line.strong.remove(bits);
  std::memcpy(line.lane + at, row, n);
  return true;
}

std::optional<uint32_t> LineLog::place_of_write(uint32_t warp, uint64_t address) const {
  if (written_[warp].empty()) return std::nullopt;
  const Written& line = written_[warp][home(address)];
  const bool is_here = line.is(address) && line.stamp >= begin_[warp] && test(line.bytes, address % kLineBytes);
  return is_here ? std::optional(line.pc) : std::nullopt;
}

}  // namespace roofgen::sim
