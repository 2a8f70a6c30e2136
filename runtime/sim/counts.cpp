#include "runtime/sim/counts.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace roofgen::sim {

SectorSet::SectorSet() : entries_(64) {}

size_t SectorSet::find(uint64_t number) const {
  size_t at = (number * 0x9e3779b97f4a7c15ull >> 20) & (entries_.size() - 1);
  while (entries_[at].number_plus_1 && entries_[at].number_plus_1 != number + 1) at = (at + 1) & (entries_.size() - 1);
  return at;
}

uint32_t SectorSet::page(uint64_t number) {
  Entry& found = entries_[find(number)];
  if (found.number_plus_1) return found.at;
  const auto at = static_cast<uint32_t>(pages_.size());
  found = {number + 1, at};
  pages_.emplace_back();
  if (pages_.size() * 2 > entries_.size()) {
    const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
    for (const Entry& e : old)
      if (e.number_plus_1) entries_[find(e.number_plus_1 - 1)] = e;
  }
  return at;
}

void SectorSet::add(const SectorSet& other) {
  for (const Entry& e : other.entries_) {
    if (!e.number_plus_1) continue;
    Page& mine = pages_[page(e.number_plus_1 - 1)];
    for (size_t i = 0; i < kPageLines; ++i) mine[i] |= other.pages_[e.at][i];
  }
}

uint8_t SectorSet::reads_of(uint64_t line) const {
  const Entry& e = entries_[find(line / kPageLines)];
  return e.number_plus_1 ? pages_[e.at][line % kPageLines] & 15 : 0;
}

namespace {
/// Bits of half a byte: hosts without an instruction for it would make a call.
constexpr uint8_t kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
}  // namespace

void SectorSet::clear() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  pages_.clear();
  last_ = ~uint64_t{0};
}

uint64_t SectorSet::reads() const {
  uint64_t n = 0;
  for (const Page& p : pages_)
    for (uint8_t masks : p) n += kBits[masks & 15u];
  return n;
}
uint64_t SectorSet::writes() const {
  uint64_t n = 0;
  for (const Page& p : pages_)
    for (uint8_t masks : p) n += kBits[masks >> 4u];
  return n;
}

Wavefronts shared_wavefronts(const uint32_t* addresses, uint32_t mask, uint32_t bytes) {
  uint32_t shift = bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4;
  uint32_t group = lanes_served_together(addresses, mask, bytes), banks = 128u >> shift;
  Wavefronts result;
  for (uint32_t first = 0; first < 32; first += group) {
    uint32_t lanes = group == 32 ? mask : (mask >> first) & ((1u << group) - 1);
    if (!lanes) continue;
    ++result.ideal;
    uint32_t banks_asked = 0, twice = 0;
    const auto ask = [&](uint32_t lane) {
      const uint32_t bank = 1u << (addresses[first + lane] >> shift & (banks - 1));
      twice |= banks_asked & bank;
      banks_asked |= bank;
    };
    if (lanes == ~0u >> (32 - group))
      for (uint32_t l = 0; l < group; ++l) ask(l);
    else
      for (uint32_t m = lanes; m; m &= m - 1) ask(first_lane(m));
    if (!twice) {  // the most common, and the cheapest to see
      ++result.needed;
      continue;
    }
    uint32_t words[32][32], depth[32] = {}, worst = 1;
    for (uint32_t m = lanes; m; m &= m - 1) {
      uint32_t word = addresses[first + first_lane(m)] >> shift, bank = word & (banks - 1);
      uint32_t k = 0;
      while (k < depth[bank] && words[bank][k] != word) ++k;
      if (k < depth[bank]) continue;
      words[bank][depth[bank]++] = word;
      worst = std::max(worst, depth[bank]);
    }
    result.needed += worst;
  }
  return result;
}

Wavefronts climbing_wavefronts(uint32_t step, uint32_t bytes) {
  // Lanes meet again in a bank after banks / gcd(step, banks) of them; the gcd with a power of two is the lowest bit.
  const uint32_t words = step / bytes, banks = 128 / bytes, groups = words ? bytes / 4 : std::max(1u, bytes / 8);
  return {groups * (words ? std::min(words & (0 - words), banks) : 1), groups};
}

