// "did you mean ...?" suggestions for unknown names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

/// The nearest of `known` by edit distance, within a third of the word's length; "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);
/// What a person may mean: names that begin with the word, else names of which it is a part
/// between hyphens, else the nearest one.
std::vector<std::string> suggestions(std::string_view word, const std::vector<std::string>& known);
/// `; did you mean "x"?`, or a short list of all known names when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace roofgen
