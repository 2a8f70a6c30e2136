// The part of a problem that something depends on.
#pragma once

#include <initializer_list>
#include <string_view>

#include "roofgen/pipeline.h"

namespace roofgen {

/// A problem without the dims, flags, reals and texts of other names. What is made from it reads no others, so that its
/// text is a whole key.
inline Problem part_of(const Problem& problem, std::initializer_list<std::string_view> names) {
  Problem out = problem;
  const auto keep = [&](auto& values) {
    std::erase_if(values, [&](const auto& v) { return std::ranges::find(names, v.first) == names.end(); });
  };
  keep(out.dims);
  keep(out.flags);
  keep(out.reals);
  keep(out.texts);
  return out;
}

}  // namespace roofgen
