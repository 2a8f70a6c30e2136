// Doubles in memory: loads, stores, atomics and copies take them along.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/sim/atomics.h"
#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/wmma.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kPieceBytes = 16;  ///< that stay together in a bulk copy

}  // namespace

// ---- by address ----------------------------------------------------------------------------------------

DoubleMemory::Page* DoubleMemory::page_at(uint64_t address) const {
  const uint64_t page = address / kPageBytes;
  if (page != last_page_) {
    const auto at = pages_.find(page);
    last_page_ = page;
    last_ = at == pages_.end() ? nullptr : at->second.get();
  }
  return last_;
}

const DoubleMemory::Cell* DoubleMemory::look(uint64_t address) const {
  if (pages_.empty() || address % 2) return nullptr;
  const Page* const page = page_at(address);
  if (!page) return nullptr;
  const Cell& cell = page->cells[address % kPageBytes / 2];
  return cell.format == Format::kNone ? nullptr : &cell;
}

const DoubleMemory::Cell* DoubleMemory::find(uint64_t address, uint64_t bits) const {
  const Cell* const cell = look(address);
  return cell && cell->own == (bits & low_bytes(bytes_of(cell->format))) ? cell : nullptr;
}

void DoubleMemory::put(uint64_t address, const Cell& cell) {
  if (address % 2) return;
  Page* page = page_at(address);
  if (!page) {
    auto& made = pages_[address / kPageBytes];
    made = std::make_unique<Page>();
    last_ = page = made.get();
  }
  page->cells[address % kPageBytes / 2] = cell;
}

void DoubleMemory::erase(uint64_t address, uint64_t bytes) {
  if (pages_.empty()) return;
  for (uint64_t at = address & ~uint64_t{1}; at < address + bytes; at += 2)
    if (Page* const page = page_at(at)) page->cells[at % kPageBytes / 2].format = Format::kNone;
}

CtaDoubles::Place CtaDoubles::place_of(const Warp& w, uint32_t lane, uint64_t address) {
  if (Machine::is_in_cluster_window(address)) {
    const uint64_t rank = (address - kClusterBase) / kClusterCtaBytes, own = address % kClusterCtaBytes;
    if (machine_.cluster_.empty()) return {rank ? nullptr : &memory_, own};
    return {rank < machine_.cluster_.size() ? &machine_.cluster_[rank]->doubles_->memory_ : nullptr, own};
  }
  if (address < kSharedWindowEnd) return {&memory_, address};
  if (address < kLocalWindowEnd) return {&memory_, address | Machine::local_key(w, lane)};
  if (address < kParamWindowEnd) return {nullptr, 0};
  return {&launch_.device_, address};
}

// ---- registers and memory ------------------------------------------------------------------------------

/// The double of what a register holds from a unit on, up to `bytes`, if memory has one.
void CtaDoubles::load_unit(const Warp& w, Register to, uint32_t unit, uint32_t bytes, uint32_t lane, Place from) {
  const DoubleMemory::Cell* const cell = from.memory ? from.memory->look(from.address) : nullptr;
  if (!cell || bytes_of(cell->format) > bytes) return;
  const uint64_t bits = bits_in(w, to.place, to.wide, lane) >> 16 * unit;
  if ((bits & low_bytes(bytes_of(cell->format))) == cell->own) set(w, to.place, unit, lane, *cell);
}

/// A register's bytes, from a unit on, become those of a place.
void CtaDoubles::store_units(const Warp& w, Register from, uint32_t first_unit, uint32_t bytes, uint32_t lane,
                             Place to) {
  if (!to.memory) return;
  to.memory->erase(to.address, bytes);
  for (uint32_t k = 0; 2 * k < bytes; ++k) {
    const uint32_t unit = first_unit + k;
    const Row& r = row(w, from.place + unit / 2);
    if (!(r.has[unit % 2] >> lane & 1)) continue;
    const Format format = r.format[unit % 2][lane];
    if (2 * k + bytes_of(format) > bytes) continue;
    const uint64_t bits = bits_in(w, from.place, from.wide, lane) >> 16 * unit;
    to.memory->put(to.address + 2 * k,
                   {bits & low_bytes(bytes_of(format)), r.value[unit % 2][lane], r.origin[unit % 2][lane], format});
  }
}

