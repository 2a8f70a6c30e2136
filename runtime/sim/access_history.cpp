#include "runtime/sim/access_history.h"

namespace roofgen::sim {

AccessHistory::Line& AccessHistory::line_for_write(uint32_t slot) {
  const uint32_t page = slot / kPage;
  if (page >= pages_.size()) pages_.resize(page + 1);
  if (!pages_[page]) pages_[page] = std::make_unique<std::array<Line, kPage>>();
  return (*pages_[page])[slot % kPage];
}

void AccessHistory::push(Line& l, const AccessRecord& r) {
  uint32_t i = free_;
  if (i) {
    free_ = records_[i].next;
    records_[i] = r;
  } else {
    i = static_cast<uint32_t>(records_.size());
    records_.push_back(r);
  }
  records_[i].next = l.first;
  l.first = i;
}

void AccessHistory::unfold(Line& l) {
  if (!l.whole) return;
  l.whole = false;
  push(l, {l, kAll});
}

void AccessHistory::unfold(uint32_t slot) {
  if (line(slot)) unfold(line_for_write(slot));
}

void AccessHistory::fold(Line& l) {
  AccessRecord& r = records_[l.first];
  if (r.next || kAll.without(r.bits).any()) return;
  static_cast<GridAccess&>(l) = r;
  l.whole = true;
  r.next = free_;
  free_ = l.first;
  l.first = 0;
}

bool AccessHistory::add_simply(uint32_t slot, const GridAccess& added, bool ordered) {
  Line& l = line_for_write(slot);
  if (!l.whole && l.first) return false;
  if (l.whole && l.cta != added.cta && !ordered && l.what == What::kRead && added.what == What::kRead) {
    l.cta = GridAccess::kSeveral;
    return true;
  }
  if (l.whole && (l.cta != added.cta || l.at != added.at || is_strong(l.what) || is_strong(added.what))) return false;
  if (!l.whole || l.what == What::kRead) static_cast<GridAccess&>(l) = added;
  return l.whole = true;
}

void AccessHistory::add_unordered_read(uint32_t slot, AccessRecord added) {
  const bool is_several = added.cta == GridAccess::kSeveral;
  AccessRecord several{{GridAccess::kSeveral}, is_several ? added.bits : LineBits{}};
  Line& l = line_for_write(slot);
  unfold(l);
  drop_if_empty(l, [&](AccessRecord& r) {
    if (r.what != What::kRead) return;
    const bool all = r.cta == added.cta || r.cta == GridAccess::kSeveral;
    const LineBits moved = all ? r.bits : r.bits.common(added.bits);
    (r.cta == added.cta && !is_several ? added : several).bits.add(moved);
    r.bits.remove(moved);
  });
  added.bits.remove(several.bits);
  if (added.bits.any()) push(l, added);
  if (several.bits.any()) push(l, several);  // first, where the next reader finds it
  fold(l);
}

bool AccessHistory::races(uint32_t slot, const AccessHistory& other, uint32_t others_slot) const {
  return any_record(slot, [&](const AccessRecord& r) {
    return other.any_record(others_slot, [&](const AccessRecord& o) {
      return o.cta != r.cta && (writes(o.what) || writes(r.what)) && o.bits.meets(r.bits);
    });
  });
}

void AccessHistory::take(uint32_t slot, const AccessHistory& other, uint32_t others_slot) {
  other.any_record(others_slot, [&](const AccessRecord& r) {
    if (r.bits == kAll && add_simply(slot, r, false)) return false;
    if (r.what == What::kRead)
      add_unordered_read(slot, r);
    else
      add(slot, r, true, [&](const AccessRecord& own) { return own.cta == r.cta; });
    return false;
  });
}

void AccessHistory::clear() {
  pages_.clear();
  records_.resize(1);
  free_ = 0;
}

}  // namespace roofgen::sim
