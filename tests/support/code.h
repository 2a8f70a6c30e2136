// Code as its tokens say it: blanks, line breaks and comments do not count.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofgen::test {

/// Where the text has this code: first and last + 1.
std::vector<std::pair<size_t, size_t>> find_code(std::string_view text, std::string_view code);

}  // namespace roofgen::test
