// The input data of micro-kernels, as pure functions of the index. Private to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/executor.h"

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

}  // namespace roofgen::ceilings
