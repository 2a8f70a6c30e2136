// Maps code of toolkit headers to the line of the user's file that called it, by the line table of the PTX: a finding
// inside such a header is of little use without its caller.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::sim {

class CallSites {
 public:
  /// Files for which `passed_over` is true are skipped.
  CallSites(std::string ptx, const std::function<bool(const std::string& file)>& passed_over);
  /// The innermost place, in a file that is not skipped, of the instruction at a PTX line. Line 0 if there is none.
  Where of(int ptx_line) const;
  /// For code of a function that was inlined, in a file that is not skipped.
  struct Inlined {
    std::string function;        ///< mangled; empty: unknown
    std::vector<Where> callers;  ///< innermost first, at most kMostCallers; empty: not inlined
  };
  static constexpr size_t kMostCallers = 4;
  Inlined inlined(int ptx_line) const;

 private:
  using Place = std::tuple<uint32_t, uint32_t, uint32_t>;  ///< file, line, column
  struct Loc {
    int ptx_line;
    Place at, inlined_at;       ///< inlined_at: zeros if the code was not inlined
    size_t outer = 0;           ///< index + 1 of the Loc that it was inlined into; 0: none
    Place counts{};             ///< the innermost place in a file that is not skipped
    std::string_view function;  ///< of the inlined code, as a label with an offset
  };
  const Loc* loc_of(int ptx_line) const;
  /// The place is in a file that is not skipped.
  bool counts(const Place& place) const;
  Where where(const Place& place) const;
  std::string function_name(std::string_view label) const;

  std::string ptx_;
  std::function<bool(const std::string& file)> passed_over_;
  std::map<uint32_t, std::string> files_;
  std::vector<Loc> locs_;
};

}  // namespace roofgen::sim
