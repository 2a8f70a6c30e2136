// The lanes and the instruction of the last writes and reads of lines of device memory, for each warp: they find races
// between the lanes of a warp, and name the other place of a race between warps. A warp remembers few lines that it has
// written, and as many that it has read: the last of those that share a place in its table.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "runtime/sim/memory.h"
#include "runtime/sim/word_log.h"

namespace roofgen::sim {

class LineLog {
 public:
  static constexpr uint32_t kLogLines = 6;
  explicit LineLog(const WordLog& log) : log_(log) {}
  void reset();

  /// An access of one lane within a line. The other access of a race, if it makes one.
  WordLog::Other read(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong);
  WordLog::Other write(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong);
  /// Whether the warp has written none of these bytes of a line since its lanes were in order.
  bool is_unwritten(uint32_t warp, uint64_t line, LineBits bits) const;
  /// For plain reads of bytes that are unwritten: the lanes that read each byte of a line.
  uint32_t* readers(uint32_t warp, uint64_t line, uint32_t pc) { return make(read_[warp], warp, line, pc).lanes(); }
  /// Bytes of one line, of lanes one after the other: those from the `begin`th of a request of `bytes` each. False:
  /// maybe a race, and nothing has changed.
  bool read_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes);
  bool write_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes);

  /// The instruction that last wrote there, if this warp's table still has it.
  std::optional<uint32_t> place_of_write(uint32_t warp, uint64_t address) const;
  uint64_t bytes() const;

 private:
  struct Line {
    uint64_t number = 0;  ///< address / kLineBytes; 0: none
    uint64_t stamp = 0;   ///< of the warp (WordLog::stamp) when it made all of these accesses
    uint32_t pc = 0;
    bool is(uint64_t address) const { return number == address / kLineBytes; }
  };
  struct Written : Line {
    LineBits bytes, strong;
    uint8_t lane[kLineBytes];  ///< per byte
    void clear() { bytes = strong = {}; }
  };
  /// `n` bytes from `at` on, those from the `begin`th of a request of `bytes` for each lane.
  struct Row {
    uint32_t at, n = 0, begin, bytes;
    bool operator==(const Row&) const = default;
  };
  class Read : public Line {
   public:
    void clear() { row_ = {}, has_masks_ = false; }
    /// By byte, the lanes that read it.
    uint32_t* lanes();
    void add(const Row& row);
    bool is_only(const Row& row) const { return !has_masks_ && row_ == row; }

   private:
    void record(const Row& row);
    Row row_{};  ///< all that was read, until there are masks
    bool has_masks_ = false;
    uint32_t lanes_[kLineBytes];
  };
  template <class L>
  using Table = std::vector<L>;  ///< of a warp; empty: it has made no such access

  /// Where in the table: buffers begin far apart at the same low bits.
  static uint32_t home(uint64_t address) {
    return static_cast<uint32_t>((address / kLineBytes * 0x9e3779b97f4a7c15u) >> (64 - kLogLines));
  }
  /// Null, or a line with accesses that not all lanes have put in order.
  template <class T>
  auto* find(T& table, uint32_t warp, uint64_t address) const {
    auto* const none = static_cast<decltype(table.data())>(nullptr);
    if (table.empty()) return none;
    auto& line = table[home(address)];
    return line.is(address) && line.stamp >= begin_[warp] && line.stamp > log_.settled(warp) ? &line : none;
  }
  template <class L>
  L& make(Table<L>& table, uint32_t warp, uint64_t address, uint32_t pc) {
    if (table.empty()) table.resize(1u << kLogLines);
    L& line = table[home(address)];
    const uint64_t now = log_.stamp(warp);
    line.pc = pc;
    if (line.is(address) && line.stamp == now) return line;
    line.number = address / kLineBytes;
    line.stamp = now;
    line.clear();
    return line;
  }
  WordLog::Other check(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const;
  bool is_own_row(uint32_t warp, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) const;

  const WordLog& log_;
  uint64_t begin_[kMaxWarps] = {};  ///< stamps when the CTA began
  Table<Written> written_[kMaxWarps];
  Table<Read> read_[kMaxWarps];
};

}  // namespace roofgen::sim
