// Compares a kernel's output with the reference, element by element. Private to this folder.
#pragma once

#include <string>

#include "generator/ops/attention_reference.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// A kernel's output: its buffer and the roundings before it.
struct Written {
  Value value = Value::kOutput;
  std::string buffer = "O";
  Path path = Rounding::kFused;
  bool lse = false;    ///< compare LSE too, if the problem has it
  int64_t splits = 0;  ///< above 0: O and LSE are in parts, [row][split] of partial_O and partial_LSE
};

Result<Comparison> compare(const Shape& shape, InputPattern pattern, const Written& written, const Region& band,
                           const ElementReader& read);

}  // namespace roofgen::attention
