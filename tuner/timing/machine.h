// One SM and its share of the memory system, as the time models see it: rates and latencies in cycles of the SM clock.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "roofline/device.h"
#include "runtime/sass/instruction.h"

namespace roofgen::timing {

/// Share of L2 that data can fill before they evict each other (docs/internals/model.md).
inline constexpr double kL2Share = 0.8;

struct Machine {
  std::string device, arch;
  int sms = 0;
  int schedulers = 4;
  double clock_hz = 0;      ///< of a kernel that does not reach the power limit
  double tensor_hz = 0;     ///< where the tensor units multiply in every cycle, at the power limit
  double tensor_share = 1;  ///< rate of the tensor unit with mma.sync, of its highest
  double launch_s = 0;

  /// Cycles that a warp instruction occupies its pipe of one scheduler.
  std::array<double, static_cast<size_t>(sass::Pipe::kCount)> interval{};
  /// FLOP of one scheduler's tensor unit in a cycle, by operand format.
  double tensor_f16 = 0, tensor_tf32 = 0, tensor_int8 = 0, tensor_fp64 = 0, tensor_fp8 = 0, tensor_mxfp8 = 0,
         tensor_fp4 = 0;

  double cycles_per_wavefront = 0;  ///< of shared memory
  double shared_least = 0;          ///< cycles of the shared-memory unit for one instruction, at least
  int memory_queue = 0;             ///< instructions of one scheduler between issue and the load-store unit
  double xu_latency = 20, special_register_latency = 25;
  double shared_latency = 22, l1_latency = 33, l2_latency = 220, dram_latency = 470;
  double branch_cycles = 0;    ///< from a branch to the next instruction of the warp, at least
  double barrier_cycles = 20;  ///< from the last arrival to the release
  double new_cta_cycles = 0;   ///< from the end of a CTA to the first instruction of the next in its place

  /// Units of sm_90 that work asynchronously.
  double product_f16 = 0, product_tf32 = 0, product_fp8 = 0, product_int8 = 0;  ///< as tensor_f16, of warpgroups
  double beside_product_cycles = 0;           ///< more from an instruction to the warp's next, beside a product
  double product_latency = 0;                 ///< cycles from the issue of a product to its begin, at least
  int product_queue = 1;                      ///< products of one scheduler that have been issued but not begun
  double shared_bytes_per_cycle = 128;        ///< of shared memory, for operands of products and for tensor copies
  double copy_start = 0;                      ///< from the issue of a tensor copy to its first request
  double copy_l2_bytes_per_cycle = 0;         ///< of the whole L2, for tensor copies of lines that one SM reads
  double shared_copy_l2_bytes_per_cycle = 0;  ///< the same for lines that several SMs read at about the same time
  double copy_bytes_per_cycle = 128;          ///< that one SM receives by tensor copies
  double phase_cycles = 0;                    ///< from an arrival at an mbarrier to the end of the wait of another warp
  double try_wait_cycles = 0;                 ///< of a wait at an mbarrier whose phase is complete
  double cluster_cycles = 0;                  ///< the same between two CTAs, and of the barrier of a cluster
  double register_cycles = 0;                 ///< of setmaxnreg
  double copy_burst_cycles = 0;               ///< of its share of L2 that an SM can save up and use later
  double copy_issue_cycles = 0;               ///< from one tensor copy that the copy engine takes to the next
  double copy_row_cycles = 0;                 ///< of the copy engine for a row of a tile, of 128 bytes at most
  double copy_page_cycles = 0;                ///< more for a row that begins in another 64 KiB than the row before

  /// The tensor unit of sm_100, which all warps of an SM share, and tensor memory.
  double matrix_f16 = 0, matrix_fp8 = 0, matrix_int8 = 0, matrix_fp4 = 0;  ///< FLOP of one SM in a cycle
  double matrix_latency = 0, pair_latency = 0;  ///< of a product of one CTA and of a pair, without reads and columns
  double pair_least_cycles = 0;                 ///< between products of a pair
  double commit_cycles = 0;                     ///< from the end of the products to the arrival
  double tensor_memory_bytes_per_cycle = 512;   ///< of one SM, to and from registers
  double tensor_memory_latency = 0;

  double instruction_bytes = 0;  ///< of the instruction cache
  double fetch_latency = 0;      ///< of a line of code that it lacks
  double fetch_cycles = 32;      ///< from one such line to the next

  std::vector<double> carve_outs;       ///< sizes that shared memory can have, ascending
  double unified_bytes = 0;             ///< L1 and shared memory together
  double l2_bytes_per_cycle = 64;       ///< of one SM's port
  double l2_total_bytes_per_cycle = 0;  ///< of the whole L2
  double dram_bytes_per_cycle = 0;      ///< of the whole chip
  double l2_bytes = 0;
};

/// Shared memory of an SM in which `bytes` fit: it takes some sizes only, and the rest of the unified memory is L1.
double carve_out(const Machine& machine, double bytes);

/// The clock of a kernel whose tensor units multiply in a share of all cycles.
double clock_of(const Machine& machine, double tensor_share);

/// The same machine at another clock: L2 and DRAM give as many bytes a second.
Machine at_clock(Machine machine, double hz);

/// The machine of a device at `sm_mhz`, whatever the kernel; 0: at a clock that depends on the kernel. Errors:
/// Exit::kUnavailable, naming the missing cell.
Result<Machine> machine_of(const Device& device, double sm_mhz = 0);

}  // namespace roofgen::timing
