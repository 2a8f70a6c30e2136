// Sparse device memory. A buffer of any size costs only the 128-byte lines that are touched: each
// has a slot in one pool, found through a table per buffer. Input lines are made by their Fill on
// first touch; other lines remember which bytes were ever written and by which CTA.
//
// Many threads may use one memory: lines of inputs are filled under a lock and published by their
// table entry; buffers that are written belong to one launch at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "runtime/executor.h"

namespace roofgen::sim {

inline constexpr uint32_t kLineBytes = 128;
/// Buffers start at odd multiples of 256 bytes with at least this much of nothing between them.
inline constexpr uint64_t kGuardBytes = uint64_t{1} << 21;
/// Filled lines that stay resident before the oldest are dropped: 24 MiB. Most are read by neighbouring CTAs only.
inline constexpr uint64_t kDefaultFilledCap = (uint64_t{24} << 20) / kLineBytes;

/// Bits [begin, end) of a line's 128.
struct LineBits {
  uint64_t low = 0, high = 0;
  bool operator==(const LineBits&) const = default;
  static LineBits of(uint32_t begin, uint32_t end) {
    const auto below = [](uint32_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
    return {below(end < 64 ? end : 64) & ~below(begin < 64 ? begin : 64),
            below(end > 64 ? end - 64 : 0) & ~below(begin > 64 ? begin - 64 : 0)};
  }
  void add(LineBits b) { low |= b.low, high |= b.high; }
  void remove(LineBits b) { low &= ~b.low, high &= ~b.high; }
  bool meets(LineBits b) const { return (low & b.low) || (high & b.high); }
  bool any() const { return low || high; }
  LineBits without(LineBits b) const { return {low & ~b.low, high & ~b.high}; }
  LineBits common(LineBits b) const { return {low & b.low, high & b.high}; }
  /// Those of the `chunk`th 16 bytes.
  uint32_t of_chunk(uint32_t chunk) const {
    return static_cast<uint16_t>((chunk < 4 ? low : high) >> (chunk & 3) * 16);
  }
};

/// A private, zero-filled, lazily backed mapping.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  bool reserve(uint64_t bytes);
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

struct Buffer {
  uint64_t base = 0, bytes = 0;
  std::string label;
  Fill fill;  ///< null: poisoned until written
  Mapping table_memory;
  std::atomic<uint32_t>* table = nullptr;  ///< slot per line, 0 = none
  std::mutex mutex;                        ///< guards `lines`
  struct Line {
    uint64_t line;
    uint32_t slot;
  };
  std::vector<Line> lines;  ///< all lines with a slot, oldest first
  bool evictable() const { return is_input() && !written.load(std::memory_order_relaxed); }
  /// Whether no kernel may write to it.
  bool is_input() const { return fill != nullptr && !updated; }
  std::atomic<bool> written{false};  ///< a filled buffer that the host wrote to
  bool updated = false;              ///< a filled buffer that kernels write to
};

/// The buffers that exist at some moment, by address; launches hold one.
using BufferList = std::vector<std::shared_ptr<Buffer>>;

class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t filled_cap = kDefaultFilledCap) : filled_cap_(filled_cap) {}
  /// `max_bytes`: of the lines that are touched; 0: as much as the system gives, up to 32 GiB.
  Result<void> initialise(uint64_t max_bytes = 0);

  /// `at`: the address, which the caller keeps apart from all others; 0: any.
  Result<uint64_t> allocate(uint64_t bytes, std::string label, Fill fill, uint64_t at = 0);
  /// Kernels may write to a buffer that has a Fill. Before a launch uses it.
  Result<void> allow_writes(uint64_t address);
  void release(uint64_t address);
  Result<void> write(uint64_t to, std::span<const std::byte> from);
  Result<void> read(uint64_t from, std::span<std::byte> to, std::vector<bool>* written);
  Result<void> poison(uint64_t address);

  std::shared_ptr<const BufferList> buffers() const;
  static Buffer* find(const BufferList& list, uint64_t address);

  /// Slot of a line for reading; 0 when it has never been written and has no Fill.
  uint32_t slot_for_read(Buffer& buffer, uint64_t line) {
    uint32_t slot = buffer.table[line].load(std::memory_order_acquire);
    return slot || !buffer.fill ? slot : fill_line(buffer, line);
  }
  /// Slot of a line for writing, made when needed; 0 when the pool is exhausted.
  uint32_t slot_for_write(Buffer& buffer, uint64_t line) {
    uint32_t slot = buffer.table[line].load(std::memory_order_acquire);
    return slot ? slot : fill_line(buffer, line);
  }
  std::byte* data(uint32_t slot) { return data_ + uint64_t{slot} * kLineBytes; }
  /// Bit i: byte i of the line was written. Two words.
  uint64_t* valid(uint32_t slot) { return valid_ + uint64_t{slot} * 2; }
  /// Of a private copy (private_lines.h): bit i: its worker wrote word i.
  uint32_t& written_words(uint32_t slot) { return written_words_[slot]; }
  /// For lines that are not in a buffer's table yet. Up to `count` slots are added; none: the pool is exhausted.
  void take_slots(std::vector<uint32_t>& slots, size_t count);
  void give_slots(std::span<const uint32_t> slots);
  /// Nothing is written there.
  void clear(uint32_t slot);
  /// The slot holds a line that had none.
  void place(Buffer& buffer, uint64_t line, uint32_t slot);

  /// Held (shared) while slots are in use; evict() takes it alone.
  std::shared_mutex& in_use() { return in_use_; }
  bool over_cap() const { return filled_.load(std::memory_order_relaxed) > filled_cap_; }
  /// Drops the older half of the filled lines of each input. Call without holding in_use().
  void evict();
  /// How many lines each buffer has that has a Fill; and, without holding in_use(), drops those that came after.
  std::vector<std::pair<std::shared_ptr<Buffer>, size_t>> filled_so_far();
  void drop_filled_since(const std::vector<std::pair<std::shared_ptr<Buffer>, size_t>>& marks);
  uint64_t filled_lines() const { return filled_.load(std::memory_order_relaxed); }

 private:
  uint32_t fill_line(Buffer& buffer, uint64_t line);
  uint32_t take_slot();
  uint32_t take_slot_locked();  ///< by a caller that holds mutex_
  /// Returns the pages of free slots to the system, and lets the lowest slots serve first.
  void give_pages_back();
  /// Drops a share of the lines after the `first` oldest, the older ones, and returns their number. Their owner may
  /// release the buffer meanwhile.
  size_t drop_lines(Buffer& buffer, size_t first, double share);
  Result<std::shared_ptr<Buffer>> locate(uint64_t address, uint64_t bytes);

  uint64_t filled_cap_;
  std::byte* data_ = nullptr;
  uint64_t* valid_ = nullptr;
  uint32_t* written_words_ = nullptr;
  Mapping memory_;
  uint32_t slots_ = 0;

  mutable std::mutex mutex_;  ///< guards the list, the next address and free slots
  std::shared_ptr<const BufferList> list_ = std::make_shared<BufferList>();
  uint64_t next_address_;
  uint32_t next_slot_ = 1;
  std::vector<uint32_t> free_slots_;
  size_t without_pages_ = 0;            ///< of them, the first ones, in descending order
  std::array<std::mutex, 64> stripes_;  ///< one fill of a line at a time
  std::atomic<uint64_t> filled_{0};
  std::shared_mutex in_use_;
};

}  // namespace roofgen::sim
