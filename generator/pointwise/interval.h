// Interval analysis of conditions over indices: does `q >= k and q - k < 1024` hold everywhere in a box of index
// values, nowhere, or in parts? The analysis runs on the host, to count work, and as generated code in kernels, to skip
// masked tiles. It is conservative (kUnknown if undecided), exact on a single element of integers, and isotonic: a
// decision for a box holds for every part of the box.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "roofgen/result.h"

namespace roofgen::expr {
struct Tree;
}

namespace roofgen::pointwise {

enum class Truth { kNever, kUnknown, kAlways };

/// Both ends included. NaN: unknown.
struct Range {
  double low = 0, high = 0;
};

/// The range of a name in the box: of an index, or of a tensor (by its name) that is constant in the box. nullopt: any
/// value, NaN included.
using RangeOf = std::function<std::optional<Range>(const std::string& name)>;

/// The bounds of a name in generated code ("q", "at(e.v_window)"); nullopt: unknown.
using BoundsOf = std::function<std::optional<std::string>(const std::string& name)>;

class Condition {
 public:
  /// `text` was accepted by Formula before. Parts outside the analysis are unknown.
  static Condition parse(std::string_view text, std::string_view argument);

  Truth judge(const RangeOf& range_of) const;
  /// The text of an expression of type Truth (templates/lib/bounds.cuh).
  std::string cuda(const BoundsOf& bounds_of) const;
  /// Kernels compute indices in 32 bits: an error with a caret at the first part that may overflow. Names without a
  /// range are not integers.
  Result<void> check_int32(const RangeOf& range_of) const;
  bool reads(const std::string& name) const;
  /// An error with a caret at the first use of `name`.
  Result<void> refuse_name(const std::string& name, const std::string& why) const;

 private:
  std::shared_ptr<const expr::Tree> tree_;
};

}  // namespace roofgen::pointwise
