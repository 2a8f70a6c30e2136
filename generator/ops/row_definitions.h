// What the operators over a row are, in the expression language (docs/rows.md): one text for the ops of these names and
// for the steps of chains.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::rows {

/// Names and their texts, in order; the value itself is the last.
using Definitions = std::vector<std::pair<std::string, std::string>>;

/// What a norm reads beside its value. `eps`: a number, or the name of a scalar; no `bias`: nothing is added.
struct NormInputs {
  std::string eps, weight, bias;
};

/// y of the value v. What is needed on the way is called `centred`, `power`, `row_scale`.
Definitions rmsnorm(const std::string& v, const std::string& y, const NormInputs& inputs);
Definitions layernorm(const std::string& v, const std::string& y, const std::string& centred, const NormInputs& inputs);
Definitions softmax(const std::string& v, const std::string& y, const std::string& power);
/// Over the scale of its row, which makes the largest magnitude that of `format`, fp8 or int8.
Definitions quantised_by_row(const std::string& v, const std::string& y, const std::string& row_scale, DType format);

}  // namespace roofgen::rows
