// Compiles formulas with NVRTC and runs their device functions in the simulator, like a template.
#pragma once

#include <string>
#include <vector>

#include "generator/pointwise/formula.h"

namespace roofgen::test {

/// One CTA per formula, one thread per column. The formulas share a vocabulary with indices m, n; all values are fp32.
struct FormulaRun {
  int rows = 2, cols = 100;   ///< cols: up to 128
  std::vector<float> source;  ///< [rows, cols]
  /// Edits of the compiled text; each `first` must occur.
  std::vector<std::pair<std::string, std::string>> edits = {};
};

/// An approximately N(0, 1) number for a seed.
float noise(uint64_t seed);
std::vector<float> noisy_source(int rows, int cols, uint64_t seed);

/// The outputs: [formula][output][element]. Every second formula does not keep x between phases.
using FormulaOutputs = std::vector<std::vector<std::vector<float>>>;
Result<FormulaOutputs> run_formulas(const std::vector<pointwise::Formula>& formulas, const FormulaRun& run);

/// The number of compared elements, and of those with an error bound below 2^-8 of the value or of 1.
struct Tally {
  size_t elements = 0, tight = 0;
};

/// The first element further than kSigmas from the reference, in one line; "" without one.
std::string compare(const pointwise::Formula& formula, const FormulaRun& run,
                    const std::vector<std::vector<float>>& outputs, Tally* tally = nullptr);

}  // namespace roofgen::test
