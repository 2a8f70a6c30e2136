// Compiled kernels that one test leaves to the next.
#pragma once

#include <cstdlib>
#include <string>

namespace roofgen::test {

/// The compile cache of all tests that one ctest runs. Empty: none, where a test runs by itself.
inline std::string shared_compile_cache() {
  const char* const folder = std::getenv("ROOFGEN_TEST_CACHE");
  return folder ? folder : "";
}

}  // namespace roofgen::test
