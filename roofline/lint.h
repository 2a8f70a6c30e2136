// Rules a roofline table must not break. One table of rules; each looks at one claim: a row of a
// user's table, or a result of ours. docs/lint.md says what each rule means and where it was met.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/work.h"

namespace roofgen {

struct Warning {
  std::string rule;  ///< "R09"
  std::string text;  ///< one sentence with the numbers
};

struct Rule {
  const char* id;
  const char* title;  ///< "working set fits in L2"
};
const std::vector<Rule>& rules();

/// What is said about one operator on one device. Only what is known is set.
struct Claim {
  std::string name;               ///< the row's name, for messages
  Where where;                    ///< its place in the file
  const Device* device = nullptr; ///< the catalogue's, when one is named and known
  const OpWork* work = nullptr;   ///< by our formulas, when the shape is known
  std::optional<double> flops, bytes, ai, ridge, peak_tflops, bandwidth_gb_s;
  std::optional<double> attainable_tflops, achieved_tflops, time_us, launches, ctas, memory_bytes;
  std::string bound;              ///< "memory", "compute", ... as claimed; empty: not claimed
  std::string dtype, accumulate, ceiling_dtype;
  std::string origin;             ///< "measured", "model", ...; empty: not stated
  std::string inputs, cache;      ///< "zeros", "warm"
};

/// Every rule that `claim` breaks.
std::vector<Warning> lint(const Claim& claim);

}  // namespace roofgen
