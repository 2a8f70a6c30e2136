// Where in their own files the code of headers was called, from the line table of PTX: a finding within a header of the
// toolkit is of little use without the line that called it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::check {

class CallSites {
 public:
  /// Places in files that `passed_over` names do not count.
  CallSites(std::string_view ptx, const std::function<bool(const std::string& file)>& passed_over);
  /// The innermost place of what is at a line of the PTX. None: line 0.
  Where of(int ptx_line) const;

 private:
  using Place = std::tuple<uint32_t, uint32_t, uint32_t>;  ///< file, line, column
  struct Loc {
    int ptx_line;
    Place at, inlined_at;  ///< zeros: it was not
    size_t outer = 0;      ///< the one where it was inlined, by number + 1; 0: none before it
    Place counts{};        ///< the innermost that does
  };
  std::map<uint32_t, std::string> files_;
  std::vector<Loc> locs_;
};

}  // namespace roofgen::check
