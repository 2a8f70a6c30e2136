#include "runtime/sim/device_shadow.h"

#include <algorithm>
#include <utility>

namespace roofgen::sim {
namespace {

constexpr uint32_t kLogLinesAtFirst = 8;
constexpr uint32_t kChunk = 16;
/// 1 GiB of them. A CTA that touches more between two barriers is watched from then on.
constexpr size_t kMostLines = size_t{1} << 24;
/// Offset in the shadow: 128 MiB of lines that warps share. There are no records for more.
constexpr uint32_t kMostShared = 1u << 27;

}  // namespace

void DeviceShadow::reset(uint32_t warps) {
  alone_ = warps < 2;
  first_place_ = shadow_.size();
  if (!alone_) forget();
}

void DeviceShadow::forget() {
  epoch_ = (epoch_ + 1) & ((1u << kEpochBits) - 1);
  if (lines_.empty() || epoch_ == 0) {
    if (lines_.empty()) shift_ = 64 - kLogLinesAtFirst;
    lines_.assign(size_t{1} << (64 - shift_), Line{});
    epoch_ = 1;
  }
  free_ = lines_.size() / 2;
  shadow_.drop_from(first_place_);
}

const DeviceShadow::Line* DeviceShadow::find(uint64_t number) const {
  const uint64_t key = number << kEpochBits | epoch_;
  for (size_t i = home(number);; i = (i + 1) & (lines_.size() - 1)) {
    const Line& l = lines_[i];
    if (l.key == key) return &l;
    if (!is_here(l)) return nullptr;
  }
}

DeviceShadow::Line& DeviceShadow::line(uint64_t number) {
  const uint64_t key = number << kEpochBits | epoch_;
  for (size_t i = home(number);; i = (i + 1) & (lines_.size() - 1)) {
    Line& l = lines_[i];
    if (l.key == key) return l;
    if (is_here(l)) continue;
    if (free_ == 0) break;
    --free_;
    l.key = key;
    l.touched = 0;
    l.place = kNowhere;
    l.read = l.wrote = l.strong = {};
    return l;
  }
  grow();
  return line(number);
}

/// Drops the lines whose accesses every warp has seen, and doubles the table if a quarter remains.
void DeviceShadow::grow() {
  const auto matters = [&](const Line& l) {
    return is_here(l) && (l.place != kNowhere || (l.touched & SharedShadow::kStampMask) > shadow_.settled());
  };
  const auto kept = static_cast<size_t>(std::count_if(lines_.begin(), lines_.end(), matters));
  const bool full = lines_.size() >= kMostLines;
  if (4 * kept > lines_.size() && !full) --shift_;
  const std::vector<Line> old = std::exchange(lines_, std::vector<Line>(size_t{1} << (64 - shift_)));
  free_ = lines_.size() / 2;
  for (const Line& l : old)
    if (matters(l) && !(full && 4 * kept > old.size())) line(l.key >> kEpochBits) = l;
}

/// Whether one warp and stamp describe the line, an access of `warp` now included: every warp has seen the accesses of
/// earlier stamps.
bool DeviceShadow::joins(Line& l, uint32_t warp) {
  const uint32_t now = warp << 27 | shadow_.now();
  if (l.place != kNowhere) return false;
  if (l.touched == now) return true;
  if ((l.touched & SharedShadow::kStampMask) > shadow_.settled()) return false;
  l.touched = now;
  l.read = l.wrote = l.strong = {};
  return true;
}

DeviceShadow::Outcome DeviceShadow::touch(uint32_t warp, uint64_t address, uint32_t bytes, bool writes, bool strong) {
  const uint32_t at = address % kLineBytes;
  Line& l = line(address / kLineBytes);
  if (!joins(l, warp)) return closely(l, warp, at, bytes, writes, strong);
  const LineBits bits = bytes == kLineBytes ? LineBits{~uint64_t{0}, ~uint64_t{0}} : LineBits::of(at, at + bytes);
  if (!writes) {
    l.read.add(bits);
  } else {
    // A plain write of the same stamp stays one: who is ordered after it is ordered after the strong one too.
    strong ? l.strong.add(bits.without(l.wrote.without(l.strong))) : l.strong.remove(bits);
    l.wrote.add(bits);
  }
  return {};
}

DeviceShadow::Outcome DeviceShadow::touch(uint32_t warp, uint64_t address, LineBits read) {
  Line& l = line(address / kLineBytes);
  if (joins(l, warp)) return l.read.add(read), Outcome{};
  for (uint32_t chunk = 0; chunk < kLineBytes / kChunk; ++chunk)
    for (uint32_t bits = read.of_chunk(chunk); bits;) {
      const auto begin = static_cast<uint32_t>(__builtin_ctz(bits));
      const auto n = static_cast<uint32_t>(__builtin_ctz(~(bits >> begin)));
      if (const Outcome o = closely(l, warp, chunk * kChunk + begin, n, false, false); !o.ok()) return o;
      bits &= ~0u << (begin + n);
    }
  return {};
}

/// Moves the record of the line into records per byte.
bool DeviceShadow::contest(Line& l) {
  if (shadow_.size() >= kMostShared) return false;
  l.place = shadow_.add(kLineBytes);
  for (uint32_t i = 0; i < kLineBytes / kChunk; ++i)
    shadow_.remember(l.place + i * kChunk, l.touched, l.read.of_chunk(i), l.wrote.of_chunk(i), l.strong.of_chunk(i));
  return true;
}

uint32_t DeviceShadow::place(uint64_t address) const {
  const Line* l = alone_ ? nullptr : find(address / kLineBytes);
  return l && l->place != kNowhere ? l->place + static_cast<uint32_t>(address % kLineBytes) : kNowhere;
}

uint32_t DeviceShadow::make_place(uint64_t address) {
  if (alone_) return kNowhere;
  Line& l = line(address / kLineBytes);
  if (l.place == kNowhere && !contest(l)) return kNowhere;
  return l.place + static_cast<uint32_t>(address % kLineBytes);
}

/// A strong read leaves no record: it checks only the last writer.
DeviceShadow::Outcome DeviceShadow::read_strongly(uint32_t warp, uint64_t address, uint32_t bytes) {
  const Line* l = find(address / kLineBytes);
  if (!l) return {};
  const auto at = static_cast<uint32_t>(address % kLineBytes);
  if (l->place == kNowhere &&
      (l->touched >> 27 == warp || !l->wrote.without(l->strong).meets(LineBits::of(at, at + bytes))))
    return {};
  return closely(const_cast<Line&>(*l), warp, at, bytes, false, true);
}

DeviceShadow::Outcome DeviceShadow::closely(Line& l, uint32_t warp, uint32_t at, uint32_t bytes, bool writes,
                                            bool strong) {
  if (l.place == kNowhere && !contest(l)) return {};
  Outcome all;
  for (const uint32_t end = at + bytes; at < end;) {
    const uint32_t n = std::min(kChunk - at % kChunk, end - at);
    const Outcome o =
        writes ? shadow_.write(warp, l.place + at, n, strong) : shadow_.read(warp, l.place + at, n, strong);
    if (all.ok()) all = o;
    if (!all.ok() && !shadow_.records_races()) break;
    at += n;
  }
  return all;
}

}  // namespace roofgen::sim