void CtaDoubles::load(const Warp& w, const Inst& in, uint32_t mask) {
  forget_results(w, in, mask);
  if (memory_.empty() && launch_.device_.empty() && machine_.cluster_.empty()) return;
  const uint32_t* const list = machine_.kernel_.lists.data() + in.list;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const Place from = place_of(w, l, address_[l]);
    for (uint32_t i = 0; i < in.count; ++i)
      for (uint32_t k = 0; 2 * k < in.size; ++k)
        load_unit(w, {list[i], in.size == 8 || in.flags & kFlagWide}, k, in.size - 2 * k, l,
                  {from.memory, from.address + i * in.size + 2 * k});
  }
}

void CtaDoubles::store(const Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t* const list = machine_.kernel_.lists.data() + in.list;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const Place to = place_of(w, l, address_[l]);
    for (uint32_t i = 0; i < in.count; ++i)
      store_units(w, {list[i], in.size == 8 || in.flags & kFlagWide}, 0, in.size, l,
                  {to.memory, to.address + i * in.size});
  }
}

/// Lanes take effect in order. The old value is the own result; a new one that is an operand's keeps its double.
void CtaDoubles::atomic(const Warp& w, const Inst& in, uint32_t mask) {
  const bool wide = in.size == 8;
  const auto op = static_cast<AtomicOp>(in.sub);
  const auto type = static_cast<ElementType>(in.type);
  const Format format = type == ElementType::kF32                                    ? Format::kF32
                        : type == ElementType::kF64                                  ? Format::kF64
                        : type == ElementType::kF16 || type == ElementType::kF16x2   ? Format::kF16
                        : type == ElementType::kBf16 || type == ElementType::kBf16x2 ? Format::kBf16
                                                                                     : Format::kNone;
  const bool adds = op == AtomicOp::kAdd && format != Format::kNone;
  const uint32_t step = adds ? bytes_of(format) : in.size;
  Numbers added[2];
  for (uint32_t part = 0; adds && part * step < in.size; ++part)
    read(w, in.b, part, format, saved_[1], mask, added[part]);
  const Row operand[2][2] = {{row(w, in.b), wide ? row(w, in.b + 1) : Row{}},
                             {row(w, in.c), wide ? row(w, in.c + 1) : Row{}}};
  forget_results(w, in, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const Place at = place_of(w, l, address_[l]);
    if (!at.memory) continue;
    const uint64_t old = bits_in(w, in.d, wide, l);
    const uint64_t now = apply_atomic(op, type, old, saved_[1][l], saved_[2][l]);
    for (uint32_t k = 0; 2 * k < in.size; ++k)
      load_unit(w, {in.d, wide}, k, in.size - 2 * k, l, {at.memory, at.address + 2 * k});
    for (uint32_t part = 0; adds && part * step < in.size; ++part) {
      const uint64_t all = low_bytes(step), own_bits = now >> 8 * step * part & all;
      const double old_own = decoded(format, old >> 8 * step * part & all), own = decoded(format, own_bits);
      const DoubleMemory::Cell* const cell = at.memory->find(at.address + step * part, old >> 8 * step * part);
      const double before = cell ? cell->value : old_own, value = before + added[part].value[l];
      uint32_t origin = cell ? cell->origin : 0;
      if (!origin && added[part].has >> l & 1) origin = added[part].origin[l];
      at.memory->erase(at.address + step * part, step);
      if (own == value || (std::isnan(own) && std::isnan(value))) continue;
      const bool apart = launch_.apart(own, value, format);
      if (apart && !origin)
        origin = depart(w, in, l, std::isfinite(own) ? Departure::kRounding : Departure::kOverflow, own, value);
      at.memory->put(at.address + step * part, {own_bits, value, apart ? origin : 0, format});
    }
    if (adds || now == old) continue;
    at.memory->erase(at.address, in.size);
    const uint32_t source = now == saved_[1][l] ? 0 : 1;
    for (uint32_t k = 0; now == saved_[1 + source][l] && 2 * k < in.size; ++k) {
      const Row& r = operand[source][k / 2];
      if (!(r.has[k % 2] >> l & 1) || 2 * k + bytes_of(r.format[k % 2][l]) > in.size) continue;
      at.memory->put(at.address + 2 * k, {now >> 16 * k & low_bytes(bytes_of(r.format[k % 2][l])), r.value[k % 2][l],
                                          r.origin[k % 2][l], r.format[k % 2][l]});
    }
  }
}

// ---- copies --------------------------------------------------------------------------------------------

