// libFuzzer entry point (option ROOFGEN_FUZZ, see CMakeLists.txt).
// Seeds: tests/sim/fixtures/fuzz.
#include "fuzz_ptx.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roofgen::sim_test::fuzz_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
