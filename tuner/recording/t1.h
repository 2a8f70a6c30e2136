// Tuning spaces in T1, the input format of other tuners: parameters with their values, and conditions in Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/combinations.h"
#include "tuner/recording/recording.h"

namespace roofgen {

/// The legal combinations of a T1 file.
struct DescribedSpace {
  std::vector<Combinations::Param> params;
  LegalCombinations legal;
};

/// Reads "ConfigurationSpace" of a T1 1.0.0 file and finds its legal points. Values and conditions are in the
/// language of docs/internals/expressions.md; `a / b` of a condition is Python's, a float. Exit::kUsage with line and
/// column for anything else.
Result<DescribedSpace> read_t1(std::string text, const std::string& file);

/// A recording beside the description of its space.
struct SpaceComparison {
  uint64_t combinations = 0, legal = 0;
  uint64_t illegal = 0;     ///< points of the recording that the description excludes
  uint64_t unrecorded = 0;  ///< legal points that the recording lacks
  std::vector<std::string> illegal_examples, unrecorded_examples;  ///< "a=1 b=2", the first ones
};
/// Exit::kUsage where the parameters differ. A parameter of one value may be missing on either side.
Result<SpaceComparison> compare(const Recording& recording, const DescribedSpace& space);

}  // namespace roofgen
