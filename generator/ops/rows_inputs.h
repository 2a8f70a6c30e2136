// The contents of the source of a row operator: a pure function of (pattern, row, column).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "generator/ops/op.h"

namespace roofgen::rows {

/// Rows of kExtremeRows with different contents (docs/internals/verification.md): first kOutlierRows with one element
/// that is much larger than the others. The last are the most telling: of long rows only they are compared.
inline constexpr int64_t kRowClasses = 64, kOutlierRows = 48;

struct SourceContents {
  InputPattern pattern = InputPattern::kNormal;
  DType dtype = DType::kBf16;
  int64_t cols = 1;
  double hidden = 0;  ///< kExtremeRows: the value of runs that a row hides: -inf for softmax, else 0
  std::string name = "x";

  void values(int64_t row, int64_t first, std::span<double> out) const;  ///< as load_element reads them
  void fill(uint64_t byte_offset, std::span<std::byte> out) const;
};

}  // namespace roofgen::rows
