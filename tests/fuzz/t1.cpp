// Reads arbitrary bytes as a T1 file: no crash; an error says what and where.
#include "tuner/recording/t1.h"

#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_t1 {
FUZZ_TARGET(t1) {
  const auto read = read_t1({reinterpret_cast<const char*>(data), size}, "f.json");
  if (!read && (read.error().message.empty() || read.error().where.file != "f.json")) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_t1
