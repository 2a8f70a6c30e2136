// Words of a shell's command line.
#pragma once

#include <string>

namespace roofgen {

/// The text as one word, in quotes where a shell needs them.
std::string shell_word(const std::string& text);

}  // namespace roofgen
