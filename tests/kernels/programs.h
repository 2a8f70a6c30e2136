// Template -> Program for tests: a schedule with some parameters pinned, and a template with some lines changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"

namespace roofgen::test {

using Pins = std::map<std::string, ParamValue>;

/// One change of a template's text. `from` must occur in the file exactly once.
struct Edit {        // literals: a table of strings is code that takes seconds to compile
  const char* file;  ///< "attention/fused.cu.jinja"
  const char *from, *to;
};

/// The default schedule but for the pins, also where it is pruned. Errors: a constraint that it violates.
Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins);

/// As generate(), of the changed template.
Result<Program> render(const DataFiles& files, const Stage& stage, const Legal& legal, const std::vector<Edit>& edits);

}  // namespace roofgen::test
