// Definitions of the operators over a row in the expression language (docs/kernels/rows.md), shared by the ops of these
// names and by steps of chains.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::rows {

/// Names and their texts, in order; the last is the value.
using Definitions = std::vector<std::pair<std::string, std::string>>;

/// The inputs of a norm besides its value. `eps`: a number, or the name of a scalar; `bias` is optional.
struct NormInputs {
  std::string eps, weight, bias;
};

/// y of the value v. Intermediate values: `centred`, `power`, `row_scale`.
Definitions rmsnorm(const std::string& v, const std::string& y, const NormInputs& inputs);
Definitions layernorm(const std::string& v, const std::string& y, const std::string& centred, const NormInputs& inputs);
Definitions softmax(const std::string& v, const std::string& y, const std::string& power);
/// Divided by the scale of its row, so that the largest magnitude is that of `format`, fp8 or int8.
Definitions quantised_by_row(const std::string& v, const std::string& y, const std::string& row_scale, DType format);

}  // namespace roofgen::rows
