// Private to this folder: the input data of micro-kernels as pure functions of the index, checks that an output results
// from all of the work, and rates from times.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/executor.h"
#include "tuner/ceilings/ceilings.h"
#include "tuner/ceilings/kernels.h"

namespace roofgen::ceilings {

/// Word i of a pattern: a float in [1, 2). templates/ceilings/stream.cu.jinja computes the same.
inline constexpr uint64_t kPatternPeriod = uint64_t{1} << 20;
inline uint32_t pattern_word(uint64_t i, uint32_t seed) {
  return 0x3f800000u | (static_cast<uint32_t>(i & (kPatternPeriod - 1)) * 2654435761u + seed) >> 9;
}
/// The sum of the first n words, mod 2^32.
uint32_t pattern_sum(uint64_t n, uint32_t seed);
Fill pattern_fill(uint32_t seed);

/// Increment of the write kernel's seed per pass.
inline constexpr uint32_t kPassSeed = 0x61c88647u;

/// Element `lane_part` of word i of the operands of a matrix kernel: near N(0, 1) and representable.
double operand(const std::string& kind, uint64_t i, int part);
int operand_parts(const std::string& kind);  ///< elements of a word
int operand_bytes(const std::string& kind);  ///< of a word
Fill operand_fill(const std::string& kind);

Result<std::string> check_read(const MicroKernel& kernel, const OutputReader& read);  ///< exact: the sum of all words
Result<std::string> check_write(const MicroKernel& kernel,
                                const OutputReader& read);  ///< exact, in samples of large arrays
Result<std::string> check_copy(const MicroKernel& kernel, const OutputReader& read);
Result<std::string> check_triad(const MicroKernel& kernel, const OutputReader& read);
Result<std::string> check_smem(const MicroKernel& kernel, const OutputReader& read);  ///< exact
Result<std::string> check_fma(const MicroKernel& kernel, const OutputReader& read);   ///< exact
Result<std::string> check_mufu(const MicroKernel& kernel, const OutputReader& read);  ///< within a thousandth
Result<std::string> check_mma(const MicroKernel& kernel,
                              const OutputReader& read);  ///< INT8 exact, others within a hundredth

/// In the ceiling's unit. If the clock is unknown, the device's highest is used: a rate per clock is then a lower
/// bound.
double rate_of(const CeilingSpec& spec, const Device& device, double amount, double time_ns, double sm_mhz);

/// Sets the rates of a timed ceiling. A rate above the stated limit becomes `impossible`, with the reason.
void judge(CeilingResult& result, const Device& device);

/// The cells of the rates that the device accepts, and notes about the others.
void derive_cells(CeilingsReport& report);

}  // namespace roofgen::ceilings
