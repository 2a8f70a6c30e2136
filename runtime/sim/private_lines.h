// Private copies of the lines of device memory that one worker of a launch writes. Other workers and the host see the
// old lines until the wave has ended and no worker depended on another's writes (parallel.h), or never, if the run only
// looks for findings.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/sim/memory.h"

namespace roofgen::sim {

class PrivateLines {
 public:
  struct Line {
    Buffer* buffer;
    uint64_t line;
    uint32_t slot;        ///< 0: it was put in the buffer's table
    bool shared = false;  ///< others have copies too
  };

  explicit PrivateLines(DeviceMemory& memory) : memory_(memory) {}
  ~PrivateLines();
  PrivateLines(const PrivateLines&) = delete;
  PrivateLines& operator=(const PrivateLines&) = delete;

  /// Slot of the copy; 0: there is none.
  uint32_t find(const Buffer& buffer, uint64_t line) const {
    for (const Table& t : tables_)
      if (t.buffer == &buffer) return t.slots[line];
    return 0;
  }
  /// Slot of the copy, made when needed; 0: there is no room.
  uint32_t copy(Buffer& buffer, uint64_t line);
  std::vector<Line>& lines() { return lines_; }
  /// No copies; their slots serve again.
  void reset();

  /// Reads of constants, which are missing from the counted sectors.
  void note_uncounted_read(const Buffer* buffer) {
    if (!reads_uncounted(buffer)) uncounted_.push_back(buffer);
  }
  bool reads_uncounted(const Buffer* buffer) const {
    return std::find(uncounted_.begin(), uncounted_.end(), buffer) != uncounted_.end();
  }

 private:
  struct Table {
    const Buffer* buffer;
    std::unique_ptr<Mapping> memory;
    uint32_t* slots;  ///< per line, 0 = none
  };
  Table* table_of(const Buffer& buffer);

  DeviceMemory& memory_;
  std::vector<Table> tables_;  ///< of the buffers written, most often one or two
  std::vector<Line> lines_;
  std::vector<uint32_t> free_slots_;
  std::vector<const Buffer*> uncounted_;
};

/// Device memory as seen by the CTAs of a launch or of one of its workers.
class MemoryView {
 public:
  MemoryView(DeviceMemory& memory) : memory_(&memory) {}  // NOLINT: all of it, as it is
  /// `alone`: no other worker runs CTAs of the launch at the same time.
  MemoryView(DeviceMemory& memory, PrivateLines& own, bool alone = false)
      : memory_(&memory), own_(&own), alone_(alone) {}

  uint32_t slot_for_read(Buffer& buffer, uint64_t line) {
    if (own_)
      if (const uint32_t slot = own_->find(buffer, line)) return slot;
    return memory_->slot_for_read(buffer, line);
  }
  uint32_t slot_for_write(Buffer& buffer, uint64_t line) {
    return own_ ? own_->copy(buffer, line) : memory_->slot_for_write(buffer, line);
  }
  std::byte* data(uint32_t slot) { return memory_->data(slot); }
  uint64_t* valid(uint32_t slot) { return memory_->valid(slot); }
  /// A write to bytes of one line.
  void note_written(uint32_t slot, uint32_t at, uint32_t bytes) {
    if (!own_) return;
    const uint32_t first = at / 4, words = (at + bytes - 1) / 4 - first + 1;
    memory_->written_words(slot) |= ~0u >> (32 - words) << first;
  }
  DeviceMemory& all() const { return *memory_; }
  /// Other workers run CTAs of the launch at the same time: results that depend on the order of CTAs are not available.
  bool is_private() const { return own_ && !alone_; }
  void note_uncounted_read(const Buffer* buffer) {
    if (own_) own_->note_uncounted_read(buffer);
  }

 private:
  DeviceMemory* memory_;
  PrivateLines* own_ = nullptr;
  bool alone_ = false;
};

}  // namespace roofgen::sim
