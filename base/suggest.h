// "did you mean ...?" for every unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

/// The nearest of `known` within a third of the word's length, by edit distance; "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);
/// `; did you mean "x"?`, or the list of what exists when nothing is near and the list is short.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace roofgen
