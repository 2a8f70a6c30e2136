// A decoded kernel: instructions with resolved operands, ready to run. Immutable and shared by all
// launches of a module.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "runtime/sim/inst.h"

namespace roofgen::sim {

inline uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(__builtin_ctz(mask)); }
inline uint64_t low_bytes(uint32_t n) { return n >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * n) - 1; }
/// The first `size` bytes, extended by their sign if the instruction's numbers are signed.
inline uint64_t extended(uint64_t value, const Inst& in) {
  const int shift = 64 - 8 * in.size;
  return in.flags & kFlagSigned ? static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift)
                                : value << shift >> shift;
}

// Generic addresses: low windows for the on-chip spaces, so that `cvta` is a move; device buffers
// live far above. Address 0 is in no buffer: the first 1 KiB of shared memory is the system's
// (as on sm_80 and later), so a null pointer is out of bounds in every space.
inline constexpr uint64_t kSharedBase = 1024;
inline constexpr uint64_t kSharedWindowEnd = uint64_t{1} << 24;
inline constexpr uint64_t kLocalBase = kSharedWindowEnd;
inline constexpr uint64_t kLocalWindowEnd = kLocalBase + (uint64_t{1} << 24);
inline constexpr uint64_t kParamBase = kLocalWindowEnd;
inline constexpr uint64_t kParamWindowEnd = kParamBase + (uint64_t{1} << 16);
/// Shared memory of the CTA of each rank of a cluster; the CTA's own has its low window too.
inline constexpr uint64_t kClusterBase = uint64_t{1} << 28;
inline constexpr uint64_t kClusterCtaBytes = kSharedWindowEnd;
inline constexpr uint32_t kMaxClusterCtas = 16;
inline constexpr uint64_t kClusterWindowEnd = kClusterBase + kMaxClusterCtas * kClusterCtaBytes;
/// Where messages place tensor memory, which has no generic addresses: four times its own address further.
inline constexpr uint64_t kTensorWindow = uint64_t{1} << 36;
/// Addresses of functions, in no window.
inline constexpr uint64_t kFunctionBase = uint64_t{1} << 32;
/// Of the function of this number in its module.
constexpr uint64_t address_of_function(size_t index) { return kFunctionBase + 16 * uint64_t{index}; }
inline constexpr uint64_t kGlobalBase = uint64_t{1} << 40;

/// Read-only registers with a value per launch, CTA, warp or lane.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSmem,
  kTotalSmem,
  kEnvreg1,  ///< with 2: address of the grid's workspace, high and low half, as cooperative groups expect
  kEnvreg2,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kReservedSmem,  ///< address of memory that cooperative groups use between warps
  kZero,
};

/// Inst::imm of a fence: of the initialisation of mbarriers only.
inline constexpr int64_t kFencesMbarriers = 1;

/// Bits of Inst::imm of a clock: nanoseconds instead of cycles; the upper half.
inline constexpr int64_t kClockIsTimer = 1, kClockHigh = 2;

struct ConstantRow {
  uint32_t row;
  uint64_t value;
  bool wide;
};
struct SpecialRow {
  uint32_t row;
  Special special;
};
struct ParamSlot {
  uint32_t offset, bytes;
};

/// A register or predicate of the PTX that an instruction reads or writes.
struct Operand {
  uint32_t reg;  ///< predicates and other registers are numbered apart
  bool is_def, is_pred;
  enum Field : uint8_t { kA, kB, kC, kGuard, kList, kOther } field;
  uint32_t entry = 0;  ///< kList: which of the instruction's
  bool wide = false;   ///< its rows are 64-bit
  uint32_t place = 0;  ///< its row, or, past all rows, its predicate
};

/// Offsets in shared memory; that of the dynamic array has no end of its own.
struct SharedVariable {
  std::string name;
  uint32_t begin, end;
};

struct Kernel {
  std::string name;
  std::string file;  ///< the name of the PTX in findings
  std::vector<Inst> code;
  std::vector<uint32_t> lists;
  std::vector<Where> sources;  ///< per instruction; empty file when unknown
  uint32_t rows = 0;           ///< register rows per warp, constants and specials included
  uint32_t preds = 1;          ///< predicate 0 is always true
  std::vector<ConstantRow> constants;
  std::vector<SpecialRow> specials;
  std::vector<ParamSlot> params;
  uint32_t param_bytes = 0;
  std::vector<SharedVariable> shared_variables;
  std::vector<uint32_t> variable_at;  ///< per instruction, 1 + that which it accesses; 0: not known. Empty: one at most
  uint32_t static_shared = 0;         ///< bytes, dynamic shared memory follows, aligned
  uint32_t local_bytes = 0;           ///< per thread
  uint32_t max_threads[3] = {0, 0, 0};
  uint32_t required_threads[3] = {0, 0, 0};
  uint32_t required_cluster[3] = {0, 0, 0};
  bool counts_clusters = false;  ///< the grid of a launch, not CTAs
  Dim3 ctas_of(const Dim3& clusters) const {
    const auto product = [](uint64_t a, uint64_t b) {
      return static_cast<uint32_t>(std::min(a * b, uint64_t{UINT32_MAX}));
    };
    return {product(clusters.x, required_cluster[0]), product(clusters.y, required_cluster[1]),
            product(clusters.z, required_cluster[2])};
  }
  std::vector<Operand> operands;        ///< by instruction
  std::vector<uint32_t> operand_begin;  ///< per instruction, and one more
  /// Registers that are not proven to be assigned before each use, by their place: their names, else empty. No other
  /// register has their row.
  std::vector<std::string> unassigned;
  std::vector<std::string> not_modelled;  ///< by Inst::imm of kTrapNotModelled: the instruction, and what is near it
  bool has_wgmma = false;
  bool has_tensor_memory = false;
  bool has_cancel = false;  ///< clusterlaunchcontrol.try_cancel
  /// By Operand::reg: a number for each register that a wgmma may read or write asynchronously; 0: none.
  std::vector<uint32_t> watched;
  std::vector<std::string> watched_names;  ///< by that number
  std::vector<uint32_t> watched_lists;     ///< the number for each entry of `lists` that is a register of a wgmma
  uint32_t registers_per_thread = 0;       ///< when the kernel begins, as its directives fix them; 0: they do not
};

}  // namespace roofgen::sim
