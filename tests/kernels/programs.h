// Template -> Program for tests: a schedule with some parameters pinned, and code with some lines changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "tests/support/mutants.h"

namespace roofgen::test {

using Pins = std::map<std::string, ParamValue>;

/// The default schedule but for the pins, also where it is pruned. Errors: a constraint that it violates.
Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins);

/// Edits code that a file below templates/ gave; code that a loop or a macro repeats, each time.
/// False: the program has no such code. Errors: several places of the file gave it.
Result<bool> apply(const Edit& edit, Program& program);

}  // namespace roofgen::test
