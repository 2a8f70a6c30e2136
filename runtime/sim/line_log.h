// The lane and the instruction of the last writes to lines of device memory, for each warp: they find races between the
// lanes of a warp, and name the other place of a race between warps. A warp remembers few lines, the last of those that
// share a place in its table, and reads are not remembered: a lane that writes what another has read is not found.
#pragma once

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
  WordLog::Other read(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const;
  WordLog::Other write(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong);
  /// Bytes of one line, of lanes one after the other: those from the `begin`th of a request of `bytes` each. False:
  /// maybe a race, and nothing has changed.
  bool read_row(uint32_t warp, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes) const;
  bool write_row(uint32_t warp, uint32_t pc, uint64_t address, uint32_t n, uint32_t begin, uint32_t bytes);

  /// The instruction that last wrote there, if this warp's table still has it.
  std::optional<uint32_t> place_of_write(uint32_t warp, uint64_t address) const;
  uint64_t bytes() const;

 private:
  struct Line {
    uint64_t number = 0;  ///< address / kLineBytes; 0: none
    uint64_t stamp = 0;   ///< of the warp (WordLog::stamp) when it wrote all of this
    uint32_t pc = 0;
    LineBits wrote, strong;
    uint8_t lane[kLineBytes];  ///< per byte
  };

  const Line* find(uint32_t warp, uint64_t address) const;
  Line& make(uint32_t warp, uint64_t address);
  WordLog::Other check(const WordLog::Thread& t, uint64_t address, uint32_t bytes, bool strong) const;

  const WordLog& log_;
  uint64_t begin_[kMaxWarps] = {};      ///< stamps when the CTA began
  std::vector<Line> lines_[kMaxWarps];  ///< empty: the warp has written nothing
};

}  // namespace roofgen::sim
