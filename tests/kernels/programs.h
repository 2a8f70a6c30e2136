// Template -> Program for tests: a schedule with some parameters pinned, and code with some lines changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"

namespace roofgen::test {

using Pins = std::map<std::string, ParamValue>;

/// One change of generated code: of what a file below templates/ gives. Blanks, line breaks and comments of `from` do
/// not count. `from` must come from one place of the file; what the place gives several times is changed each time.
struct Edit {
  std::string file;  ///< "attention/fused.cu.jinja"
  std::string from, to;
};

/// The default schedule but for the pins, also where it is pruned. Errors: a constraint that it violates.
Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins);

/// Whether the program had the code of the edit, which has been changed. Errors: code from several places.
Result<bool> apply(const Edit& edit, Program& program);

}  // namespace roofgen::test