/// Doubles go at once, and hold when the bits beside them arrive.
void CtaDoubles::copy(Place from, Place to, uint32_t bytes) {
  if (!to.memory) return;
  to.memory->erase(to.address, bytes);
  if (!from.memory || from.memory->empty()) return;
  for (uint32_t at = 0; at < bytes; at += 2)
    if (const DoubleMemory::Cell* cell = from.memory->look(from.address + at);
        cell && at + bytes_of(cell->format) <= bytes)
      to.memory->put(to.address + at, *cell);
}

void CtaDoubles::cp_async(const Warp& w, const Inst& in, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    copy(place_of(w, l, address_[l]), place_of(w, l, other_address_[l]),
         in.sub == 1 ? std::min<uint32_t>(static_cast<uint32_t>(saved_[0][l]), in.size) : in.size);
  }
}

void CtaDoubles::bulk_from(CtaDoubles& source, const std::vector<uint32_t>& from, const std::vector<uint32_t>& to) {
  for (size_t i = 0; i < from.size(); ++i)
    copy({&source.memory_, kSharedBase + from[i]}, {&memory_, kSharedBase + to[i]}, kPieceBytes);
}

void CtaDoubles::bulk_row(const Warp& w, const Inst& in, uint32_t lane, uint64_t device, uint32_t bytes, uint32_t begin,
                          const std::vector<uint32_t>& pieces) {
  for (uint32_t done = 0; done < bytes;) {
    const uint32_t at = begin + done, n = std::min(bytes - done, kPieceBytes - at % kPieceBytes);
    const Place far{&launch_.device_, device + done},
        near{&memory_, kSharedBase + pieces[at / kPieceBytes] + at % kPieceBytes};
    if (in.sub & kBulkIn)
      copy(far, near, n);
    else if (!(in.sub & kBulkReduces))
      copy(near, far, n);
    else
      for (uint32_t i = 0; i < n; i += 2)
        if (const DoubleMemory::Cell* cell = near.memory->look(near.address + i); cell && cell->origin)
          note(launch_.losses_, w, in, lane);
    done += n;
  }
}

/// ldmatrix and stmatrix: lane 8i+r addresses row r of matrix i, lane l holds two elements of row l / 4 of each;
/// turned, of column l / 4.
void CtaDoubles::matrix_rows(const Warp& w, const Inst& in) {
  const bool loads = in.kind == Kind::kLdmatrix;
  if (loads) forget_results(w, in, ~0u);
  if (in.type) {  // no halves
    for (uint32_t l = 0; l < 8u * in.count && !loads; ++l)
      if (const Place at = place_of(w, l, address_[l]); at.memory) at.memory->erase(at.address, 16);
    return;
  }
  for (uint32_t i = 0; i < in.count; ++i)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      for (uint32_t u = 0; u < 2; ++u) {
        const uint32_t along = l / 4, across = 2 * (l % 4) + u;
        const uint64_t line = address_[8 * i + (in.sub ? across : along)];
        Place at = place_of(w, l, line);
        at.address += 2 * (in.sub ? along : across);
        const uint32_t place = machine_.kernel_.lists[in.list + i], bytes = in.sub || u ? 2 : 4;
        if (loads)
          load_unit(w, {place}, u, bytes, l, at);
        else if (in.sub || u == 0)
          store_units(w, {place}, u, bytes, l, at);
      }
}

/// wmma.load and wmma.store.
void CtaDoubles::tile(const Warp& w, const Inst& in) {
  const WmmaFragment f = WmmaFragment::unpack(in.target);
  const bool loads = in.kind == Kind::kWmmaLoad;
  if (loads) forget_results(w, in, ~0u);
  if (f.bytes < 2) return;
  for (uint32_t r = 0; r < in.count; ++r)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      for (uint32_t j = 0; j < f.per_register(); ++j) {
        const WmmaFragment::At x = f.at(l, r, j);
        const uint64_t line = in.sub ? x.column : x.row, along = in.sub ? x.row : x.column;
        const Place at = place_of(w, l, address_[0] + (line * saved_[0][0] + along) * f.bytes);
        const uint32_t place = machine_.kernel_.lists[in.list + r];
        if (loads)
          load_unit(w, {place}, j, f.bytes, l, at);
        else
          store_units(w, {place}, j, f.bytes, l, at);
      }
}

}  // namespace roofgen::sim
