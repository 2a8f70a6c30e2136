// Compares what a kernel wrote with the reference, element by element. Private to this folder.
#pragma once

#include <string>

#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// Which buffer a stage fills, and with what.
enum class Output { kScores, kProbabilities, kFused, kUnfused };

Result<Comparison> compare(const Shape& shape, InputPattern pattern, Output output, const Region& band,
                           const ElementReader& read);

}  // namespace roofgen::attention
