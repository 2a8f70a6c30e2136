// The accesses to device memory in a launch that a later access of another CTA may race with. Each line has a list of
// records, the newest first. A record whose bytes later accesses supersede disappears, so most lines have one or two.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/sim/inst.h"
#include "runtime/sim/memory.h"

namespace roofgen::sim {

enum class What : uint8_t { kRead, kWrite, kStrongRead, kStrongWrite };
constexpr bool writes(What what) { return what == What::kWrite || what == What::kStrongWrite; }
constexpr bool is_strong(What what) { return what >= What::kStrongRead; }

struct GridAccess {
  uint32_t cta = 0;  ///< ordinal, or kSeveral
  uint32_t at = 0;   ///< warp << 27 | stamp; 0 in a launch whose CTAs do not synchronise
  What what = What::kRead;
  MemoryScope scope = MemoryScope::kSys;  ///< of a strong access

  static constexpr uint32_t kSeveral = ~0u;
  bool operator==(const GridAccess&) const = default;
};
struct AccessRecord : GridAccess {
  LineBits bits;
  uint32_t next = 0;
};

class AccessHistory {
 public:
  static constexpr LineBits kAll{~uint64_t{0}, ~uint64_t{0}};
  AccessHistory() : records_(1) {}

  /// The newest access to the line if it covers `bits`, else null.
  const GridAccess* newest(uint32_t slot, LineBits bits) const {
    const Line* l = line(slot);
    if (!l || l->whole) return l;
    const AccessRecord& r = records_[l->first];
    return bits.without(r.bits).any() ? nullptr : &r;
  }
  /// Adds an access to a whole line if no other CTA has accessed it, or both only read and nothing orders them.
  bool add_simply(uint32_t slot, const GridAccess& added, bool ordered);
  /// Moves the access to a whole line into a record, for find().
  void unfold(uint32_t slot);
  /// The newest record that overlaps with `bits` and for which `f` holds; null: none.
  template <class F>
  const AccessRecord* find(uint32_t slot, LineBits bits, F&& f) const {
    const Line* l = line(slot);
    for (uint32_t i = l ? l->first : 0; i; i = records_[i].next)
      if (records_[i].bits.meets(bits) && f(records_[i])) return &records_[i];
    return nullptr;
  }
  /// `before(r)`: record r is of an access that is ordered before the new one. `keeps_writes`: plain writes of other
  /// CTAs that are not ordered before this write stay, as all wrote equal values.
  template <class Before>
  void add(uint32_t slot, AccessRecord added, bool keeps_writes, Before&& before);
  /// The same for a read in a launch whose CTAs do not synchronise: of several readers none needs a record of its own.
  void add_unordered_read(uint32_t slot, AccessRecord added);

  /// Whether accesses to a line race with accesses of other CTAs in another history, if nothing orders them.
  bool races(uint32_t slot, const AccessHistory& other, uint32_t others_slot) const;
  /// Calls `f` for each access to a line, until one call returns true. Whether one did.
  template <class F>
  bool any_record(uint32_t slot, F&& f) const {
    const Line* l = line(slot);
    if (!l) return false;
    if (l->whole) return f(AccessRecord{*l, kAll});
    return find(slot, kAll, f) != nullptr;
  }
  /// Adds the records of a line in another history.
  void take(uint32_t slot, const AccessHistory& other, uint32_t others_slot);
  /// Calls `f` for the slots of all lines that were accessed, until one call returns true. Whether one did.
  template <class F>
  bool any_line(F&& f) const {
    for (uint32_t page = 0; page < pages_.size(); ++page)
      for (uint32_t i = 0; pages_[page] && i < kPage; ++i)
        if (const Line& l = (*pages_[page])[i]; (l.whole || l.first) && f(page * kPage + i)) return true;
    return false;
  }
  void forget(uint32_t slot) { line_for_write(slot) = {}; }
  void clear();

 private:
  static constexpr uint32_t kPage = 256;  ///< workers take as many slots at a time, so that few pages have slots of two
  /// Most lines have one access, to all of it, which is in the line itself.
  struct Line : GridAccess {
    bool whole = false;  // in the padding of the access: there is a line for each 128 bytes
    uint32_t first = 0;  ///< the newest record; 0: none
  };
  static_assert(sizeof(Line) == 16);

  const Line* line(uint32_t slot) const {
    const uint32_t page = slot / kPage;
    return page < pages_.size() && pages_[page] ? &(*pages_[page])[slot % kPage] : nullptr;
  }
  Line& line_for_write(uint32_t slot);
  void unfold(Line& l);
  void fold(Line& l);
  void push(Line& l, const AccessRecord& r);
  template <class F>
  void drop_if_empty(Line& l, F&& each);

  std::vector<std::unique_ptr<std::array<Line, kPage>>> pages_;  ///< by slot
  std::vector<AccessRecord> records_;                            ///< the first stands for none
  uint32_t free_ = 0;                                            ///< list of unused records
};

/// Calls `each` for the records of the line, and drops those without bytes.
template <class F>
void AccessHistory::drop_if_empty(Line& l, F&& each) {
  for (uint32_t* link = &l.first; *link;) {
    const uint32_t i = *link;
    AccessRecord& r = records_[i];
    each(r);
    if (r.bits.any()) {
      link = &r.next;
    } else {
      *link = r.next;
      r.next = free_;
      free_ = i;
    }
  }
}

template <class Before>
void AccessHistory::add(uint32_t slot, AccessRecord added, bool keeps_writes, Before&& before) {
  // Enough records of unordered accesses of one kind to show that an order is missing.
  constexpr uint32_t kMostOfCta = 1, kMost = 5, kMostWrites = 8, kMostInAll = 64;
  uint32_t of_cta = 0, others = 0, in_all = 0;
  const LineBits bits = added.bits;
  Line& l = line_for_write(slot);
  unfold(l);
  drop_if_empty(l, [&](AccessRecord& r) {
    const bool own = r.cta == added.cta, same = static_cast<GridAccess&>(r) == added;
    if (same) added.bits.add(r.bits);
    if (same || ++in_all > kMostInAll) r.bits = {};
    if (!r.bits.meets(bits)) return;
    const bool is_before = before(r);
    bool gone = false;
    switch (added.what) {
      case What::kWrite:
        gone = own || is_before || !keeps_writes || r.what != What::kWrite;
        if (!gone && ++others >= kMostWrites) r.cta = GridAccess::kSeveral;
        break;
      case What::kRead: gone = is_before && !writes(r.what); break;
      case What::kStrongRead: gone = is_before && r.what == What::kStrongRead; break;
      // A plain access stays: it races with the atomics of third CTAs, this one does not.
      case What::kStrongWrite: gone = is_before && is_strong(r.what); break;
    }
    if (!gone && r.what == added.what && added.what != What::kWrite)
      gone = own ? ++of_cta > kMostOfCta : ++others > kMost;
    if (gone) r.bits.remove(bits);
  });
  push(l, added);
  fold(l);
}

}  // namespace roofgen::sim
