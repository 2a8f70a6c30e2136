#include "runtime/sim/private_lines.h"

#include <cstring>

namespace roofgen::sim {
namespace {

constexpr size_t kSlotsAtATime = 256;

}  // namespace

PrivateLines::~PrivateLines() {
  reset();
  memory_.give_slots(free_slots_);
}

void PrivateLines::reset() {
  for (const Line& l : lines_) {
    table_of(*l.buffer)->slots[l.line] = 0;
    if (l.slot) free_slots_.push_back(l.slot);
  }
  lines_.clear();
  uncounted_.clear();
}

PrivateLines::Table* PrivateLines::table_of(const Buffer& buffer) {
  for (Table& t : tables_)
    if (t.buffer == &buffer) return &t;
  auto memory = std::make_unique<Mapping>();
  if (!memory->reserve((buffer.bytes + kLineBytes - 1) / kLineBytes * sizeof(uint32_t))) return nullptr;
  auto* slots = static_cast<uint32_t*>(memory->data());
  return &tables_.emplace_back(Table{&buffer, std::move(memory), slots});
}

uint32_t PrivateLines::copy(Buffer& buffer, uint64_t line) {
  Table* table = table_of(buffer);
  if (!table) return 0;
  uint32_t& slot = table->slots[line];
  if (slot) return slot;
  if (free_slots_.empty()) memory_.take_slots(free_slots_, kSlotsAtATime);
  if (free_slots_.empty()) return 0;
  slot = free_slots_.back();
  free_slots_.pop_back();
  if (const uint32_t from = memory_.slot_for_read(buffer, line)) {
    std::memcpy(memory_.data(slot), memory_.data(from), kLineBytes);
    std::memcpy(memory_.valid(slot), memory_.valid(from), kLineBytes / 8);
  } else {
    memory_.clear(slot);
  }
  memory_.written_words(slot) = 0;
  lines_.push_back({&buffer, line, slot});
  return slot;
}

}  // namespace roofgen::sim
