// Compares what a kernel wrote with the reference, element by element. Private to this folder.
#pragma once

#include <string>

#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// What a kernel wrote: where, and how that came about.
struct Written {
  Value value = Value::kOutput;
  std::string buffer = "O";
  Path path = Rounding::kFused;
  bool lse = false;  ///< and LSE beside it, if the problem has one
};

Result<Comparison> compare(const Shape& shape, InputPattern pattern, const Written& written, const Region& band,
                           const ElementReader& read);

}  // namespace roofgen::attention
