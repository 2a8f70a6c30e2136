// The launches of a stream that a dependent launch (Launch::overlap) may run beside, and the bytes of device memory
// that they accessed. griddepcontrol.wait holds a thread until the launch before has ended and its writes are visible.
// That launch has the same guarantee about those before it only if it waited itself.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sim/access_history.h"

namespace roofgen::sim {

/// Copies share the records of accesses.
class Prerequisites {
 public:
  struct Grid {
    struct Line {
      uint64_t number;  ///< address / kLineBytes
      LineBits read, written;
    };
    std::string kernel;
    std::vector<Line> lines;  ///< in ascending order; none of inputs
  };
  struct Conflict {
    const Grid* grid;  ///< null: none
    bool written;      ///< the grid wrote one of the bytes, else it only read them
    bool ends;         ///< before griddepcontrol.wait does
  };

  /// Whether a thread that has waited may access everything.
  bool all_end() const;
  /// A grid that an access conflicts with: of a thread that has not waited any grid, else one that the wait leaves out.
  Conflict conflict(uint64_t address, uint32_t bytes, bool writes, bool waited) const;

  /// What a dependent launch does about its prerequisites.
  struct Conduct {
    std::atomic<bool> waited = false;           ///< a thread executed griddepcontrol.wait
    std::atomic<bool> triggered_early = false;  ///< a thread that had not waited executed .launch_dependents
  };
  /// Adds a launch. `conduct`: of a dependent launch; null: all launches before it have ended.
  void add(const std::string& kernel, const AccessHistory& history, const BufferList& buffers, const Conduct* conduct);

 private:
  struct Entry {
    std::shared_ptr<const Grid> grid;
    bool ends;
  };
  std::vector<Entry> grids_;  ///< in their order
};

}  // namespace roofgen::sim
