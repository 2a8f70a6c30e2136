#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>

namespace roofgen {

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}

}  // namespace roofgen
