// The ceilings of a device. A roof is the rate of one resource; work is an amount of each resource. The amount over the
// rate is the time that the work needs under that roof alone.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/device.h"

namespace roofgen {

/// The datasheet's rates, or those sustained in practice: bandwidths of the device's cells for that, SM rates at the
/// sustained clock.
enum class RoofSet { kDatasheet, kSustained };
const char* to_string(RoofSet set);  ///< "datasheet", "sustained"
Result<RoofSet> parse_roof_set(const std::string& name);

/// The units of an SM, then the levels that all SMs share. The unit of an amount is after each name.
enum class Resource {
  kTensor,        ///< FLOP on the matrix units
  kVector,        ///< FLOP on the CUDA cores, two per multiply-add
  kSpecial,       ///< lane operations on the special-function units
  kFp32,          ///< lane operations on the FP32 pipe
  kAlu,           ///< lane operations on the integer pipe
  kSharedMemory,  ///< bytes
  kIssue,         ///< warp instructions
  kL2,            ///< bytes, as the next two
  kDram,
  kNvlink,  ///< one direction
};
inline constexpr size_t kResources = 10;
inline bool per_sm(Resource r) { return r < Resource::kL2; }

/// Work: an amount of each resource.
struct Amounts : std::array<double, kResources> {
  double& operator[](Resource r) { return array::operator[](static_cast<size_t>(r)); }
  double operator[](Resource r) const { return array::operator[](static_cast<size_t>(r)); }
};

/// One ceiling.
struct Roof {
  std::string name;  ///< "BF16 tensor, FP32 accumulate", "DRAM", "SFU", ...
  Resource resource = Resource::kTensor;
  double rate = 0;  ///< amount per second of the whole device; 0: the device does not state it
  Origin origin = Origin::kDatasheet;
  std::string cell = {};                   ///< of arithmetic, as the next two: the cell with its rate
  std::string math = {}, accumulate = {};  ///< "bf16", "fp32"; CUDA cores have no accumulator
};

/// The time that an amount needs under one roof alone, at the rate of the whole device.
struct RoofTime {
  std::string name;
  Resource resource = Resource::kTensor;
  double seconds = 0;  ///< infinite for work without a rate
};
std::vector<RoofTime> roof_times(const std::vector<Roof>& roofs, const Amounts& amounts);

/// The roof of any resource but the two kinds of arithmetic.
Roof roof_of(const Device& device, Resource resource, RoofSet set);
/// All dense peaks that the device states, the fastest first.
std::vector<Roof> compute_roofs(const Device& device, RoofSet set);
/// DRAM, L2, shared memory and NVLink, as far as the device states them.
std::vector<Roof> bandwidth_roofs(const Device& device, RoofSet set);
/// The clock of the SMs under tensor load, for all of their units.
double sm_clock_hz(const Device& device, RoofSet set);

/// The peak of matrix work in `math` with accumulation in `accumulate`. If the device cannot multiply that format, its
/// operands are widened: the peak of the next wider format, with a `*note`. Exit::kUsage if there is none.
Result<Roof> matrix_roof(const Device& device, const std::string& math, const std::string& accumulate, RoofSet set,
                         std::string* note = nullptr);
/// The peak of work outside the matrix units: FP32 on the CUDA cores.
Roof vector_roof(const Device& device, RoofSet set);

/// The families of matrix instructions. Each has rates of its own.
enum class MatrixInstruction { kMmaSync, kWgmma, kTcgen05 };
inline constexpr MatrixInstruction kMatrixInstructions[] = {MatrixInstruction::kMmaSync, MatrixInstruction::kWgmma,
                                                            MatrixInstruction::kTcgen05};
const char* to_string(MatrixInstruction instruction);  ///< "mma.sync", "wgmma", "tcgen05"
/// The newest family that the PTX of a kernel issues; mma.sync if it issues none.
MatrixInstruction matrix_instruction(std::string_view ptx);
/// "mma_sync_flops_per_clk_bf16"
std::string rate_cell(MatrixInstruction instruction, const std::string& math);
/// The roof of a kernel that issues `instruction` on operands in `math`.
Roof instruction_roof(const Device& device, MatrixInstruction instruction, const std::string& math, RoofSet set);
/// The roofs of such a kernel: its tensor roof, the pipes of an SM, L2 and DRAM.
std::vector<Roof> kernel_roofs(const Device& device, MatrixInstruction instruction, const std::string& math,
                               RoofSet set);

/// FLOP per byte of DRAM at which `roof` meets the slope.
double ridge(const Device& device, const Roof& roof, RoofSet set);

}  // namespace roofgen
