// The source lines of machine code, from the line program of a CUBIN (section .debug_line, DWARF 2 to 4).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::sass {

struct TextLine {
  std::string file;
  int line = 0;  ///< 0: unknown
};

/// The source line of each instruction of a kernel, for CUBINs compiled with line numbers; an empty list without.
/// Errors: Exit::kFailed, naming the broken part.
Result<std::vector<TextLine>> line_table(std::string_view cubin, const std::string& kernel);

}  // namespace roofgen::sass
