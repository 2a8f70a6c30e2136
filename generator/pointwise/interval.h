// Interval analysis of conditions over indices: for a box of index values at once, does `q >= k and q - k < 1024`
// hold everywhere, nowhere, or here and there? The same analysis runs on the host (to count work) and, as generated
// code, in kernels (to skip tiles that a mask rules out). It is conservative, kUnknown where it cannot tell, exact on a
// single element of whole numbers, and isotonic: what it decides for a box it decides for every part of it.
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

/// Both ends included. NaN: nothing is known.
struct Range {
  double low = 0, high = 0;
};

/// The values that a name may take in the box: an index, or a tensor (by its name) that has one value in all of it.
/// nullopt: anything, NaN included.
using RangeOf = std::function<std::optional<Range>(const std::string& name)>;

/// How generated code calls the bounds of a name ("q", "at(e.v_window)"); nullopt: nothing is known of it.
using BoundsOf = std::function<std::optional<std::string>(const std::string& name)>;

class Condition {
 public:
  /// `text` was accepted by Formula before: what this does not understand, it knows nothing about.
  static Condition parse(std::string_view text, std::string_view argument);

  Truth judge(const RangeOf& range_of) const;
  /// The text of an expression of type Truth (templates/lib/bounds.cuh).
  std::string cuda(const BoundsOf& bounds_of) const;
  /// Kernels compute with indices in 32 bits: an error with a caret at the first part that may pass them. Names
  /// without a range are no whole numbers.
  Result<void> check_int32(const RangeOf& range_of) const;
  bool reads(const std::string& name) const;
  /// An error with a caret where `name` is read.
  Result<void> refuse_name(const std::string& name, const std::string& why) const;

 private:
  std::shared_ptr<const expr::Tree> tree_;
};

}  // namespace roofgen::pointwise
