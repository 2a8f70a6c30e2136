// Regular expressions (ECMAScript) in one file: each file that instantiates std::regex takes 3 s longer to compile.
#pragma once

#include <string>
#include <vector>

namespace roofgen::test {

/// The text that matches, and those of the groups; empty for a group without a part in it.
using Match = std::vector<std::string>;

/// The matches in the text, from left to right.
std::vector<Match> matches(const std::string& text, const std::string& pattern);
bool contains(const std::string& text, const std::string& pattern);
/// Of the whole text; empty where it does not match.
Match whole_match(const std::string& text, const std::string& pattern);
/// $1 in `by` is the first group.
std::string substituted(const std::string& text, const std::string& pattern, const std::string& by);

}  // namespace roofgen::test
