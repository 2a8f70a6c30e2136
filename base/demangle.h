// Names of C++ functions and types as a programmer writes them.
#pragma once

#include <string>

namespace roofgen {

/// "_Z5scalePfi" -> "scale(float*, int)"; a name that is not mangled stays as it is.
std::string demangled(const std::string& name);

}  // namespace roofgen