void Counter::on(const CtaBegin& e) {
  ++counts_.ctas;
  if (traces_ && traces_->size() <= e.ordinal) traces_->resize(e.ordinal + 1);
}

void Counter::on(const SharedAccess& e) {
  if (!e.is_request) return;
  const Wavefronts w = e.climbs ? climbing_wavefronts(e.step, e.bytes) : shared_wavefronts(e.offset, e.mask, e.bytes);
  Requests& r = requests_[e.site.pc];
  r.wavefronts += w.needed;
  r.ideal_wavefronts += w.ideal;
}

void Counter::on(const DeviceAccess& e) {
  if (!e.is_request) return;
  if (e.address)
    add_lanes(e);
  else
    add_row(e.site.pc, e.first, e.bytes * kWarpSize, e.op != Op::kRead);
  if (e.op != Op::kRead) return;
  // A tile is loaded by all lanes, each as much as its registers hold, however many requests that takes.
  const bool tile = e.site.inst.kind == Kind::kWmmaLoad;
  const uint64_t lanes = !tile ? static_cast<uint64_t>(__builtin_popcount(e.mask)) : e.part == 0 ? kWarpSize : 0;
  ((tile ? 4u * e.site.inst.count : e.bytes) >= 16 ? counts_.bulk_load_16 : counts_.narrow_load) += lanes;
}

void Counter::on(const AsyncWait& e) {
  if (!e.landed) return;
  ++counts_.async_waits;
  counts_.async_distance += e.distance;
}

/// Shared memory delivers 128 bytes at a time; the layouts of matrices have no conflicts.
void Counter::on(const WgmmaIssue& e) {
  Requests& r = requests_[e.site.pc];
  r.wavefronts += e.offsets.size() / 8;
  r.ideal_wavefronts += e.offsets.size() / 8;
}

void Counter::on(const TensorRead& e) {
  Requests& r = requests_[e.site.pc];
  r.wavefronts += e.offsets.size() / 8;
  r.ideal_wavefronts += e.offsets.size() / 8;
}

void Counter::add_lanes(const DeviceAccess& e) {
  const bool write = e.op != Op::kRead;
  uint64_t lines[32];
  uint8_t sectors[32];
  uint32_t n = 0, last = 0;
  for (uint32_t m = e.at_one_place ? 1 : e.mask; m; m &= m - 1) {
    uint64_t address = e.address[first_lane(m)], line = address >> 7;
    auto sector = static_cast<uint8_t>(1u << (address >> 5 & 3));  // an aligned access stays in one sector
    if (n == 0 || lines[last] != line) {
      for (last = 0; last < n && lines[last] != line; ++last) {
      }
      if (last == n) lines[n] = line, sectors[n++] = 0;
    }
    sectors[last] |= sector;
  }
  uint64_t total = 0;
  for (uint32_t i = 0; i < n; ++i) {
    total += static_cast<uint64_t>(__builtin_popcount(sectors[i]));
    sectors_.add(lines[i], write ? 0 : sectors[i], write ? sectors[i] : 0);
    if (trace_) trace_->push_back({lines[i], sectors[i], write});
  }
  (write ? counts_.l2_write_sectors : counts_.l2_read_sectors) += total;
  // Lanes that share an element need less than their bytes add up to.
  const uint64_t asked = (uint64_t{e.bytes} * static_cast<uint64_t>(__builtin_popcount(e.mask)) + 31) / 32;
  Requests& r = requests_[e.site.pc];
  r.sectors += total;
  r.ideal_sectors += std::min(total, asked);
}

void Counter::add_row(uint32_t pc, uint64_t first, uint32_t total, bool write) {
  const uint64_t end = first + total;
  uint64_t sum = 0;
  for (uint64_t line = first >> 7; line <= (end - 1) >> 7; ++line) {
    const uint64_t begin = std::max(first, line << 7) & 127, past = std::min(end - (line << 7), uint64_t{128});
    const uint64_t from = begin / 32, to = (past + 31) / 32;
    const auto sectors = static_cast<uint8_t>((1u << to) - (1u << from));
    sum += to - from;
    sectors_.add(line, write ? 0 : sectors, write ? sectors : 0);
    if (trace_) trace_->push_back({line, sectors, write});
  }
  (write ? counts_.l2_write_sectors : counts_.l2_read_sectors) += sum;
  Requests& r = requests_[pc];
  r.sectors += sum;
  r.ideal_sectors += std::min(sum, uint64_t{total / 32});
}

