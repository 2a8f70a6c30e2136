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

/// Where in the table: buffers begin far apart at the same low bits.
uint32_t home(uint64_t address) {
  return static_cast<uint32_t>((address / kLineBytes * 0x9e3779b97f4a7c15u) >> (64 - LineLog::kLogLines));
}

bool test(LineBits bits, uint32_t i) { return (i < 64 ? bits.low : bits.high) >> (i & 63) & 1; }

}  // namespace

void LineLog::reset() {
  for (uint32_t w = 0; w < kMaxWarps; ++w) begin_[w] = log_.stamp(w);
}

uint64_t LineLog::bytes() const {
  uint64_t n = 0;
  for (const auto& lines : lines_) n += lines.capacity() * sizeof(Line);
  return n;
}

const LineLog::Line* LineLog::find(uint32_t warp, uint64_t address) const {
  if (lines_[warp].empty()) return nullptr;
  const Line& line = lines_[warp][home(address)];
  return line.number == address / kLineBytes && line.stamp >= begin_[warp] ? &line : nullptr;
}

LineLog::Line& LineLog::make(uint32_t warp, uint64_t address) {
  if (lines_[warp].empty()) lines_[warp].resize(1u << kLogLines);
  Line& line = lines_[warp][home(address)];
  const uint64_t now = log_.stamp(warp);
  if (line.number != address / kLineBytes || line.stamp != now) {
    line.number = address / kLineBytes;
    line.stamp = now;
    line.wrote = line.strong = {};
  }
  return line;
}

WordLog::Other LineLog::check(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const {
  const Line* line = find(t.warp, address);
  if (!line || line->stamp <= log_.settled(t.warp)) return {};
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  for (uint32_t i = at; i < at + bytes; ++i)
    if (test(line->wrote, i) && !(strong && test(line->strong, i)) && !log_.in_order(t, line->lane[i], line->stamp))
      return {line->lane[i], line->pc, true, true};
  return {};
}

WordLog::Other LineLog::read(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const {
  return check(t, address, bytes, strong);
}

WordLog::Other LineLog::write(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) {
  const WordLog::Other other = check(t, address, bytes, strong);
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  Line& line = make(t.warp, address);
  const LineBits bits = LineBits::of(at, at + bytes);
  line.pc = t.pc;
  line.wrote.add(bits);
  strong ? line.strong.add(bits) : line.strong.remove(bits);
  std::memset(line.lane + at, static_cast<int>(t.lane), bytes);
  return other;
}

bool LineLog::read_row(uint32_t warp, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) const {
  const Line* line = find(warp, address);
  if (!line || line->stamp <= log_.settled(warp)) return true;
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  return !line->wrote.meets(LineBits::of(at, at + n)) || std::memcmp(line->lane + at, lanes_of(begin, bytes), n) == 0;
}

bool LineLog::write_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) {
  if (!read_row(warp, address, n, begin, bytes)) return false;
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  Line& line = make(warp, address);
  const LineBits bits = LineBits::of(at, at + n);
  line.pc = pc;
  line.wrote.add(bits);
  line.strong.remove(bits);
  std::memcpy(line.lane + at, lanes_of(begin, bytes), n);
  return true;
}

std::optional<uint32_t> LineLog::place_of_write(uint32_t warp, uint64_t address) const {
  const Line* line = find(warp, address);
  return line && test(line->wrote, address % kLineBytes) ? std::optional(line->pc) : std::nullopt;
}

}  // namespace roofgen::sim
