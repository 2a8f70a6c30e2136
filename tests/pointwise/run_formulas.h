// Compiles formulas through NVRTC and runs their device functions in the simulator, as a template would.
#pragma once

#include <string>
#include <vector>

#include "generator/pointwise/formula.h"

namespace roofgen::test {

/// One CTA a formula, one thread a column. The formulas share a vocabulary with indices m, n; all is fp32.
struct FormulaRun {
  int rows = 2, cols = 100;   ///< cols: up to 128
  std::vector<float> source;  ///< [rows, cols]
  /// Changes of what is compiled; each `first` must occur.
  std::vector<std::pair<std::string, std::string>> edits = {};
};

/// N(0, 1), or about that, of a number.
float noise(uint64_t seed);
std::vector<float> noisy_source(int rows, int cols, uint64_t seed);

/// The outputs: [formula][output][element]. Every second formula does not keep x between phases.
using FormulaOutputs = std::vector<std::vector<std::vector<float>>>;
Result<FormulaOutputs> run_formulas(const std::vector<pointwise::Formula>& formulas, const FormulaRun& run);

/// How many elements were compared, and of how many the error that is allowed is below 2^-8 of the value or of 1.
struct Tally {
  size_t elements = 0, tight = 0;
};

/// The first element that is further from the reference than kSigmas, as one line; "" when there is none.
std::string compare(const pointwise::Formula& formula, const FormulaRun& run,
                    const std::vector<std::vector<float>>& outputs, Tally* tally = nullptr);

}  // namespace roofgen::test
