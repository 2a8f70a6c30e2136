// The event model of one SM: its resident CTAs, four schedulers, pipes and memory queues, fed by the instruction
// streams of the warps. In-order issue by the stall counts and scoreboards that ptxas wrote into the code.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sass/stream.h"
#include "tuner/timing/machine.h"

namespace roofgen::timing {

/// Changes with every source that a modelled time depends on.
const char* model_version();

/// The reason why a warp does not issue.
enum class Stall : uint8_t {
  kFixed,         ///< the stall count of its last instruction
  kPipe,          ///< the pipe of its next instruction is busy
  kQueue,         ///< the queue to the load-store unit is full
  kShared,        ///< waits for shared memory
  kGlobal,        ///< waits for device memory (L1, L2 or DRAM)
  kLocal,         ///< waits for local memory
  kSpecial,       ///< waits for a result of the special-function unit or a special register
  kAtomic,        ///< atomic operations on one address of device memory, one after another
  kCopies,        ///< waits for asynchronous copies
  kProducts,      ///< waits for products of its warpgroup
  kTensorMemory,  ///< waits for tensor memory
  kPhase,         ///< waits at an mbarrier
  kBarrier,       ///< waits at a barrier of the CTA, or of the cluster
  kBranch,        ///< waits for its next instruction after a branch
  kFetch,         ///< waits for its next instruction, which the instruction cache lacks
  kNotSelected,   ///< another warp issues
  kCount
};
const char* to_string(Stall stall);

using StallCycles = std::array<double, static_cast<size_t>(Stall::kCount)>;

/// What one instruction did and waited for, over all warps.
struct InstructionTime {
  uint64_t issues = 0;
  StallCycles stalls{};                                   ///< warp-cycles before its issue
  double blamed = 0;                                      ///< warp-cycles that other instructions waited for its result
  double pipe = 0, shared = 0, l1 = 0, l2 = 0, dram = 0;  ///< cycles in which it occupies the units
  double flops = 0;                                       ///< of tcgen05, on this SM
};

/// One CTA slot's history, for a timeline.
struct CtaSpan {
  uint64_t cta = 0;
  double begin = 0, end = 0;  ///< cycles
};

/// A part of a warp's history: the issue of an instruction, or the wait before it.
struct TraceSpan {
  int warp = 0, scheduler = 0;
  uint32_t index = 0;  ///< of the instruction
  bool issue = false;
  Stall stall = Stall::kFixed;  ///< of a wait
  double begin = 0, end = 0;    ///< cycles
};

struct SmTime {
  double cycles = 0;  ///< from the first issue to the end of the last CTA
  uint64_t issues = 0;
  double warp_cycles = 0;  ///< sum over warps of the cycles that they were resident
  std::array<double, static_cast<size_t>(sass::Pipe::kCount)> pipe_cycles{};  ///< busy, summed over the schedulers
  double shared_cycles = 0;                                                   ///< busy cycles of the shared-memory unit
  double fill_cycles = 0;                 ///< busy cycles of the way of tensor copies into shared memory
  double l1_cycles = 0;                   ///< busy cycles of the load-store unit with device and local memory
  double l2_cycles = 0, dram_cycles = 0;  ///< busy cycles of this SM's share
  double atomic_cycles = 0;               ///< busy cycles of the most used address, by all SMs
  uint64_t load_sectors = 0, l1_hit_sectors = 0, l2_read_sectors = 0, l2_write_sectors = 0;
  double dram_read_sectors = 0;
  uint64_t instruction_misses = 0;  ///< lines of code that the instruction cache lacked
  /// Waits that nothing would have ended: the model let them pass. Its time is then no prediction.
  uint64_t broken_waits = 0;
  StallCycles stalls{};
  std::vector<InstructionTime> instructions;  ///< by index in the code
  std::vector<CtaSpan> ctas;                  ///< in the order of their ends
  std::vector<TraceSpan> trace;               ///< of the first SmLoad::trace_spans spans
};

struct SmLoad {
  std::vector<const sass::CtaStream*> ctas;  ///< in the order of their start
  int resident = 1;                          ///< CTAs at a time
  double shared_bytes = 0;                   ///< of all resident CTAs; the rest of the unified memory is L1
  double l2_miss = 1;                        ///< share of the sectors read from L2 that come from DRAM
  double write_back = 1;                     ///< share of the written sectors that go to DRAM
  double local_miss = 0;                     ///< share of the local memory sectors after L1 that go to DRAM
  double atomic_sharers = 1;                 ///< SMs whose atomic operations go to the same addresses
  int active_sms = 1;                        ///< that share L2 and DRAM
  double copy_sharing = 0;                   ///< share of the tensor copies' sectors that other SMs read meanwhile
  size_t trace_spans = 0;                    ///< that are kept at most
  /// By instruction: the share of its accesses that L1 misses. Null: L1 is modelled.
  const std::vector<double>* misses = nullptr;
};

/// Bytes of tensor copies that L2 of the whole chip serves in a cycle.
double copy_rate(const Machine& machine, const SmLoad& load);

SmTime simulate_sm(const Machine& machine, const sass::Code& code, const SmLoad& load);

/// What one round of resident CTAs does, at every clock: cycles of the units, sectors after L1.
struct RoundWork {
  std::array<double, static_cast<size_t>(sass::Pipe::kCount)> pipes{};
  double tensor = 0;  ///< of `pipes`, at the highest rate
  double issues = 0, shared = 0, device = 0, atomics = 0;
  double loaded = 0, reloaded = 0, written = 0, spilled = 0;  ///< reloaded and spilled: of local memory
  double tiles = 0, received = 0;                             ///< of tensor copies; cycles of the way that they come
  double copies = 0;                                          ///< tensor copies
  std::vector<double> misses;                                 ///< by instruction: the share of its accesses
  double l2_read_sectors() const { return loaded + tiles; }
};
RoundWork work_of_round(const Machine& machine, const sass::Code& code, const SmLoad& load);

/// The interval model of one round of resident CTAs.
struct Interval {
  double cycles = 0;         ///< a 4-norm of the busiest units and the latency of one warp alone
  double alone_cycles = 0;   ///< of the longest warp, alone on the SM
  double dram_cycles = 0;    ///< of this SM's share of DRAM
  double tensor_cycles = 0;  ///< of each tensor unit, at its highest rate
};
Interval interval(const Machine& machine, const sass::Code& code, const SmLoad& load, const RoundWork& work);

/// Sectors of device memory that L1 misses in the loads of all CTAs, one round of resident CTAs after the other.
double l2_read_sectors(const Machine& machine, const sass::Code& code, const SmLoad& load);

/// Cycles of the tensor unit of one scheduler for an instruction.
double tensor_cycles(const Machine& machine, const sass::Instruction& i);

}  // namespace roofgen::timing
