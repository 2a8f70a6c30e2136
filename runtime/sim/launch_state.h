// The state that all CTAs of a launch share, and the text of their findings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/sim/code.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/private_lines.h"

namespace roofgen::sim {

class GridOrder;
class Listener;

/// Something the running kernel did wrong; ends its CTA. Thrown inside the machine only.
struct Fault {
  const char* kind;
  std::string message;
  uint32_t lane;
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
  /// Undefined behaviour that no GPU traps on (uninitialised, race, async-pending). Null: it ends the CTA like any
  /// other finding; else the first kMostTolerated findings of the launch are added here, and the CTA goes on.
  std::vector<Finding>* tolerated = nullptr;
  GridOrder* order = nullptr;      ///< between the CTAs; null: there is one CTA
  uint64_t schedule = 0;           ///< RunOptions::schedule
  uint64_t changes = 0;            ///< grows when a byte of device memory changes
  uint64_t grid_workspace = 0;     ///< address of a cooperative launch's barrier, 8 bytes of zeros; 0: not cooperative
  std::string* printed = nullptr;  ///< output of printf, lane by lane; may be null
  Listener* listener = nullptr;    ///< may be null
};
inline constexpr size_t kMostTolerated = 8;

/// "A[byte 12]", "8 bytes past the end of A (64 bytes)": no raw device addresses, so that messages do not depend on
/// other allocations.
std::string describe(const LaunchState& state, uint64_t address);

/// The finding of a fault of one lane at one instruction.
Finding finding_of(const Kernel& kernel, Fault fault, uint64_t cta, uint32_t warp, uint32_t pc);

}  // namespace roofgen::sim
