// What a fuzz target is: FUZZ_TARGET(name) { ... } with `data` and `size` in a namespace of its own; it returns 0, or
// aborts. One test runs all of them (smoke_test.cpp); with libFuzzer each is a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#ifdef ROOFGEN_LIBFUZZER
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define FUZZ_TARGET(name)                                                             \
  static int target(const uint8_t*, size_t);                                          \
  [[maybe_unused]] static const bool added = targets().emplace(#name, target).second; \
  static int target(const uint8_t* data, size_t size)
#endif

namespace roofgen {

using FuzzTarget = int (*)(const uint8_t* data, size_t size);

/// By name, which is also the name of the folder of the corpus.
inline std::map<std::string, FuzzTarget>& targets() {
  static std::map<std::string, FuzzTarget> all;
  return all;
}

}  // namespace roofgen
