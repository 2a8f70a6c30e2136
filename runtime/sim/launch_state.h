// The state that all CTAs of a launch share, and the text of their findings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/code.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/prerequisites.h"
#include "runtime/sim/private_lines.h"

namespace roofgen::sim {

class Doubles;
class GridOrder;
class Listener;
class LockOrder;

/// Something the running kernel did wrong; ends its CTA. Thrown inside the machine only.
struct Fault {
  const char* kind;
  std::string message;
  uint32_t lane;
  uint32_t pc = ~0u;  ///< the instruction; that which is running, if it is not said
};

/// The findings after which a CTA goes on.
enum class GoOn : uint8_t {
  kNever,
  kUndefined,  ///< undefined behaviour that no GPU traps on: uninitialised, race, unfenced, barrier-order,
               ///< async-pending, out-of-array
  kAlways,     ///< also accesses that can be left out: out-of-bounds, misaligned, write-to-input
};

/// The kind of a fault that only parallel.cpp sees: the result of a CTA on a worker would depend on the order of CTAs.
inline constexpr const char* kOrderMatters = "order";

struct LaunchState {
  const Kernel& kernel;
  const Launch& launch;
  std::vector<std::byte> params;
  MemoryView memory;
  std::shared_ptr<const BufferList> buffers;
  uint64_t max_instructions;    ///< warp-instructions per CTA
  uint32_t sms = 1;             ///< %nsmid; CTAs take their %smid in turn
  uint64_t clock_begin = 0;     ///< %clock64 when a CTA begins; it advances by one an instruction
  uint64_t timer_begin_ns = 0;  ///< %globaltimer then
  double timer_ns = 1;          ///< nanoseconds of %globaltimer per instruction
  GoOn go_on = GoOn::kNever;
  uint64_t stopped = 0;                              ///< CTAs that ended at a finding
  LockOrder* locks = nullptr;                        ///< null: no thread takes one
  std::vector<Pauses> lock_cycles = {};              ///< RunResult::lock_cycles
  GridOrder* order = nullptr;                        ///< between the CTAs; null: there is one CTA
  const Prerequisites* prerequisites = nullptr;      ///< of a dependent launch; null: they have ended
  Prerequisites::Conduct* conduct = nullptr;         ///< towards them
  std::optional<AccessHistory>* accesses = nullptr;  ///< receives those of the launch; may be null
  uint64_t schedule = 0;                             ///< RunOptions::schedule
  bool vain_waits = false;                           ///< RunOptions::vain_waits
  uint64_t changes = 0;                              ///< grows when a byte of device memory changes
  uint64_t grid_workspace = 0;     ///< address of a cooperative launch's barrier, 8 bytes of zeros; 0: not cooperative
  std::string* printed = nullptr;  ///< output of printf, lane by lane; may be null
  Listener* listener = nullptr;    ///< may be null
  Doubles* doubles = nullptr;      ///< may be null
  /// Takes the next cluster that has not begun out of the launch: its first CTA.
  std::function<std::optional<uint64_t>()> cancel = [] { return std::optional<uint64_t>(); };
};

bool goes_on(GoOn how, const char* kind);
/// Adds a finding of a CTA to those of the launch; one that goes on after findings has one for each kind and place.
void add_finding(GoOn how, std::vector<Finding>& all, Finding finding);

/// "A[byte 12]", "8 bytes past the end of A (64 bytes)": no raw device addresses, so that messages do not depend on
/// other allocations.
std::string describe(const LaunchState& state, uint64_t address);

/// The finding of a fault of one lane at one instruction.
Finding finding_of(const Kernel& kernel, Fault fault, uint64_t cta, uint32_t warp, uint32_t pc);

}  // namespace roofgen::sim
