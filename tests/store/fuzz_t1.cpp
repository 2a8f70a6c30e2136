// Reads arbitrary bytes as a T1 file: no crash; an error says what and where.
#include <cstdlib>

#include "tuner/recording/t1.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = roofgen::read_t1({reinterpret_cast<const char*>(data), size}, "f.json");
  if (!read && (read.error().message.empty() || read.error().where.file != "f.json")) std::abort();
  return 0;
}