void Counter::add(const Counter& other) {
  for (size_t i = 0; i < executed_.size(); ++i) {
    executed_[i] += other.executed_[i];
    requests_[i].sectors += other.requests_[i].sectors;
    requests_[i].ideal_sectors += other.requests_[i].ideal_sectors;
    requests_[i].wavefronts += other.requests_[i].wavefronts;
    requests_[i].ideal_wavefronts += other.requests_[i].ideal_wavefronts;
  }
  counts_ += other.counts_;
  sectors_.add(other.sectors_);
}

void Counter::clear() {
  std::fill(executed_.begin(), executed_.end(), 0);
  std::fill(requests_.begin(), requests_.end(), Requests{});
  counts_ = {};
  sectors_.clear();
}

uint64_t Counter::warp_instructions() const { return std::accumulate(executed_.begin(), executed_.end(), uint64_t{0}); }

namespace {
/// The count of each class of instructions, in the order of Class.
constexpr uint64_t Counts::*kCountOfClass[] = {
    &Counts::int_alu,     &Counts::fp32,         &Counts::half,        &Counts::fp64,         &Counts::convert,
    &Counts::move,        &Counts::control,      &Counts::predicate,   &Counts::mufu,         &Counts::mufu,
    &Counts::mma,         &Counts::shuffle,      &Counts::ldmatrix,    &Counts::cp_async,     &Counts::barriers,
    &Counts::global_load, &Counts::global_store, &Counts::shared_load, &Counts::shared_store, &Counts::local,
    &Counts::atomics};
static_assert(std::size(kCountOfClass) == static_cast<size_t>(Class::kCount));
}  // namespace

Counts Counter::finish() const {
  Counts c = counts_;
  for (size_t i = 0; i < kernel_.code.size(); ++i) {
    const Inst& in = kernel_.code[i];
    if (in.flags & kFlagPart) continue;
    c.warp_instructions += executed_[i];
    c.*kCountOfClass[static_cast<size_t>(in.cls)] += executed_[i];
    if (in.cls == Class::kMma && in.kind != Kind::kTensor) {
      const uint64_t rows = in.kind == Kind::kMma ? MmaForm::of(in).rows : 16;
      c.mma_flops += executed_[i] * 2 * rows * 8 * in.count * in.sub;
    }
  }
  for (const Requests& r : requests_) {
    c.smem_wavefronts += r.wavefronts;
    c.smem_ideal_wavefronts += r.ideal_wavefronts;
  }
  c.unique_read_sectors = sectors_.reads();
  c.unique_write_sectors = sectors_.writes();
  return c;
}

namespace {
/// The polls of cooperative groups' barrier of the grid, in its header sync.h: whatever they see, every thread goes on
/// from the barrier.
bool is_of_grid_barrier(const Kernel& kernel, uint32_t pc) {
  return kernel.sources[pc].file.ends_with("/sync.h") &&
         std::ranges::any_of(kernel.specials, [](const SpecialRow& s) { return s.special == Special::kEnvreg1; });
}
}  // namespace

std::vector<SiteCounts> Counter::sites(bool executed) const {
  std::vector<SiteCounts> out;
  for (uint32_t i = 0; i < kernel_.code.size(); ++i) {
    const Inst& in = kernel_.code[i];
    if ((executed_[i] > 0) != executed || in.flags & kFlagPart) continue;
    if (!executed && (in.kind == Kind::kTrap || in.kind == Kind::kAssert)) continue;
    const Requests& r = requests_[i];
    out.push_back({{kernel_.file, static_cast<int>(kernel_.code[i].line), 0},
                   kernel_.sources[i],
                   executed_[i],
                   r.sectors,
                   r.ideal_sectors,
                   r.wavefronts,
                   r.ideal_wavefronts,
                   (in.flags & kFlagDecides) && !is_of_grid_barrier(kernel_, i)});
  }
  return out;
}

}  // namespace roofgen::sim
